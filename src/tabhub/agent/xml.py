"""Tool calls as XML in a model's text: an incremental reader and a writer.

    <tool_calls>
    <invoke name="tool"><parameter name="city">Bergen</parameter></invoke>
    </tool_calls>

Owns the format. A value may contain any characters: it ends at the `</parameter>` that is followed by the next
parameter or the end of the call; `<![CDATA[…]]>` around it is allowed and removed. An `<invoke>` outside a block
counts too. A malformed call is never dropped: it is returned with a `problem`. Chunk boundaries make no difference.
`coerce` converts the values.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from tabhub.store.conversations import Message

_OPEN, _CLOSE = "<tool_calls>", "</tool_calls>"
_INVOKE, _END = "<invoke", "</invoke>"
_PARAMETER, _VALUE_END = "<parameter", "</parameter>"
_CDATA, _CDATA_END = "<![CDATA[", "]]>"
_MAX_TAG = 1_000
_SHOWN = 80
_OUTSIDE = re.compile(r"<invoke(?=[\s>/])|<tool_calls>|</tool_calls>")
_TAG = re.compile(r"""<(?:[^"'>]|"[^"]*"|'[^']*')*>""")
_EMPTY_TAG = re.compile(r"""<(?:[^"'>]|"[^"]*"|'[^']*')*/>""")
_NAME = re.compile(r"""<(?:invoke|parameter)\s+name\s*=\s*(?:"([^"]*)"|'([^']*)')\s*/?>""")
_VALUE_ENDS = re.compile(r"</parameter>(?=\s*(?:<parameter|</invoke>|</tool_calls>|<invoke))")
_LAST_VALUE_ENDS = re.compile(rf"{_VALUE_ENDS.pattern}|</parameter>(?=\s*\Z)")
_CALL_ENDS = re.compile(r"</invoke>|</tool_calls>|<invoke[\s>/]")
"""What a complete call ends with or is followed by."""


@dataclass(slots=True)
class XmlCall:
    """One call as the model wrote it."""

    name: str
    values: list[tuple[str, str]] = field(default_factory=list)
    problem: str = ""

    def add_problem(self, problem: str) -> None:
        self.problem = self.problem or problem  # the first one explains the others


class XmlReader:
    """Reads one response; feed it the text as it arrives."""

    def __init__(self, max_value: int = 1_000_000) -> None:
        self._max_value = max_value
        self._text = ""
        """What has not been read; in a call, from its `<invoke` on."""
        self._searched = 0
        self._in_call = False
        self._in_block = False
        self._block_calls = 0
        self._overflowed = False
        """Whether a value was too long; the rest is ignored."""

    def feed(self, text: str, *, last: bool = False) -> list[str | XmlCall]:
        """Returns the text outside of calls and the complete calls, in order; at the end also an unfinished one."""
        self._text += text
        found: list[str | XmlCall] = []
        while not self._overflowed and (self._read_call if self._in_call else self._read_text)(found, last=last):
            pass
        return found

    def _read_text(self, found: list[str | XmlCall], *, last: bool) -> bool:
        """Read up to the next tag; False if there is none yet."""
        tag = _OUTSIDE.search(self._text, self._searched)
        if tag is None and last and self._in_block:
            self._text += _CLOSE  # the end of the text closes the block
            return True
        if tag is None:
            self._read_plain_text(found, last=last)
            return False
        if tag[0] in (_OPEN, _CLOSE) and self._in_block == (tag[0] == _OPEN):
            self._searched = tag.end()  # it opens or closes nothing: it is text
            return True
        self._take_text(found, tag.start())
        if tag[0] == _INVOKE:
            self._in_call = True
            self._block_calls += 1
            self._searched = len(_INVOKE)
            return True
        if tag[0] == _CLOSE and not self._block_calls:
            found.append(XmlCall("", problem=f"A `{_OPEN}` block without an `{_INVOKE}>` in it calls nothing."))
        self._text = self._text[len(tag[0]) :]
        self._in_block, self._block_calls = tag[0] == _OPEN, 0
        return True

    def _read_plain_text(self, found: list[str | XmlCall], *, last: bool) -> None:
        at = len(self._text) if last else self._text.rfind("<")
        if at < 0 or not any(tag.startswith(self._text[at:]) for tag in (_INVOKE, _OPEN, _CLOSE)):
            at = len(self._text)
        if self._in_block:
            self._searched = max(self._searched, at)  # white space between calls is not text: the next tag decides
        else:
            self._take_text(found, at)

    def _take_text(self, found: list[str | XmlCall], end: int) -> None:
        text, self._text, self._searched = self._text[:end], self._text[end:], 0
        if self._in_block and not text.strip():
            return
        if found and isinstance(found[-1], str):
            found[-1] += text
        elif text:
            found.append(text)

    def _read_call(self, found: list[str | XmlCall], *, last: bool) -> bool:
        """Read a call once its end has arrived; False if it has not."""
        last = last or len(self._text) > 2 * self._max_value
        ended = _CALL_ENDS.search(self._text, self._searched) or _EMPTY_TAG.match(self._text, 0, _MAX_TAG)
        parsed = _parse_call(self._text, last=last) if last or ended else None
        self._searched = max(self._searched, len(self._text) - len(_CLOSE))
        if parsed is None:
            return False
        call, size = parsed
        if size > 2 * self._max_value or any(len(value) > self._max_value for _, value in call.values):
            call.problem = f"A value is longer than {self._max_value} characters; what comes after it was not read."
            self._overflowed = True
        found.append(call)
        self._text, self._searched, self._in_call = self._text[size:], 0, False
        return True


def _parse_call(text: str, *, last: bool) -> tuple[XmlCall, int] | None:
    """The call at the start of a text, and its length; None if its end has not arrived."""
    tag = _tag_at(text, 0, last=last)
    if tag is None:
        return None
    call, at = XmlCall(_name(tag)), len(tag)
    if not call.name:
        call.add_problem(f'`{_short(tag)}` names no tool; it is written `<invoke name="tool">`.')
    if tag.endswith("/>"):
        return call, at
    while True:
        following = text.find("<", at)
        stray = text[at : following if following >= 0 else len(text)].strip()
        if stray:
            call.add_problem(f"{_short(stray)!r} stands between its parameters.")
        if following < 0:
            call.add_problem(f"The text ended before its `{_END}`.")
            return (call, len(text)) if last else None
        at = following
        if text.startswith(_END, at):
            return call, at + len(_END)
        if text.startswith((_CLOSE, _INVOKE), at):
            call.add_problem(f"It has no `{_END}`.")
            return call, at
        tag = _tag_at(text, at, last=last)
        if tag is None:
            return None
        at += len(tag)
        if not tag.startswith(_PARAMETER):
            call.add_problem(f"`{_short(tag)}` stands between its parameters.")
            continue
        name, value = _name(tag), "" if tag.endswith("/>") else None
        if not name:
            call.add_problem(f'`{_short(tag)}` has no name; it is written `<parameter name="key">value</parameter>`.')
        if value is None:
            end = _find_value_end(text, at, last=last)
            if end < 0:
                call.add_problem(f"The text ended before the `{_VALUE_END}` of {name!r} and `{_END}`.")
                return (call, len(text)) if last else None
            value, at = _strip_cdata(text[at:end]), end + len(_VALUE_END)
        if any(known == name for known, _ in call.values):
            call.add_problem(f"The parameter {name!r} is given twice.")
        call.values.append((name, value))


def _tag_at(text: str, at: int, *, last: bool) -> str | None:
    """The tag at a position, or the part of it that is long enough; None if it is incomplete."""
    found = _TAG.match(text, at, at + _MAX_TAG)
    if found is not None:
        return found[0]
    return text[at : at + _MAX_TAG] if last or len(text) - at > _MAX_TAG else None


def _find_value_end(text: str, start: int, *, last: bool) -> int:
    """Where the value that starts here ends; -1 if its end has not arrived."""
    at = start
    if text[start : start + _MAX_TAG].lstrip().startswith(_CDATA):
        cdata_end = text.find(_CDATA_END, start)
        if cdata_end < 0 and not last:
            return -1
        at = max(at, cdata_end)
    found = (_LAST_VALUE_ENDS if last else _VALUE_ENDS).search(text, at)
    return found.start() if found else -1


def format_call(name: str, values: Iterable[tuple[str, str]]) -> str:
    lines = [f'<invoke name="{html.escape(name)}">']
    lines += [f'<parameter name="{html.escape(key)}">{_wrap(value)}</parameter>' for key, value in values]
    return "\n".join([_OPEN, *lines, _END, _CLOSE])


def format_result(name: str, number: int, text: str, *, failed: bool) -> str:
    """The text of a result cannot close its own tag."""
    safe = re.sub(r"<(/?tool_result)", r"<\\\1", text)
    status = "error" if failed else "ok"
    return f'<tool_result call="{number}" name="{html.escape(name)}" status="{status}">\n{safe}\n</tool_result>'


def as_text(message: Message) -> Message:
    """The message with its calls, or results, as XML in its text."""
    if message.role == "user":
        return message
    if message.role == "tool":
        results = [format_result(r.name, n, r.text, failed=r.failed) for n, r in enumerate(message.results, 1)]
        return replace(message, text="\n".join(results))
    calls = [format_call(call.name, [(k, plain(v)) for k, v in call.arguments.items()]) for call in message.calls]
    text = message.raw or "\n".join(part for part in (message.text, *calls) if part)
    return replace(message, text=text, calls=[])


def plain(value: Any) -> str:
    """The text of a value, as `coerce` reads it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _wrap(value: str) -> str:
    """Wrap a value in a CDATA section if it would not be read back unchanged."""
    plain = _VALUE_END not in value and not value.lstrip().startswith(_CDATA) and value == _strip_cdata(value)
    return value if plain or _CDATA_END in value else f"{_CDATA}{value}{_CDATA_END}"


def _strip_cdata(value: str) -> str:
    """Remove the CDATA section, or else one line break at either end."""
    bare = value.strip()
    if bare.startswith(_CDATA) and bare.endswith(_CDATA_END):
        return bare[len(_CDATA) : -len(_CDATA_END)]
    return value.removeprefix("\n").removesuffix("\n")


def _name(tag: str) -> str:
    named = _NAME.fullmatch(tag)
    return "" if named is None else html.unescape(named[1] if named[1] is not None else named[2]).strip()


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
