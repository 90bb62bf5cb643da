"""The files for nginx and Caddy with the programs themselves, in front of two nodes."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.harness.ports import free_port
from tests.harness.waiting import eventually
from tests.relay.independent import IndependentAgent, IndependentExtension
from tests.relay.natsd import nats_server
from tests.relay.process import relay_process
from tests.relay.world import SECRET, token

DEPLOY = Path(__file__).parents[2] / "deploy"
_JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
Make = Callable[[Path, int, list[str]], tuple[list[str], dict[str, str]]]


def program(name: str) -> str:
    """Where it is; `scripts/setup tests` installs it."""
    found = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    assert found is not None, f"{name} is missing: run scripts/setup tests"
    return found


def nginx(folder: Path, port: int, nodes: list[str]) -> tuple[list[str], dict[str, str]]:
    """The file as it is, without TLS, with these nodes, on this port."""
    text = (DEPLOY / "nginx.conf").read_text()
    text = re.sub(r"(?m)^ *server [0-9.]+:[0-9]+ (.*;)$", "", text, count=1)
    text = re.sub(r"server [0-9.]+:[0-9]+ (.*;)", lambda m: "".join(f"server {n} {m[1]}\n" for n in nodes), text)
    text = re.sub(r"(?m)^ *(listen|ssl_).*;$", "", text)
    text = text.replace("server_name ", f"listen 127.0.0.1:{port};\n    server_name ")
    places = "".join(
        f"{what}_temp_path {folder / what};\n" for what in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    whole = folder / "nginx.conf"
    whole.write_text(
        f"daemon off;\nmaster_process off;\npid {folder / 'pid'};\nerror_log stderr;\n"
        f"events {{}}\nhttp {{\naccess_log off;\n{places}{text}\n}}\n"
    )
    return [program("nginx"), "-p", str(folder), "-e", "stderr", "-c", str(whole)], {}


def caddy(folder: Path, port: int, nodes: list[str]) -> tuple[list[str], dict[str, str]]:
    """The file as it is; the environment names the nodes and, without TLS, the port."""
    whole = folder / "Caddyfile"
    text = (DEPLOY / "Caddyfile").read_text()
    whole.write_text(text.replace("{\n", "{\n\tadmin off\n", 1))
    env = {"RELAY_DOMAIN": f"http://127.0.0.1:{port}", "RELAY_NODES": " ".join(nodes), "HOME": str(folder)}
    env |= {"XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    return [program("caddy"), "run", "--config", str(whole), "--adapter", "caddyfile"], env


@asynccontextmanager
async def proxy(make: Make, folder: Path, nodes: list[str]) -> AsyncIterator[str]:
    port = free_port()
    words, env = make(folder, port, nodes)
    process = await asyncio.create_subprocess_exec(
        *words, env=os.environ | env, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        async with httpx2.AsyncClient(timeout=30) as http:
            await eventually(lambda: answers(http, f"http://127.0.0.1:{port}/healthz"))
        yield f"127.0.0.1:{port}"
    finally:
        process.kill()
        await process.wait()


async def answers(http: httpx2.AsyncClient, url: str) -> bool:
    try:
        return (await http.get(url)).status_code == 200
    except httpx2.HTTPError:
        return False


async def post(http: httpx2.AsyncClient, url: str, access: str, session: str | None, **message: Any) -> httpx2.Response:
    headers = {**_JSON, "Authorization": f"Bearer {access}"} | ({"Mcp-Session-Id": session} if session else {})
    return await http.post(f"http://{url}/mcp", json={"jsonrpc": "2.0", "id": 1, **message}, headers=headers)


@pytest.mark.parametrize("make", [nginx, caddy])
async def test_sessions_outlive_their_tokens_and_browsers_of_one_address_spread_over_the_nodes(
    make: Make, tmp_path: Path
) -> None:
    key = tmp_path / "relay.key"
    key.write_text(SECRET)
    admin = [free_port(), free_port()]
    async with AsyncExitStack() as stack:
        nats = await stack.enter_async_context(nats_server())
        words = ("--key-file", str(key), "--behind-proxy", "--bus", nats.url)
        started = [relay_process(tmp_path, *words, "--admin-port", str(port)) for port in admin]
        nodes = [(await stack.enter_async_context(each))[0].rpartition("/")[2] for each in started]
        url = await stack.enter_async_context(proxy(make, tmp_path, nodes))
        http = await stack.enter_async_context(httpx2.AsyncClient(timeout=30))

        params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        greeting = await post(http, url, token("ann"), None, method="initialize", params=params)
        assert greeting.status_code == 200
        session = greeting.headers["Mcp-Session-Id"]
        statuses = [
            (await post(http, url, token("ann", ttl=600 + n), session, method="tools/list")).status_code
            for n in range(12)  # each is a newer token, with which a proxy may choose another node
        ]
        assert statuses == [200] * 12

        browsers = [IndependentExtension(f"ws://{url}", token("bob"), instanceId=str(n)) for n in range(24)]
        for browser in browsers:
            await stack.enter_async_context(browser)
        figures = [(await http.get(f"http://127.0.0.1:{port}/status")).json() for port in admin]
        assert sum(each["browsers"] for each in figures) == 24
        assert min(each["browsers"] for each in figures) >= 3
        agent = await stack.enter_async_context(IndependentAgent(f"ws://{url}", token("bob")))
        await agent.handshake()
        await agent.listed(24)
        for browser in browsers[:6]:
            await agent.join(browser.extension_id)
            assert await agent.result("getTabs") == {"method": "getTabs", "params": {}}
            await agent.result("disconnect")
        assert (await http.get(f"http://{url}/metrics")).status_code == 404
        assert (await http.get(f"http://{url}/readyz")).status_code == 404
