"""Who is admitted: Host, Origin and token on every URL, over HTTP and WebSocket, with handwritten requests."""

from __future__ import annotations

import contextlib
import logging

import pytest

from tests.harness.hub import RunningHub
from tests.harness.raw import Header, exchange, request, wire

ADDRESSES = [
    ("POST", "/mcp"),
    ("GET", "/mcp"),
    ("DELETE", "/mcp"),
    ("POST", "/mcp/gateway"),
    ("GET", "/tools"),
    ("POST", "/tools/probe_echo/call"),
    ("GET", "/health"),
    ("GET", "/audit"),
    ("GET", "/metrics"),
    ("GET", "/ws-info"),
    ("POST", "/reload"),
    ("POST", "/extension/reload"),
    ("POST", "/plugin-settings"),
    ("GET", "/nothing/here"),
    ("GET", "/ws"),
]
UPGRADE: list[Header] = [
    ("Connection", "Upgrade"),
    ("Upgrade", "websocket"),
    ("Sec-WebSocket-Version", "13"),
    ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
]
OURS = "chrome-extension://fbfngjfcbbkgoepkeecjnefoncaahigp"
ORIGINS = [
    ["https://evil.example"],
    ["null"],
    [""],
    ["http://127.0.0.1:{port}"],
    ["http://localhost:{port}"],
    ["file://"],
    ["chrome-extension://aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"],
    [OURS + "."],
    [OURS + ".evil.example"],
    [OURS + "/"],
    [OURS.upper()],
    [f"{OURS}, https://evil.example"],
    [OURS, OURS],
    [OURS, "https://evil.example"],
    ["https://evil.example", OURS],
]
HOSTS: list[list[str]] = [
    [],
    ["evil.example"],
    ["evil.example:{port}"],
    ["127.0.0.1"],
    ["localhost"],
    ["127.0.0.1:1"],
    ["127.0.0.1.evil.example:{port}"],
    ["localhost.evil.example:{port}"],
    ["127.0.0.1:{port}.evil.example"],
    ["127.0.0.1:{port}@evil.example"],
    ["user@127.0.0.1:{port}"],
    ["0.0.0.0:{port}"],
    ["127.0.0.2:{port}"],
    ["127.1:{port}"],
    ["2130706433:{port}"],
    ["[::ffff:127.0.0.1]:{port}"],
    ["127.0.0.1:0{port}"],
    ["127.0.0.1:{port}", "127.0.0.1:{port}"],
    ["127.0.0.1:{port}", "evil.example"],
]


def head(hub: RunningHub, address: tuple[str, str], headers: list[Header]) -> bytes:
    method, path = address
    more = (
        UPGRADE if path.startswith("/ws?") or path == "/ws" else [("Content-Length", "0")] if method == "POST" else []
    )
    filled = [(name, value.replace("{port}", str(hub.port))) for name, value in headers]
    return request(method, path, [*filled, *more])


@pytest.mark.req("B7", "S002-cors-01", "S002-cors-04")
@pytest.mark.parametrize("address", ADDRESSES, ids=" ".join)
async def test_every_origin_but_our_extensions_is_403_before_anything_else(
    hub: RunningHub, address: tuple[str, str]
) -> None:
    host = ("Host", f"127.0.0.1:{hub.port}")
    for origins in ORIGINS:
        for token in ([], [("Authorization", "Bearer wrong")], list(hub.bearer.items())):
            given = [("Origin", origin) for origin in origins]
            answer = await exchange(hub.port, head(hub, address, [host, *given, *token]))
            assert answer.status == 403, (origins, token, answer)


@pytest.mark.req("B8")
@pytest.mark.parametrize("address", ADDRESSES, ids=" ".join)
async def test_every_host_that_does_not_name_this_hub_is_refused(hub: RunningHub, address: tuple[str, str]) -> None:
    for hosts in HOSTS:
        given = [("Host", host) for host in hosts]
        answer = await exchange(hub.port, head(hub, address, [*given, *hub.bearer.items()]))
        assert answer.status in (400, 403), (hosts, answer)
        assert b"health" not in answer.body


