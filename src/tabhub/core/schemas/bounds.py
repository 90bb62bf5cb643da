"""Untrusted schemas: whether validating a value against one is certain to be fast.

Owns the bounds on what a schema may refer to and how often. A validator follows `$ref` each time it meets one, so a few
hundred bytes can ask for 2^60 steps, or for steps without end. This examines the schema once, as a graph, and reports
what is wrong with it. Compiling it, and its validity as JSON Schema, is core.tools'.
"""

from __future__ import annotations

from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any
from urllib.parse import unquote

from tabhub.core.schemas.references import MAX_DEPTH, parts

MAX_STEPS = 20_000
MAX_NODES = 5_000
MAX_PATTERNS = 64
_MAX_PATTERN = 1_000
_WHERE: Mapping[str, str | None] = {
    **dict.fromkeys(("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas")),
    **dict.fromkeys(("prefixItems", "items", "contains", "unevaluatedItems"), "[]"),
    **dict.fromkeys(("properties", "patternProperties", "unevaluatedProperties"), "{}"),
    "additionalProperties": "+",
    "propertyNames": "name",
    **dict.fromkeys(("$defs", "definitions"), "apart"),
}
"""What each keyword applies its subschemas to: the same value (None), items, members, other members, names, nothing."""
_REFUSED = ("$dynamicRef", "$recursiveRef", "$id", "$anchor", "$dynamicAnchor")

_SLOW = f"checking a value against the schema could take more than {MAX_STEPS} steps"

Edge = tuple[str | None, str]
"""Where a subschema applies (None: to the same value, else to which part of it) and its pointer."""


class _Refused(Exception):
    """Why a schema is rejected."""


def find_problem(schema: Mapping[str, Any]) -> str | None:
    """Why validation against a schema may be slow, or None."""
    try:
        nodes = _nodes(schema)
        _few_steps(nodes)
    except _Refused as refused:
        return str(refused)
    return None


def _nodes(schema: Mapping[str, Any]) -> dict[str, list[Edge]]:
    """Every subschema by its pointer, with the ones it applies."""
    nodes: dict[str, list[Edge]] = {}
    patterns = 0
    waiting: list[tuple[str, Any, int]] = [("", schema, 0)]
    while waiting:
        pointer, node, depth = waiting.pop()
        edges = nodes[pointer] = []
        if not isinstance(node, Mapping):
            continue
        if len(nodes) > MAX_NODES:
            raise _Refused(f"the schema has more than {MAX_NODES} parts")
        if depth > MAX_DEPTH:
            raise _Refused(f"the schema is nested deeper than {MAX_DEPTH} levels")
        for keyword in _REFUSED:
            if keyword in node and not (keyword == "$id" and not pointer):
                raise _Refused(f"the schema uses {keyword}, which is not supported")
        given = [node["pattern"]] if isinstance(node.get("pattern"), str) else []
        if isinstance(named := node.get("patternProperties"), Mapping):
            given += [str(name) for name in named]
        patterns += len(given)
        if patterns > MAX_PATTERNS or any(len(pattern) > _MAX_PATTERN for pattern in given):
            raise _Refused(f"the schema has more than {MAX_PATTERNS} patterns, or one above {_MAX_PATTERN} characters")
        for keyword, step, below in parts(node):
            if (where := _place(keyword, step, pointer)) != "apart":
                edges.append((where, pointer + step))
            waiting.append((pointer + step, below, depth + 1))
        if "$ref" in node:
            edges.append((None, _target(node["$ref"])))
    for edges in nodes.values():
        for _, target in edges:
            if target not in nodes:
                raise _Refused(f"the schema refers to {target[:100]!r}, which is not a part of it")
    return nodes


def _place(keyword: str, step: str, pointer: str) -> str | None:
    """What the subschema at a step applies to."""
    if keyword == "prefixItems":
        return f"[{step.rpartition('/')[2]}]"
    if keyword == "properties":
        return f".{step.removeprefix('/properties/')}"
    where = _WHERE[keyword]
    return f"+{pointer}" if where == "+" else where


def _target(reference: Any) -> str:
    if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
        raise _Refused(f"the schema refers to another document: {str(reference)[:100]!r}")
    return unquote(reference[1:])


