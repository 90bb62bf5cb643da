"""URLs as text, also invalid ones."""

from __future__ import annotations

import pytest

from tabhub.wire import urls as addresses


@pytest.mark.parametrize(
    "url", ["http://[", "http://[::1", "http://a:b/", "http://a:70000/", "http://a]/", "ws://[x]/"]
)
def test_an_invalid_url_has_no_parts(url: str) -> None:
    assert addresses.split(url) is None


def test_a_url_is_split_into_its_parts() -> None:
    parts = addresses.split("https://user@[::1]:8443/path?query#end")
    assert parts is not None
    assert (parts.scheme, parts.hostname, parts.port, parts.username) == ("https", "::1", 8443, "user")
    assert (parts.path, parts.query, parts.fragment) == ("/path", "query", "end")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST.", "a.localhost", "127.0.0.1", "127.9.8.7", "::1", "[::1]"])
def test_loopback_names_and_addresses_are_this_machine(host: str) -> None:
    assert addresses.names_this_machine(host)


@pytest.mark.parametrize(
    "host", ["", "localhost.example.com", "notlocalhost", "128.0.0.1", "0.0.0.0", "::", "10.0.0.1", "127.0.0.1.nip.io"]
)
def test_other_hosts_are_not_this_machine(host: str) -> None:
    assert not addresses.names_this_machine(host)


@pytest.mark.parametrize(
    ("url", "plain"), [("wss://a/b", True), ("wss://a/?b", False), ("wss://a/#b", False), ("wss://u@a/", False)]
)
def test_urls_with_user_query_or_fragment_are_not_plain(url: str, plain: bool) -> None:
    parts = addresses.split(url)
    assert parts is not None
    assert addresses.plain(parts) is plain