@pytest.mark.req("S002-cors-03", "S002-cors-05")
async def test_the_extensions_own_origin_and_every_name_of_this_machine_pass(hub: RunningHub) -> None:
    for host in (f"127.0.0.1:{hub.port}", f"localhost:{hub.port}", f"[::1]:{hub.port}", f"LOCALHOST:{hub.port}"):
        for origin in ([], [("Origin", OURS)]):
            headers = [("Host", host), *origin, *hub.bearer.items()]
            assert (await exchange(hub.port, head(hub, ("GET", "/tools"), headers))).status == 200


@pytest.mark.req("B7")
async def test_preflight_grants_pages_no_access(hub: RunningHub) -> None:
    headers = [
        ("Host", f"127.0.0.1:{hub.port}"),
        ("Origin", "https://evil.example"),
        ("Access-Control-Request-Method", "POST"),
    ]
    answer = await exchange(hub.port, request("OPTIONS", "/mcp", headers))
    assert answer.status == 403
    assert not [name for name in answer.headers if name.startswith("access-control-")]


def tokens(secret: str) -> list[list[Header]]:
    return [
        [],
        [("Authorization", "")],
        [("Authorization", "Bearer")],
        [("Authorization", "Bearer ")],
        [("Authorization", f"Bearer {'0' * 64}")],
        [("Authorization", f"Bearer {secret[:-1]}")],
        [("Authorization", f"Bearer {secret}0")],
        [("Authorization", f"Bearer {secret.upper()}")],
        [("Authorization", secret)],
        [("Authorization", f"Basic {secret}")],
        [("Authorization", f"Bearer {secret} {secret}")],
        [("Authorization", f"Bearer {secret},{secret}")],
        [("Authorization", f"Bearer {secret[:32]} {secret[32:]}")],
        [("Authorization", "Bearer " + "a" * 30_000)],
        [("Authorization", "Bearer \xff\xfe")],
        [("X-Api-Key", secret)],
        [("Cookie", f"token={secret}; Authorization=Bearer {secret}")],
    ]


