"""A plugin's settings: validation, errors, and the instances they define."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tabhub.errors import InvalidPluginSettings
from tabhub.plugins.manifest import read_package
from tabhub.plugins.model import Plugin
from tabhub.plugins.settings import MASK, check, masked, resolve
from tests.plugins.packages import folder

_SCHEMA = {
    "site": {"type": "url", "label": "Site", "required": True},
    "name": {"type": "string", "label": "Name"},
    "limit": {"type": "number", "label": "Limit"},
    "fast": {"type": "boolean", "label": "Fast"},
    "colour": {"type": "select", "label": "Colour", "options": ["red", "blue"]},
    "apiToken": {"type": "string", "label": "Token"},
}


@pytest.fixture
def plugin(tmp_path: Path) -> Plugin:
    return read_package(folder(tmp_path, configSchema=_SCHEMA, urlPatterns=["*://*.example.com/*"]))


@pytest.mark.req("S002-instance-01")
def test_each_name_in_a_map_of_urls_is_an_instance(plugin: Plugin) -> None:
    sites = {"work": "https://acme.example.com", "home": "http://127.0.0.1:8080/x"}
    setup = resolve(plugin, {"site": sites})
    assert list(setup.instances.items()) == [
        ("work", ("*://acme.example.com/*",)),
        ("home", ("*://127.0.0.1:8080/*",)),
    ]
    assert setup.url_patterns == ("*://*.example.com/*", "*://acme.example.com/*", "*://127.0.0.1:8080/*")
    assert setup.patterns_of("home") == ("*://127.0.0.1:8080/*",)
    assert setup.instance_of("https://acme.example.com/a") == "work"
    assert setup.instance_of("https://other.example.com/a") is None
    assert setup.homepage == "https://acme.example.com"


def test_one_url_is_one_site(plugin: Plugin) -> None:
    setup = resolve(plugin, {"site": "https://acme.example.com"})
    assert list(setup.instances) == ["default"]
    assert setup.problems == ()


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("site", "nonsense", "web URL"),
        ("site", {"work": "file:///etc/passwd"}, "web URL"),
        ("site", {"work": "https://a.example:port/"}, "web URL"),
        ("site", {"work": "https://user:pw@a.example/"}, "web URL"),
        ("site", {"": "https://a.example"}, "not an instance name"),
        ("site", {"a\nb": "https://a.example"}, "not an instance name"),
        ("site", ["https://a.example"], "a URL, or an object"),
        ("name", 5, "a text"),
        ("limit", "5", "a number"),
        ("limit", True, "a number"),
        ("limit", float("inf"), "a number"),
        ("fast", "yes", "true or false"),
        ("colour", "green", "one of red, blue"),
        ("nmae", "x", "no such setting"),
    ],
)
def test_invalid_setting_is_rejected_with_its_field(plugin: Plugin, key: str, value: Any, reason: str) -> None:
    with pytest.raises(InvalidPluginSettings, match=reason) as caught:
        check(plugin, {"site": "https://a.example"}, {key: value})
    assert caught.value.data is not None
    assert caught.value.data["errors"][0]["field"] == key
    assert resolve(plugin, {"site": "https://a.example", key: value}).problems


def test_all_invalid_settings_are_reported_at_once(plugin: Plugin) -> None:
    with pytest.raises(InvalidPluginSettings) as caught:
        check(plugin, {}, {"limit": "x", "fast": 1})
    assert caught.value.data is not None
    assert {each["field"] for each in caught.value.data["errors"]} == {"limit", "fast", "site"}


def test_settings_are_merged_and_reset(plugin: Plugin) -> None:
    stored = check(plugin, {}, {"site": "https://a.example", "limit": 5, "fast": False})
    assert stored == {"site": "https://a.example", "limit": 5, "fast": False}
    assert check(plugin, stored, {"limit": None, "name": "x"}) == {
        "site": "https://a.example",
        "fast": False,
        "name": "x",
    }


def test_secrets_are_hidden_and_their_mask_changes_nothing(plugin: Plugin) -> None:
    stored = {"site": "https://a.example", "apiToken": "s3cret", "name": "x"}
    shown = masked(plugin, stored)
    assert shown == {**stored, "apiToken": MASK}
    assert check(plugin, stored, shown) == stored
