"""Which addresses external servers may have (B20)."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import re
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tabhub.errors import AddressBlocked
from tabhub.upstream.transport.address_guard import AddressGuard
from tests.harness.agent import Agent
from tests.harness.hub import RunningHub, running_hub
from tests.harness.ports import free_port
from tests.harness.waiting import until
from tests.upstream.servers import FIXTURES, process, state, text

PUBLIC = "93.184.216.34"


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("169.254.169.254", "169.254.169.254"),
        ("metadata.example", "169.254.169.254"),
        ("10.0.0.5", "10.0.0.5"),
        ("192.168.1.1", "192.168.1.1"),
        ("intern.example", "172.16.0.9"),
        ("rebound.example", "127.0.0.1"),
        ("2130706433", "127.0.0.1"),
        ("six.example", "::1"),
        ("mapped.example", "::ffff:169.254.169.254"),
        ("nat.example", "64:ff9b::a9fe:a9fe"),
        ("tunnel.example", "2002:a00:1::1"),
        ("local.example", "fe80::1%eth0"),
        ("unique.example", "fd00::1"),
        ("carrier.example", "100.64.0.1"),
        ("any.example", "0.0.0.0"),
        ("many.example", "224.0.0.1"),
        ("cloud.example", "192.0.0.192"),
        ("site.example", "fec0::1"),
        ("nat-here.example", "64:ff9b:1::7f00:1"),
        ("compatible.example", "::127.0.0.1"),
        ("translated.example", "::ffff:0:127.0.0.1"),
    ],
)
def test_private_and_link_local_addresses_are_refused(host: str, address: str) -> None:
    with pytest.raises(AddressBlocked) as refused:
        AddressGuard().check(host, address)
    assert host in refused.value.text()
    assert "upstreamHosts" in refused.value.text()


@pytest.mark.parametrize(
    ("host", "address"),
    [("localhost", "127.0.0.1"), ("localhost", "::1"), ("127.0.0.1", "127.0.0.1"), ("app.localhost", "::1")],
)
def test_this_machine_is_allowed_by_its_own_names(host: str, address: str) -> None:
    AddressGuard().check(host, address)
    AddressGuard().check("wide.example", PUBLIC)


@pytest.mark.parametrize("allowed", ["wiki.corp", "WIKI.corp", "10.1.2.3", "10.0.0.0/8"])
def test_an_allowed_host_is_accepted(allowed: str) -> None:
    AddressGuard(lambda: [allowed]).check("wiki.corp", "10.1.2.3")


async def test_a_name_with_one_blocked_address_is_refused() -> None:
    async def two(_host: str, _port: int) -> list[str]:
        return [PUBLIC, "10.0.0.1"]

    with pytest.raises(AddressBlocked, match=r"10\.0\.0\.1"):
        await AddressGuard(look_up=two).resolve("two.example", 443)


class Trap:
    """A listener that must not receive connections; it counts them."""

    def __init__(self) -> None:
        self.visits = 0

    @asynccontextmanager
    async def at(self, host: str, port: int = 0) -> AsyncIterator[int]:
        def visited(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self.visits += 1
            writer.close()

        async with await asyncio.start_server(visited, host, port) as server:
            yield server.sockets[0].getsockname()[1]


@pytest.mark.parametrize("host", ["2130706433", "0x7f000001", "127.1", "017700000001", "0"])
async def test_other_spellings_of_this_machine_are_refused(hub: RunningHub, host: str) -> None:
    trap = Trap()
    async with trap.at("127.0.0.1") as port:
        with pytest.raises(AddressBlocked, match="which servers may not have"):
            await hub.hub.upstream.add({"trap": {"url": f"http://{host}:{port}/mcp"}})
    assert trap.visits == 0


async def test_a_name_that_the_system_resolves_to_this_machine_is_refused(hub: RunningHub) -> None:
    """Names that only the system's resolver knows, unlike `localhost`."""
    leading = [name for name in (socket.gethostname(), "ip6-localhost", "localhost.localdomain") if _leads_here(name)]
    assert leading
    for name in leading:
        with pytest.raises(AddressBlocked, match=re.escape(name)):
            await hub.hub.upstream.add({"own": {"url": f"http://{name}:9/mcp"}})


