"""Kinds of action: every built-in tool belongs to exactly one."""

from __future__ import annotations

from collections import Counter

from tabhub.browser.families import FAMILIES, SPECS
from tabhub.trust import actions
from tabhub.trust.actions import AROUND_SITES, KINDS, LEASE_TOOLS, LEAVING, PHRASES, PRIVATE, kind_of, phrase


def test_every_built_in_tool_belongs_to_exactly_one_kind() -> None:
    built_in = {tool for family in FAMILIES.values() for tool in family}
    assert set(KINDS) == built_in
    assert Counter(tool for tools in actions._TOOLS.values() for tool in tools).most_common(1)[0][1] == 1
    assert set(KINDS.values()) == set(PHRASES)


def test_a_tool_of_the_kind_that_reads_pages_only_reads() -> None:
    acting = [spec.tool.name for spec in SPECS if KINDS[spec.tool.name] == "read" and not spec.tool.read_only]
    assert acting == []


def test_special_kinds_and_tools_exist() -> None:
    assert set(PHRASES) >= PRIVATE | AROUND_SITES
    assert set(KINDS) >= LEAVING | LEASE_TOOLS


def test_a_tool_of_a_page_plugin_or_server_is_a_kind_of_its_own() -> None:
    assert kind_of("page", "buy") == "page:buy"
    assert phrase(kind_of("page", "buy")) == "use the page's tool buy"
    assert phrase(kind_of("plugin", "notes_write")) == "use the plugin tool notes_write"
    assert phrase(kind_of("upstream", "add")) == "use the server tool add"
    assert phrase(kind_of("browser", "browser_click_element")) == "click and type"
