"""Match patterns: which URLs they match, which is more specific, and which a plugin must not claim."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabhub.core import match_patterns as patterns


@pytest.mark.parametrize(
    ("pattern", "url", "fits"),
    [
        ("http://localhost/app*", "http://localhost:8123/app/x", True),
        ("http://localhost/app*", "http://localhost:8123/other", False),
        ("*://a.example/*", "https://a.example", True),
        ("*://a.example/*", "https://a.example?q=1", True),
        ("*://a.example:8080/*", "https://a.example/", False),
        ("*://a.example:443/*", "https://a.example/", True),
        ("https://A.Example/*", "https://a.example/X", True),
        ("http://[::1]/*", "http://[::1]:80/x", True),
        ("https://a.example/*", "https://a.example\\@evil.example/", True),
        ("https://evil.example/*", "https://a.example\\@evil.example/", False),
        ("https://a.example/*", "javascript://a.example/%0aalert(1)", False),
        ("https://a.example/x*y*z", "https://a.example/x1y2z", True),
    ],
)
def test_patterns_match_urls_as_browsers_do(pattern: str, url: str, fits: bool) -> None:
    assert patterns.matches(pattern, url) is fits


@pytest.mark.parametrize(
    "text",
    [
        "<all_urls>",
        "*://*/*",
        "*://*.com/*",
        "https://a.example",
        "file:///*",
        "ftp://a.example/*",
        "https://a.example:port/*",
        "https://a b/*",
        "https://user@a.example/*",
        "https://a.*/*",
        "https://a.example/*****" + "*/x",
        "",
        "https://" + "a" * 2000 + "/*",
        "*://*.co.uk/*",
        "https://*.github.io/*",
        "https://*.github.io:443/app/*",
        "*://*.CO.UK/*",
        "*://*.xn--p1ai/*",
    ],
)
def test_a_plugin_must_not_claim_every_site_or_an_invalid_pattern(text: str) -> None:
    assert patterns.problem(text) is not None


@pytest.mark.parametrize(
    "text",
    [
        "https://*.example.com/*",
        "*://a.example:8080/x/*",
        "http://localhost/*",
        "*://*.shop.co.uk/*",
        "https://ann.github.io/*",
        "https://*.ann.github.io/*",
        "https://github.io/*",
        "http://*.nas.local/*",
    ],
)
def test_a_plugin_may_claim_its_site(text: str) -> None:
    assert patterns.problem(text) is None


def test_a_url_gives_the_pattern_of_its_site() -> None:
    assert patterns.of_address("https://jira.example.com/browse?x=1") == "*://jira.example.com/*"
    assert patterns.of_address("http://127.0.0.1:8080/") == "*://127.0.0.1:8080/*"
    assert patterns.of_address("http://[::1]:8080/") == "*://[::1]:8080/*"
    assert patterns.of_address("file:///etc") is None
    assert patterns.of_address("nonsense") is None
    assert patterns.of_address("http://[::1") is None
    assert patterns.of_address("http://a:99999/") is None


def test_the_more_specific_pattern_ranks_higher() -> None:
    texts = ["*://*.example.com/*", "*://a.example.com/*", "*://a.example.com:8080/*", "https://a.example.com:8080/x/*"]
    read = [patterns.parse(text) for text in texts]
    ranks = [pattern.specificity for pattern in read if pattern is not None]
    assert ranks == sorted(ranks)
    assert len(set(ranks)) == 4


@given(st.text(alphabet="ab*/", max_size=12), st.text(alphabet="ab/", max_size=12))
def test_a_star_matches_any_text(pattern: str, text: str) -> None:
    import re

    wanted = re.fullmatch(".*".join(re.escape(piece) for piece in pattern.split("*")), text) is not None
    assert patterns.has_pieces(text, pattern.split("*")) is wanted


@given(st.text(max_size=60))
def test_any_text_is_parsed_without_an_exception(text: str) -> None:
    patterns.problem(text)
    patterns.matches("https://a.example/*", text)
    patterns.matches(text, "https://a.example/")