def _leads_here(name: str) -> bool:
    try:
        facts = socket.getaddrinfo(name, 80, type=socket.SOCK_STREAM)
    except OSError:
        return False
    return not any(ipaddress.ip_address(str(each[4][0]).partition("%")[0]).is_global for each in facts)


@pytest.mark.req("B20")
async def test_a_name_that_resolves_differently_later_is_refused(tmp_path: Path) -> None:
    """A server the person allowed, whose name resolves to this machine between the check and the connection, and later
    on."""
    trap, port, turned = Trap(), free_port(), [False]
    looks: list[str] = []

    async def turning(host: str, _port: int) -> list[str]:
        looks.append("127.0.0.1" if turned[0] else "127.0.0.2")
        turned[0] = turned[0] or (len(looks) == 1 and between)
        return [looks[-1]]

    settings = {"upstreamHosts": ["127.0.0.2"], "limits": {"upstream_backoff": 0.05, "upstream_backoff_max": 0.1}}
    fixture = str(FIXTURES / "broken_http.py")
    started = process(sys.executable, fixture, "http", str(port), "127.0.0.2", port=port, host="127.0.0.2")
    async with started, trap.at("127.0.0.1", port), running_hub(tmp_path, **settings) as hub, Agent(hub) as agent:
        hub.hub.upstream.pool.guard.look_up = turning
        url = f"http://turning.example:{port}/mcp"
        between = False
        (facts,) = await hub.hub.upstream.add({"later": {"url": url}})
        assert facts["state"] == "ready", facts
        turned[0] = True
        assert (
            text((await agent.call("mcp__later__fine"))["result"]) == "fine 1"
        )  # the checked address is the one that is used
        await hub.hub.upstream.set("later", enabled=False)
        facts = await hub.hub.upstream.set("later", enabled=True)
        assert "leads to 127.0.0.1" in facts["error"]
        turned[0], between = False, True
        looks.clear()
        (facts,) = await hub.hub.upstream.add({"between": {"url": url}})
        assert "leads to 127.0.0.1" in facts["error"]
        assert looks[:2] == ["127.0.0.2", "127.0.0.1"]
    assert trap.visits == 0


_REDIRECT = """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(307)
        self.send_header("location", sys.argv[2])
        self.send_header("content-length", "0")
        self.end_headers()
    def log_message(self, *_):
        pass
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


@pytest.mark.req("B20")
async def test_blocked_addresses_redirects_and_shell_syntax_have_no_effect(hub: RunningHub, tmp_path: Any) -> None:
    upstream = hub.hub.upstream
    for url in ("http://169.254.169.254/mcp", "http://10.0.0.5/mcp", "http://[::ffff:10.0.0.5]/mcp"):
        with pytest.raises(AddressBlocked):
            await upstream.add({"bad": {"url": url}})
    with pytest.raises(Exception, match="must begin with http"):
        await upstream.add({"bad": {"url": "file:///etc/passwd"}})
    assert upstream.all() == []
    trap = Trap()
    async with trap.at("127.0.0.2") as inner:
        for target in ("http://169.254.169.254/latest/meta-data", f"http://127.0.0.2:{inner}/mcp"):
            port = free_port()
            async with process(sys.executable, "-c", _REDIRECT, str(port), target, port=port) as url:
                (facts,) = await upstream.add(json.dumps({"redirects": {"url": url}}))
                assert facts["state"] == "waiting"
                assert "redirects elsewhere, which is not followed" in facts["error"]
                await upstream.remove("redirects")
    assert trap.visits == 0
    mark = tmp_path / "shell-was-here"
    (facts,) = await upstream.add({"shell": {"command": f"true; touch {mark}"}})
    assert "was not found" in facts["error"]
    (facts,) = await upstream.add({"shell": {"command": "true", "args": [";", "touch", str(mark), "$(touch x)"]}})
    await until(lambda: state(hub, "shell") == "waiting")
    assert not mark.exists()
