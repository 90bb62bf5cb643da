"""A hostile external server that names URLs of this machine for its login: the hub does not request them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.harness.hub import running_hub


@asynccontextmanager
async def serving(host: str, answers: dict[str, tuple[str, str]], asked: list[str]) -> AsyncIterator[int]:
    """A web server: by path prefix, the head and body of its response; `{port}` is its own."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        asked.append(head.split("\r\n")[0])
        path = head.split(" ")[1]
        known = next((answer for prefix, answer in answers.items() if path.startswith(prefix)), ("404 No", ""))
        status, body = (part.replace("{port}", str(port)) for part in known)
        text = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\n"
        writer.write(f"{text}content-length: {len(body)}\r\n\r\n{body}".encode())
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, host, 0) as server:
        port = server.sockets[0].getsockname()[1]
        yield port


PLACES = ["http://127.0.0.1:{trap}", "http://localhost:{trap}", "http://[::1]:{trap}", "http://x.localhost:{trap}"]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("way", ["metadata", "server", "endpoints"])
async def test_oauth_discovery_does_not_reach_this_machine(tmp_path: Path, place: str, way: str) -> None:
    visits: list[str] = []
    asked: list[str] = []
    host = "::1" if "[::1]" in place else "127.0.0.1"
    async with serving(host, {}, visits) as trap:
        inside = place.replace("{trap}", str(trap))
        own = "http://server.example:{port}"
        named = f'resource_metadata="{inside}/secret"' if way == "metadata" else f'resource_metadata="{own}/about"'
        about = {"resource": f"{own}/mcp", "authorization_servers": [inside if way == "server" else own]}
        metadata = {
            "issuer": own,
            "authorization_endpoint": f"{own}/authorize",
            "token_endpoint": f"{inside}/token",
            "registration_endpoint": f"{inside}/register",
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
        }
        answers = {
            "/mcp": (f"401 No\r\nwww-authenticate: Bearer {named}", "{}"),
            "/about": ("200 OK", json.dumps(about)),
            "/.well-known/oauth-authorization-server": ("200 OK", json.dumps(metadata)),
        }
        async with (
            serving("127.0.0.2", answers, asked) as port,
            running_hub(tmp_path, upstreamHosts=["127.0.0.2"]) as hub,
        ):

            async def look_up(host: str, _port: int) -> list[str]:
                return ["127.0.0.2"] if host == "server.example" else ["127.0.0.1"]

            hub.hub.upstream.pool.guard.look_up = look_up
            (facts,) = await hub.hub.upstream.add({"hostile": {"url": f"http://server.example:{port}/mcp"}})
            assert facts["state"] != "ready"
    assert asked
    assert visits == []
