"""Site rules: the most specific one decides."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabhub.config.settings import Config
from tabhub.config.sites import SitePattern
from tabhub.trust.site_rules import Level, SiteRule, SiteRules, site_of

HOSTS = ("bank.example", "www.bank.example", "a.www.bank.example", "notbank.example", "example", "localhost")
LEVELS: tuple[Level, ...] = ("block", "read", "ask", "act")


def parsed(sites: dict[str, Any]) -> SiteRules:
    return SiteRules.parse(Config.parse({"sites": sites}))


def test_without_rules_nothing_is_decided() -> None:
    none = parsed({})
    assert none.empty
    assert none.rule("https://bank.example", "ci") is None
    assert not none.any_blocked("ci")


@pytest.mark.parametrize(
    ("url", "level"),
    [
        ("https://www.bank.example/account", "read"),
        ("https://www.bank.example:8443/", "ask"),
        ("http://www.bank.example/", "block"),
        ("https://bank.example/", "block"),
        ("https://a.login.bank.example/", "act"),
        ("https://login.bank.example", "act"),
        ("https://loginbank.example", "ask"),
        ("https://elsewhere.test", "ask"),
        ("about:blank", None),
        ("chrome://settings", None),
        ("data:text/html,bank.example", None),
        (None, None),
    ],
)
def test_the_most_specific_pattern_decides(url: str | None, level: Level | None) -> None:
    site_rules = parsed(
        {
            "*": "ask",
            "*.bank.example": "block",
            "*.login.bank.example": "act",
            "https://www.bank.example": "read",
            "https://www.bank.example:8443": "ask",
        }
    )
    assert site_rules.level(url, "ci") == level
    assert site_rules.blocks(url, None) == (level == "block")


def test_a_scheme_counts_before_a_port_and_both_before_the_agent() -> None:
    site_rules = parsed(
        {
            "bank.example": {"ci": "act"},
            "bank.example:443": "ask",
            "https://bank.example": "read",
        }
    )
    assert site_rules.level("https://bank.example", "ci") == "read"
    assert site_rules.level("http://bank.example:443", "ci") == "ask"
    assert site_rules.level("http://bank.example", "ci") == "act"
    assert site_rules.level("http://bank.example", "other") is None


def test_an_agents_own_level_counts_before_everyones() -> None:
    site_rules = parsed({"bank.example": {"*": "block", "ci": "read"}, "*": {"spy": "block"}})
    assert site_rules.level("https://bank.example", "ci") == "read"
    assert site_rules.level("https://bank.example", None) == "block"
    assert site_rules.rule("https://other.example", "spy") == SiteRule(SitePattern.parse("*"), "spy", "block")
    assert site_rules.rule("https://other.example", "ci") is None


def test_whether_any_site_may_be_blocked_for_an_agent() -> None:
    site_rules = parsed({"bank.example": {"ci": "block", "*": "read"}})
    assert site_rules.any_blocked("ci")
    assert not site_rules.any_blocked("other")
    assert not site_rules.any_blocked(None)
    assert parsed({"bank.example": "block"}).any_blocked(None)


@pytest.mark.parametrize(
    "url",
    [
        "https://bank.example",
        "HTTPS://BANK.EXAMPLE/",
        "https://bank.example./account?x#y",
        "https:bank.example",
        "https:\\\\bank.example\\account",
        "  https:///bank.example",
        "ht\ntps://ba\tnk.example",
        "https://me:secret@bank.example/",
        "https://other.example@bank.example/",
        "https://b%61nk.example/",
        "https://\uff42\uff41\uff4e\uff4b.example/",
        "https://ba\u00adnk.example/",
        "wss://bank.example/socket",
        "blob:https://bank.example/1b2c",
        "filesystem:https://bank.example/temporary/x",
        "view-source:https://bank.example/",
        "view-source:blob:https://bank.example/1b2c",
        "https://bank.example:443/",
    ],
)
def test_every_spelling_of_a_url_is_the_same_site(url: str) -> None:
    assert parsed({"https://bank.example:443": "block"}).blocks(url, "ci")


@pytest.mark.parametrize(
    "url", ["https://bank.example.evil.test", "https://evil.test/bank.example", "https://evil.test#@bank.example"]
)
def test_a_url_that_only_contains_the_name_is_another_site(url: str) -> None:
    assert not parsed({"*.bank.example": "block"}).blocks(url, "ci")


def test_internationalized_hosts_and_addresses_are_compared_in_normal_form() -> None:
    site_rules = parsed({"*.bücher.example": "block", "127.0.0.1": "read", "[::1]": "ask"})
    assert site_rules.blocks("https://shop.xn--bcher-kva.example", None)
    assert site_rules.level("http://0x7f.1:9515/", None) == "read"
    assert site_rules.level("http://[0::1]:9515/", None) == "ask"


def test_every_site_includes_files_but_no_pages_without_a_site() -> None:
    site_rules = parsed({"*": "block"})
    assert site_rules.blocks("file:///etc/passwd", None)
    assert not site_rules.blocks("about:blank", None)
    assert not parsed({"http://*": "block"}).blocks("file:///etc/passwd", None)


patterns = st.builds(
    lambda scheme, wide, host, port: f"{scheme}{'*.' if wide and host != 'example' else ''}{host}{port}",
    st.sampled_from(("", "http://", "https://")),
    st.booleans(),
    st.sampled_from(HOSTS),
    st.sampled_from(("", ":80", ":8443")),
) | st.just("*")
agents = st.sampled_from(("ci", "bob", "*"))
urls = st.builds(
    "{}{}{}/".format,
    st.sampled_from(("http://", "https://", "ws://", "wss://")),
    st.sampled_from(HOSTS),
    st.sampled_from(("", ":80", ":8443")),
)


@given(
    st.dictionaries(patterns, st.dictionaries(agents, st.sampled_from(LEVELS), min_size=1), max_size=8),
    urls,
    st.sampled_from(("ci", "bob", "eve", None)),
)
def test_the_deciding_rule_is_the_greatest_of_those_that_cover_the_url(
    sites: dict[str, Any], url: str, agent: str | None
) -> None:
    site_rules = parsed(sites)
    site = site_of(url)
    assert site is not None
    covering = []
    for rule in site_rules.rules:
        pattern = rule.pattern
        below = pattern.below and (not pattern.host or site.host.endswith(f".{pattern.host}"))
        if (below or site.host == pattern.host) and rule.covers(site, agent):
            key = (
                not pattern.below,
                len(pattern.host),
                pattern.scheme is not None,
                pattern.port is not None,
                rule.agent is not None,
            )
            covering.append((key, rule))
    decided = site_rules.rule(url, agent)
    assert decided == (max(covering, key=lambda each: each[0])[1] if covering else None)
    if decided is not None and decided.level == "block":
        assert site_rules.any_blocked(agent)


@given(st.text(max_size=60))
def test_any_text_has_a_site_or_none(text: str) -> None:
    site = site_of(text)
    assert site is None or site.scheme in ("http", "https", "file")
