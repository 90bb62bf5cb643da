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
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

OPEN, CLOSE, INVOKE, END, PARAMETER, VALUE_END = (
    "<tool_calls>",
    "</tool_calls>",
    "<invoke",
    "</invoke>",
    "<parameter",
    "</parameter>",
)
_CDATA, _CDATA_END = "<![CDATA[", "]]>"
_NAME = re.compile(r"""<(?:invoke|parameter)\s+name\s*=\s*(?:"([^"]*)"|'([^']*)')\s*/?>""")
_FOLLOWING = (PARAMETER, END, CLOSE, INVOKE)
_LONGEST_TAG = 1_000
_SHOWN = 80


@dataclass(slots=True)
class XmlCall:
    """One call as the model wrote it."""

    name: str
    values: list[tuple[str, str]] = field(default_factory=list)
    problem: str = ""


class XmlReader:
    """Reads one response; feed it the text as it arrives, then `close`."""

    def __init__(self, max_value: int = 1_000_000) -> None:
        self._max_value = max_value
        self._text = ""
        self._position = 0
        """Where in the text to continue the search."""
        self._block = False
        self._block_calls = 0
        self._call: XmlCall | None = None
        self._parameter: str | None = None
        self._overflowed = False
        """Whether a value was too long; the rest is ignored."""

    def feed(self, text: str) -> list[str | XmlCall]:
        """Returns the text outside of calls and the complete calls, in order."""
        self._text += text
        found: list[str | XmlCall] = []
        while self._step(found, last=False):
            pass
        if self._call is not None and len(self._text) > 2 * self._max_value:
            self._overflow()
            found.append(self._finish())
        if self._overflowed:
            self._text, self._position = "", 0
        return _join_texts(found)

    def close(self) -> list[str | XmlCall]:
        """The end of the text: an unfinished call is returned with a problem."""
        found: list[str | XmlCall] = []
        while self._step(found, last=True):
            pass
        if self._call is not None:
            if self._parameter is not None:
                self._set_problem(f"The text ended before the `{VALUE_END}` of {self._parameter!r} and `{END}`.")
            else:
                self._set_problem(f"The text ended before its `{END}`.")
            found.append(self._finish())
        elif self._text and not (self._block and not self._text.strip()):
            found.append(self._text)
        if self._block and not self._block_calls:
            found.append(XmlCall("", problem=f"A `{OPEN}` block without an `<invoke>` in it calls nothing."))
        self._text, self._position, self._block = "", 0, False
        return _join_texts(found)

    def _step(self, found: list[str | XmlCall], *, last: bool) -> bool:
        if self._overflowed:
            if self._call is not None:
                found.append(self._finish())
            self._text, self._position, self._block = "", 0, False
            return False
        if self._call is None:
            return self._read_text(found, last=last)
        if self._parameter is None:
            return self._read_call(found, last=last)
        return self._read_value(last=last)

    def _read_text(self, found: list[str | XmlCall], *, last: bool) -> bool:
        at = self._text.find("<", self._position)
        while at >= 0:
            rest = self._text[at : at + _LONGEST_TAG + 1]
            if rest.startswith(INVOKE) and (len(rest) > len(INVOKE)) and rest[len(INVOKE)] in " \t\r\n>/":
                return self._begin_call(found, at, last=last)
            if rest.startswith(OPEN) and not self._block:
                self._emit_text(found, at, len(OPEN))
                self._block, self._block_calls = True, 0
                return True
            if rest.startswith(CLOSE) and self._block:
                self._emit_text(found, at, len(CLOSE))
                if not self._block_calls:
                    found.append(XmlCall("", problem=f"A `{OPEN}` block without an `<invoke>` in it calls nothing."))
                self._block = False
                return True
            if not last and any(tag.startswith(rest) for tag in (INVOKE, OPEN, CLOSE)):
                break  # it may be the start of a tag
            at = self._text.find("<", at + 1)
        if self._block:  # white space between calls is not text, and only the next tag decides
            self._position = at if at >= 0 else len(self._text)
        elif not last:
            end = at if at >= 0 else len(self._text)
            found.append(self._text[:end])
            self._text, self._position = self._text[end:], 0
        return False

    def _emit_text(self, found: list[str | XmlCall], at: int, size: int) -> None:
        before = self._text[:at]
        if before and not (self._block and not before.strip()):
            found.append(before)
        self._text, self._position = self._text[at + size :], 0

    def _begin_call(self, found: list[str | XmlCall], at: int, *, last: bool) -> bool:
        end = _tag_end(self._text, at)
        if end < 0 and not last and len(self._text) - at <= _LONGEST_TAG:
            if not self._block:
                self._emit_text(found, at, 0)
            else:
                self._position = at
            return False
        tag = self._text[at:end] if end >= 0 else self._text[at : at + _LONGEST_TAG]
        self._emit_text(found, at, len(tag))
        self._block_calls += 1
        named = _NAME.fullmatch(tag)
        self._call = XmlCall(_name(named))
        if named is None or not self._call.name:
            self._set_problem(f'`{_short(tag)}` names no tool; it is written `<invoke name="tool">`.')
        if tag.endswith("/>"):
            found.append(self._finish())
        return True

    def _read_call(self, found: list[str | XmlCall], *, last: bool) -> bool:
        at = self._text.find("<")
        stray = (self._text if at < 0 else self._text[:at]).strip()
        if at < 0:
            if last and stray:
                self._set_problem(f"{_short(stray)!r} stands between its parameters.")
            return False
        rest = self._text[at:]
        if not last and any(tag != rest and tag.startswith(rest) for tag in _FOLLOWING):
            return False
        if stray:
            self._set_problem(f"{_short(stray)!r} stands between its parameters.")
        if rest.startswith(END):
            found.append(self._finish())
            self._text = rest[len(END) :]
            return True
        if rest.startswith(PARAMETER):
            return self._begin_value(rest, last=last)
        if rest.startswith((CLOSE, INVOKE)):
            self._set_problem(f"It has no `{END}`.")
            found.append(self._finish())
            self._text = rest
            return True
        end = _tag_end(rest, 0)
        if end < 0 and not last and len(rest) <= _LONGEST_TAG:
            return False
        tag = rest[:end] if end >= 0 else rest[:_LONGEST_TAG]
        self._set_problem(f"`{_short(tag)}` stands between its parameters.")
        self._text = rest[len(tag) :]
        return True

    def _begin_value(self, rest: str, *, last: bool) -> bool:
        end = _tag_end(rest, 0)
        if end < 0 and not last and len(rest) <= _LONGEST_TAG:
            self._text = rest
            return False
        tag = rest[:end] if end >= 0 else rest[:_LONGEST_TAG]
        named = _NAME.fullmatch(tag)
        name = _name(named)
        if named is None or not name:
            self._set_problem(f'`{_short(tag)}` has no name; it is written `<parameter name="key">value</parameter>`.')
        self._text, self._position = rest[len(tag) :], 0
        if tag.endswith("/>"):
            self._add_value(name, "")
        else:
            self._parameter = name
        return True

    def _read_value(self, *, last: bool) -> bool:
        if self._in_open_cdata(last=last):
            return False
        at = self._text.find(VALUE_END, self._position)
        while at >= 0:
            after = self._text[at + len(VALUE_END) :].lstrip()
            if after.startswith(_FOLLOWING) or (last and not after):
                self._add_value(self._parameter or "", _strip_cdata(self._text[:at]))
                self._text, self._position, self._parameter = self._text[at + len(VALUE_END) :], 0, None
                return True
            if not last and any(tag.startswith(after) for tag in _FOLLOWING):
                self._position = at
                return False
            at = self._text.find(VALUE_END, at + 1)
        self._position = max(len(self._text) - len(VALUE_END), 0)
        return False

    def _in_open_cdata(self, *, last: bool) -> bool:
        """Whether the value is in a CDATA section that has not ended."""
        start = self._text[:_LONGEST_TAG].lstrip()
        if not start.startswith(_CDATA):
            return False
        end = self._text.find(_CDATA_END)
        if end < 0:
            return not last
        self._position = max(self._position, end)
        return False

    def _add_value(self, name: str, value: str) -> None:
        assert self._call is not None  # noqa: S101 - the callers are inside a call
        if any(known == name for known, _ in self._call.values):
            self._set_problem(f"The parameter {name!r} is given twice.")
        self._call.values.append((name, value))
        if len(value) > self._max_value:
            self._overflow()

    def _overflow(self) -> None:
        self._overflowed = True
        self._set_problem(f"A value is longer than {self._max_value} characters; what comes after it was not read.")

    def _set_problem(self, problem: str) -> None:
        if self._call is not None and not self._call.problem:  # the first problem explains the others
            self._call.problem = problem

    def _finish(self) -> XmlCall:
        call, self._call, self._parameter = self._call, None, None
        assert call is not None  # noqa: S101 - the callers are inside a call
        return call


