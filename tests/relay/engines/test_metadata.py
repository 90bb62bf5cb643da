"""The relay's public URL and its metadata for OAuth clients."""

from __future__ import annotations

import pytest

from tabhub.errors import Forbidden, SetupError
from tabhub.relay.engines.metadata import RelayUrl, challenge, document, read_url


@pytest.mark.parametrize(
    "host", [b"relay.example.com", b"relay.example.com:443", b"RELAY.example.com", b"localhost:9700"]
)
def test_a_public_url_is_returned_for_each_of_its_hosts(host: bytes) -> None:
    place = RelayUrl("https", 9700, "https://relay.example.com")
    assert place.base({b"host": host}) == "https://relay.example.com"


@pytest.mark.parametrize("host", [b"evil.example", b"relay.example.com:444", b"relay.example.com.evil.example", b""])
def test_hosts_other_than_the_public_one_are_refused(host: bytes) -> None:
    with pytest.raises(Forbidden):
        RelayUrl("https", 9700, "https://relay.example.com").base({b"host": host})


def test_a_port_in_the_public_url_is_required() -> None:
    place = RelayUrl("https", 9700, "https://relay.example.com:8443")
    assert place.base({b"host": b"relay.example.com:8443"}) == "https://relay.example.com:8443"
    with pytest.raises(Forbidden):
        place.base({b"host": b"relay.example.com"})


@pytest.mark.parametrize("host", [b"relay.internal:9700", b"10.0.0.1", b"[::1]:9700"])
def test_without_a_public_url_a_client_gets_the_host_it_used(host: bytes) -> None:
    assert RelayUrl("https", 9700).base({b"host": host}) == f"https://{host.decode()}"


@pytest.mark.parametrize("host", [b"", b'a"b', b"a b", b"a/b", b"a,b", b"a@b", b"x" * 300, b"a:b"])
def test_an_invalid_host_is_refused(host: bytes) -> None:
    with pytest.raises(Forbidden):
        RelayUrl("https", 9700).base({b"host": host})


def test_trailing_slash_and_path_of_urls_are_removed() -> None:
    assert read_url("--public-url", " https://relay.example.com/mcp ") == "https://relay.example.com"
    assert read_url("--public-url", "http://127.0.0.1:9700/") == "http://127.0.0.1:9700"
    assert (
        read_url("--auth-server", "https://login.example.com/realms/team/") == "https://login.example.com/realms/team"
    )


@pytest.mark.parametrize("option", ["--public-url", "--auth-server"])
@pytest.mark.parametrize(
    "text",
    ["relay.example.com", "ftp://a.b", "https://", "https://u@a.b", "https://a.b?x=1", "https://a.b:x", "http://a.b"],
)
def test_invalid_urls_are_refused(option: str, text: str) -> None:
    with pytest.raises(SetupError, match=option):
        read_url(option, text)


def test_a_public_url_has_no_path() -> None:
    with pytest.raises(SetupError):
        read_url("--public-url", "https://a.b/relay")


def test_the_document_and_the_challenge() -> None:
    assert document("https://a.b", ["https://login"])["authorization_servers"] == ["https://login"]
    assert "authorization_servers" not in document("https://a.b", [])
    where = b'Bearer resource_metadata="https://a.b/.well-known/oauth-protected-resource/mcp"'
    assert challenge("https://a.b", None) == where
    assert challenge("https://a.b", "no") == where + b', error="invalid_token", error_description="no"'
