"""Reading a stored result: a page of it, matches of a text or pattern, or parts selected by a path.

Owns what `tabhub_read_result` answers, from the text alone. Knows nothing of handles, stores or expiry.

A pattern (`/…/`, `/…/i`) is matched line by line by the linear-time engine that also checks the patterns of tool
schemas: no lookaround and no backreferences, but no pattern can take more than time proportional to the text. In a line
too long to show, the places are found in overlapping windows.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from tabhub.core.results.budget import estimate_tokens, prefix_within, tidy_end
from tabhub.core.results.json_path import pick_json
from tabhub.core.tools import compile_schema
from tabhub.errors import BadInput, InvalidParams
from tabhub.limits import DEFAULTS

_CONTEXT = 2
_CLIP = 300
_WINDOW = 400
_OVERLAP = 200
_COUNTED = 1_000
_LINES = 1_000_000
_MAX_QUERY = 1_000


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read. `next_offset` continues the page or the search; None says that was all."""

    text: str
    offset: int
    next_offset: int | None
    total_chars: int
    matches: int | None = None
    """Places found from the offset on, when it was a search."""
    counted_all: bool = True
    """False when a search stopped counting before the end."""


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
            raise InvalidParams(f"pick reads JSON, and this result is {mime}.", hint="Use offset and limit, or search.")
        text = pick_json(text, pick)
    if not 0 <= offset <= len(text):
        raise InvalidParams(
            f"offset {offset} is outside of the text, which has {len(text)} characters.",
            hint="Start with offset 0 and go on with the nextOffset of each answer.",
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
    pattern = re.fullmatch(r"/(.+)/(i?)", query, re.DOTALL)
    if pattern:
        found, resume = _pattern_places(text, pattern[1], pattern[2], offset)
    else:
        found, resume = _plain_places(text, query, offset)
    if not found and resume is None:
        message = f"No match for {query} from offset {offset} on, in {len(text):,} characters."
        hint = "" if pattern else " Plain text is sought, in any case; /…/ seeks a pattern."
        return Reading(message + hint, offset, None, len(text), 0)
    more = "+" if resume is not None else ""
    parts = [f"{len(found)}{more} match{'es' if len(found) != 1 or more else ''} for {query} from offset {offset} on:"]
    room, tokens = limit - len(parts[0]), max_tokens - 100
    line, counted, printed = 1, 0, -1
    for index, at in enumerate(found):
        line += text.count("\n", counted, at)
        counted = at
        following = found[index + 1] if index + 1 < len(found) else len(text) + 1
        shown, last = _around(text, at, line, printed, following)
        room -= len(shown) + 1
        tokens -= estimate_tokens(shown)
        if index and (room < 0 or tokens < 0):
            resume = at
            break
        printed = last
        parts.append(shown)
    return Reading("\n".join(parts), offset, resume, len(text), len(found), not more)


def _plain_places(text: str, query: str, offset: int) -> tuple[list[int], int | None]:
    """Where the query occurs, ignoring case, once per line or window of a long line; and where counting stopped."""
    low, needle = text.lower(), query.lower()
    # A character whose lower-case form is longer would shift every later position: then the slower path.
    literal = re.compile(re.escape(query), re.IGNORECASE) if len(low) != len(text) else None
    places: list[int] = []
    start = offset
    while start <= len(text):
        if literal is None:
            at = low.find(needle, start)
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
            f"/{source}/ is not a pattern that can be searched for.",
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


def _around(text: str, at: int, number: int, printed: int, following: int) -> tuple[str, int]:
    """A match's line with neighbours not shown yet, and the end of the last line shown."""
    start = text.rfind("\n", 0, at) + 1
    rows: list[str] = []
    back = start
    for step in range(1, _CONTEXT + 1):
        if back == 0 or back - 1 <= printed:
            break
        end = back - 1
        back = text.rfind("\n", 0, end) + 1
        rows.insert(0, f"  {number - step}: {_clip(text, back, end, back)}")
    if printed >= 0 and back - 1 > printed:
        rows.insert(0, "--")
    end = text.find("\n", at)
    end = len(text) if end < 0 else end
    rows.append(f"> {number} (offset {at}): {_clip(text, start, end, at)}")
    for step in range(1, _CONTEXT + 1):
        ahead = end + 1
        if ahead > len(text):
            break
        stop = text.find("\n", ahead)
        stop = len(text) if stop < 0 else stop
        if following <= stop:
            break
        rows.append(f"  {number + step}: {_clip(text, ahead, stop, ahead)}")
        end = stop
    return "\n".join(rows), end


def _clip(text: str, start: int, end: int, at: int) -> str:
    """The line from start to end, or the part around `at` of a long one."""
    if end - start <= _CLIP:
        return text[start:end]
    first = max(start, at - _CLIP // 3)
    last = min(end, first + _CLIP)
    return ("…" if first > start else "") + text[first:last] + ("…" if last < end else "")
