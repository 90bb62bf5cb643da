"""The default catalogue: core tools, a finder, and other tools within a budget, the most useful first."""

from __future__ import annotations

import json
from typing import Any

from tabhub.browser.families import CORE, FAMILIES, SPECS
from tabhub.calls.results import TOOL as READ_RESULT
from tabhub.core.listing.catalogue import Catalogue, Catalogues
from tabhub.core.listing.finder import describe_found
from tabhub.core.listing.profiles import Profiles
from tabhub.core.listing.relevance import ELSEWHERE, OPEN_TAB, SESSION_TAB, Nearness, RecentUses, Situation, choose
from tabhub.core.registry import Entry, Registry
from tabhub.core.results.tokens import estimate_tokens
from tabhub.core.tools import BROWSER, HUB, CallContext, Source, Tool, ToolResult
from tabhub.limits import DEFAULTS, Limits
from tests.core.listing.corpus import page_tools, plugin_tools
from tests.harness.tokens import o200k

PROFILES = Profiles(FAMILIES, CORE)


async def never(_context: CallContext, _arguments: dict[str, Any]) -> ToolResult:
    raise AssertionError


def registry(*others: Tool) -> Registry:
    made = Registry()
    made.replace(BROWSER, [Entry(spec.tool, never) for spec in SPECS])
    made.replace(HUB, [Entry(READ_RESULT, never)])
    sources: dict[Source, list[Entry]] = {}
    for tool in others:
        sources.setdefault(tool.source, []).append(Entry(tool, never))
    for source, entries in sources.items():
        made.replace(source, entries)
    return made


def catalogues(*others: Tool, budget: int = 8_000) -> Catalogues:
    return Catalogues(registry(*others), DEFAULTS, lambda _: False, mark=False, budget=lambda: budget)


def shown(catalogue: Catalogue, situation: Situation | None = None) -> list[dict[str, Any]]:
    page = catalogue.page(None, stateless=False, situation=situation or Situation())
    tools: list[dict[str, Any]] = json.loads(page)["tools"]
    return tools


def site(tab: int, *names: str) -> list[Tool]:
    source = Source("page", f"https://s{tab}.example")
    return [Tool(f"website_tool_s{tab}_{name}", source, f"Does {name}.", tab_id=tab) for name in names]


def in_tab(tab: int) -> Situation:
    def nearness(_source: Source, tab_id: int | None) -> Nearness:
        return (SESSION_TAB, 0.0) if tab_id == tab else (OPEN_TAB, 0.0) if tab_id is not None else (ELSEWHERE, 0.0)

    return Situation((tab,), nearness)


def test_without_other_tools_the_default_is_core_and_the_finder_in_at_most_3000_tokens() -> None:
    default = catalogues().of(PROFILES.select(""))
    names = {tool["name"] for tool in shown(default)}
    assert names == {*CORE, "tabhub_list_tools", "tabhub_call"}
    for stateless in (False, True):
        assert o200k(default.page(None, stateless=stateless).decode()) <= 3_000


def test_all_and_core_are_listed_as_they_were_asked_for() -> None:
    every = catalogues(*site(1, "buy"))
    assert {tool["name"] for tool in shown(every.of(PROFILES.select("core")))} == {*CORE, "website_tool_s1_buy"}
    assert len(shown(every.of(PROFILES.select("all")))) == len(SPECS) + 2


def test_tools_that_fit_the_budget_are_all_listed_and_nothing_is_said_of_others() -> None:
    tools = shown(catalogues(*site(1, "buy", "pay")).of(PROFILES.select("")))
    assert [tool["name"] for tool in tools[-2:]] == ["website_tool_s1_buy", "website_tool_s1_pay"]
    (finder,) = [tool for tool in tools if tool["name"] == "tabhub_list_tools"]
    assert "Not listed" not in finder["description"]


