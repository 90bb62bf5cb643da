"""browser_execute_script: runs the agent's code in the page, in one round trip.

The secret fields are read in the same message, before and after it; their values are masked in the result. For a script
in a frame they are read in all frames, in messages of their own.

The code is inserted unchanged on its own lines, so that line numbers the browser reports are the agent's. The result
is converted to JSON in the page; an exception becomes an error result with its position.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

import msgspec
import orjson

from tabhub.browser.driver.cdp_values import parse_object
from tabhub.browser.driver.page import Page
from tabhub.browser.driver.worlds import literal, source
from tabhub.browser.elements.frame_choice import FRAME, script_target
from tabhub.browser.schemas import free_object, text
from tabhub.browser.secrets.field_reads import FieldReads, around_script
from tabhub.browser.tool_spec import Call, json_result, tool, with_note
from tabhub.core.tools import ToolResult
from tabhub.errors import CommandFailed, TabFailed

_NAME = "tabhub-script.js"
# A distinctive name, because the agent's code can see it.
_OPENING = "(async () => {const tabhubScript = async (args) => {\n"
_PLAIN = "(e) => { throw Object(e) === e && !(e instanceof Error) ? String(JSON.stringify(e)) : e; }"
_CALL = f"(await tabhubScript(%s).catch({_PLAIN}))"
_CLOSING = f"\n}};\nreturn (\n{source('to_json')}\n){_CALL};}})()\n//# sourceURL={_NAME}"
_NO_ARGS = _CLOSING.replace("%s", "{}")
_ENCODED_OPENING = orjson.dumps(_OPENING)[:-1]
_ENCODED_NO_ARGS = orjson.dumps(_NO_ARGS)[1:]
_EVALUATE = (
    b'"method":"Runtime.evaluate","params":{"expression":%b,"awaitPromise":true,"returnByValue":true,"timeout":%d}'
)
_PLACE = re.compile(re.escape(_NAME) + r":(\d+):(\d+)")
_FRAME = re.compile(
    r"^\s+at (?:(?:async )?(?P<name>[^(]*?) ?\()?" + re.escape(_NAME) + r":(?P<line>\d+):(?P<column>\d+)\)?$"
)
_OURS = ("tabhubScript", "Object.tabhubScript")
_MAX_MESSAGE = 2000
_MARK = b'{"tabhub":1,'
_MARKED = b'"{\\"tabhub\\":1,'


class _Remote(msgspec.Struct):
    value: msgspec.Raw = msgspec.Raw(b"null")


class _Evaluated(FieldReads):
    result: _Remote = msgspec.field(default_factory=_Remote)
    exceptionDetails: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET  # noqa: N815 - the name on the wire


class _Described(msgspec.Struct):
    tabhub: int
    value: msgspec.Raw
    note: str | None = None


_EVALUATED = msgspec.json.Decoder(_Evaluated)
_DESCRIBED = msgspec.json.Decoder(_Described)


@tool(
    "browser_execute_script",
    "Run JavaScript",
    "Runs JavaScript in the page and returns its result.",
    params={
        "code": text("Body of an async function.", least=1, most=1_000_000),
        "args?": free_object("Available as `args`."),
        "frame?": FRAME,
    },
    output={"value": {}},
    destructive=True,
)
async def execute_script(call: Call) -> ToolResult:
    """Evaluate, and splice the value into the answer without decoding it."""
    page = await call.page()
    code, in_frame = call.args["code"], "frame" in call.args
    world, more = page.state.worlds.main_world, False
    if world is None or in_frame:
        more = await call.box.read_fields(page, in_frame)
        world = page.state.worlds.main_world
    reads = b"" if world is None or in_frame else around_script(world)
    # The browser stops an endless loop shortly before the deadline of the call.
    timeout_ms = round(call.box.browsers.limits.call_timeout * 900)
    script = expression(code, call.args.get("args"))
    try:
        with call.box.awake.awake(page):  # a script may wait for an animation frame
            if in_frame:
                answer = await _in_frame(page, call.args["frame"], script, timeout_ms)
            else:
                answer = await page.cdp_encoded(_EVALUATE % (script, timeout_ms) + reads)
    except CommandFailed as error:
        if "Execution was terminated" not in error.message:
            raise
        raise CommandFailed(
            f"The script ran for {timeout_ms / 1000:g} s without yielding and was stopped.",
            hint="Split the script, or `await` between its steps.",
        ) from None
    try:
        evaluated = _EVALUATED.decode(answer)
    except msgspec.DecodeError as error:
        raise CommandFailed(f"invalid response: the browser's answer to the script cannot be read: {error}") from None
    if reads:
        more = not evaluated.learn(page.state.fields)
    if more:
        with suppress(TabFailed):  # the script may have closed the tab
            await call.box.read_fields(page, in_frame)
    if evaluated.exceptionDetails is not msgspec.UNSET:
        return ToolResult.text(describe_exception(orjson.loads(bytes(evaluated.exceptionDetails)), code), is_error=True)
    body = _structured_content(bytes(evaluated.result.value))
    if elsewhere := page.elsewhere_note():
        facts = orjson.loads(body)
        body = orjson.dumps(with_note(facts, facts.get("note", ""), elsewhere))
    return json_result(body)


async def _in_frame(page: Page, wanted: int | str, encoded: bytes, timeout_ms: int) -> bytes:
    """Evaluate in a frame: in its own session, or as a call on an object of its world."""
    session_id, object_id = await script_target(page, wanted)
    code: str = orjson.loads(encoded)
    method, params = "Runtime.evaluate", {"expression": code, "timeout": timeout_ms}
    if object_id is not None:
        # Nothing but the first line before the code, so that its line numbers stay.
        function = f"function () {{ return {code}\n}}"
        method, params = "Runtime.callFunctionOn", {"functionDeclaration": function, "objectId": object_id}
    params |= {"awaitPromise": True, "returnByValue": True}
    answer: bytes = await page.cdp(method, params, session_id, raw=True)
    return answer


def _structured_content(value: bytes) -> bytes:
    """What our page function wrote, or the bare value if the page did not use it."""
    if value.startswith(_MARKED):
        written: bytes = orjson.loads(value).encode()
        try:
            _DESCRIBED.decode(written)
        except msgspec.DecodeError as error:
            raise CommandFailed(f"invalid response: the page changed the script's answer: {error}") from None
        return b"{" + written[len(_MARK) :]
    return b'{"value":' + value + b"}"


def expression(code: str, args: dict[str, Any] | None) -> bytes:
    """The whole expression as a JSON string; the agent's first line is its second. Constant parts are encoded once."""
    if not args:
        return _ENCODED_OPENING + orjson.dumps(code)[1:-1] + _ENCODED_NO_ARGS
    before, after = _CLOSING.split("%s")
    return orjson.dumps(f"{_OPENING}{code}{before}{literal(args)}{after}")