@pytest.mark.req("B9", "S002-auth-01", "S002-endpoints-07", "S002-endpoints-09")
@pytest.mark.parametrize("kind", ["token", "person_key", "extension_key"])
@pytest.mark.parametrize("address", [a for a in ADDRESSES if a[1] not in ("/health", "/ws")], ids=" ".join)
async def test_every_route_requires_the_token_and_no_log_contains_it(
    hub: RunningHub, address: tuple[str, str], kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    secret: str = getattr(hub, kind)
    host = ("Host", f"127.0.0.1:{hub.port}")
    method, path = address
    queries = (f"?token={secret}", f"?secret={secret}", f"?authorization=Bearer%20{secret}")
    requests = [head(hub, address, [host, *token]) for token in tokens(secret)]
    requests += [head(hub, (method, path + query), [host]) for query in queries]
    answers = [await exchange(hub.port, data) for data in requests]
    assert {answer.status for answer in answers} == {401}
    assert not any(secret.encode() in answer.body for answer in answers)
    assert secret not in caplog.text
    assert "a" * 1000 not in caplog.text
    assert secret not in hub.home.audit.read_text()


class _GuardedText(str):
    """A key that may only be compared in constant time."""

    __slots__ = ()

    def encode(self, encoding: str = "utf-8", errors: str = "strict") -> _Guarded:
        return _Guarded(super().encode(encoding, errors))


class _Guarded(bytes):
    """The same as bytes."""

    def __eq__(self, other: object) -> bool:
        raise AssertionError("compared byte by byte, which takes longer the more of it is right")

    __hash__ = bytes.__hash__


@pytest.mark.req("B9")
async def test_rejection_time_does_not_depend_on_the_token(hub: RunningHub) -> None:
    hub.hub.person_key.value = _GuardedText(hub.person_key)
    hub.hub.extension.key = _Guarded(hub.extension_key.encode())
    host = ("Host", f"127.0.0.1:{hub.port}")
    for token in tokens(hub.person_key):
        assert (await exchange(hub.port, head(hub, ("GET", "/tools"), [host, *token]))).status == 401
    right = [host, *hub.person.bearer.items()]
    assert (await exchange(hub.port, head(hub, ("GET", "/tools"), right))).status == 200
    for offered in (hub.extension_key[:-1], "0" * 64, hub.extension_key):
        protocols = [host, ("Sec-WebSocket-Protocol", f"tabhub, {offered}, id")]
        assert (await exchange(hub.port, head(hub, ("GET", "/ws"), protocols))).status == (
            101 if offered == hub.extension_key else 401
        )


@pytest.mark.req("B9")
async def test_websocket_requires_the_token_as_subprotocol_and_no_log_contains_it(
    hub: RunningHub, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    secret = hub.extension_key
    offers: list[str | None] = [
        None,
        "tabhub",
        secret,
        f"{secret}, tabhub",
        f"tabhub, {'0' * 64}, id",
        f"tabhub, {secret[:-1]}, id",
        f"tabhub, {secret}0, id",
        f"tabhub, {secret}, not an id",
        f"tabhub, {secret}, {'x' * 65}",
        f"tabhub, {secret}, ../../x",
        f"tabhub, {secret}, id, more",
        f"mcp, {secret}, id",
        f"tabhub, {hub.token}, id",
        f"tabhub, {hub.person_key}, id",
        f"opentabs, {secret}, id",
        "tabhub, " + "a" * 30_000,
    ]
    host = ("Host", f"127.0.0.1:{hub.port}")
    for offer in offers:
        headers = [host, *([("Sec-WebSocket-Protocol", offer)] if offer is not None else [])]
        for query in ("", f"?token={secret}"):
            answer = await exchange(hub.port, head(hub, ("GET", "/ws" + query), [*headers, *hub.bearer.items()]))
            assert answer.status == 401, (offer, answer)
    assert hub.hub.browsers.links() == []
    assert secret[:-1] not in caplog.text


@pytest.mark.req("S002-health-01")
async def test_health_without_a_token_reports_only_liveness(hub: RunningHub) -> None:
    host = ("Host", f"127.0.0.1:{hub.port}")
    answer = await exchange(hub.port, head(hub, ("GET", "/health"), [host]))
    assert (answer.status, answer.body) == (200, b'{"status":"ok"}')
    wrong = await exchange(hub.port, head(hub, ("GET", "/health"), [host, ("Authorization", "Bearer x")]))
    assert wrong.body == answer.body


async def test_two_authorization_headers_are_rejected(hub: RunningHub) -> None:
    good, bad = ("Authorization", f"Bearer {hub.person_key}"), ("Authorization", "Bearer wrong")
    for pair in ([good, bad], [bad, good]):
        headers = [("Host", f"127.0.0.1:{hub.port}"), *pair]
        assert (await exchange(hub.port, head(hub, ("GET", "/tools"), headers))).status == 401


async def test_request_smuggled_in_a_body_is_not_served(hub: RunningHub) -> None:
    inner = request("POST", "/reload", [("Host", f"127.0.0.1:{hub.port}"), *hub.person.bearer.items()])
    host = ("Host", f"127.0.0.1:{hub.port}")
    both = [host, ("Content-Length", "5"), ("Transfer-Encoding", "chunked")]
    twice = [host, ("Content-Length", "0"), ("Content-Length", str(len(inner)))]
    for headers in (both, twice):
        async with wire(hub.port) as line:
            await line.send(request("POST", "/mcp", headers, b"0\r\n\r\n" + inner))
            assert (await line.head())[0] in (400, 401)
            await line.closed()
    assert hub.hub.reload.count == 0


@pytest.mark.parametrize("size", [100_000, 5_000_000])
async def test_oversized_headers_are_rejected_and_not_buffered(hub: RunningHub, size: int) -> None:
    async with wire(hub.port) as line:
        opening = request("POST", "/mcp", [("Host", f"127.0.0.1:{hub.port}"), *hub.bearer.items()])[:-2]
        with contextlib.suppress(ConnectionError):  # cut while we are still sending
            await line.send(opening + b"X-Filler: " + b"x" * size)
        rest = await line.closed()
        assert rest == b"" or rest.startswith(b"HTTP/1.1 4"), rest[:100]


async def test_a_route_has_one_spelling(hub: RunningHub) -> None:
    headers = [("Host", f"127.0.0.1:{hub.port}"), *hub.person.bearer.items()]
    for path in ("/mcp/", "/mcp/../mcp", "//mcp", "/MCP", "/mcp%00", "/%6dcp/x", "/tools/../health", "/health/"):
        answer = await exchange(hub.port, request("GET", path, headers))
        assert answer.status == 404, (path, answer)