def test_with_thousands_of_tools_the_budget_holds_and_the_finder_says_what_is_missing() -> None:
    default = catalogues(*plugin_tools(), *page_tools()).of(PROFILES.select(""))
    tools = shown(default)
    others = [tool for tool in tools if not tool["name"].startswith(("browser_", "tabhub_"))]
    assert 0 < sum(estimate_tokens(json.dumps(tool, separators=(",", ":"))) for tool in others) <= 8_000
    assert o200k(default.page(None, stateless=False).decode()) <= 3_000 + 8_000 * 1.1
    (finder,) = [tool for tool in tools if tool["name"] == "tabhub_list_tools"]
    assert f"Not listed: {2449 + 5000 - len(others)} tools of " in finder["description"]


def test_tools_of_the_sessions_tab_come_first() -> None:
    tools = [tool for tab in range(1, 40) for tool in site(tab, *(f"t{n}" for n in range(20)))]
    default = catalogues(*tools, budget=1_500).of(PROFILES.select(""))
    for tab in (3, 33):
        names = {tool["name"] for tool in shown(default, in_tab(tab))}
        assert {f"website_tool_s{tab}_t{n}" for n in range(20)} <= names


def test_the_listing_of_one_situation_stays_until_tools_change() -> None:
    every = catalogues(*site(1, "buy"), *site(2, "pay"))
    default = every.of(PROFILES.select(""))
    assert default.chosen(in_tab(1)) is default.chosen(in_tab(1))
    every.uses.note(None, "website_tool_s2_pay")
    assert default.chosen(in_tab(1)) is default.chosen(in_tab(1))


def choice(tools: list[Tool], used: dict[str, None], situation: Situation, budget: int) -> list[str]:
    return [tool.name for tool in choose(tools, situation, used, None, lambda _: 10, budget).chosen]


def test_recently_used_tools_come_first_among_those_equally_near() -> None:
    tools = [*site(1, "a", "b"), *site(2, "c", "d")]
    uses = RecentUses()
    uses.note("ann", "website_tool_s2_d")
    used = dict(uses.of("ann"))
    assert choice(tools, used, Situation(), 10) == ["website_tool_s2_d"]
    assert choice(tools, used, in_tab(1), 20) == ["website_tool_s1_a", "website_tool_s1_b"]
    assert choice(tools, used, in_tab(1), 30) == ["website_tool_s1_a", "website_tool_s1_b", "website_tool_s2_d"]
    assert uses.of("bob") == {}


def test_a_tool_that_is_too_long_does_not_exclude_shorter_ones() -> None:
    tools = site(1, "long", "short")
    made = choose(tools, Situation(), {}, None, lambda tool: 100 if tool.name.endswith("long") else 10, 50)
    assert [tool.name for tool in made.chosen] == ["website_tool_s1_short"]
    assert (made.left_out, made.sources) == (1, ("s1.example",))


def test_hidden_tools_are_neither_listed_nor_counted() -> None:
    tools = [*site(1, "a"), *site(2, "b")]
    made = choose(tools, Situation(), {}, lambda tool: tool.tab_id == 2, lambda _: 10, 0)
    assert (made.chosen, made.left_out, made.sources) == ((), 1, ("s1.example",))


def test_the_best_tools_of_a_search_come_with_their_schemas_within_a_budget() -> None:
    tools = [*plugin_tools()[:20]]
    answer = describe_found({"query": "x"}, tools, lambda: (), lambda _: False, Limits(finder_tokens=60))
    entries = json.loads(json.dumps(answer["tools"], default=lambda raw: "schema"))
    with_schema = [entry for entry in entries if "inputSchema" in entry]
    assert len(entries) == DEFAULTS.finder_found
    assert 0 < len(with_schema) < len(entries)
    assert entries[: len(with_schema)] == with_schema
    assert answer["nextOffset"] == DEFAULTS.finder_found


def test_disabled_tools_are_marked_in_what_the_finder_finds_and_not_listed() -> None:
    tool = site(1, "buy")[0]
    made = Catalogues(registry(tool), DEFAULTS, lambda each: each is tool, mark=True, budget=lambda: 8_000)
    assert tool.name not in {each["name"] for each in shown(made.of(PROFILES.select("")))}
    answer = describe_found({}, [tool], lambda: (), lambda each: each is tool, DEFAULTS)
    assert answer["tools"][0]["description"].startswith("[Disabled] ")
