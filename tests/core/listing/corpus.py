"""Definitions of tools as real services and pages have them, for tests of search: thousands, always the same.

Owns how the tables in `data` become tools: each service has its own verbs, wording and parameters. Nothing is random.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tabhub.core.tools import Source, Tool

DATA = Path(__file__).parent / "data"
NEEDS = ("needs.txt", "needs_heldout.txt")
PLUGIN_TOOLS, PAGE_TOOLS = 2449, 5000
TOOLS_OF_A_SITE = 14
_SPEC = re.compile(r"(\w+)\(([^)]*)\): (.+)")
_ENTITY = re.compile(r"(\w+): ([\w ]+) \| (\w+) \| (.+)")

VERBS: dict[str, tuple[tuple[str, str], ...]] = {
    "list": (
        ("list_{many}", "Lists the {many_words}: each {what}, newest first."),
        ("get_{many}", "Returns all {many_words} the account has access to, page by page."),
        ("{many}_list", "Get a paginated list of {many_words}."),
    ),
    "get": (
        ("get_{one}", "Returns one {one_words} with all its details."),
        ("retrieve_{one}", "Retrieve a single {what} by its id."),
        ("read_{one}", "Show the details of a {what}."),
    ),
    "create": (
        ("create_{one}", "Creates a new {one_words} ({what})."),
        ("add_{one}", "Add a {what}."),
        ("new_{one}", "Make a new {one_words}."),
    ),
    "update": (
        ("update_{one}", "Changes fields of a {one_words} ({what})."),
        ("edit_{one}", "Edit a {what}; fields that are left out stay as they are."),
        ("modify_{one}", "Modify an existing {one_words}."),
    ),
    "delete": (
        ("delete_{one}", "Deletes a {one_words} for good."),
        ("remove_{one}", "Remove a {what}. This cannot be undone."),
        ("delete_{one}", "Permanently delete the given {one_words}."),
    ),
    "search": (
        ("search_{many}", "Searches {many_words} by text and filters."),
        ("find_{many}", "Find {many_words} that match a query."),
        ("search_{many}", "Full-text search over every {what}."),
    ),
}
USUAL = (("{verb}_{one}", "{Verb}s a {one_words} ({what})."), ("{verb}_{one}", "{Verb} one {what}."))
PARAMETERS = {
    "list": "limit, cursor",
    "get": "{one}_id*",
    "create": "{one}*, fields",
    "update": "{one}_id*, fields*",
    "delete": "{one}_id*",
    "search": "query*, limit",
}
BRANDS = "alva brio corda delmo elvin fando gresta hulda imsa jorva kelto lumo marvi nordo opaly prisma quento rilva"
ENDINGS = {
    "shop": "market", "airline": "air", "hotel": "hotel", "bank": "bank", "telecom": "mobile", "insurance": "insure",
    "clinic": "clinic", "cinema": "cinema", "restaurant": "kitchen", "jobs": "careers", "estate": "homes",
    "library": "library", "school": "school", "city": "townhall", "energy": "power", "trains": "rail",
    "parcels": "parcel", "gym": "fit", "vet": "vets", "news": "times", "recipes": "recipes", "weather": "weather",
    "auction": "bids", "museum": "museum", "streaming": "stream", "carshare": "cars", "pharmacy": "pharmacy",
}  # fmt: skip


def site_name(kind: str, number: int) -> str:
    return f"{BRANDS.split()[number]}-{ENDINGS[kind]}"


@cache
def plugin_tools() -> tuple[Tool, ...]:
    """The tools of all plugins."""
    made = [
        tool
        for header, lines in _sections(DATA / "plugins.txt")
        for plugin in header[1:]
        for tool in _plugin(plugin, lines)
    ]
    assert len(made) >= PLUGIN_TOOLS, len(made)
    # Evenly from all services, but none that somebody needs.
    wanted = {name for file in NEEDS for _, tools, _ in _read_needs(file) for name in tools}
    spare = [at for at, tool in enumerate(made) if tool.name not in wanted]
    excess = len(made) - PLUGIN_TOOLS
    dropped = {spare[len(spare) * at // excess] for at in range(excess)}
    return tuple(tool for at, tool in enumerate(made) if at not in dropped)


@cache
def page_tools() -> tuple[Tool, ...]:
    """The tools of open pages, each site in a tab of its own."""
    kinds = {header[0]: lines for header, lines in _sections(DATA / "pages.txt")}
    every = kinds.pop("every")
    made: list[Tool] = []
    tab = 100
    for number in range(len(BRANDS.split())):
        for kind, own in kinds.items():
            tab += 1
            site = site_name(kind, number)
            rest = every[number % 3 :: 2] + every[(number + 1) % 3 :: 2]
            lines = [*own, *dict.fromkeys(rest)][:TOOLS_OF_A_SITE]
            made += (_page_tool(site, tab, line) for line in lines)
    assert len(made) >= PAGE_TOOLS, len(made)
    return tuple(made[:PAGE_TOOLS])


def _sections(path: Path) -> Iterator[tuple[list[str], list[str]]]:
    """The sections of a table: the kind with the names of its services, and its lines."""
    header: list[str] | None = None
    lines: list[str] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            if header is not None:
                yield header, lines
            header, lines = line.replace("[", "").replace("]", "").split(), []
        elif line and not line.startswith("#"):
            lines.append(line)
    assert header is not None
    yield header, lines


def _plugin(plugin: str, lines: list[str]) -> Iterator[Tool]:
    style = zlib.crc32(plugin.encode())
    title = plugin.replace("_", " ").title()
    for line in lines:
        if entity := _ENTITY.fullmatch(line):
            one, verbs, many, what = entity.groups()
            words = {"one": one, "many": many, "what": what}
            words |= {"one_words": one.replace("_", " "), "many_words": many.replace("_", " ")}
            for verb in verbs.split():
                forms = VERBS.get(verb, USUAL)
                name, description = forms[style % len(forms)]
                words |= {"verb": verb, "Verb": verb.title()}
                parameters = PARAMETERS.get(verb, "{one}_id*").format(**words)
                yield _tool(plugin, title, name.format(**words), description.format(**words), parameters)
        else:
            spec = _SPEC.fullmatch(line)
            assert spec is not None, line
            yield _tool(plugin, title, spec[1], spec[3], spec[2])


def _tool(plugin: str, title: str, name: str, description: str, parameters: str) -> Tool:
    return Tool(
        f"{plugin}_{name}",
        Source("plugin", plugin),
        f"[{title}] {description}",
        _schema(parameters),
        title=name.replace("_", " ").capitalize(),
        meta={"tabhub/plugin": {"plugin": plugin, "version": "1.0.0"}},
    )


def _page_tool(site: str, tab: int, line: str) -> Tool:
    spec = _SPEC.fullmatch(line)
    assert spec is not None, line
    origin = f"https://{site}.test"
    return Tool(
        f"website_tool_{site}_test_tab1_{spec[1]}",
        Source("page", origin),
        f"[{site}.test · tab 1 · “{site.replace('-', ' ').title()}”] The page says: {spec[3]}",
        _schema(spec[2]),
        meta={"tabhub/page": {"origin": origin, "tab": 1, "tabId": tab, "frameId": 0, "via": "webmcp"}},
        tab_id=tab,
    )


def _schema(parameters: str) -> dict[str, Any]:
    names = [name.strip() for name in parameters.split(",") if name.strip()]
    properties = {
        name.rstrip("*"): {"type": "string", "description": f"The {name.rstrip('*').replace('_', ' ')}."}
        for name in names
    }
    required = [name.rstrip("*") for name in names if name.endswith("*")]
    return {"type": "object", "properties": properties, **({"required": required} if required else {})}


@dataclass(frozen=True, slots=True)
class Need:
    """What somebody needs, in their words, the tools that do it, and the tab they are in."""

    text: str
    tools: frozenset[str]
    tab: int | None


@cache
def needs(heldout: bool = False) -> tuple[Need, ...]:
    """What 200 people need; their words were written before the search was tried, and name no tool."""
    known = {tool.name: tool for tool in (*plugin_tools(), *page_tools())}
    found = []
    for text, names, site in _read_needs("needs_heldout.txt" if heldout else "needs.txt"):
        tools = names & known.keys()
        assert tools, f"no tool does {names}"
        found.append(Need(text, tools, known[min(tools)].tab_id if site else None))
    return tuple(found)


@cache
def _read_needs(file: str) -> tuple[tuple[str, frozenset[str], str], ...]:
    """Each need with the names of the tools that meet it, and the site of its tab."""
    found = []
    for line in (DATA / file).read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            text, _, wanted = line.partition(" | ")
            text, _, site = text.partition(" @")
            found.append((text, frozenset(_names(wanted)), site))
    return tuple(found)


def _names(wanted: str) -> Iterator[str]:
    """The names of the tools that a need may be met by."""
    where, _, what = wanted.partition(":")
    verb, _, entity = what.partition(" ")
    for header, lines in _sections(DATA / "plugins.txt"):
        for plugin in header[1:]:
            if where not in (plugin, f"kind/{header[0]}"):
                continue
            if not entity:
                yield f"{plugin}_{what}"
                continue
            found = (_ENTITY.fullmatch(line) for line in lines)
            one, _, many, _ = next(each.groups() for each in found if each is not None and each[1] == entity)
            forms = VERBS.get(verb, USUAL)
            form = forms[zlib.crc32(plugin.encode()) % len(forms)][0]
            yield f"{plugin}_{form.format(one=one, many=many, verb=verb)}"
    yield f"website_tool_{where}_test_tab1_{what}"
