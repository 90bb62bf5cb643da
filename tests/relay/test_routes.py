"""A relay node over real sockets: early refusals, malformed input, slow readers, and shutdown."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hmac
import http.client
import json
import logging
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.frames import Frame, Opcode
from websockets.typing import Origin

from tabhub.errors import SetupError
from tabhub.http.server import HttpServer
from tabhub.http.write_batch import WriteBatch
from tabhub.relay.engines.endpoint import RelayHttp
from tabhub.relay.engines.metadata import RelayUrl
from tabhub.relay.health import near
from tabhub.relay.node import Node
from tabhub.relay.revocations import Revocations
from tabhub.relay.routes import AdminApp
from tabhub.relay.run import listen
from tabhub.trust.jwt import Rules, read_keys
from tests.harness.waiting import until
from tests.relay.independent import IndependentAgent, IndependentExtension
from tests.relay.memory_bus import MemoryBus
from tests.relay.world import SECRET, RunningRelay, running_relay, token


@pytest.fixture
async def relay() -> AsyncIterator[RunningRelay]:
    async with running_relay() as running:
        yield running


async def get(relay: RunningRelay, path: str, **headers: str) -> tuple[int, bytes]:
    def ask() -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", relay.port, timeout=5)
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        found = answer.status, answer.read()
        connection.close()
        return found

    return await asyncio.to_thread(ask)


async def end_of(ws: ClientConnection) -> tuple[int, str]:
    """How a connection was closed; earlier messages are skipped."""
    async with asyncio.timeout(30):
        with contextlib.suppress(ConnectionClosed):
            while True:
                await ws.recv()
    return ws.close_code or 0, ws.close_reason or ""


@pytest.mark.parametrize("path", ["/extension", "/mcp"])
@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost", "chrome-extension.evil://x"])
async def test_web_pages_are_refused(relay: RunningRelay, path: str, origin: str) -> None:
    with pytest.raises(InvalidStatus) as refused:
        await connect(relay.url + path, origin=Origin(origin))
    assert refused.value.response.status_code == 403


async def test_foreign_hosts_and_unknown_urls_are_refused(relay: RunningRelay) -> None:
    with pytest.raises(InvalidStatus) as refused:
        await connect(f"{relay.url}/mcp", additional_headers={"Host": "evil.example"})
    assert refused.value.response.status_code in (400, 403)
    with pytest.raises(InvalidStatus) as refused:
        await connect(f"{relay.url}/other")
    assert refused.value.response.status_code == 404
    assert (await get(relay, "/extension"))[0] == 404
    assert (await get(relay, "/nothing"))[0] == 404


@pytest.mark.req("B32")
@pytest.mark.parametrize("cut", [None, 40])
@pytest.mark.parametrize("path", ["/extension", "/mcp"])
async def test_text_that_is_not_utf8_closes_the_connection_with_1007(
    relay: RunningRelay, path: str, cut: int | None
) -> None:
    data = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"\xff"}}'
    first, rest = data[:cut], data[cut:] if cut is not None else b""
    async with connect(relay.url + path) as ws:
        ws.transport.write(Frame(Opcode.TEXT, first, fin=not rest).serialize(mask=True, extensions=[]))
        if rest:
            ws.transport.write(Frame(Opcode.CONT, rest).serialize(mask=True, extensions=[]))
        assert (await end_of(ws))[0] == 1007
    await until(lambda: relay.node.sockets == {})


@pytest.mark.parametrize("path", ["/extension", "/mcp"])
async def test_malformed_messages_are_answered_with_their_code_and_the_connection_stays_open(
    relay: RunningRelay, path: str
) -> None:
    bad: list[tuple[bytes, int, Any]] = [
        (b"{", -32700, None),
        (b"[1]", -32600, None),
        (b'{"id":1,"method":"x"}', -32600, 1),
        (b'{"jsonrpc":"2.0","id":true,"method":"x"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"x"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":{},"method":"x"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":' + b"[" * 70 + b"]" * 70 + b"}}", -32700, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":NaN}}', -32700, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":1,"a":2}}', -32700, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":' + b"9" * 5000 + b"}}", -32700, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":"\\ud800"}}', -32700, None),
        (b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"x"}', -32700, None),
        ('{"jsonrpc":"2.0","id":1,"method":"x"}'.encode("utf-16-le"), -32700, None),
    ]
    async with connect(relay.url + path) as ws:
        if path == "/extension":
            await ws.recv()
        for data, code, ident in bad:
            ws.transport.write(Frame(Opcode.TEXT, data).serialize(mask=True))
            answer = json.loads(await ws.recv())
            assert (answer["error"]["code"], answer["id"]) == (code, ident), data[:60]
        if path == "/mcp":
            await ws.send(json.dumps(handshake(token())))
            assert json.loads(await ws.recv())["result"]["authenticated"] is True


def handshake(access: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": "mcp_handshake", "params": {"accessToken": access}}


@pytest.mark.parametrize("path", ["/extension", "/mcp"])
async def test_messages_that_are_too_large_or_not_text_end_the_connection(relay: RunningRelay, path: str) -> None:
    async with connect(relay.url + path, max_size=None) as ws:
        with contextlib.suppress(ConnectionClosed):  # it may be refused while it is still being sent
            await ws.send("x" * (10 * 1024 * 1024 + 1))
        assert (await end_of(ws))[0] == 1009
    async with connect(relay.url + path) as ws:
        await ws.send(b"{}")
        assert (await end_of(ws))[0] == 4002
    await until(lambda: relay.node.sockets == {})


async def test_ten_megabytes_are_forwarded_both_ways(relay: RunningRelay) -> None:
    async with IndependentExtension(relay.url, token()) as browser, IndependentAgent(relay.url, token()) as agent:
        await agent.ready()
        browser.handle = lambda method, params: {"back": params["text"]}
        text = "x" * (10 * 1024 * 1024 - 400)
        assert (await agent.result("type", {"text": text}))["back"] == text


def bad_tokens() -> dict[str, str]:
    """A token for every kind of invalidity."""
    rsa_key = rsa.generate_private_key(65537, 2048)
    good = {"user_id": "ann", "aud": "tabhub-relay", "exp": 9_999_999_999, "iss": "us"}
    public = json.loads(jwt.get_algorithm_by_name("RS256").to_jwk(rsa_key.public_key()))

    def made(key: Any = SECRET, algorithm: str = "HS256", headers: dict[str, Any] | None = None, **claims: Any) -> str:
        payload = {name: value for name, value in {**good, **claims}.items() if value is not None}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about short keys, which are the point here
            return jwt.encode(payload, key, algorithm=algorithm, headers=headers)

    return {
        "unsigned": made(None, "none"),
        "expired": made(exp=1),
        "not yet valid": made(nbf=9_999_999_998),
        "without exp": made(exp=None),
        "wrong audience": made(aud="other"),
        "wrong issuer": made(iss="them"),
        "without a user": made(user_id=None),
        "another algorithm": made(SECRET, "HS512"),
        "a header's key": made(rsa_key, "RS256", {"jwk": public}),
        "a header's address": made(rsa_key, "RS256", {"jku": "https://evil.example", "kid": "x"}),
        "a short key": made("short"),
        "another key": made("x" * 32),
        "no token at all": "hello",
    }


def confused(public: bytes) -> str:
    """A token signed with a public key as if that were a shared secret."""
    parts = (
        {"alg": "HS256", "typ": "JWT"},
        {"user_id": "ann", "aud": "tabhub-relay", "exp": 9_999_999_999, "iss": "us"},
    )
    payload = ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts)
    mac = hmac.digest(public, payload.encode(), "sha256")
    return f"{payload}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"


async def refused(relay: RunningRelay, path: str, name: str, access: str) -> None:
    """Checks that a token is refused, with the same message for every reason."""
    async with asyncio.timeout(30), connect(relay.url + path) as ws:
        if path == "/mcp":
            await ws.send(json.dumps(handshake(access)))
            error = json.loads(await ws.recv())["error"]
            assert (error["code"], error["message"]) == (-32000, "Authentication failed: Invalid token"), name
        else:
            await ws.recv()
            credentials = {"name": "Chrome", "accessToken": access}
            await ws.send(json.dumps({"jsonrpc": "2.0", "id": "proxy:1", "result": credentials}))
        assert await end_of(ws) == (4001, "Authentication failed: Invalid token"), name


@pytest.mark.req("B10", "S003-auth-02")
@pytest.mark.parametrize("path", ["/extension", "/mcp"])
async def test_an_invalid_token_closes_the_connection_with_one_message(path: str) -> None:
    # The authentication timeout is not what ends it.
    async with running_relay(rules=Rules(issuer="us"), relay_auth=600.0) as relay:
        for name, access in bad_tokens().items():
            await refused(relay, path, name, access)
    pem = (
        rsa.generate_private_key(65537, 2048).public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    )
    async with running_relay(rules=Rules(issuer="us"), key=pem.decode(), relay_auth=600.0) as relay:
        for name, key in {"confused": pem, "confused, without its last line's end": pem.strip()}.items():
            await refused(relay, path, name, confused(key))
    with pytest.raises(SetupError, match="needs 32 or more"):
        read_keys(b"short")


async def test_a_client_that_never_authenticates_is_disconnected() -> None:
    async with (
        running_relay(relay_auth=0.05) as relay,
        connect(f"{relay.url}/mcp") as agent,
        connect(f"{relay.url}/extension") as browser,
    ):
        assert await end_of(agent) == (4001, "not authenticated in time")
        assert (await end_of(browser))[0] == 4001


@pytest.mark.req("F4")
async def test_only_a_client_that_does_not_read_is_disconnected() -> None:
    text = "x" * 200_000
    async with (
        running_relay(relay_queue=1024 * 1024) as relay,
        IndependentExtension(relay.url, token(), "Good") as browser,
        IndependentAgent(relay.url, token()) as good,
        IndependentAgent(relay.url, token()) as other,
        connect(f"{relay.url}/mcp", max_queue=1) as deaf,
        connect(f"{relay.url}/extension", max_queue=1) as deaf_browser,
    ):
        await good.handshake()
        await good.join(browser.extension_id)
        await deaf.send(json.dumps(handshake(token())))
        await deaf.recv()
        params = {"extension_id": browser.extension_id}
        await deaf.send(json.dumps({"jsonrpc": "2.0", "id": 2, "method": "connect", "params": params}))
        await until(lambda: len(relay.node.state.tables.connections) == 2)
        deaf.transport.pause_reading()
        for number in range(100):
            await browser.notify("noise", {"n": number, "text": text})
            assert (await good.notified("noise"))["n"] == number
        await until(lambda: len(relay.node.state.tables.connections) == 1)

        await deaf_browser.recv()
        credentials = {"name": "Deaf", "accessToken": token()}
        await deaf_browser.send(json.dumps({"jsonrpc": "2.0", "id": "proxy:1", "result": credentials}))
        await deaf_browser.recv()
        await other.handshake()
        await other.join(next(b["id"] for b in await other.browsers() if b["name"] == "Deaf"))
        deaf_browser.transport.pause_reading()
        calls = [await other.begin("type", {"text": text}) for _ in range(100)]
        await other.notified("disconnected")
        errors = [(await call)["error"] for call in calls]
        assert {error["code"] for error in errors} <= {-32006, -32000}
        assert errors[0]["data"]["outcome"] == "unknown"
        assert await good.result("getTabs") == {"method": "getTabs", "params": {}}
        deaf.transport.abort()
        deaf_browser.transport.abort()


async def test_a_dead_peer_is_detected() -> None:
    async with (
        running_relay(relay_ping=0.4) as relay,
        IndependentAgent(relay.url, token()) as agent,
        connect(f"{relay.url}/extension") as dead,
    ):
        await agent.handshake()
        dead.transport.pause_reading()  # pings are not answered
        await until(lambda: not relay.node.state.tables.browsers)
        dead.transport.abort()
        assert await agent.browsers() == []


async def test_at_shutdown_a_node_asks_both_sides_to_reconnect(relay: RunningRelay) -> None:
    async with IndependentExtension(relay.url, token()) as browser, IndependentAgent(relay.url, token()) as agent:
        await agent.ready()
        relay.node.shut_down()
        assert (await agent.notified("disconnected"))["reason"] == "The relay restarts: reconnect"
        assert (await browser.notified("status"))["peer_count"] == 1
        assert (await browser.notified("status"))["connected"] is False
        assert await agent.closed() == (1012, "reconnect")
        with pytest.raises(InvalidStatus) as refused:
            await connect(f"{relay.url}/mcp")
        assert refused.value.response.status_code == 503
        assert (await get(relay, "/readyz"))[0] == 503


async def test_a_full_node_refuses_connections() -> None:
    async with running_relay(relay_clients=1) as relay, connect(f"{relay.url}/mcp"):
        with pytest.raises(InvalidStatus) as refused:
            await connect(f"{relay.url}/mcp")
        assert refused.value.response.status_code == 503


@asynccontextmanager
async def admin_port(node: Node) -> AsyncIterator[RunningRelay]:
    batch = WriteBatch()
    engines = RelayHttp(node, RelayUrl("http", 0), batch).engines
    with listen("127.0.0.1", 0) as sock:
        port: int = sock.getsockname()[1]
        server = HttpServer(AdminApp(node, engines, port=port), node.limits, batch)
        await server.start([sock])
        yield RunningRelay(node, port, server)
        await server.stop(0.0)


async def test_health_metrics_and_status(relay: RunningRelay) -> None:
    async with (
        admin_port(relay.node) as admin,
        IndependentExtension(relay.url, token()),
        IndependentAgent(relay.url, token()) as agent,
    ):
        await agent.ready()
        await agent.result("getTabs")
        assert await get(relay, "/healthz") == (200, b'{"status":"ok"}')
        assert (await get(relay, "/readyz"))[0] == 200
        status, page = await get(admin, "/metrics")
        assert status == 200
        assert b"tabhub_relay_forwarded_total 1.0" in page
        assert b"tabhub_relay_browsers 1.0" in page
        figures = json.loads((await get(admin, "/status"))[1])
        assert (figures["agents"], figures["browsers"], figures["users"], figures["connections"]) == (1, 1, 1, 1)


async def test_a_node_whose_list_of_revoked_tokens_is_full_says_so() -> None:
    async with running_relay(revocations=Revocations(None, 1)) as relay, admin_port(relay.node) as admin:
        relay.node.tokens_revoked(["one 99999999999", "two 99999999999"])
        assert "1 revoked tokens are not refused" in json.loads((await get(relay, "/readyz"))[1])["degraded"][0]
        assert b"tabhub_relay_revocations_refused 1.0" in (await get(admin, "/metrics"))[1]


@pytest.mark.req("F25")
async def test_a_node_without_its_bus_stays_ready_and_says_what_does_not_work() -> None:
    bus = MemoryBus("here")
    async with running_relay(bus=bus) as relay, admin_port(relay.node) as admin:
        assert json.loads((await get(relay, "/readyz"))[1]) == {"ready": True, "reasons": [], "degraded": []}
        bus.cut_off(True)
        status, body = await get(relay, "/readyz")
        assert (status, json.loads(body)["ready"]) == (200, True)
        assert "the bus is unavailable" in json.loads(body)["degraded"][0]
        _, page = await get(admin, "/metrics")
        assert b"tabhub_relay_ready 1.0" in page
        assert b"tabhub_relay_degraded 1.0" in page
        assert b"tabhub_relay_bus_healthy 0.0" in page


_FORWARDING = ("Via", "Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP", "CF-Connecting-IP")


@pytest.mark.parametrize("header", [None, *_FORWARDING])
async def test_the_port_of_clients_has_no_metrics_whatever_the_headers_say(
    relay: RunningRelay, header: str | None
) -> None:
    for path in ("/metrics", "/status"):
        status, text = await get(relay, path, **({header: "127.0.0.1"} if header is not None else {}))
        assert status == 404
        assert b"--admin-port" in text


async def test_the_admin_port_refuses_web_pages_and_other_hosts_and_serves_nothing_else(relay: RunningRelay) -> None:
    async with admin_port(relay.node) as admin:
        for path in ("/metrics", "/status"):
            assert (await get(admin, path, Host=f"evil.example:{admin.port}"))[0] == 403
            assert (await get(admin, path, Origin="https://evil.example"))[0] == 403
        assert (await get(admin, "/mcp"))[0] == 404
        with pytest.raises(InvalidStatus) as refused:
            await connect(f"{admin.url}/mcp")
        assert refused.value.response.status_code == 404


@pytest.mark.parametrize(
    ("peer", "answered"),
    [
        ("127.0.0.1", True),
        ("::1", True),
        ("10.1.2.3", True),
        ("::ffff:10.1.2.3", True),
        ("203.0.114.9", False),
        ("::ffff:203.0.114.9", False),
        ("2606:4700::1", False),
        (None, False),
    ],
)
def test_status_and_metrics_are_for_private_networks(peer: str | None, answered: bool) -> None:
    assert near(peer) is answered


async def test_no_token_reaches_the_log(relay: RunningRelay, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    access, bad = token(), token(ttl=-1000)
    async with IndependentExtension(relay.url, access), IndependentAgent(relay.url, access) as agent:
        await agent.ready()
        async with IndependentAgent(relay.url, bad) as refused:
            await refused.error("mcp_handshake", {"accessToken": bad})
    assert "authentication_failed" in caplog.text
    for record in caplog.records:
        if record.name.startswith("tabhub"):
            line = f"{record.getMessage()} {getattr(record, 'facts', '')}"
            assert access not in line
            assert bad not in line


@pytest.mark.req("S003-codes-05")
async def test_an_internal_error_is_answered(relay: RunningRelay, monkeypatch: pytest.MonkeyPatch) -> None:
    async with IndependentAgent(relay.url, token()) as agent:
        await agent.handshake()

        def fail(*_: object) -> None:
            raise RuntimeError("a slip")

        monkeypatch.setattr(relay.node.state._agents, "_find_browsers", fail)
        assert (await agent.error("list_extensions"))["code"] == -32603
        monkeypatch.undo()
        assert await agent.browsers() == []
