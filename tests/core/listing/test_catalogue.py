"""The catalogue: pages of the tools an agent is shown, stable while tools change."""

from __future__ import annotations

import base64
import json
import random
from itertools import chain, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabhub.core.listing import search
from tabhub.core.listing.catalogue import Catalogue, takes_session, with_session
from tabhub.core.listing.search import ToolIndex
from tabhub.core.registry import Entry, Registry
from tabhub.core.schemas import validators
from tabhub.core.tools import BROWSER, CallContext, Source, Tool, ToolResult
from tabhub.errors import InvalidParams
from tabhub.limits import Limits

SHOP = Source("plugin", "shop")
ON_TAB: dict[str, Any] = {"type": "object", "properties": {"tabId": {"type": "integer"}}}


async def _never(ctx: CallContext, arguments: dict[str, Any]) -> ToolResult:
    raise AssertionError("nothing is run here")


def entries(names: Any, source: Source = SHOP, schema: dict[str, Any] | None = None) -> list[Entry]:
    return [Entry(Tool(name, source, f"Does {name}.", schema or {"type": "object"}), _never) for name in names]


def catalogue(
    registry: Registry, size: int = 1000, off: frozenset[str] = frozenset(), *, mark: bool = False
) -> Catalogue:
    return Catalogue(registry, Limits(list_page=size), lambda tool: tool.name in off, mark)


