"""What hostile input costs: JSON, schemas, paths and texts that are designed to be slow, and very many tools.

Owns those inputs and the bounds on their cost. Everything runs in this process and is measured in CPU time. JSON is
compared with the time orjson needs, in the same run, for an ordinary document of the same size. The tests show that
each input is refused and when; only the time is measured here.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from statistics import median
from typing import Any

import msgspec
import orjson

from bench import report
from tabhub.core.listing.catalogue import Catalogue
from tabhub.core.registry import Entry, Registry
from tabhub.core.results.json_path import pick_json
from tabhub.core.schemas.bounds import find_problem
from tabhub.core.schemas.validators import compile_schema
from tabhub.core.tools import CallContext, Source, Tool, ToolResult
from tabhub.errors import BadInput, InvalidParams, ParseError
from tabhub.limits import Limits
from tabhub.trust.redact import redact
from tabhub.wire import strict_json as strict

SIZE = 1_000_000
TOOLS, SITES, MORE = 5_000, 500, 10
MOST_TO_PARSING = 5.0
MOST_GROWTH = 3.0
"""Cost of twice the text: 2 if it is linear, 4 if it is quadratic."""


def cpu_seconds(work: Callable[[], object]) -> float:
    """CPU time of one run, averaged over as many as take 20 ms."""
    runs, total = 0, 0.0
    while total < 0.02:
        began = time.process_time()
        work()
        total += time.process_time() - began
        runs += 1
    return total / runs


def medians(works: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The median CPU time of each, measured in alternating rounds."""
    found: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            found[name].append(cpu_seconds(work))
    return {name: median(times) for name, times in found.items()}


