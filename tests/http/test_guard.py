"""The guard alone: the order of its checks, repeated headers, and the table of routes."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tabhub.errors import (
    Forbidden,
    MethodNotAllowed,
    NotFound,
    RateLimited,
    TabhubError,
    TooLarge,
    Unauthorized,
)
from tabhub.http.guard import Endpoint, Guard, Identity
from tabhub.http.messages import Header, Request
from tabhub.limits import Limits
from tabhub.trust.guard import EXTENSION_ORIGIN

KEY, AGENT, OLD = b"5" * 64, b"thb_a", b"0" * 64
KNOWN = {
    b"Bearer " + KEY: Identity("me", person=True),
    b"Bearer " + AGENT: Identity("agent"),
    b"Bearer " + OLD: Identity("unnamed", admitted=False),
}
NO_CONNECTION: Any = None
HOST = (b"host", b"127.0.0.1:9515")
TOKEN = (b"authorization", b"Bearer " + KEY)


class Guarding:
    """A guard for some paths."""

    def __init__(self, **limits: Any) -> None:
        self.now = 0.0
        self.served: list[str] = []
        methods = {"GET": self._route, "POST": self._route}
        endpoints = {
            "/tools": Endpoint(methods, "agents"),
            "/tools/*/call": Endpoint({"POST": self._route}, "agents"),
            "/audit": Endpoint({"GET": self._route}),
            "/health": Endpoint({"*": self._route}, "anyone"),
        }
        self.guard = Guard(
            9515,
            Limits(**limits),
            KNOWN.get,
            clock=lambda: self.now,
            endpoints=endpoints,
            websockets={},
            refused=Counter(),
        )

    async def _route(self, request: Request) -> None:
        raise AssertionError("requests are only admitted here")

    def refusal(self, *headers: Header, method: str = "GET", path: str = "/tools") -> type[TabhubError] | None:
        """The error for a request with these headers."""
        try:
            self.guard.route(Request(NO_CONNECTION, method, path, b"", list(headers), dict(headers)))
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
def test_host_is_checked_before_origin_size_and_token(
    headers: list[tuple[bytes, bytes]], refusal: type[TabhubError] | None
) -> None:
    assert Guarding().refusal(*headers) is refusal


@pytest.mark.parametrize(
    ("token", "path", "refusal"),
    [
        (KEY, "/tools", None),
        (KEY, "/audit", None),
        (AGENT, "/tools", None),
        (AGENT, "/audit", Forbidden),
        (AGENT, "/nothing", NotFound),
        (AGENT, "/health", None),
        (OLD, "/tools", Unauthorized),
        (OLD, "/audit", Forbidden),
        (OLD, "/nothing", Unauthorized),
        (OLD, "/health", None),
        (b"thb_b", "/tools", Unauthorized),
        (b"thb_b", "/health", None),
    ],
)
def test_a_token_opens_what_its_holder_may_reach(token: bytes, path: str, refusal: type[TabhubError] | None) -> None:
    assert Guarding().refusal(HOST, (b"authorization", b"Bearer " + token), path=path) is refusal


def test_failures_are_rate_limited_for_a_minute_and_valid_requests_never() -> None:
    guarding = Guarding(auth_failure_rate=2)
    guarding.now = 1.0
    assert [guarding.refusal(HOST) for _ in range(3)] == [Unauthorized, Unauthorized, RateLimited]
    assert guarding.refusal(HOST, TOKEN) is None
    guarding.now = 61.5
    assert guarding.refusal(HOST) is Unauthorized


def test_an_error_never_repeats_the_token() -> None:
    header = (b"authorization", b"Bearer something-secret")
    with pytest.raises(Unauthorized) as refused:
        Guarding().guard.route(Request(NO_CONNECTION, "GET", "/audit", b"", [HOST, header], dict([HOST, header])))
    assert "something-secret" not in refused.value.text()
    assert KEY.decode() not in str(refused.value.details())


@pytest.mark.parametrize(
    ("method", "path", "refusal"),
    [
        ("GET", "/tools", None),
        ("DELETE", "/tools", MethodNotAllowed),
        ("POST", "/tools/a/b/call", None),
        ("GET", "/tools/a/call", MethodNotAllowed),
        ("POST", "/tools/call", NotFound),
        ("GET", "/audit", None),
        ("GET", "/audit/", NotFound),
        ("DELETE", "/health", None),
    ],
)
def test_a_path_and_method_have_at_most_one_route(method: str, path: str, refusal: type[TabhubError] | None) -> None:
    assert Guarding().refusal(HOST, TOKEN, method=method, path=path) is refusal


def test_only_an_open_path_is_served_without_a_token_and_others_do_not_reveal_that_they_exist() -> None:
    assert Guarding().refusal(HOST, path="/health") is None
    assert Guarding().refusal(HOST, path="/audit") is Guarding().refusal(HOST, path="/nothing") is Unauthorized
