"""Picking parts of JSON by a path.

Owns the part of JSONPath that agents write: `$.a.b`, `items[0]`, `[-1]`, `[0:10]`, `[*]`, `..key`, `['a b']` and
filters such as `[?price<10 && title~'text']` (`~` is "contains", in any case; `@.` may be left out). A path
that matches nothing says where it stopped and what is there. Keys are plain data: `__proto__` is one like any other.
Knows nothing of pages or searches. The values one path may touch are counted, so no path runs long.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal, NoReturn

import msgspec

from tabhub.core.results.budget import json_lines
from tabhub.errors import InvalidParams

_VISITS = 1_500_000
_MAX_PATH = 1_000
_CONTAINERS = 1_000_000


@dataclass(frozen=True, slots=True)
class _Step:
    kind: Literal["key", "index", "slice", "all", "filter"]
    at: int
    deep: bool = False
    key: str = ""
    index: int = 0
    span: slice | None = None
    tests: tuple[tuple[_Test, ...], ...] = ()
    """Any of the groups, all of a group."""


@dataclass(frozen=True, slots=True)
class _Test:
    steps: tuple[_Step, ...]
    op: str
    value: Any


_NAME = re.compile(r"[^.\[\]\s=!<>~&|()'\",]+")
_QUOTED: Final = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_KEY = re.compile(rf"\[\s*({_QUOTED})\s*\]", re.DOTALL)
_INDEX = re.compile(r"\[\s*(-?[0-9]{1,15})\s*\]")
_SPAN = re.compile(r"\[\s*(-?[0-9]{0,15})\s*:\s*(-?[0-9]{0,15})\s*(?::\s*([0-9]{0,15})\s*)?\]")
_OP = re.compile(r"\s*(==|!=|<=|>=|<|>|=~|~|=)\s*")
_VALUE = re.compile(rf"({_QUOTED})|-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|true|false|null", re.DOTALL)
_ORDER: Final = {"<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge}
_PATH_HINT = "A path looks like $.items[0].name, items[*].name, ..name, [0:10], ['a key'] or items[?price<10]."


class _Path:
    """Reads a path into steps."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def fail(self, what: str) -> NoReturn:
        raise InvalidParams(
            f"The path {self.text!r} cannot be read: {what} at character {self.at + 1}.", hint=_PATH_HINT
        )

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self.text, self.at)
        if found:
            self.at = found.end()
        return found

    def skip(self, word: str) -> bool:
        if self.text.startswith(word, self.at):
            self.at += len(word)
            return True
        return False

    def whole(self) -> tuple[_Step, ...]:
        self.skip("$")
        steps = self.steps(bare=self.at == 0)
        if self.at < len(self.text):
            self.fail(f"{self.text[self.at :][:20]!r} is not a step (quote keys with special characters: ['a key'])")
        return steps

    def steps(self, *, bare: bool, inner: bool = False) -> tuple[_Step, ...]:
        steps: list[_Step] = []
        while True:
            begin = self.at
            deep = self.skip("..")
            if inner and (deep or self.text.startswith("[?", self.at)):
                self.fail("inside a filter, .. and another filter do not work")
            if self.text.startswith("[", self.at):
                steps.append(self.bracket(begin, deep=deep))
            elif deep or self.skip(".") or (bare and begin == self.at and not steps):
                name = self.take(_NAME)
                if name is None:
                    if begin == self.at:
                        return tuple(steps)
                    self.fail("a key is missing")
                steps.append(_Step("all" if name[0] == "*" else "key", begin, deep, key=name[0]))
            else:
                return tuple(steps)

    def bracket(self, begin: int, *, deep: bool) -> _Step:
        if key := self.take(_KEY):
            return _Step("key", begin, deep, key=self.unquote(key[1]))
        if index := self.take(_INDEX):
            return _Step("index", begin, deep, index=int(index[1]))
        if span := self.take(_SPAN):
            first, last, stride = (int(part) if part else None for part in span.groups())
            if stride == 0:
                self.fail("a slice cannot go in steps of 0")
            return _Step("slice", begin, deep, span=slice(first, last, stride))
        if self.skip("[*]"):
            return _Step("all", begin, deep)
        if not self.skip("[?"):
            self.fail("between [ and ] an index, a slice, *, a quoted key or a ?filter is missing")
        closing = ")" if self.skip("(") else ""
        groups: list[tuple[_Test, ...]] = []
        tests = [self.test()]
        while True:
            self.spaces()
            if self.skip("&&"):
                tests.append(self.test())
            elif self.skip("||"):
                groups.append(tuple(tests))
                tests = [self.test()]
            else:
                break
        if not self.skip(closing + "]"):
            self.fail(f"the filter does not end with {closing + ']'!r}")
        return _Step("filter", begin, deep, tests=(*groups, tuple(tests)))

    def spaces(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def test(self) -> _Test:
        self.spaces()
        current = self.skip("@")
        steps = self.steps(bare=not current, inner=True)
        if not steps and not current:
            self.fail("a filter needs a key, such as [?name=='x']")
        op = self.take(_OP)
        if op is None:
            return _Test(steps, "", None)
        value = self.take(_VALUE)
        if value is None:
            self.fail("a filter compares with a number, true, false, null or 'quoted text'; that is missing")
        return _Test(steps, op[1], self.unquote(value[1]) if value[1] else json.loads(value[0]))

    def unquote(self, quoted: str) -> str:
        body = quoted[1:-1]
        if quoted[0] == "'":
            body = re.sub(r"\\(.)|\"", lambda m: "'" if m[1] == "'" else m[0] if m[1] else '\\"', body, flags=re.DOTALL)
        try:
            return str(json.loads(f'"{body}"', strict=False))
        except ValueError:
            self.fail(f"{quoted[:40]} is not a quoted text")


def pick_json(text: str, path: str) -> str:
    """The part of a JSON text that a path selects, as JSON: the value, or an array where a step can match many."""
    path = path.strip()
    if len(path) > _MAX_PATH:
        raise InvalidParams(f"The path is longer than {_MAX_PATH} characters.", hint=_PATH_HINT)
    steps = _Path(path).whole()
    if text.count("[") + text.count("{") > _CONTAINERS:  # reading them takes long, and nothing else runs meanwhile
        raise InvalidParams(
            f"The kept result may hold more than {_CONTAINERS:,} lists and objects, too many to pick from.",
            hint="Use offset or search.",
        )
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidParams(f"The kept result cannot be read as JSON: {error}.", hint="Use offset or search.") from None
    raw = msgspec.json.encode(_walk(value, steps, path))
    return json_lines(raw) or raw.decode()


class _Work:
    """Counts the values a path touches."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.left = _VISITS

    def spend(self, visits: int) -> None:
        self.left -= visits
        if self.left < 0:
            raise InvalidParams(
                f"The path {self.path!r} touches more than {_VISITS:,} values.", hint="Begin it with narrower steps."
            )


def _walk(root: Any, steps: tuple[_Step, ...], path: str) -> Any:
    work = _Work(path)
    nodes, single = [root], True
    for step in steps:
        sources = (below for node in nodes for below in _descend(node)) if step.deep else iter(nodes)
        single = single and not step.deep and step.kind in ("key", "index")
        found: list[Any] = []
        for node in sources:
            taken = _take(step, node, work)
            work.spend(1 + len(taken))
            found.extend(taken)
        if not found and not _may_be_empty(step, nodes, work):
            where = path[: step.at] or "$"
            raise InvalidParams(
                f"The path stops matching at {path[step.at :][:60]!r}: {where} {_seen(step, nodes)}.", hint=_PATH_HINT
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


def _take(step: _Step, node: Any, work: _Work) -> list[Any]:
    if isinstance(node, dict):
        if step.kind == "key":
            return [node[step.key]] if step.key in node else []
        if step.kind == "all":
            return list(node.values())
        return [item for item in node.values() if _passes(step, item, work)] if step.kind == "filter" else []
    if not isinstance(node, list):
        return []
    if step.span is not None:
        return node[step.span]
    if step.kind == "all":
        return node
    if step.kind == "filter":
        return [item for item in node if _passes(step, item, work)]
    index = step.index
    if step.kind == "key":  # items.0.name means items[0].name
        if not (step.key.isascii() and step.key.isdigit() and len(step.key) < 16):
            return []
        index = int(step.key)
    return [node[index]] if -len(node) <= index < len(node) else []


def _passes(step: _Step, item: Any, work: _Work) -> bool:
    return any(all(_holds(test, item, work) for test in group) for group in step.tests)


def _holds(test: _Test, item: Any, work: _Work) -> bool:
    nodes = [item]
    for step in test.steps:
        nodes = [value for node in nodes for value in _take(step, node, work)]
        work.spend(1 + len(nodes))
    if not nodes:
        return test.op == "!="
    return not test.op or any(_compare(value, test.op, test.value) for value in nodes)


def _compare(value: Any, op: str, wanted: Any) -> bool:
    if op in ("~", "=~"):
        if isinstance(value, str):
            return str(wanted).casefold() in value.casefold()
        return isinstance(value, list) and any(_compare(item, "==", wanted) for item in value)
    same = isinstance(value, bool) == isinstance(wanted, bool) and value == wanted
    if op in ("==", "="):
        return same
    if op == "!=":
        return not same
    numbers = all(isinstance(side, (int, float)) and not isinstance(side, bool) for side in (value, wanted))
    if not numbers and not (isinstance(value, str) and isinstance(wanted, str)):
        return False
    return bool(_ORDER[op](value, wanted))


def _may_be_empty(step: _Step, nodes: list[Any], work: _Work) -> bool:
    """Whether an empty result is valid: an empty array has no items, and a filter may match none."""
    if not nodes:
        return True
    if step.kind in ("slice", "all"):
        return step.deep or any(isinstance(node, (list, dict) if step.kind == "all" else list) for node in nodes)
    if step.kind != "filter":
        return False
    items = [item for node in nodes for item in (_descend(node) if step.deep else _take(_Step("all", 0), node, work))]
    firsts = [test.steps[0] for group in step.tests for test in group if test.steps]
    known = not firsts or any(_take(first, item, work) for first in firsts for item in items)
    return known or (not items and any(isinstance(node, (list, dict)) for node in nodes))


def _seen(step: _Step, nodes: list[Any]) -> str:
    """What is there instead, for the error message."""
    node = nodes[0]
    if step.deep:
        return f"has nothing like it in it; at its top it {_seen(_Step('key', 0), nodes)}"
    if step.kind == "filter" and isinstance(node, list) and node:
        return f"has items, and none has that key: the first {_seen(_Step('key', 0), [node[0]])}"
    if isinstance(node, dict):
        keys = [key if len(key) <= 40 else key[:39] + "…" for key in list(node)[:20]]
        more = f" and {len(node) - 20} more" if len(node) > 20 else ""
        return f"is an object with {'the keys ' + ', '.join(map(repr, keys)) if keys else 'no keys'}{more}"
    if (isinstance(node, list) and step.kind == "index") or node == []:
        return f"is an array of {len(node)}" + (f", 0 to {len(node) - 1}" if node else ", so it has no items")
    if isinstance(node, list):
        inner = f"; its first item {_seen(_Step('key', 0), node)}" if node and isinstance(node[0], dict) else ""
        return f"is an array of {len(node)} (use [0] or [*]){inner}"
    shown = msgspec.json.encode(node).decode()
    return f"is {shown if len(shown) <= 60 else shown[:59] + '…'}"