def counted_calls(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> list[Any]:
    """Records the first argument of every later call of a function."""
    calls: list[Any] = []
    function = getattr(owner, name)

    def count_and_call(first: Any, *rest: Any) -> Any:
        calls.append(first)
        return function(first, *rest)

    monkeypatch.setattr(owner, name, count_and_call)
    return calls


def page(shown: Catalogue, cursor: str | None, *, stateless: bool = False) -> tuple[list[dict[str, Any]], str | None]:
    answer = json.loads(shown.page(cursor, stateless=stateless))
    return answer["tools"], answer.get("nextCursor")


def complete_index(shown: Catalogue) -> ToolIndex:
    while (index := shown.index()) is None:
        pass
    return index


def walk(shown: Catalogue) -> list[list[str]]:
    """The names on each page, from first to last."""
    pages, cursor = [], None
    while True:
        tools, cursor = page(shown, cursor)
        pages.append([tool["name"] for tool in tools])
        if cursor is None:
            return pages


NAMES = st.sets(st.from_regex(r"[A-Za-z0-9-][A-Za-z0-9_-]{0,9}", fullmatch=True), max_size=30)


@given(NAMES, st.integers(1, 40))
def test_paging_gives_every_tool_once_and_in_order_for_any_page_size(names: set[str], size: int) -> None:
    registry = Registry()
    registry.replace(SHOP, entries(names))
    shown = catalogue(registry, size)
    pages = walk(shown)
    assert [name for names_ in pages for name in names_] == [t.name for t in registry.tools()]
    assert all(len(names_) == size for names_ in pages[:-1])
    assert len(pages[-1]) <= size


@given(NAMES, st.integers(1, 7), st.lists(NAMES, max_size=10))
def test_paging_shows_unchanged_tools_once_while_others_change(
    staying: set[str], size: int, changes: list[set[str]]
) -> None:
    registry = Registry()
    registry.replace(SHOP, entries(staying))
    shown = catalogue(registry, size)
    coming = Source("plugin", "coming")
    seen: list[str] = []
    cursor = None
    for step in range(200):
        tools, cursor = page(shown, cursor)
        seen += [tool["name"] for tool in tools]
        if cursor is None:
            break
        registry.replace(coming, entries((changes[step : step + 1] or [set()])[0] - staying, coming))
    assert [name for name in seen if name in staying] == sorted(staying)
    assert len(set(seen)) == len(seen)


@given(st.text(max_size=40) | st.binary(max_size=20).map(lambda raw: base64.b64encode(raw).decode()))
def test_any_cursor_gives_a_page_or_is_refused(cursor: str) -> None:
    registry = Registry()
    registry.replace(SHOP, entries(["a", "b", "c"]))
    try:
        page(catalogue(registry, 2), cursor)
    except InvalidParams as error:
        assert "Start again" in error.text()  # noqa: PT017


def test_invented_cursors_are_not_cached() -> None:
    registry = Registry()
    registry.replace(SHOP, entries(f"t{i:03}" for i in range(300)))
    shown = catalogue(registry, 10)
    first = shown.page(None, stateless=False)
    for i in range(300):
        shown.page(base64.urlsafe_b64encode(b"2 t%03d" % i).decode(), stateless=False)
        shown.page(base64.urlsafe_b64encode(b"2 t%03dx" % i).decode(), stateless=True)
    assert len(shown._pages) <= 2 * 31
    assert shown.page(None, stateless=False) is first  # the regular pages are built once


@pytest.mark.req("L4")
def test_5000_tools_of_500_origins_have_a_stable_order_and_ten_more_only_build_themselves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sites = [Source("page", f"https://site{i}.example") for i in range(500)]
    made = {site: entries((f"website_tool_s{n}_{i}" for i in range(10)), site) for n, site in enumerate(sites)}
    listings = []
    for seed in (1, 2):
        shuffled = list(sites)
        random.Random(seed).shuffle(shuffled)
        registry = Registry()
        for site in shuffled:
            registry.replace(site, random.Random(seed).sample(made[site], 10))
        shown = catalogue(registry)
        listings.append(walk(shown))
    assert listings[0] == listings[1]
    assert [len(names) for names in listings[0]] == [1000] * 5
    assert list(chain(*listings[0])) == sorted(e.tool.name for each in made.values() for e in each)
    assert len(complete_index(shown).search("")) == 5000

    compiled = counted_calls(monkeypatch, validators, "compile_schema")
    indexed = counted_calls(monkeypatch, search, "_entry")
    extra = Source("page", "https://new.example")
    fresh = [f"website_tool_new_{i}" for i in range(10)]
    registry.replace(extra, entries(fresh, extra))
    assert set(fresh) <= set(chain(*walk(shown)))
    assert set(fresh) <= {tool.name for tool in complete_index(shown).search("new")}
    assert (len(compiled), len(indexed)) == (0, 10)
    walk(shown)
    complete_index(shown)
    assert (len(compiled), len(indexed)) == (0, 10)


def test_disabled_tools_are_hidden_or_marked() -> None:
    registry = Registry()
    registry.replace(SHOP, entries(["shop_buy", "shop_find"]))
    off: set[str] = {"shop_buy"}
    shown = Catalogue(registry, Limits(), lambda tool: tool.name in off, mark=False)
    assert walk(shown) == [["shop_find"]]
    shown.show(marked=True)
    tools, _ = page(shown, None)
    assert [(t["name"], t["description"]) for t in tools] == [
        ("shop_buy", "[Disabled] Does shop_buy."),
        ("shop_find", "Does shop_find."),
    ]
    off.clear()
    shown.show(marked=True)
    assert page(shown, None)[0][0]["description"] == "Does shop_buy."


def test_the_search_index_follows_permissions_too() -> None:
    registry = Registry()
    registry.replace(SHOP, entries(["shop_buy", "shop_find"]))
    off: set[str] = set()
    shown = Catalogue(registry, Limits(), lambda tool: tool.name in off, mark=False)
    assert complete_index(shown).search("buy")[0].name == "shop_buy"
    off.add("shop_buy")
    shown.show(marked=False)
    assert "shop_buy" not in [t.name for t in complete_index(shown).search("buy")]
    off.clear()
    shown.show(marked=False)
    assert "shop_buy" in [t.name for t in complete_index(shown).search("buy")]
    registry.replace(SHOP, entries(["shop_find"]))
    assert "shop_buy" not in [t.name for t in complete_index(shown).search("buy")]


def test_the_search_index_is_built_a_few_tools_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = Registry()
    registry.replace(SHOP, entries(f"shop_{n}" for n in range(500)))
    shown = catalogue(registry)
    indexed = counted_calls(monkeypatch, search, "_entry")
    counts = [0]
    while shown.index() is None:
        counts.append(len(indexed))
    counts.append(len(indexed))
    assert counts[-1] == 500
    assert max(after - before for before, after in pairwise(counts)) <= 50


def test_a_change_while_the_search_index_is_built_is_followed() -> None:
    registry = Registry()
    registry.replace(SHOP, entries(f"shop_{n}" for n in range(500)))
    shown = catalogue(registry)
    for _ in range(5):
        assert shown.index() is None
    registry.replace(SHOP, entries(["shop_new"]))
    assert [tool.name for tool in complete_index(shown).search("shop")] == ["shop_new"]


def test_stateless_listings_add_the_session_handle_to_tools_on_a_tab() -> None:
    registry = Registry()
    registry.replace(SHOP, [*entries(["shop_here"], schema=ON_TAB), *entries(["shop_there"])])
    shown = catalogue(registry)
    here, there = page(shown, None, stateless=True)[0]
    assert set(here["inputSchema"]["properties"]) == {"tabId", "session"}
    assert there["inputSchema"]["properties"] == {}
    assert set(page(shown, None)[0][0]["inputSchema"]["properties"]) == {"tabId"}
    answer = json.loads(shown.page(None, stateless=True))
    assert answer["ttlMs"] <= 1000
    assert answer["cacheScope"] == "private"
    assert takes_session(entries(["x"], schema=ON_TAB)[0].tool)
    assert not takes_session(entries(["x"])[0].tool)
    assert not takes_session(entries(["x"], Source("page", "https://a.b"), ON_TAB)[0].tool)  # the page's own parameter
    assert takes_session(Tool("x", BROWSER, "", {"type": "object", "properties": {}}))
    assert not takes_session(
        Tool("x", BROWSER, "", with_session({"inputSchema": ON_TAB})["inputSchema"])
    )  # the tool's own argument
    assert with_session({"name": "x", "inputSchema": ON_TAB})["inputSchema"] is not ON_TAB
    assert "session" not in ON_TAB["properties"]


def test_a_page_size_of_zero_still_gives_pages() -> None:
    registry = Registry()
    registry.replace(SHOP, entries(["a", "b"]))
    assert walk(catalogue(registry, 0)) == [["a"], ["b"]]


def test_an_empty_catalogue_is_one_empty_page() -> None:
    assert walk(catalogue(Registry())) == [[]]