def filled(begin: bytes, piece: bytes, end: bytes = b"") -> bytes:
    """A text of about SIZE bytes."""
    return begin + piece * ((SIZE - len(begin) - len(end)) // len(piece)) + end


def ordinary_document() -> bytes:
    """Objects as a web API sends them."""
    chance = random.Random(1)
    row = {"name": "a name of some length", "tags": ["one", "two"], "price": 12.5, "new": True, "text": "word " * 12}
    rows = []
    size = 0
    while size < SIZE:
        rows.append({"id": chance.getrandbits(40), **row, "key": f"{chance.getrandbits(64):016x}"})
        size += len(orjson.dumps(rows[-1])) + 1
    return orjson.dumps(rows)


def hostile_documents() -> dict[str, bytes]:
    """Texts of about SIZE bytes: first those that are refused early, then those that must be scanned to the end."""
    return {
        "nested without end": b"[" * SIZE,
        "nested deep at the end": filled(b"[", b"[],", b"[" * 70),
        "too many keys": filled(b"[", b'{"a":1},', b"{}]"),
        "keys, each another": b"{" + b",".join(b'"%d":1' % n for n in range(SIZE // 10)) + b"}",
        "a number of 1 MB": b"1" * SIZE,
        "digits up to the limit": filled(b"[", b"0" * 398 + b"1,", b"1]"),
        "quotes alone": filled(b"[1]," * 70, b'"'),
        "escaped quotes": filled(b"[1]," * 70 + b'"', b'\\"'),
        "backslashes": filled(b"[1]," * 70 + b'"', b"\\"),
        "brackets in strings": filled(b"[" + b"[]," * 70, b'"[[{{::",', b"1"),
        "ordinary, a key twice at its end": ordinary_document()[:-1] + b',{"a":1,"\\u0061":2}]',
    }


def refuse_json(data: bytes) -> Callable[[], object]:
    def work() -> None:
        try:
            strict.decode(data)
        except ParseError:
            return
        raise AssertionError("hostile JSON was accepted")

    return work


def json_section(rounds: int) -> tuple[str, list[str]]:
    """Refusing JSON compared with parsing JSON."""
    valid = ordinary_document()
    lists = filled(b"[", b"[],", b"1]")
    hostile = hostile_documents()
    works: dict[str, Callable[[], object]] = {
        "ordinary, orjson": partial(orjson.loads, valid),
        "ordinary, accepted": partial(strict.decode, valid),
    }
    works |= {name: refuse_json(data) for name, data in hostile.items()}
    times = medians(works, rounds)
    # Separate from the others, because the garbage they leave slows down what runs next.
    many_values = {
        "empty lists, orjson": partial(orjson.loads, lists),
        "empty lists, accepted": partial(strict.decode, lists),
    }
    times |= medians(many_values, rounds)
    costs = {name: seconds * 1e9 / len(hostile.get(name, valid)) for name, seconds in times.items()}
    base = costs["ordinary, orjson"]
    rows = [[name, f"{cost:.2f}", f"{cost / base:.2f}"] for name, cost in costs.items()]
    worst = max(cost for name, cost in costs.items() if name in hostile) / base
    return report.table(["JSON of 1 MB", "ns/byte", "to orjson"], rows), [
        report.verdict("slowest hostile JSON to parsing ordinary JSON", worst, MOST_TO_PARSING, at_least=False)
    ]


def text_section(rounds: int) -> tuple[str, list[str]]:
    """Redacting texts full of beginnings of secrets, and a pattern on a text that it almost matches."""
    pieces = ["plain words ", "eyJ-", "eyJ.", "eyJaa.bb", "bearer ", "a_", "token ", "token=", "f" * 63 + " ", "\t"]
    pieces += ["://", "://a:b"]
    checker = compile_schema({"type": "string", "pattern": "^(a+)+$"})
    works: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {}
    for piece in pieces:
        text = piece * (400_000 // len(piece))
        name = f"redact {piece!r}" if len(piece) < 20 else "redact 63 hex digits"
        works[name] = partial(redact, text[: len(text) // 2]), partial(redact, text)
    half_fit, fit = "a" * 200_000 + "!", "a" * 400_000 + "!"
    works["check ^(a+)+$"] = partial(checker.is_valid, half_fit), partial(checker.is_valid, fit)
    half = medians({name: pair[0] for name, pair in works.items()}, rounds)
    whole = medians({name: pair[1] for name, pair in works.items()}, rounds)
    rows = [[name, f"{whole[name] * 1e3:.1f}", f"{whole[name] / half[name]:.2f}"] for name in works]
    growth = max(whole[name] / half[name] for name in works)
    return report.table(["text of 400 KB", "ms", "to half of it"], rows), [
        report.verdict("twice the text, at most that many times the cost", growth, MOST_GROWTH, at_least=False)
    ]


def doubling_schema(levels: int) -> dict[str, Any]:
    """A small schema whose evaluation takes 2^levels steps."""
    defs: dict[str, Any] = {"d0": {"type": "object"}}
    for level in range(1, levels):
        inner = {"$ref": f"#/$defs/d{level - 1}"}
        defs[f"d{level}"] = {"allOf": [inner, inner]}
    return {"$ref": f"#/$defs/d{levels - 1}", "$defs": defs}


def refusal_section(rounds: int) -> tuple[str, list[str]]:
    """Schemas and results that are refused as a whole."""
    many_lists = "[" + ",".join(["[]"] * 1_500_000) + "]"

    def compiled(schema: dict[str, Any]) -> Callable[[], object]:
        def work() -> None:
            with suppress(BadInput):
                compile_schema(schema)

        return work

    def picked() -> None:
        with suppress(InvalidParams):
            pick_json(many_lists, "$[0]")

    doubled = doubling_schema(40)
    wide: dict[str, Any] = {"properties": {f"p{n}": {} for n in range(20_000)}}
    works: dict[str, Callable[[], object]] = {
        "schema of 2^40 steps": partial(find_problem, doubled),
        "schema of 20,000 parts": partial(find_problem, wide),
        "pattern with a huge automaton": compiled({"pattern": "(a{90}){90}"}),
        "pattern that must backtrack": compiled({"pattern": "(?<=x)(a|aa)+$"}),
        "path into 1,500,000 lists": picked,
        "- parsing them instead": partial(msgspec.json.decode, many_lists),
    }
    costs = medians(works, rounds)
    rows = [[name, f"{seconds * 1e3:.2f}"] for name, seconds in costs.items()]
    worst = max(seconds for name, seconds in costs.items() if not name.startswith("-")) * 1e3
    ratio = costs["path into 1,500,000 lists"] / costs["- parsing them instead"]
    return report.table(["refused", "ms"], rows), [
        report.verdict("slowest refusal, ms", worst, 100, at_least=False),
        report.verdict("refusing a path to parsing the result", ratio, 0.5, at_least=False),
    ]


async def _never(ctx: CallContext, arguments: dict[str, Any]) -> ToolResult:
    raise AssertionError("nothing is run here")


def site_tools(site: int, count: int) -> tuple[Source, list[Entry]]:
    """The tools of one origin."""
    source = Source("page", f"https://site{site}.example")
    schema = {"type": "object", "properties": {"order": {"type": "string", "description": "which order it is about"}}}
    verbs = ("find", "send", "open", "list")
    names = [f"website_tool_site{site}_{verbs[n % len(verbs)]}_{n}" for n in range(count)]
    return source, [Entry(Tool(name, source, f"Does {name}.", schema), _never) for name in names]


def list_all(catalogue: Catalogue) -> None:
    """All pages of the listing."""
    cursor: str | None = None
    while True:
        cursor = orjson.loads(catalogue.page(cursor, stateless=False)).get("nextCursor")
        if cursor is None:
            return


def tool_rounds(rounds: int) -> dict[str, float]:
    """Median times of operations on a registry of 5,000 tools, a new one in each round."""
    found: dict[str, list[float]] = {}

    def timed(name: str, work: Callable[[], object]) -> None:
        began = time.process_time()
        work()
        found.setdefault(name, []).append(time.process_time() - began)

    def register(registry: Registry, sites: range) -> None:
        for site in sites:
            registry.replace(*site_tools(site, TOOLS // SITES))

    def search(catalogue: Catalogue, query: str) -> None:
        while (index := catalogue.index()) is None:
            pass
        index.search(query)

    for _ in range(rounds):
        registry = Registry()
        catalogue = Catalogue(registry, Limits(), disabled=lambda _: False, mark=False)
        timed(f"register {TOOLS:,} tools", partial(register, registry, range(SITES)))
        timed("first list", partial(list_all, catalogue))
        timed("first search, with its index", partial(search, catalogue, "send order"))
        timed("search", partial(search, catalogue, "open something at site77"))
        timed("search for a misspelled word", partial(search, catalogue, "websiet"))
        timed(f"register {MORE} more", partial(register, registry, range(SITES, SITES + 1)))
        timed("- list after that", partial(list_all, catalogue))
        timed("- search after that", partial(search, catalogue, "send order"))
    return {name: median(times) for name, times in found.items()}


def tool_section(rounds: int) -> tuple[str, list[str]]:
    """Very many tools, and a few more."""
    costs = {name: seconds * 1e3 for name, seconds in tool_rounds(rounds).items()}
    rows = [[name, f"{cost:.2f}"] for name, cost in costs.items()]
    more = costs[f"register {MORE} more"] + costs["- list after that"]
    searches = max(cost for name, cost in costs.items() if "search" in name)
    return report.table([f"{TOOLS:,} tools of {SITES} sites", "ms"], rows), [
        report.verdict(f"register and list {MORE} more, ms", more, 100, at_least=False),
        report.verdict("slowest search, ms", searches, 300, at_least=False),
    ]


def main(rounds: int = 7) -> None:
    tables, verdicts = [], []
    for section in (json_section, text_section, refusal_section, tool_section):
        table, lines = section(rounds)
        tables.append(table)
        verdicts += lines
        print(table, *lines, sep="\n", end="\n\n", flush=True)
    head = f"CPU time, medians of {rounds} rounds; {report.machine()}."
    report.write_section("hostile", "\n\n".join([head, *tables, "\n".join(verdicts)]))
