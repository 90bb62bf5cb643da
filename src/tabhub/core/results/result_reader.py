"""Reading a stored result: a page of it, matches of a text or pattern, or parts selected by a path.

Owns what `tabhub_read_result` returns for a text. Knows nothing of handles, stores or expiry.

A pattern (`/…/`, `/…/i`) is matched line by line by the linear-time engine that also checks the patterns of tool
schemas: no lookaround and no backreferences, but no pattern can take more than time proportional to the text. In a line
too long to show, matches are searched in overlapping windows.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate

from tabhub.core.results.budget import prefix_within, tidy_end
from tabhub.core.results.json_path import pick_json
from tabhub.core.results.tokens import estimate_tokens
from tabhub.core.schemas.validators import compile_schema
from tabhub.errors import BadInput, InvalidParams
from tabhub.limits import DEFAULTS

_CONTEXT = 2
_CLIP = 300
_WINDOW = 400
_OVERLAP = 200
_COUNTED = 1_000
_LINES = 1_000_000
_MAX_QUERY = 1_000
_PATTERN = re.compile(r"/(.+)/(i?)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read. `next_offset` continues the page or the search; None at the end."""

    text: str
    offset: int
    next_offset: int | None
    total_chars: int
    matches: int | None = None
    """The number of matches from the offset on, if it was a search."""


def read(
    text: str,
    mime: str,
    *,
    offset: int = 0,
    limit: int = DEFAULTS.read_chars,
    search: str | None = None,
    pick: str | None = None,
    max_tokens: int = DEFAULTS.result_tokens,
) -> Reading:
    """Read a part of a stored text: select by path first, then search or return a page; at most `max_tokens`."""
    if pick is not None:
        if mime != "application/json":
            raise InvalidParams(f"pick needs JSON, and this result is {mime}.", hint="Use offset and limit, or search.")
        text = pick_json(text, pick)
    if not 0 <= offset <= len(text):
        raise InvalidParams(
            f"offset {offset} is outside of the text, which has {len(text)} characters.",
            hint="Start with offset 0 and continue with the nextOffset of each answer.",
        )
    if limit < 1:
        raise InvalidParams(f"limit must be at least 1, not {limit}.")
    if search is not None:
        return _search(text, search, offset, limit, max_tokens)
    end = min(len(text), offset + limit)
    if len(text[offset:end].encode("utf-8", "surrogatepass")) > max_tokens:
        end = max(offset + 1, prefix_within(text[:end], max_tokens, offset))
    if end < len(text):
        end = tidy_end(text, offset, end)
    return Reading(text[offset:end], offset, end if end < len(text) else None, len(text))


def _search(text: str, query: str, offset: int, limit: int, max_tokens: int) -> Reading:
    if not query or len(query) > _MAX_QUERY:
        raise InvalidParams(f"search must have 1 to {_MAX_QUERY} characters.", hint="Pass a text, or /a pattern/.")
    found, resume = find_places(text, query, offset)
    if not found and resume is None:
        pattern = _PATTERN.fullmatch(query)
        message = f"No match for {query} from offset {offset} on, in {len(text):,} characters."
        hint = "" if pattern else " Plain text is searched ignoring case; /…/ is a pattern."
        return Reading(message + hint, offset, None, len(text), 0)
    more = "+" if resume is not None else ""
    parts = [f"{len(found)}{more} match{'es' if len(found) != 1 or more else ''} for {query} from offset {offset} on:"]
    characters, tokens = limit - len(parts[0]), max_tokens - 100
    lines = text.split("\n")
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    rows = [bisect_right(starts, at) - 1 for at in found]
    shown_to = -1
    for at, row, following in zip(found, rows, [*rows[1:], len(lines)], strict=True):
        first = min(row, max(row - _CONTEXT, shown_to + 1))
        last = max(row, min(row + _CONTEXT, following - 1, len(lines) - 1))
        shown = [f"  {n + 1}: {_clip(lines[n], 0)}" for n in range(first, last + 1)]
        shown[row - first] = f"> {row + 1} (offset {at}): {_clip(lines[row], at - starts[row])}"
        if shown_to >= 0 and first > shown_to + 1:
            shown.insert(0, "--")
        part = "\n".join(shown)
        characters -= len(part) + 1
        tokens -= estimate_tokens(part)
        if len(parts) > 1 and (characters < 0 or tokens < 0):
            resume = at
            break
        shown_to = last
        parts.append(part)
    return Reading("\n".join(parts), offset, resume, len(text), len(found))


def find_places(text: str, query: str, offset: int) -> tuple[list[int], int | None]:
    """Where a text, or a pattern between slashes, matches from the offset on; and where counting stopped."""
    if pattern := _PATTERN.fullmatch(query):
        return _pattern_places(text, pattern[1], pattern[2], offset)
    return _plain_places(text, query, offset)


def _plain_places(text: str, query: str, offset: int) -> tuple[list[int], int | None]:
    """Where the query occurs, ignoring case, once per line or window of a long line; and where counting stopped."""
    lowered, needle = text.lower(), query.lower()
    # A character whose lower-case form is longer would shift all later positions.
    literal = re.compile(re.escape(query), re.IGNORECASE) if len(lowered) != len(text) else None
    places: list[int] = []
    start = offset
    while start <= len(text):
        if literal is None:
            at = lowered.find(needle, start)
        else:
            match = literal.search(text, start)
            at = match.start() if match else -1
        if at < 0:
            break
        if len(places) == _COUNTED:
            return places, at
        places.append(at)
        end = text.find("\n", at)
        start = max(at + 1, min(end if end >= 0 else len(text), at + _WINDOW))
    return places, None


def _pattern_places(text: str, source: str, flags: str, offset: int) -> tuple[list[int], int | None]:
    """The lines, or windows of long lines, that match the pattern; and where counting stopped."""
    try:
        test = compile_schema({"type": "string", "pattern": f"(?i:{source})" if flags else source}).is_valid
    except BadInput:
        raise InvalidParams(
            f"/{source}/ is not a supported pattern.",
            hint="Groups, classes, quantifiers and anchors work; lookaround, backreferences and huge repeats do not.",
        ) from None
    anchored = re.search(r"(?<!\\)[$^]|\\[AzZ]", source) is not None
    places: list[int] = []
    start = text.rfind("\n", 0, offset) + 1
    for _ in range(_LINES):
        if start > len(text):
            return places, None
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        line = text[start:end]
        if test(line):
            windows = _windows(line, test) if len(line) > 2 * _WINDOW and not anchored else []
            places.extend(at for at in (start + inner for inner in windows or [0]) if at >= offset)
            if len(places) > _COUNTED:
                return places[:_COUNTED], places[_COUNTED]
        start = end + 1
    return places, start if start <= len(text) else None


def _windows(line: str, test: Callable[[str], bool]) -> list[int]:
    hits: list[int] = []
    at = 0
    while at < len(line) and len(hits) <= _COUNTED:
        hit = test(line[at : at + _WINDOW + _OVERLAP])
        if hit:
            hits.append(at)
        at += _WINDOW + _OVERLAP - 40 if hit else _WINDOW
    return hits


def _clip(line: str, at: int) -> str:
    """The line, or the part around `at` of a long one."""
    if len(line) <= _CLIP:
        return line
    first = max(0, at - _CLIP // 3)
    last = min(len(line), first + _CLIP)
    return ("…" if first else "") + line[first:last] + ("…" if last < len(line) else "")
