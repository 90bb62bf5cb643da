"""The guard by itself: the order of its checks, and what it makes of headers that come twice."""

from __future__ import annotations

from typing import Any

import pytest

from tabhub.errors import Forbidden, RateLimited, TabhubError, TooLarge, Unauthorized
from tabhub.http.guard import Guard
from tabhub.http.messages import Request
from tabhub.limits import Limits
from tabhub.trust.guard import EXTENSION_ORIGIN

SECRET = b"5" * 64
NO_CONNECTION: Any = None
HOST = (b"host", b"127.0.0.1:9515")
TOKEN = (b"authorization", b"Bearer " + SECRET)


def guard(**limits: Any) -> Guard:
    return Guard(9515, SECRET, Limits(**limits))


def verdict(guarding: Guard, *headers: tuple[bytes, bytes], now: float = 0.0) -> type[TabhubError] | None:
    """What a request with these headers is refused with."""
    try:
        request = Request(NO_CONNECTION, "GET", "/", b"", list(headers), dict(headers))
        guarding.check_place(request)
        guarding.require(request.headers.get(b"authorization"), now)
    except TabhubError as error:
        return type(error)
    return None


@pytest.mark.parametrize(
    ("headers", "refusal"),
    [
        ([HOST, TOKEN], None),
        ([HOST, TOKEN, (b"origin", EXTENSION_ORIGIN)], None),
        ([HOST, TOKEN, (b"content-length", b"4194304")], None),
        ([HOST], Unauthorized),
        ([HOST, (b"content-length", b"4194305")], TooLarge),
        ([HOST, (b"origin", b"https://a.example"), (b"content-length", b"4194305")], Forbidden),
        ([(b"host", b"a.example"), (b"origin", EXTENSION_ORIGIN), TOKEN], Forbidden),
        ([TOKEN], Forbidden),
        ([HOST, HOST, TOKEN], Forbidden),
        ([HOST, TOKEN, (b"origin", EXTENSION_ORIGIN), (b"origin", EXTENSION_ORIGIN)], Forbidden),
        ([HOST, TOKEN, TOKEN], Unauthorized),
        ([HOST, TOKEN, (b"accept", b"a"), (b"accept", b"b")], None),
    ],
)
def test_host_comes_first_then_origin_then_size_then_token(
    headers: list[tuple[bytes, bytes]], refusal: type[TabhubError] | None
) -> None:
    assert verdict(guard(), *headers) is refusal


def test_an_old_secret_fails_from_the_moment_it_is_replaced() -> None:
    guarding = guard()
    assert verdict(guarding, HOST, TOKEN) is None
    guarding.replace_secret(b"6" * 64)
    assert verdict(guarding, HOST, TOKEN) is Unauthorized
    assert verdict(guarding, HOST, (b"authorization", b"Bearer " + b"6" * 64)) is None


def test_failures_are_slowed_until_the_minute_has_passed_and_good_requests_never() -> None:
    guarding = guard(auth_failure_rate=2)
    refusals = [verdict(guarding, HOST, now=1.0) for _ in range(3)]
    assert refusals == [Unauthorized, Unauthorized, RateLimited]
    assert verdict(guarding, HOST, TOKEN, now=1.0) is None
    assert verdict(guarding, HOST, now=61.5) is Unauthorized


def test_a_refusal_never_repeats_what_was_sent() -> None:
    guarding = guard()
    with pytest.raises(Unauthorized) as refused:
        guarding.require(b"Bearer something-secret", 0.0)
    assert "something-secret" not in refused.value.text()
    assert SECRET.decode() not in str(refused.value.details())