def format_call(name: str, values: Iterable[tuple[str, str]]) -> str:
    lines = [f'<invoke name="{html.escape(name)}">']
    lines += [f'<parameter name="{html.escape(key)}">{_wrap(value)}</parameter>' for key, value in values]
    return "\n".join([OPEN, *lines, END, CLOSE])


def format_result(name: str, number: int, text: str, *, failed: bool) -> str:
    """The text of a result cannot close its own tag."""
    safe = re.sub(r"<(/?tool_result)", r"<\\\1", text)
    status = "error" if failed else "ok"
    return f'<tool_result call="{number}" name="{html.escape(name)}" status="{status}">\n{safe}\n</tool_result>'


def _wrap(value: str) -> str:
    """Wrap a value in a CDATA section if it would not be read back unchanged."""
    plain = VALUE_END not in value and not value.lstrip().startswith(_CDATA) and value == _strip_cdata(value)
    return value if plain or _CDATA_END in value else f"{_CDATA}{value}{_CDATA_END}"


def _strip_cdata(value: str) -> str:
    """Remove the CDATA section, or else one line break at either end."""
    bare = value.strip()
    if bare.startswith(_CDATA) and bare.endswith(_CDATA_END):
        return bare[len(_CDATA) : -len(_CDATA_END)]
    return value.removeprefix("\n").removesuffix("\n")


def _tag_end(text: str, start: int) -> int:
    """The index after the `>` of the tag at `start`; -1 if it is incomplete."""
    quote = ""
    for at in range(start, min(len(text), start + _LONGEST_TAG)):
        letter = text[at]
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter == ">":
            return at + 1
    return -1


def _name(named: re.Match[str] | None) -> str:
    return "" if named is None else html.unescape(named[1] if named[1] is not None else named[2]).strip()


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _join_texts(found: list[str | XmlCall]) -> list[str | XmlCall]:
    """Join adjacent texts and drop empty ones."""
    joined: list[str | XmlCall] = []
    for each in found:
        if isinstance(each, str) and joined and isinstance(joined[-1], str):
            joined[-1] += each
        elif each:
            joined.append(each)
    return joined
