"""The text of a page with its headings: one part of it, passages around matches, or only the headings.

Owns the marks by which the page's script tells where headings are, and what fits a token budget. Offsets are those of
the text without the marks. Knows nothing of pages or frames.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from tabhub.core.results.budget import prefix_within, tidy_end
from tabhub.core.results.result_reader import find_places
from tabhub.core.results.tokens import count_tokens

_MARK = re.compile("\x0e([1-9]?)")
_END_OF_TITLE = re.compile("[\n\x0e]")
_AROUND = 300
"""Characters before and after a match."""
_TITLE = 100


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading and where it is."""

    offset: int
    level: int
    title: str


@dataclass(frozen=True, slots=True)
class PageText:
    """A text and its headings."""

    text: str
    headings: Sequence[Heading]

    @classmethod
    def of(cls, marked: str) -> PageText:
        """Take the marks out of a text: a control character and the level before each heading."""
        parts: list[str] = []
        headings: list[Heading] = []
        done = length = 0
        for mark in _MARK.finditer(marked):
            parts.append(marked[done : mark.start()])
            length += mark.start() - done
            done = mark.end()
            title = _END_OF_TITLE.split(marked[done : done + _TITLE], maxsplit=1)[0].lstrip("# ")
            if title and mark[1]:
                headings.append(Heading(length, int(mark[1]), title))
        return cls("".join((*parts, marked[done:])), headings)

    def end_of_part(self, offset: int, most: int, max_tokens: int) -> int:
        """Where a part ends that begins at the offset and has at most so many characters and tokens."""
        limit = min(len(self.text), offset + most)
        if len(self.text[offset:limit].encode("utf-8", "replace")) <= max_tokens:
            return limit
        end = prefix_within(self.text[:limit], max_tokens, offset)
        return end if end == limit else max(offset + 1, tidy_end(self.text, offset, end))

    def outline(self, max_tokens: int) -> str:
        """The headings with their offsets, a line each; if they do not fit, only those of the upper levels."""
        for level in sorted({heading.level for heading in self.headings}, reverse=True):
            shown = [heading for heading in self.headings if heading.level <= level]
            top = min(heading.level for heading in shown)
            text = "\n".join(f"{' ' * (one.level - top)}{one.offset} {one.title}" for one in shown)
            if count_tokens(text) <= max_tokens:
                left_out = len(self.headings) - len(shown)
                return f"{text}\n({left_out} headings of lower levels left out)" if left_out else text
        return ""

    def passages(self, query: str, offset: int, max_tokens: int) -> str:
        """What is around each match from the offset on, below the heading it belongs to."""
        places, resume = find_places(self.text, query, offset)
        if not places:
            return f"No match for {query} from offset {offset} on, in {len(self.text)} characters."
        starts = [heading.offset for heading in self.headings]
        parts: list[str] = []
        left, shown_to, below = max_tokens, offset, -1
        for number, at in enumerate(places):
            if at < shown_to and parts:
                continue  # the passage before shows it
            begin, end = self._around(at, shown_to)
            heading = bisect_right(starts, at) - 1
            head = f"## {self.headings[heading].title}\n" if heading >= 0 and heading != below else ""
            part = f"{head}[{begin}] {self.text[begin:end].strip()}"
            left -= count_tokens(part)
            if left < 0 and parts:
                resume = at
                places = places[:number]
                break
            parts.append(part)
            shown_to, below = end, heading
        more = f"; more from offset {resume} on" if resume is not None else ""
        count = f"{len(places)} match{'es' if len(places) != 1 else ''} for {query}"
        return "\n\n".join([f"{count}, each passage with its offset{more}:", *parts])

    def _around(self, at: int, shown_to: int) -> tuple[int, int]:
        """Where the passage around a match begins and ends: at lines, or at words of long lines."""
        begin = max(shown_to, at - _AROUND)
        if begin > shown_to:
            line = self.text.find("\n", begin, at)
            word = self.text.find(" ", begin, at)
            begin = line + 1 if line >= 0 else word + 1 if word >= 0 else begin
        end = min(len(self.text), at + _AROUND)
        if end < len(self.text):
            end = tidy_end(self.text, at, end)
        return begin, max(end, at + 1)
