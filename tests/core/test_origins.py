"""Origins of URLs, and names for what has none."""

from __future__ import annotations

import pytest

from tabhub.core.origins import browser_origin, name_of, origin_of, share_cookies


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://Example.com:443/a?b#c", "https://example.com"),
        ("http://example.com:8080/", "http://example.com:8080"),
        ("https://user:pw@example.com/", "https://example.com"),
        ("http://[::1]:9515/", "http://[::1]:9515"),
        ("file:///etc/hosts", "file://"),
        ("blob:https://bank.example/6f1", "https://bank.example"),
        ("blob:null/6f1", None),
        ("view-source:https://bank.example/a", "https://bank.example"),
        ("about:blank", None),
        ("data:text/html,x", None),
        ("chrome://settings", None),
        ("https://", None),
        ("http://[broken", None),
        ("http://host:99999/", None),
        ("", None),
    ],
)
def test_origins_are_parsed_as_browsers_do(url: str, origin: str | None) -> None:
    assert origin_of(url) == origin


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("data:text/html,x", "unknown (data:)"),
        ("about:blank", "unknown (about:)"),
        ("", "unknown (about:)"),
        ("chrome://newtab/", "chrome://newtab"),
        ("chrome-extension://abc/panel.html", "chrome-extension://abc"),
    ],
)
def test_documents_without_an_origin_have_a_name(url: str, name: str) -> None:
    assert name_of(url) == name


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("HTTPS://Bank.example:443/a", "https://bank.example"),
        ("blob:https://bank.example/6f1", "https://bank.example"),
        ("blob:null/6f1", "blob:"),
        ("data:text/html,x", "data:"),
        ("about:blank", "about:"),
        ("chrome://newtab/", ""),
        ("file:///etc/hosts", ""),
    ],
)
def test_origins_are_written_as_browsers_write_them(url: str, origin: str) -> None:
    assert browser_origin(url) == origin


@pytest.mark.parametrize(
    ("one", "other", "may"),
    [
        ("https://shop.example", "http://shop.example:8080", True),
        ("https://www.shop.example", "https://pay.shop.example", True),
        ("https://shop.example", "https://bank.example", False),
        ("https://www.shop.co.uk", "https://pay.shop.co.uk", True),
        ("https://shop.co.uk", "https://bank.co.uk", False),
        ("https://ann.github.io", "https://bob.github.io", False),
        ("http://ann.localhost:1", "http://bob.localhost:1", False),
        ("http://127.0.0.1:1", "http://127.0.0.1:2", True),
        ("http://127.0.0.1", "http://10.0.0.1", False),
        ("http://localhost", "http://other", False),
        (None, None, False),
        (None, "https://shop.example", False),
    ],
)
def test_sites_share_cookies_within_a_domain(one: str | None, other: str | None, may: bool) -> None:
    assert share_cookies(one, other) is may
