"""Picking parts of JSON by a path.

Owns the part of JSONPath that agents write: `$.a.b`, `items[0]`, `[-1]`, `[0:10]`, `[*]`, `..key` and `['a b']`. A path
that matches nothing says where it stopped and what is there. Keys are plain data: `__proto__` is one like any other.
Knows nothing of pages or searches. The values one path may touch are counted, so no path runs long.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from tabhub.core.results.budget import json_lines
from tabhub.errors import InvalidParams

_VISITS = 1_500_000
_MAX_PATH = 1_000
_CONTAINERS = 1_000_000
_KEYS_SHOWN = 20
_QUOTED: Final = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_STEP = re.compile(
    r"(?P<dots>\.{0,2})(?P<name>[^.\[\]\s=!<>~&|()'\",]+)"
    rf"|(?P<deep>\.\.)?\[\s*(?:(?P<all>\*)|(?P<quoted>{_QUOTED})|(?P<index>-?[0-9]{{1,15}})"
    r"|(?P<first>-?[0-9]{0,15})\s*:\s*(?P<last>-?[0-9]{0,15})\s*(?::\s*(?P<stride>[1-9][0-9]{0,14})?)?)\s*\]",
    re.DOTALL,
)
_NUMBER = re.compile("[0-9]{1,15}")
_PATH_HINT = (
    "A path looks like $.items[0].name, items[*].name, ..name, [0:10] or ['a key']. There are no filters: use search."
)


@dataclass(frozen=True, slots=True)
class _Step:
    at: int
    """Where it begins in the path."""
    deep: bool
    selector: str | int | slice | None
    """A key, an index, a slice, or None for every value."""


def pick_json(text: str, path: str) -> str:
    """The part of a JSON text that a path selects, as JSON: the value, or an array where a step can match many."""
    path = path.strip()
    if len(path) > _MAX_PATH:
        raise InvalidParams(f"The path is longer than {_MAX_PATH} characters.", hint=_PATH_HINT)
    steps = _parse(path)
    if text.count("[") + text.count("{") > _CONTAINERS:  # parsing them would block the event loop
        raise InvalidParams(
            f"The stored result may have more than {_CONTAINERS:,} lists and objects, too many to pick from.",
            hint="Use offset or search.",
        )
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidParams(f"The stored result is not valid JSON: {error}.", hint="Use offset or search.") from None
    raw = msgspec.json.encode(_walk(value, steps, path))
    return json_lines(raw) or raw.decode()


def _parse(path: str) -> list[_Step]:
    steps: list[_Step] = []
    at = 1 if path.startswith("$") else 0
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None or (found["name"] and not found["dots"] and at > 0):
            raise InvalidParams(
                f"The path {path!r} is not valid at character {at + 1}: {path[at : at + 20]!r}.", hint=_PATH_HINT
            )
        steps.append(_Step(at, ".." in (found["dots"], found["deep"]), _selector(found)))
        at = found.end()
    return steps


def _selector(found: re.Match[str]) -> str | int | slice | None:
    if found["all"] or found["name"] == "*":
        return None
    if found["name"]:
        return found["name"]
    if found["quoted"]:
        return _unquote(found["quoted"])
    if found["index"]:
        return int(found["index"])
    return slice(*(int(part) if part else None for part in found.group("first", "last", "stride")))


def _unquote(quoted: str) -> str:
    body = quoted[1:-1]
    if quoted[0] == "'":
        body = re.sub(r"\\(.)|\"", lambda m: "'" if m[1] == "'" else m[0] if m[1] else '\\"', body, flags=re.DOTALL)
    try:
        return str(json.loads(f'"{body}"', strict=False))
    except ValueError:
        raise InvalidParams(f"{quoted[:40]} is not a quoted text.", hint=_PATH_HINT) from None


def _walk(root: Any, steps: list[_Step], path: str) -> Any:
    nodes, single, visits = [root], True, 0
    for step in steps:
        single = single and not step.deep and isinstance(step.selector, (str, int))
        found: list[Any] = []
        for node in nodes:
            for source in _descend(node) if step.deep else (node,):
                selected = _select(step.selector, source)
                visits += 1 + len(selected)
                if visits > _VISITS:
                    raise InvalidParams(
                        f"The path {path!r} touches more than {_VISITS:,} values.", hint="Begin it with narrower steps."
                    )
                found.extend(selected)
        if not found and not _may_be_empty(step, nodes):
            where = path[: step.at] or "$"
            raise InvalidParams(
                f"The path stops matching at {path[step.at :][:60]!r}: {where} {_describe(step, nodes[0])}.",
                hint=_PATH_HINT,
            )
        nodes = found
    return nodes[0] if single else nodes


def _descend(node: Any) -> Iterator[Any]:
    """The value and all its descendants, in document order."""
    stack = [node]
    while stack:
        value = stack.pop()
        yield value
        if isinstance(value, dict):
            stack.extend(reversed(value.values()))
        elif isinstance(value, list):
            stack.extend(reversed(value))


def _select(selector: str | int | slice | None, node: Any) -> list[Any]:
    if isinstance(node, dict):
        if selector is None:
            return list(node.values())
        return [node[selector]] if isinstance(selector, str) and selector in node else []
    if not isinstance(node, list):
        return []
    if selector is None:
        return node
    if isinstance(selector, slice):
        return node[selector]
    if isinstance(selector, str):  # items.0.name means items[0].name
        if not _NUMBER.fullmatch(selector):
            return []
        selector = int(selector)
    return [node[selector]] if -len(node) <= selector < len(node) else []


def _may_be_empty(step: _Step, nodes: list[Any]) -> bool:
    """Whether an empty result is valid: an empty array has no items."""
    if not nodes or isinstance(step.selector, (str, int)):
        return not nodes
    return step.deep or any(isinstance(node, (list, dict) if step.selector is None else list) for node in nodes)


def _describe(step: _Step, node: Any) -> str:
    """What is there instead of a match."""
    if step.deep:
        return f"has no match at any depth; at its top it {_describe(_Step(0, False, ''), node)}"
    if isinstance(node, dict):
        keys = [key if len(key) <= 40 else key[:39] + "…" for key in list(node)[:_KEYS_SHOWN]]
        more = f" and {len(node) - _KEYS_SHOWN} more" if len(node) > _KEYS_SHOWN else ""
        return f"is an object with {'the keys ' + ', '.join(map(repr, keys)) if keys else 'no keys'}{more}"
    if isinstance(node, list):
        if not node or isinstance(step.selector, int):
            return f"is an array of {len(node)}" + (f", 0 to {len(node) - 1}" if node else ", so it has no items")
        inner = f"; its first item {_describe(step, node[0])}" if isinstance(node[0], dict) else ""
        return f"is an array of {len(node)} (use [0] or [*]){inner}"
    shown = msgspec.json.encode(node).decode()
    return f"is {shown if len(shown) <= 60 else shown[:59] + '…'}"
