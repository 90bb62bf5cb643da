"""Profiles: which tools a connection is shown."""

from __future__ import annotations

from typing import Any

import pytest

from tabhub.core.listing.catalogue import Catalogues
from tabhub.core.listing.profiles import EVERYTHING, Profiles
from tabhub.core.registry import Entry, Registry
from tabhub.core.tools import BROWSER, HUB, CallContext, Source, Tool, ToolResult
from tabhub.errors import InvalidParams
from tabhub.limits import DEFAULTS

PROFILES = Profiles(
    {"tabs": ["browser_open", "browser_close"], "network": ["browser_requests"], "hub": ["tabhub_read"]},
    ["browser_open", "tabhub_read"],
)


def made(name: str, source: Source = BROWSER) -> Tool:
    return Tool(name=name, source=source, description=name)


BUILT_IN = [made(name) for name in ("browser_open", "browser_close", "browser_requests")] + [made("tabhub_read", HUB)]
OTHERS = [
    made("website_tool_shop_buy", Source("page", "https://shop.example")),
    made("slack_send", Source("plugin", "slack")),
    made("mcp__files__read", Source("upstream", "files")),
]


def shown(text: str) -> list[str]:
    selection = PROFILES.select(text)
    return [tool.name for tool in (*BUILT_IN, *OTHERS) if selection.shows(tool)]


ELSE = [tool.name for tool in OTHERS]


@pytest.mark.parametrize(
    ("text", "built_in", "others"),
    [
        ("", ["browser_open", "tabhub_read"], ELSE),
        ("default", ["browser_open", "tabhub_read"], ELSE),
        ("structured", ["browser_open", "tabhub_read"], ELSE),
        ("all", ["browser_open", "browser_close", "browser_requests", "tabhub_read"], ELSE),
        ("core", ["browser_open", "tabhub_read"], ELSE),
        (" Core , network ", ["browser_open", "browser_requests", "tabhub_read"], ELSE),
        ("network", ["browser_requests", "tabhub_read"], ELSE),
        ("all,-network", ["browser_open", "browser_close", "tabhub_read"], ELSE),
        ("default,network", ["browser_open", "browser_requests", "tabhub_read"], ELSE),
        ("all,-tabs", ["browser_requests", "tabhub_read"], ELSE),
        ("network,-hub", ["browser_requests"], ELSE),
        ("core,-page", ["browser_open", "tabhub_read"], ["slack_send", "mcp__files__read"]),
        ("core,-page,-plugin,-upstream", ["browser_open", "tabhub_read"], []),
        ("all,-page", ["browser_open", "browser_close", "browser_requests", "tabhub_read"], ELSE[1:]),
        ("-page", ["browser_open", "tabhub_read"], ELSE[1:]),
    ],
)
def test_a_selection_shows_the_tools_of_its_terms(text: str, built_in: list[str], others: list[str]) -> None:
    assert shown(text) == [*built_in, *others]


@pytest.mark.parametrize(
    ("text", "finder", "structured"),
    [
        ("", True, False),
        ("-page", True, False),
        ("default,network", True, False),
        ("core,finder", True, False),
        ("core", False, False),
        ("all", False, False),
        ("default,-finder", False, False),
        ("structured", True, True),
        ("all,structured", False, True),
        ("all,structured,-structured", False, False),
    ],
)
def test_the_default_has_the_finder_and_answers_with_text(text: str, finder: bool, structured: bool) -> None:
    selection = PROFILES.select(text)
    assert (selection.finder, selection.structured) == (finder, structured)


@pytest.mark.parametrize("word", ["nettwork", "-core", "-all", "__proto__", "*"])
def test_an_unknown_term_is_reported_with_the_known_ones(word: str) -> None:
    with pytest.raises(InvalidParams) as caught:
        PROFILES.select(f"core,{word}")
    assert word in caught.value.message
    assert "network" in (caught.value.hint or "")


def test_each_selection_has_its_own_listing_and_all_follow_the_registry() -> None:
    registry = Registry()
    catalogues = Catalogues(registry, DEFAULTS, lambda tool: tool.name == "browser_close", mark=False)
    registry.replace(BROWSER, [Entry(tool, _never) for tool in BUILT_IN[:3]])
    core = catalogues.of(PROFILES.select("core"))
    assert catalogues.of(PROFILES.select("all,structured")) is catalogues.everything is catalogues.of(EVERYTHING)
    assert catalogues.of(PROFILES.select("core")) is core
    assert [tool.name for tool in core.tools()] == ["browser_open"]
    assert {tool.name for tool in catalogues.everything.tools()} == {"browser_open", "browser_requests"}
    registry.replace(HUB, [Entry(BUILT_IN[3], _never)])
    assert {tool.name for tool in core.tools()} == {"browser_open", "tabhub_read"}
    catalogues.show(marked=True)
    assert "browser_close" in {tool.name for tool in catalogues.everything.tools()}
    assert "browser_close" not in {tool.name for tool in core.tools()}
    for word in ("network", "tabs", "all"):
        for more in range(60):
            catalogues.of(PROFILES.select(",".join([word, "core", "-page"][: 1 + more % 3])))
    assert {tool.name for tool in core.tools()} == {"browser_open", "tabhub_read"}


async def _never(_context: CallContext, _arguments: dict[str, Any]) -> ToolResult:
    raise AssertionError
