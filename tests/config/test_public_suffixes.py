"""Registrable domains: one owner, one site."""

from __future__ import annotations

import pytest

from tabhub.config.public_suffixes import is_local, is_public_suffix, registrable_domain, site_of


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("www.shop.co.uk", "shop.co.uk"),
        ("shop.co.uk", "shop.co.uk"),
        ("a.b.example.com.", "example.com"),
        ("ann.github.io", "ann.github.io"),
        ("deep.ann.github.io", "ann.github.io"),
        ("github.io", "github.io"),
        ("WWW.Example.COM", "example.com"),
        ("x.xn--mnchen-3ya.de", "xn--mnchen-3ya.de"),
        ("a.b.公司.cn", "b.公司.cn"),
        ("a.b.xn--55qx5d.cn", "b.xn--55qx5d.cn"),
        ("a.b.kawasaki.jp", "a.b.kawasaki.jp"),
        ("www.city.kawasaki.jp", "city.kawasaki.jp"),
        ("s1.news.test", "news.test"),
        ("127.0.0.1", "127.0.0.1"),
        ("[::1]", "[::1]"),
        ("localhost", "localhost"),
        ("s7.localhost", "localhost"),
        ("intranet", "intranet"),
    ],
)
def test_the_registrable_domain_is_what_one_owner_has(host: str, domain: str) -> None:
    assert registrable_domain(host) == domain


def test_a_site_is_the_same_with_every_scheme_port_and_subdomain() -> None:
    origins = ("http://shop.co.uk", "https://shop.co.uk", "https://a.shop.co.uk:8443")
    assert {site_of(origin) for origin in origins} == {"shop.co.uk"}
    assert site_of("http://127.0.0.1:3000") == "127.0.0.1"
    assert site_of("file://") == "file"


def test_names_below_a_public_suffix_have_different_owners() -> None:
    assert all(is_public_suffix(host) for host in ("com", "co.uk", "github.io", "notion.site", "Co.Uk."))
    others = ("shop.co.uk", "127.0.0.1", "[::1]", "localhost", "corp", "test", "news.test", "home.arpa")
    assert not any(is_public_suffix(host) for host in others)


def test_hosts_of_this_machine_and_its_network_are_local() -> None:
    local = ("localhost", "a.localhost", "127.0.0.1", "10.1.2.3", "192.168.0.9", "[::1]", "fe80::1", "nas", "nas.local")
    assert all(is_local(host) for host in local)
    assert not any(is_local(host) for host in ("example.com", "8.8.8.8", "local.example.com"))
