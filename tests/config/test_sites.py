"""The `sites` section: patterns, levels, and the normal form of hosts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabhub.config.sensitive_sites import CATEGORIES
from tabhub.config.settings import Config, convert, locate
from tabhub.config.sites import SitePattern, normal_host, with_level
from tabhub.errors import SetupError


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("bank.example", "bank.example"),
        ("BANK.Example.", "bank.example"),
        ("https://bank.example/", "https://bank.example"),
        ("https://*.bank.example:8443", "https://*.bank.example:8443"),
        ("wss://bank.example", "https://bank.example"),
        ("WS://bank.example:81", "http://bank.example:81"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("*.\uff22\uff21\uff2e\uff2b\u3002example", "*.bank.example"),
        ("faß.example", "xn--fa-hia.example"),
        ("[::1]:9515", "[::1]:9515"),
        ("https://[0:0::1]", "https://[::1]"),
        ("127.0.0.1", "127.0.0.1"),
        ("2130706433", "127.0.0.1"),
        ("*", "*"),
        ("http://*", "http://*"),
        ("*:8080", "*:8080"),
        ("localhost:3000", "localhost:3000"),
        ("*.localhost", "*.localhost"),
        ("*.bank.co.uk", "*.bank.co.uk"),
        ("*.ann.github.io", "*.ann.github.io"),
        ("github.io", "github.io"),
        ("*.home.arpa", "*.home.arpa"),
    ],
)
def test_a_pattern_is_normalized(text: str, normal: str) -> None:
    pattern = SitePattern.parse(text)
    assert str(pattern) == normal
    assert SitePattern.parse(normal) == pattern


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no host"),
        ("https://", "no host"),
        ("https://bank.example/account", "a path"),
        ("bank.example?x", "a path"),
        ("https://me:secret@bank.example", "user name"),
        ("ftp://bank.example", "no scheme ftp"),
        ("file:///etc", "no scheme file"),
        ("bank.example:0", "port"),
        ("bank.example:99999", "port"),
        ("bank.example:x", "port"),
        ("bank.*.example", "host"),
        ("*bank.example", "host"),
        ("*.", "host"),
        ("bank example", "host"),
        ("bank..example", "host"),
        ("[::1", "host"),
        ("*.com", "many owners below .com"),
        ("*.co.uk", "many owners below .co.uk"),
        ("https://*.github.io:8443", "many owners below .github.io"),
        ("*.k12.ca.us", "many owners below .k12.ca.us"),
        ("*.\u9999\u6e2f", "many owners below .xn--j6w193g"),
        ("*.unheard-of", "many owners below .unheard-of"),
        ("*.10.0.0.1", "IP address"),
        ("*.[::1]", "IP address"),
        ("a" * 400, "no host"),
    ],
)
def test_a_pattern_that_names_no_site_is_rejected_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(SetupError, match=reason) as failed:
        SitePattern.parse(text)
    assert failed.value.hint is not None


@given(st.text(max_size=30))
def test_any_text_is_a_pattern_with_a_stable_form_or_rejected(text: str) -> None:
    try:
        pattern = SitePattern.parse(text)
    except SetupError:
        return
    assert SitePattern.parse(str(pattern)) == pattern


@given(st.text(max_size=30))
def test_the_normal_form_of_a_host_is_stable(text: str) -> None:
    host = normal_host(text)
    assert host is None or normal_host(host) == host


def test_levels_are_for_everyone_or_by_agent() -> None:
    written = {"*.bank.example": "block", "https://Wiki.example": {"*": "read", "ci": "act"}}
    config = Config.parse({"sites": written})
    assert [(str(entry.pattern), dict(entry.levels)) for entry in config.sites] == [
        ("*.bank.example", {"*": "block"}),
        ("https://wiki.example", {"*": "read", "ci": "act"}),
    ]
    assert config.values()["sites"] == written
    assert config.problems == ()


@pytest.mark.parametrize(
    "sites",
    [
        {"bank.example": "off"},
        {"bank.example": {"ci": "auto"}},
        {"bank.example": {}},
        {"bank.example": ["block"]},
        {"bank.example/x": "block"},
        {"bank.example": "block", "BANK.example.": "act"},
        ["bank.example"],
    ],
)
def test_an_invalid_section_is_rejected(sites: Any) -> None:
    with pytest.raises(SetupError):
        Config.parse({"sites": sites})


def test_a_rule_is_a_setting() -> None:
    assert convert("sites.https://bank.example:8443", "block") == (("sites", "https://bank.example:8443"), "block")
    assert convert("sites.bank.example", '{"*": "read"}') == (("sites", "bank.example"), {"*": "read"})
    with pytest.raises(SetupError, match="block, read, ask or act"):
        convert("sites.bank.example", "off")
    with pytest.raises(SetupError, match="a path"):
        locate("sites.bank.example/path")


def test_levels_are_set_and_removed_one_by_one() -> None:
    sites = with_level({}, "BANK.example", None, "block")
    assert sites == {"bank.example": "block"}
    sites = with_level(sites, "bank.example.", "ci", "read")
    assert sites == {"bank.example": {"*": "block", "ci": "read"}}
    assert with_level(sites, "bank.example", None, None) == {"bank.example": {"ci": "read"}}
    sites = with_level(sites, "bank.example", "ci", None)
    assert with_level(sites, "bank.example", None, None) == {}
    with pytest.raises(SetupError, match=r"no rule for bank\.example for ci"):
        with_level(sites, "bank.example", "ci", None)


def test_a_rule_keeps_the_spelling_of_the_file() -> None:
    assert with_level({"Bank.Example": "block"}, "bank.example", None, "ask") == {"Bank.Example": "ask"}


def test_off_for_an_origin_is_refused_with_the_command_that_keeps_agents_off_it() -> None:
    """It used to be accepted, and agents still read the site."""
    for key in (
        "permissions.https://bank.example.permission",
        "permissions.clients.ci.http://bank.example:81.permission",
    ):
        with pytest.raises(SetupError, match="agents would still read the site") as refused:
            convert(key, "off")
        assert "tabhub site block http" in str(refused.value.hint)
    assert convert("permissions.https://bank.example.permission", "ask")[1] == "ask"
    assert convert("permissions.slack.permission", "off")[1] == "off"


def test_the_suggested_sites_are_valid_patterns() -> None:
    for category in CATEGORIES.values():
        blocked = Config.parse({"sites": dict.fromkeys(category.patterns, "block")})
        assert len(category.missing(())) == len(category.patterns) == len(set(category.patterns))
        assert category.missing(blocked.sites) == ()
