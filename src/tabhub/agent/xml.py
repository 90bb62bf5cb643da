"""Tool calls as part of a model's text: an incremental reader, and the same form written.

    <tool_calls>
    <invoke name="tool"><parameter name="city">Bergen</parameter></invoke>
    </tool_calls>

Owns the form. A value is taken as it stands, whatever characters are in it: it ends at the `</parameter>` that the next
parameter or the call's end follows; `<![CDATA[…]]>` around it is allowed and taken off. An `<invoke>` without a block
counts too. What cannot be read becomes a call with a `problem`, never nothing. How the text is cut into pieces makes no
difference. What the values mean is `coerce`'s.
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
class Written:
    """One call as the model wrote it."""

    name: str
    values: list[tuple[str, str]] = field(default_factory=list)
    problem: str = ""


class XmlReader:
    """Reads one answer of a model; give it the text as it comes, then `close`."""

    def __init__(self, most: int = 1_000_000) -> None:
        self._most = most
        self._text = ""
        self._from = 0
        """Where in the text to look next: what is before was looked at."""
        self._block = False
        self._found = 0
        self._call: Written | None = None
        self._parameter: str | None = None
        self._over = False
        """Whether a value was too long: nothing after it is read."""

    def feed(self, text: str) -> list[str | Written]:
        """Take a piece; gives the text that is no call, and the calls that are complete, in order."""
        self._text += text
        found: list[str | Written] = []
        while self._step(found, last=False):
            pass
        if self._call is not None and len(self._text) > 2 * self._most:
            self._overflow()
            found.append(self._finish())
        if self._over:
            self._text, self._from = "", 0
        return _joined(found)

    def close(self) -> list[str | Written]:
        """The text has ended; what is unfinished becomes a call with a problem."""
        found: list[str | Written] = []
        while self._step(found, last=True):
            pass
        if self._call is not None:
            if self._parameter is not None:
                self._spoil(f"The text ended before the `{VALUE_END}` of {self._parameter!r} and `{END}`.")
            else:
                self._spoil(f"The text ended before its `{END}`.")
            found.append(self._finish())
        elif self._text and not (self._block and not self._text.strip()):
            found.append(self._text)
        if self._block and not self._found:
            found.append(Written("", problem=f"A `{OPEN}` block without an `<invoke>` in it calls nothing."))
        self._text, self._from, self._block = "", 0, False
        return _joined(found)

    def _step(self, found: list[str | Written], *, last: bool) -> bool:
        if self._over:
            if self._call is not None:
                found.append(self._finish())
            self._text, self._from, self._block = "", 0, False
            return False
        if self._call is None:
            return self._outside(found, last=last)
        if self._parameter is None:
            return self._inside(found, last=last)
        return self._value(last=last)

    def _outside(self, found: list[str | Written], *, last: bool) -> bool:
        """Text, up to a tag of ours."""
        at = self._text.find("<", self._from)
        while at >= 0:
            rest = self._text[at : at + _LONGEST_TAG + 1]
            if rest.startswith(INVOKE) and (len(rest) > len(INVOKE)) and rest[len(INVOKE)] in " \t\r\n>/":
                return self._begin(found, at, last=last)
            if rest.startswith(OPEN) and not self._block:
                self._pass_on(found, at, len(OPEN))
                self._block, self._found = True, 0
                return True
            if rest.startswith(CLOSE) and self._block:
                self._pass_on(found, at, len(CLOSE))
                if not self._found:
                    found.append(Written("", problem=f"A `{OPEN}` block without an `<invoke>` in it calls nothing."))
                self._block = False
                return True
            if not last and any(tag.startswith(rest) for tag in (INVOKE, OPEN, CLOSE)):
                break  # more of it may come
            at = self._text.find("<", at + 1)
        if self._block:  # blanks between calls are no text, and only the next tag tells
            self._from = at if at >= 0 else len(self._text)
        elif not last:
            end = at if at >= 0 else len(self._text)
            found.append(self._text[:end])
            self._text, self._from = self._text[end:], 0
        return False

    def _pass_on(self, found: list[str | Written], at: int, size: int) -> None:
        before = self._text[:at]
        if before and not (self._block and not before.strip()):
            found.append(before)
        self._text, self._from = self._text[at + size :], 0

    def _begin(self, found: list[str | Written], at: int, *, last: bool) -> bool:
        end = _tag_end(self._text, at)
        if end < 0 and not last and len(self._text) - at <= _LONGEST_TAG:
            if not self._block:
                self._pass_on(found, at, 0)
            else:
                self._from = at
            return False
        tag = self._text[at:end] if end >= 0 else self._text[at : at + _LONGEST_TAG]
        self._pass_on(found, at, len(tag))
        self._found += 1
        named = _NAME.fullmatch(tag)
        self._call = Written(_name(named))
        if named is None or not self._call.name:
            self._spoil(f'`{_short(tag)}` names no tool; it is written `<invoke name="tool">`.')
        if tag.endswith("/>"):
            found.append(self._finish())
        return True

    def _inside(self, found: list[str | Written], *, last: bool) -> bool:
        """Between the parameters of a call."""
        at = self._text.find("<")
        stray = (self._text if at < 0 else self._text[:at]).strip()
        if at < 0:
            if last and stray:
                self._spoil(f"{_short(stray)!r} stands between its parameters.")
            return False
        rest = self._text[at:]
        if not last and any(tag != rest and tag.startswith(rest) for tag in _FOLLOWING):
            return False
        if stray:
            self._spoil(f"{_short(stray)!r} stands between its parameters.")
        if rest.startswith(END):
            found.append(self._finish())
            self._text = rest[len(END) :]
            return True
        if rest.startswith(PARAMETER):
            return self._begin_value(rest, last=last)
        if rest.startswith((CLOSE, INVOKE)):
            self._spoil(f"It has no `{END}`.")
            found.append(self._finish())
            self._text = rest
            return True
        end = _tag_end(rest, 0)
        if end < 0 and not last and len(rest) <= _LONGEST_TAG:
            return False
        tag = rest[:end] if end >= 0 else rest[:_LONGEST_TAG]
        self._spoil(f"`{_short(tag)}` stands between its parameters.")
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
            self._spoil(f'`{_short(tag)}` has no name; it is written `<parameter name="key">value</parameter>`.')
        self._text, self._from = rest[len(tag) :], 0
        if tag.endswith("/>"):
            self._keep(name, "")
        else:
            self._parameter = name
        return True

    def _value(self, *, last: bool) -> bool:
        """A value, up to the end that something we know follows."""
        if self._wrapped(last=last):
            return False
        at = self._text.find(VALUE_END, self._from)
        while at >= 0:
            after = self._text[at + len(VALUE_END) :].lstrip()
            if after.startswith(_FOLLOWING) or (last and not after):
                self._keep(self._parameter or "", _unwrapped(self._text[:at]))
                self._text, self._from, self._parameter = self._text[at + len(VALUE_END) :], 0, None
                return True
            if not last and any(tag.startswith(after) for tag in _FOLLOWING):
                self._from = at
                return False
            at = self._text.find(VALUE_END, at + 1)
        self._from = max(len(self._text) - len(VALUE_END), 0)
        return False

    def _wrapped(self, *, last: bool) -> bool:
        """Whether the value is inside a CDATA section whose end has not come."""
        start = self._text[:_LONGEST_TAG].lstrip()
        if not start.startswith(_CDATA):
            return False
        end = self._text.find(_CDATA_END)
        if end < 0:
            return not last
        self._from = max(self._from, end)
        return False

    def _keep(self, name: str, value: str) -> None:
        assert self._call is not None  # noqa: S101 - the callers are inside of one
        if any(known == name for known, _ in self._call.values):
            self._spoil(f"The parameter {name!r} is there twice.")
        self._call.values.append((name, value))
        if len(value) > self._most:
            self._overflow()

    def _overflow(self) -> None:
        self._over = True
        self._spoil(f"A value is longer than {self._most} characters; what comes after it was not read.")

    def _spoil(self, problem: str) -> None:
        if self._call is not None and not self._call.problem:  # the first slip explains the others
            self._call.problem = problem

    def _finish(self) -> Written:
        call, self._call, self._parameter = self._call, None, None
        assert call is not None  # noqa: S101 - the callers are inside of one
        return call


def written(name: str, values: Iterable[tuple[str, str]]) -> str:
    """A call in the form that is read here."""
    lines = [f'<invoke name="{html.escape(name)}">']
    lines += [f'<parameter name="{html.escape(key)}">{_wrap(value)}</parameter>' for key, value in values]
    return "\n".join([OPEN, *lines, END, CLOSE])


def result(name: str, number: int, text: str, *, failed: bool) -> str:
    """A tool's answer as the model is given it; what it holds cannot end it."""
    safe = re.sub(r"<(/?tool_result)", r"<\\\1", text)
    status = "error" if failed else "ok"
    return f'<tool_result call="{number}" name="{html.escape(name)}" status="{status}">\n{safe}\n</tool_result>'


def _wrap(value: str) -> str:
    """A value that would be read as it stands, else in a CDATA section."""
    plain = VALUE_END not in value and not value.lstrip().startswith(_CDATA) and value == _unwrapped(value)
    return value if plain or _CDATA_END in value else f"{_CDATA}{value}{_CDATA_END}"


def _unwrapped(value: str) -> str:
    """The value without its CDATA section, or without the line breaks that only lay it out."""
    bare = value.strip()
    if bare.startswith(_CDATA) and bare.endswith(_CDATA_END):
        return bare[len(_CDATA) : -len(_CDATA_END)]
    return value.removeprefix("\n").removesuffix("\n")


def _tag_end(text: str, start: int) -> int:
    """Behind the `>` of the tag that starts there; -1 if it has not come."""
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


def _joined(found: list[str | Written]) -> list[str | Written]:
    """Texts in a row as one, and no empty ones."""
    joined: list[str | Written] = []
    for each in found:
        if isinstance(each, str) and joined and isinstance(joined[-1], str):
            joined[-1] += each
        elif each:
            joined.append(each)
    return joined
