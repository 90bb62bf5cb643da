"""The registry: which names exist, which sources may use them, and that no source can affect another."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabhub.core.registry import NAME, RESERVED, Entry, Registry
from tabhub.core.tools import BROWSER, HUB, CallContext, Source, SourceKind, Tool, ToolResult

SHOP, MAIL = Source("plugin", "shop"), Source("plugin", "mail")
KINDS: tuple[SourceKind, ...] = ("page", "plugin", "browser", "upstream", "hub")
SOURCES = st.builds(Source, st.sampled_from(KINDS), st.sampled_from(["a", "b"]))
NAMES = st.one_of(
    st.from_regex(NAME, fullmatch=True),
    st.builds(lambda prefix, rest: prefix + rest, st.sampled_from(sorted(RESERVED)), st.sampled_from(["x", "y", ""])),
    st.sampled_from(["", "a b", "a.b", "x" * 65, "ü", "a\u202eb", "a\n", "__proto__", "constructor", "a", "b"]),
    st.text(max_size=70),
)


async def _never(ctx: CallContext, arguments: dict[str, Any]) -> ToolResult:
    raise AssertionError("nothing is run here")


def entry(name: str, source: Source = SHOP, description: str = "") -> Entry:
    return Entry(Tool(name, source, description), _never)


@given(st.lists(st.tuples(SOURCES, st.lists(st.tuples(NAMES, SOURCES | st.none()), max_size=6)), max_size=8))
def test_the_name_rules_hold_whatever_the_sources_say(steps: list[tuple[Source, list[tuple[str, Any]]]]) -> None:
    registry = Registry()
    for source, named in steps:
        entries = [entry(name, says or source) for name, says in named]
        before = {n: registry.by_name.get(n) for n in registry.by_name}
        problems = registry.replace(source, entries)
        tools = registry.tools()
        assert len(problems) + sum(tool.source == source for tool in tools) == len(entries)
        assert len({tool.name for tool in tools}) == len(tools) == len(list(registry.by_name))
        for tool in tools:
            assert NAME.fullmatch(tool.name)
            found = registry.by_name.get(tool.name)
            assert found is not None
            assert found.tool.source == tool.source
            for prefix, kinds in RESERVED.items():
                assert not tool.name.startswith(prefix) or tool.source.kind in kinds
        for name, old in before.items():
            if old is not None and old.tool.source != source:
                assert registry.by_name.get(name) is old


def test_a_source_is_replaced_as_a_whole() -> None:
    registry = Registry()
    registry.replace(SHOP, [entry("shop_buy"), entry("shop_find")])
    registry.replace(MAIL, [entry("mail_send", MAIL)])
    held = registry.by_name.get("shop_buy")
    registry.replace(SHOP, [entry("shop_find")])
    assert sorted(registry.by_name) == ["mail_send", "shop_find"]
    assert held is not None  # a holder of the old entry can still use it
    registry.remove(SHOP)
    assert list(registry.by_name) == ["mail_send"]


def test_refusals_name_the_tool_and_reason_and_affect_no_other() -> None:
    registry = Registry()
    registry.replace(MAIL, [entry("mail_send", MAIL)])
    wanted = ["shop_buy", "browser_open", "tabhub_x", "mail_send", "shop buy", "", "shop_buy", "x" * 65]
    problems = registry.replace(SHOP, [*map(entry, wanted), entry("shop_other", MAIL)])
    assert sorted(registry.by_name) == ["mail_send", "shop_buy"]
    for problem, reason in zip(
        problems,
        [
            "reserved",
            "reserved",
            "already in use",
            "not a tool name",
            "not a tool name",
            "already in use",
            "not a tool name",
            "registers",
        ],
        strict=True,
    ):
        assert reason in problem


@pytest.mark.parametrize("prefix", sorted(RESERVED))
@pytest.mark.parametrize("kind", KINDS)
def test_a_reserved_prefix_is_limited_to_its_kinds_of_source(prefix: str, kind: SourceKind) -> None:
    source = Source(kind, kind)
    registry = Registry()
    assert bool(registry.replace(source, [entry(f"{prefix}x", source)])) != (kind in RESERVED[prefix])


def test_tools_are_ordered_by_kind_of_source_and_then_by_name() -> None:
    registry = Registry()
    site, server = Source("page", "https://a.example"), Source("upstream", "git")
    registry.replace(server, [entry("mcp__git__log", server)])
    registry.replace(site, [entry("website_tool_b", site), entry("website_tool_a", site)])
    registry.replace(SHOP, [entry("shop_buy")])
    registry.replace(HUB, [entry("tabhub_read_result", HUB)])
    registry.replace(BROWSER, [entry("browser_z", BROWSER), entry("browser_a", BROWSER)])
    assert [tool.name for tool in registry.tools()] == [
        "browser_a",
        "browser_z",
        "tabhub_read_result",
        "shop_buy",
        "website_tool_a",
        "website_tool_b",
        "mcp__git__log",
    ]


def test_listeners_are_called_for_changes_only() -> None:
    registry = Registry()
    versions: list[int] = []
    registry.on_change(lambda: versions.append(registry.version))
    registry.replace(SHOP, [entry("shop_buy")])
    again = entry("shop_buy")
    registry.replace(SHOP, [again])
    assert versions == [1]
    assert registry.by_name.get("shop_buy") is again  # the runner is new nevertheless
    registry.replace(SHOP, [entry("shop_buy", description="new words")])
    assert registry.tools()[0].description == "new words"
    registry.remove(MAIL)
    registry.remove(SHOP)
    assert versions == [1, 2, 3]


def test_new_descriptions_of_known_tools_are_not_notified() -> None:
    registry = Registry()
    versions: list[int] = []
    registry.on_change(lambda: versions.append(registry.version))
    registry.replace(SHOP, [entry("shop_buy"), entry("shop_find")])
    before = registry.revision
    assert registry.refresh(SHOP, [entry("shop_buy", description="new words"), entry("shop_find")])
    assert registry.tools()[0].description == "new words"
    assert (versions, registry.version) == ([1], 1)
    assert registry.revision > before
    before = registry.revision
    kept = [registry.by_name.get("shop_buy"), registry.by_name.get("shop_find")]
    assert registry.refresh(SHOP, [Entry(each.tool, _never) for each in kept if each is not None])
    assert registry.revision == before
    assert not registry.refresh(SHOP, [entry("shop_buy")])
    assert not registry.refresh(MAIL, [entry("mail_send", MAIL)])
    assert sorted(registry.by_name) == ["shop_buy", "shop_find"]


def test_an_unlisted_tool_can_be_called_and_does_not_change_the_listing() -> None:
    registry = Registry()
    registry.replace(SHOP, [entry("shop_buy"), Entry(Tool("shop_any", SHOP, ""), _never, listed=False)])
    assert [tool.name for tool in registry.tools()] == ["shop_buy"]
    assert registry.by_name.get("shop_any") is not None
    version = registry.version
    registry.replace(SHOP, [entry("shop_buy")])
    assert registry.version == version
    assert registry.by_name.get("shop_any") is None
