from __future__ import annotations

import pytest

from tabhub.config import Config
from tabhub.trust.permissions import Permission, Permissions

SETTINGS = {
    "permissions": {
        "default": "ask",
        "browser": {"tools": {"browser_execute_script": "off"}},
        "slack": {"permission": "auto", "tools": {"send_message": "ask", "slack_delete": "off"}},
        "quiet": {"permission": "off", "tools": {"one": "auto"}},
    }
}


@pytest.mark.parametrize(
    ("plugin", "tool", "decision", "skipping"),
    [
        ("other", "anything", "ask", "auto"),
        ("browser", "browser_list_tabs", "ask", "auto"),
        ("browser", "browser_execute_script", "off", "off"),
        ("slack", "slack_list", "auto", "auto"),
        ("slack", "slack_send_message", "ask", "auto"),
        ("slack", "send_message", "ask", "auto"),
        ("slack", "delete", "off", "off"),
        ("slack", "slack_delete", "off", "off"),
        ("other", "slack_delete", "ask", "auto"),
        ("quiet", "quiet_two", "off", "off"),
        ("quiet", "quiet_one", "auto", "auto"),
    ],
)
def test_the_most_specific_setting_wins_and_skipping_only_turns_ask_into_auto(
    plugin: str, tool: str, decision: Permission, skipping: Permission
) -> None:
    permissions = Permissions.parse(Config.parse(SETTINGS))
    assert not permissions.skipped
    assert permissions.decide(plugin, tool) == decision
    skipped = Permissions.parse(Config.parse({**SETTINGS, "skipPermissions": True}))
    assert skipped.skipped
    assert skipped.decide(plugin, tool) == skipping


def test_without_settings_everything_is_auto() -> None:
    assert Permissions.parse(Config()).decide("any", "tool") == "auto"


def test_a_name_as_written_wins_over_the_other_way_to_write_it() -> None:
    both = {"permissions": {"p": {"tools": {"p_a": "off", "a": "auto"}}}}
    permissions = Permissions.parse(Config.parse(both))
    assert permissions.decide("p", "p_a") == "off"
    assert permissions.decide("p", "a") == "auto"


@pytest.mark.parametrize("name", ["__proto__", "constructor", "__class__", ""])
def test_odd_names_are_only_names(name: str) -> None:
    permissions = Permissions.parse(Config.parse({"permissions": {name: {"permission": "off"}}}))
    assert permissions.decide(name, name) == "off"
    assert permissions.decide("other", name) == "auto"
