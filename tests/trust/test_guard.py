"""Host and Origin: only this machine and our extension are allowed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabhub.trust.guard import EXTENSION_ORIGIN, host_allowed, origin_allowed

PORT = 9515
OURS = [b"127.0.0.1:9515", b"localhost:9515", b"[::1]:9515"]


@pytest.mark.parametrize("host", [*OURS, b"LOCALHOST:9515", b"LocalHost:9515"])
def test_this_machine_and_port_are_allowed(host: bytes) -> None:
    assert host_allowed(host, PORT)


@pytest.mark.parametrize(
    "host",
    [
        None,
        b"",
        b"127.0.0.1",
        b"localhost",
        b"[::1]",
        b"localhost:",
        b"localhost:80",
        b"localhost:9516",
        b"localhost:09515",
        b"localhost:+9515",
        b"localhost:95150",
        b"localhost.:9515",
        b"localhost.evil.example:9515",
        b"evil.example:9515",
        b"127.0.0.1.evil.example:9515",
        b"127.0.0.1.nip.io:9515",
        b"127.0.0.2:9515",
        b"127.1:9515",
        b"0.0.0.0:9515",
        b"2130706433:9515",
        b"0x7f000001:9515",
        b"::1:9515",
        b"[::]:9515",
        b"[0:0:0:0:0:0:0:1]:9515",
        b"[::ffff:127.0.0.1]:9515",
        b"user@localhost:9515",
        b"localhost:9515@evil.example",
        b"localhost:9515, evil.example",
        b" localhost:9515",
        b"localhost:9515 ",
        b"localhost:9515\r\nX: y",
        b"localhost:9515\0",
        b"http://localhost:9515",
        "l\u043ecalhost:9515".encode(),
        b"\xff\xfe",
    ],
)
def test_every_other_host_is_refused(host: bytes | None) -> None:
    assert not host_allowed(host, PORT)


def test_the_port_may_be_omitted_only_if_it_is_the_default() -> None:
    assert host_allowed(b"localhost", 80)
    assert host_allowed(b"localhost:80", 80)
    assert not host_allowed(b"localhost", 443)


@given(
    st.binary(max_size=40) | st.sampled_from(OURS).flatmap(lambda ours: st.binary(max_size=3).map(lambda x: ours + x))
)
def test_only_the_listed_hosts_pass_whatever_is_sent(host: bytes) -> None:
    assert host_allowed(host, PORT) == (host.lower() in OURS)


def test_no_origin_and_our_own_extension_once_are_allowed() -> None:
    assert origin_allowed([])
    assert origin_allowed([EXTENSION_ORIGIN])


@pytest.mark.parametrize(
    "origins",
    [
        [b""],
        [b"null"],
        [b"http://localhost:9515"],
        [b"http://127.0.0.1:9515"],
        [b"https://evil.example"],
        [b"chrome-extension://"],
        [b"chrome-extension://aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"],
        [b"moz-extension://" + EXTENSION_ORIGIN.removeprefix(b"chrome-extension://")],
        [EXTENSION_ORIGIN + b"/"],
        [EXTENSION_ORIGIN + b".evil.example"],
        [EXTENSION_ORIGIN + b":80"],
        [b" " + EXTENSION_ORIGIN],
        [EXTENSION_ORIGIN, EXTENSION_ORIGIN],
        [EXTENSION_ORIGIN, b"https://evil.example"],
        [b"https://evil.example", EXTENSION_ORIGIN],
        [EXTENSION_ORIGIN + b", https://evil.example"],
        [EXTENSION_ORIGIN.replace(b"chrome", b"Chrome")],
    ],
)
def test_every_other_origin_is_refused(origins: list[bytes]) -> None:
    assert not origin_allowed(origins)


@given(st.lists(st.binary(max_size=60), min_size=1, max_size=3))
def test_no_invented_origin_is_allowed(origins: list[bytes]) -> None:
    assert not origin_allowed(origins)
