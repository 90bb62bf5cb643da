"""Permissions: the most specific setting decides."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabhub.config.permissions import Permission
from tabhub.config.settings import Config
from tabhub.trust.permissions import Permissions, Stated, ToolFacts, default_level

SETTINGS: dict[str, Any] = {
    "permissions": {
        "default": "ask",
        "browser": {"tools": {"browser_execute_script": "off"}},
        "slack": {"permission": "auto", "tools": {"send_message": "ask", "slack_delete": "off"}},
        "quiet": {"permission": "off", "tools": {"one": "auto"}},
        "https://shop.example": {"permission": "auto", "tools": {"buy": "ask"}},
        "clients": {
            "ci": {"default": "auto", "slack": {"permission": "off"}, "browser": {"tools": {"browser_click": "auto"}}}
        },
    }
}
LEVELS: tuple[Permission, ...] = ("off", "ask", "auto")


def level(source: str, tool: str, client: str | None = None) -> Permission:
    stated = Permissions.parse(Config.parse(SETTINGS)).stated(source, (tool,), client)
    assert stated is not None
    return stated.level


@pytest.mark.parametrize(
    ("source", "tool", "decision"),
    [
        ("other", "anything", "ask"),
        ("browser", "browser_list_tabs", "ask"),
        ("browser", "browser_execute_script", "off"),
        ("slack", "slack_list", "auto"),
        ("slack", "slack_send_message", "ask"),
        ("slack", "send_message", "ask"),
        ("slack", "delete", "off"),
        ("slack", "slack_delete", "off"),
        ("other", "slack_delete", "ask"),
        ("quiet", "quiet_two", "off"),
        ("quiet", "quiet_one", "auto"),
        ("https://shop.example", "look", "auto"),
        ("https://shop.example", "buy", "ask"),
    ],
)
def test_the_most_specific_setting_wins(source: str, tool: str, decision: Permission) -> None:
    assert level(source, tool) == decision


@pytest.mark.parametrize(
    ("source", "tool", "decision"),
    [
        ("browser", "browser_click", "auto"),  # the client's own setting for the tool
        (
            "browser",
            "browser_execute_script",
            "off",
        ),  # everyone's setting for the tool is more specific than its default
        ("slack", "slack_send_message", "ask"),  # and more specific than the client's setting for the whole plugin
        ("slack", "slack_list", "off"),  # the client's setting for the plugin takes precedence over everyone's
        ("other", "anything", "auto"),  # and so does its default
    ],
)
def test_a_clients_own_setting_wins_at_the_same_step(source: str, tool: str, decision: Permission) -> None:
    assert level(source, tool, "ci") == decision
    assert level("browser", "browser_click", "another") == "ask"


_level = st.none() | st.sampled_from(LEVELS)


@given(st.lists(_level, min_size=6, max_size=6))
def test_the_first_step_that_is_set_decides(steps: list[Permission | None]) -> None:
    """The steps: tool, source and default, each for the client and then for everyone."""

    def table(tool: Permission | None, source: Permission | None, default: Permission | None) -> dict[str, Any]:
        own: dict[str, Any] = {"tools": {"p_t": tool}} if tool else {}
        own |= {"permission": source} if source else {}
        return ({"p": own} if own else {}) | ({"default": default} if default else {})

    settings = table(*steps[1::2]) | {"clients": {"me": table(*steps[0::2])}}
    permissions = Permissions.parse(Config.parse({"permissions": settings}))
    first = next(((step, place) for place, step in enumerate(steps) if step), None)
    found = permissions.stated("p", ("p_t", "t"), "me")
    if first is None:
        assert found is None
    else:
        assert found == Stated(first[0], ("tool", "source", "default")[first[1] // 2])


@pytest.mark.parametrize(
    ("source", "kind", "reads", "holds"),
    [
        ("hub", "read", False, "auto"),
        ("browser", "read", True, "auto"),
        ("browser", "input", False, None),
        ("browser", "storage", True, None),
        ("browser", "history", True, None),
        ("plugin", "plugin:slack_list", True, "auto"),
        ("plugin", "plugin:slack_send", False, None),
        ("page", "page:buy", True, "auto"),
        ("page", "page:buy", False, None),
        ("upstream", "upstream:add", True, "auto"),
        ("upstream", "upstream:add", False, "ask"),
    ],
)
def test_without_settings_the_kind_of_tool_decides(
    source: str, kind: str, reads: bool, holds: Permission | None
) -> None:
    assert Permissions.parse(Config()).stated("any", ("tool",)) is None
    assert default_level(ToolFacts("tool", source, kind, reads)) == holds


def test_requesting_and_releasing_a_tab_need_no_approval_of_their_own() -> None:
    assert default_level(ToolFacts("browser_release_tab", "browser", "tabs", reads=False)) == "auto"


def test_the_setting_that_decides_is_named() -> None:
    permissions = Permissions.parse(Config.parse(SETTINGS))
    names = ("browser_click",)
    assert permissions.setting("browser", names, "ci") == "permissions.clients.ci.browser.tools.browser_click"
    assert permissions.setting("browser", names, None) == "permissions.default"
    assert permissions.setting("slack", ("slack_list",), "ci") == "permissions.clients.ci.slack.permission"
    assert Permissions.parse(Config()).setting("slack", ("slack_list",)) is None


def test_a_name_as_written_wins_over_its_other_spelling() -> None:
    both = {"permissions": {"p": {"tools": {"p_a": "off", "a": "auto"}}}}
    permissions = Permissions.parse(Config.parse(both))
    assert permissions.stated("p", ("p_a",)) == Stated("off", "tool")
    assert permissions.stated("p", ("a",)) == Stated("auto", "tool")


@pytest.mark.parametrize("name", ["__proto__", "constructor", "__class__", ""])
def test_unusual_names_are_plain_keys(name: str) -> None:
    permissions = Permissions.parse(Config.parse({"permissions": {name: {"permission": "off"}}}))
    assert permissions.stated(name, (name,)) == Stated("off", "source")
    assert permissions.stated("other", (name,)) is None
