"""URIs of external resources: valid, reversible, and expandable by any client."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.uri_template import UriTemplate

from tabhub.core.upstream_uris import may_match_template, parse_resource_uri, resource_uri, template_uri

# RFC 3986, appendix A: scheme, authority of a reg-name, path-abempty, query, fragment.
_PCHAR = r"(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})"
_URI = re.compile(
    rf"[A-Za-z][A-Za-z0-9+.-]*://(?:[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{{2}})*"
    rf"(?:/{_PCHAR}*)*(?:\?(?:{_PCHAR}|[/?])*)?(?:#(?:{_PCHAR}|[/?])*)?"
)
_texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60)
_uris = st.from_regex(r"\A[a-z]{1,5}:[a-zA-Z0-9/?#%&.~\[\] +äö-]{0,30}\Z")


@given(server=_texts, uri=_texts | _uris)
def test_every_resource_uri_is_valid_and_can_be_parsed_back(server: str, uri: str) -> None:
    address = resource_uri(server, uri)
    assert _URI.fullmatch(address), address
    assert parse_resource_uri(address) == (server, uri)


@given(one=st.tuples(_texts, _texts | _uris), other=st.tuples(_texts, _texts | _uris))
def test_two_resources_never_share_a_uri(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert (resource_uri(*one) == resource_uri(*other)) == (one == other)


@pytest.mark.parametrize(
    ("uri", "address"),
    [
        ("file:///notes.txt", "tabhub+mcp://my%20files/file:///notes.txt"),
        ("https://a.example/b?c=d#e", "tabhub+mcp://my%20files/https://a.example/b?c=d#e"),
        ("tabhub+mcp://inner/a:b", "tabhub+mcp://my%20files/tabhub+mcp://inner/a:b"),
        ("http://[::1]/x", "tabhub+mcp://my%20files/~http%3A%2F%2F%5B%3A%3A1%5D%2Fx"),
        ("file:///a/../b", "tabhub+mcp://my%20files/~file%3A%2F%2F%2Fa%2F..%2Fb"),
        ("no scheme", "tabhub+mcp://my%20files/~no%20scheme"),
        ("a:50%", "tabhub+mcp://my%20files/~a%3A50%25"),
    ],
)
def test_a_plain_uri_stays_readable_and_another_is_encoded(uri: str, address: str) -> None:
    assert resource_uri("my files", uri) == address
    assert parse_resource_uri(address) == ("my files", uri)


@pytest.mark.parametrize(
    "other", ["file:///a", "tabhub+mcp://", "tabhub+mcp://a", "tabhub+mcp:///a:b", "tabhub+mcp://a/"]
)
def test_other_uris_are_not_resource_uris(other: str) -> None:
    assert parse_resource_uri(other) is None


_VALUES: dict[str, str | list[str]] = {
    "day": "Monday/Tuesday",
    "path": "a/b c/ü.txt",
    "author": "Ada & Bob?",
    "tags": ["x", "y#z"],
    "half": "50%",
}


@pytest.mark.parametrize(
    "template",
    [
        "notes://{day}",
        "notes://{day}/of/{author}",
        "file:///{+path}",
        "shelf://books{?author,day}",
        "shelf://books?sort=up{&author}",
        "site:/root{/tags*}",
        "site://x{#path}",
        "pages://list{;half}",
        "pages://list{.day}",
    ],
)
def test_an_expanded_template_is_parsed_back_to_the_servers_uri(template: str) -> None:
    meant = UriTemplate.parse(template).expand(_VALUES)
    filled = UriTemplate.parse(template_uri("Bücher", template)).expand(_VALUES)
    assert parse_resource_uri(filled) == ("Bücher", meant)
    assert may_match_template(template, meant)


def test_a_uri_may_match_a_template_by_its_literal_parts() -> None:
    assert may_match_template("a://{x}/b/{y}/c", "a://1/b/2/c")
    assert not may_match_template("a://{x}/b/{y}/c", "a://1/2/c")
    assert not may_match_template("a://{x}", "b://1")
    assert not may_match_template("aa{x}aa", "aaa")
    assert may_match_template("a://fixed", "a://fixed")
    assert not may_match_template("a://fixed", "a://fixed/more")
    assert may_match_template("{+all}", "anything://at/all")


def test_a_hostile_template_is_matched_in_linear_time() -> None:
    template = "a" + "{+x}a" * 500
    assert may_match_template(template, "a" * 8000)
    assert not may_match_template(template + "b", "a" * 8000)