def describe_exception(details: Any, code: str) -> str:
    """The exception with its position and stack in the agent's lines."""
    details = parse_object(details)
    exception = parse_object(details.get("exception"))
    lines = code.split("\n")
    description = exception.get("description")
    if not isinstance(description, str):
        shown = orjson.dumps(exception.get("value")).decode() if "value" in exception else details.get("text", "")
        return f"The script threw {str(shown)[:_MAX_MESSAGE]}."
    message, at, stack = description.partition("\n    at ")
    found = (_stack_position(frame) for frame in f"{at}{stack}".split("\n"))
    places = [place for place in found if place is not None and 1 <= place[1] <= len(lines)]
    if not places and type(at := details.get("lineNumber")) is int and 1 <= at <= len(lines):
        column = details.get("columnNumber")
        places = [("", at, column + 1 if type(column) is int else 1)]
    text = [f"The script threw {message[:_MAX_MESSAGE]}"]
    for number, (name, line, column) in enumerate(places[:10]):
        inside = f" in {name}" if name and name not in _OURS else ""
        source = f": {lines[line - 1].strip()[:200]}" if number == 0 else ""
        text.append(f"  at line {line}, column {column}{inside}{source}")
    if message.startswith("SyntaxError") and not places:
        text.append("  The code must be a function body; none of it ran.")
    return "\n".join(text)


def _stack_position(frame: str) -> tuple[str, int, int] | None:
    """Function, line and column in the agent's code; line 1 of the expression is ours."""
    if found := _FRAME.match(frame):
        return found["name"] or "", int(found["line"]) - 1, int(found["column"])
    place = _PLACE.search(frame)
    return ("", int(place[1]) - 1, int(place[2])) if place else None
