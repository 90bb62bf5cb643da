"""browser_act: several actions in one call, in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

import orjson

from tabhub.browser.tool_spec import Call, ToolSpec, did_line, text_result, tool
from tabhub.browser.tools.acting import click, dialogs, drag, forms, keyboard, mouse, scroll, upload, wait
from tabhub.browser.tools.managing import tabs
from tabhub.core.tools import Tool, ToolResult
from tabhub.errors import InvalidArguments, Paused, SiteChanged, TabhubError, TabStopped

_MAX_ACTIONS = 50
ACTIONS = (
    *(click.click_element, click.hover_element, keyboard.type_text, keyboard.press_key),
    *(forms.fill_form, forms.select_option, scroll.browser_scroll, wait.wait_for, tabs.navigate_tab),
    *(drag.browser_drag, upload.upload_file, dialogs.handle_dialog, mouse.browser_mouse),
)
_ACTIONS: dict[str, ToolSpec] = {spec.tool.name.removeprefix("browser_"): spec for spec in ACTIONS}
"""The actions, named like their tools."""
_SHORT = {
    "click": "click_element",
    "hover": "hover_element",
    "type": "type_text",
    "press": "press_key",
    "fill": "fill_form",
    "select": "select_option",
    "wait": "wait_for",
    "navigate": "navigate_tab",
    "upload": "upload_file",
    "dialog": "handle_dialog",
}
"""Shorter names for some of them."""
_KIND = "action"


@tool(
    "browser_act",
    "Run several actions",
    "Runs actions in order, named like the tools and with their arguments, e.g. [{action: type_text, ref: e5, text: "
    "Hi}, {action: press_key, key: Enter}]; also drag (from, to), mouse and handle_dialog (do instead of action). "
    "Stops at a failure unless onError is continue.",
    params={
        "actions": {
            "type": "array",
            "maxItems": _MAX_ACTIONS,
            "items": {"type": "object", "properties": {_KIND: {"type": "string"}}, "required": [_KIND]},
        },
        "onError?": {"enum": ["stop", "continue"]},
    },
    output={"results": "array"},
    destructive=True,
    tells_changes=True,
)
async def browser_act(call: Call) -> ToolResult:
    actions = call.args["actions"]
    steps = [_step(number, action) for number, action in enumerate(actions, 1)]
    page = await call.page()
    results: list[dict[str, Any]] = []
    kinds = [kind for kind, _, _ in steps]
    failed = 0
    for number, (kind, spec, args) in enumerate(steps, 1):
        try:
            if not spec.tool.read_only:
                await call.ctx.wait_while_paused()
            step = Call(
                call.box, call.ctx, {**args, "tabId": page.tab_id}, spec.tool.read_only, call.view, spec.repeats_page
            )
            call.ctx.begin_step(spec.tool, step.args)
            facts = orjson.loads((await spec.run(step)).facts or b"{}")
            facts.pop("tabId", None)
            results.append({_KIND: kind, **facts})
        except Paused as error:
            error.message = error.message.partition(": ")[2]
            _report_stop(error, "was not done", kinds, results)
            if results:
                error.hint = (
                    "Read-only tools still work. Run the remaining actions after the person resumes (tabhub resume)."
                )
            raise
        except (SiteChanged, TabStopped) as error:
            # Also with onError: continue: no later action may run there, either.
            _report_stop(error, "was not done", kinds, results)
            raise
        except TabhubError as error:
            if call.args.get("onError") != "continue":
                _report_stop(error, "failed", kinds, results)
                raise
            failed += 1
            results.append({_KIND: kind, "error": error.message, **({"hint": error.hint} if error.hint else {})})
        call.ctx.progress(number, len(steps), str(results[-1].get("did", kind))[:200])
    did = f"Did {len(steps) - failed} of {len(steps)} actions"
    lines = [did, *(f"{number}. {_told(result)}" for number, result in enumerate(results, 1))]
    return text_result("\n".join(lines), {"tabId": page.tab_id, "did": did, "results": results})


def tool_calls(arguments: Mapping[str, Any]) -> Iterator[tuple[Tool, dict[str, Any]]]:
    """The tool and arguments of each step, for permission checks."""
    where = {"tabId": arguments["tabId"]} if "tabId" in arguments else {}
    for action in arguments["actions"]:
        yield _spec(action[_KIND]).tool, {**action, **where}


def _spec(name: str) -> ToolSpec:
    plain = name.removeprefix("browser_")
    spec = _ACTIONS.get(_SHORT.get(plain, plain))
    if spec is None:
        close = get_close_matches(plain, [*_ACTIONS, *_SHORT], 1)
        raise InvalidArguments(
            f"There is no action {name[:60]!r}. Nothing was done.",
            hint=f"Did you mean {close[0]}?" if close else f"Actions: {', '.join(_ACTIONS)}.",
        )
    return spec


def _report_stop(error: TabhubError, how: str, kinds: list[str], results: list[dict[str, Any]]) -> None:
    """Say in the error of a step what was done before it, where the batch stopped, and what is left."""
    number = len(results) + 1
    done = [f"{at}. {_done(result)}" for at, result in enumerate(results, 1) if "error" not in result]
    before = f"Done before: {'; '.join(done)}." if done else "Nothing was done before."
    left = [f"{at}. {kind}" for at, kind in enumerate(kinds[number:], number + 1)]
    after = f" Not begun: {', '.join(left)}." if left else ""
    error.message = f"Action {number} of {len(kinds)} ({kinds[number - 1]}) {how}: {error.message} {before}{after}"[
        :4000
    ]
    error.data = {**(error.data or {}), "batch": {"done": done, "stoppedAt": number, "notBegun": left}}
    if results and error.outcome == "not_sent":
        error.outcome = "failed"


def _done(result: dict[str, Any]) -> str:
    """One line on a step that was done."""
    where = f" {result['url']}" if isinstance(result.get("url"), str) else ""
    return str(result.get("did", f"{result[_KIND]}{where}"))


def _told(result: dict[str, Any]) -> str:
    """One line on a step, with everything it reports."""
    if "error" in result:
        return f"{result[_KIND]} failed: {result['error']} {result.get('hint', '')}".rstrip()
    note = f" [{result['note']}]" if "note" in result else ""
    return did_line({"did": result[_KIND], **result}, _KIND) + note


def _step(number: int, action: dict[str, Any]) -> tuple[str, ToolSpec, dict[str, Any]]:
    kind = action[_KIND]
    spec = _spec(kind)
    args = {name: value for name, value in action.items() if name != _KIND}
    if spec in (mouse.browser_mouse, dialogs.handle_dialog) and "do" in args:
        args[_KIND] = args.pop("do")
    if "tabId" in args:
        raise InvalidArguments(
            f"Action {number} has a tabId.", hint="Set tabId on the call; all actions run in that tab."
        )
    if not spec.tool.accepts(args):
        error = spec.tool.invalid(args)
        error.message = f"Action {number} ({kind}): {error.message} Nothing was done."
        raise error
    return kind, spec, args