def _order(graph: dict[str, list[str]]) -> list[str]:
    """All nodes, each after those it leads to; a cycle is rejected: references must end."""
    try:
        return list(TopologicalSorter(graph).static_order())
    except CycleError:
        raise _Refused("the schema refers to itself without end") from None


def _few_steps(nodes: dict[str, list[Edge]]) -> None:
    """Each value must be visited a bounded number of times, however the parts refer to each other.

    For every node: how often it leads, on the same value, to each part that applies one level deeper. Where parts lead
    back to themselves, a value of depth d is visited (times a level)^d times, so there only one time is accepted.
    """
    here = {pointer: [to for where, to in edges if where is None] for pointer, edges in nodes.items()}
    steps: dict[str, int] = {}
    below: dict[str, dict[Edge, int]] = {}
    for node in _order(here):
        steps[node] = 1 + sum(steps[to] for to in here[node])
        counts: dict[Edge, int] = {}
        for edge in nodes[node]:
            for inner, times in below[edge[1]].items() if edge[0] is None else [(edge, 1)]:
                counts[inner] = counts.get(inner, 0) + times
        below[node] = counts
        if steps[node] > MAX_STEPS or len(counts) > MAX_STEPS:
            raise _Refused(_SLOW)
    cycles = _recursive({node: [to for _, to in counts] for node, counts in below.items()})

    def back(node: str, to: str) -> bool:
        return node in cycles and cycles[node] == cycles.get(to)

    for node, counts in below.items():
        returning = {edge: times for edge, times in counts.items() if back(node, edge[1])}
        if returning and _most(returning, nodes, dict.fromkeys(nodes, 1)) > 1:
            raise _Refused("the schema refers to itself in several ways for one value, which could take too long")
    onward = {node: [to for _, to in counts if not back(node, to)] for node, counts in below.items()}
    totals: dict[str, int] = {}
    for node in _order(onward):
        outer = {edge: times for edge, times in below[node].items() if not back(node, edge[1])}
        totals[node] = steps[node] + _most(outer, nodes, totals)
        if totals[node] > MAX_STEPS:
            raise _Refused(_SLOW)


def _most(counts: dict[Edge, int], nodes: dict[str, list[Edge]], weights: dict[str, int]) -> int:
    """The most steps that the part of a value under one key or index can take."""
    sums: dict[str, int] = {}
    for (where, to), times in counts.items():
        sums[str(where)] = sums.get(str(where), 0) + times * weights[to]
    rest = [(where[1:], steps) for where, steps in sums.items() if where.startswith("+")]
    found = [sums.get("name", 0)]
    for key in [where for where in sums if where.startswith(".")] + [""]:
        others = sum(steps for owner, steps in rest if not key or all(where != key for where, _ in nodes[owner]))
        found.append((sums[key] if key else 0) + sums.get("{}", 0) + others)
    items = [steps for where, steps in sums.items() if where.startswith("[") and where != "[]"]
    found.append(max(items, default=0) + sums.get("[]", 0))
    return max(found)


def _recursive(graph: dict[str, list[str]]) -> dict[str, int]:
    """The nodes that lead back to themselves, with the number of their cycle."""
    reach: dict[str, int] = {}
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    path: list[str] = []
    on_path: set[str] = set()
    for start in graph:
        work = [(start, 0)] if start not in index else []
        while work:
            node, at = work.pop()
            if at == 0:
                index[node] = low[node] = len(index)
                path.append(node)
                on_path.add(node)
            else:
                low[node] = min(low[node], low[graph[node][at - 1]]) if graph[node][at - 1] in on_path else low[node]
            for place in range(at, len(graph[node])):
                to = graph[node][place]
                if to not in index:
                    work += [(node, place + 1), (to, 0)]
                    break
                if to in on_path:
                    low[node] = min(low[node], index[to])
            else:
                if low[node] == index[node]:
                    members = path[path.index(node) :]
                    del path[-len(members) :]
                    on_path.difference_update(members)
                    if len(members) > 1 or node in graph[node]:
                        reach.update(dict.fromkeys(members, index[node]))
    return reach
