"""A relay's keys: from a file, the environment or a URL, and their rotation at run time."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519

from tabhub.errors import SetupError
from tabhub.limits import DEFAULTS
from tabhub.relay.bus.interface import Bus
from tabhub.relay.keyring import Keyring
from tabhub.relay.node import Node
from tabhub.relay.revocations import Revocations, append
from tests.harness.waiting import until
from tests.relay.independent import IndependentAgent
from tests.relay.world import running_relay, token


class Published:
    """A JWKS URL whose response can be changed."""

    def __init__(self) -> None:
        self.status = 200
        self.body = b"{}"
        self.asked = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked += 1
                self.send_response(outer.status)
                if outer.status == 302:
                    self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", str(len(outer.body)))
                self.end_headers()
                self.wfile.write(outer.body)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/keys"

    def publish(self, *keys: tuple[str, ed25519.Ed25519PrivateKey]) -> None:
        algorithm = jwt.get_algorithm_by_name("EdDSA")
        listed = [{**json.loads(algorithm.to_jwk(key.public_key())), "kid": kid} for kid, key in keys]
        self.body = json.dumps({"keys": listed}).encode()


@pytest.fixture
def published() -> Iterator[Published]:
    made = Published()
    thread = threading.Thread(target=made.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.server.shutdown()
    thread.join()
    made.server.server_close()


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def signed(key: ed25519.Ed25519PrivateKey, kid: str) -> str:
    claims = {"sub": "ann", "aud": "tabhub-relay", "exp": time.time() + 60}
    return jwt.encode(claims, key, algorithm="EdDSA", headers={"kid": kid})


async def test_published_keys_rotate_without_a_restart_and_are_not_fetched_often(published: Published) -> None:
    first, second = ed25519.Ed25519PrivateKey.generate(), ed25519.Ed25519PrivateKey.generate()
    published.publish(("a", first))
    clock = Clock()
    ring = Keyring(jwks_url=published.url, clock=clock)
    assert await ring.fetch()
    assert [key.kid for key in ring.keys] == ["a"]
    published.publish(("a", first), ("b", second))
    assert all(await asyncio.gather(ring.fetch(), ring.fetch(), ring.fetch()))  # at once, and once for all three
    assert published.asked == 2
    assert [key.kid for key in ring.keys] == ["a", "b"]
    assert [await ring.fetch() for _ in range(6)] == [True] * 4 + [False] * 2
    assert published.asked == 6
    clock.now += 10
    assert [await ring.fetch() for _ in range(2)] == [True, False]
    assert await ring.fetch(at_once=True)
    published.status = 500
    clock.now += 10
    assert not await ring.fetch()
    assert [key.kid for key in ring.keys] == ["a", "b"]
    assert not ring.expired()
    clock.now += 900
    assert ring.expired()
    published.status = 200
    published.publish(("b", second))
    assert await ring.fetch()
    assert [key.kid for key in ring.keys] == ["b"]  # a withdrawn key


@pytest.mark.parametrize(
    ("status", "body"), [(302, b"{}"), (200, b"{"), (200, b"x" * (1024 * 1024 + 1)), (200, b'{"keys":[{"kty":"oct"}]}')]
)
async def test_an_invalid_response_leaves_the_keys_unchanged(published: Published, status: int, body: bytes) -> None:
    published.status, published.body = status, body
    ring = Keyring(jwks_url=published.url, clock=Clock())
    assert not await ring.fetch()
    assert ring.keys == ()
    assert published.asked == 1


async def test_a_token_with_a_new_key_is_accepted_at_once_after_one_fetch(published: Published) -> None:
    first, second = ed25519.Ed25519PrivateKey.generate(), ed25519.Ed25519PrivateKey.generate()
    published.publish(("a", first))
    clock = Clock()
    node = Node(
        Bus("n"),
        Keyring(jwks_url=published.url, clock=clock),
        limits=replace(DEFAULTS),
    )
    sent: list[dict[str, Any]] = []

    class Socket:
        def send_text(self, data: bytes) -> None:
            sent.append(json.loads(data))

        def send_close(self, code: int, reason: str) -> None:
            sent.append({"closed": code})

    await node.start()
    published.publish(("a", first), ("b", second))
    client = node.attach("agent", Socket())
    shake = {"jsonrpc": "2.0", "id": 1, "method": "mcp_handshake", "params": {"accessToken": signed(second, "b")}}
    client.receive(json.dumps(shake).encode())
    await until(lambda: bool(sent))
    assert sent[0]["result"]["user_id"] == "ann"
    other = node.attach("agent", Socket())
    shake["params"] = {"accessToken": signed(ed25519.Ed25519PrivateKey.generate(), "c")}
    other.receive(json.dumps(shake).encode())
    await until(lambda: len(sent) == 3)
    assert sent[2] == {"closed": 4001}
    assert published.asked == 3
    await node.stop()


def test_a_changed_key_file_is_reloaded_and_an_invalid_one_is_ignored(tmp_path: Path) -> None:
    file = tmp_path / "relay.key"
    file.write_bytes(b"a" * 32)
    ring = Keyring(file=file, env={"TABHUB_RELAY_KEY": "e" * 32}, clock=Clock())
    assert [key.verifying for key in ring.keys] == [b"a" * 32, b"e" * 32]
    file.write_bytes(b"b" * 40)
    ring.reload()
    assert ring.keys[0].verifying == b"b" * 40
    file.write_bytes(b"short")
    ring.reload()
    file.unlink()
    ring.reload()
    assert ring.keys[0].verifying == b"b" * 40


def test_a_missing_key_or_file_and_an_insecure_url_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="needs a key"):
        Keyring(clock=Clock())
    with pytest.raises(SetupError, match="Key file not found"):
        Keyring(file=tmp_path / "nothing", clock=Clock())
    with pytest.raises(SetupError, match=r"Cannot read the key file .*: Is a directory"):
        Keyring(file=tmp_path, clock=Clock())
    for url in ("http://keys.example/x", "file:///etc/passwd", "ftp://x", "https://[x", "https://x:99999/"):
        with pytest.raises(SetupError, match="JWKS URL"):
            Keyring(jwks_url=url, clock=Clock())


async def test_a_revoked_token_is_disconnected_soon(tmp_path: Path) -> None:
    file = tmp_path / "revoked"
    access = token("ann", ident="stolen")
    async with running_relay(revocations=Revocations(file)) as relay, IndependentAgent(relay.url, access) as agent:
        await agent.handshake()
        append(file, "stolen", int(time.time()) + 600)
        assert await agent.closed() == (4001, "the token was revoked")
        async with IndependentAgent(relay.url, access) as again:
            await again.error("mcp_handshake", {"accessToken": access})
            assert (await again.closed())[0] == 4001
