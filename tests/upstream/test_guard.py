"""Which addresses external servers may have (B20)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tabhub.upstream.failures import Blocked
from tabhub.upstream.guard import AddressGuard
from tests.harness.hub import RunningHub, until
from tests.upstream.servers import free_port, process, state

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
    ],
)
def test_private_and_link_local_addresses_are_refused(host: str, address: str) -> None:
    with pytest.raises(Blocked) as refused:
        AddressGuard().check(host, address)
    assert host in refused.value.text()
    assert "upstreamHosts" in refused.value.text()


@pytest.mark.parametrize(
    ("host", "address"),
    [("localhost", "127.0.0.1"), ("localhost", "::1"), ("127.0.0.1", "127.0.0.1"), ("app.localhost", "::1")],
)
def test_this_machine_is_reached_where_the_person_named_it(host: str, address: str) -> None:
    AddressGuard().check(host, address)
    AddressGuard().check("wide.example", PUBLIC)


@pytest.mark.parametrize("allowed", ["wiki.corp", "WIKI.corp", "10.1.2.3", "10.0.0.0/8"])
def test_a_host_the_person_allowed_is_reached(allowed: str) -> None:
    AddressGuard(lambda: [allowed]).check("wiki.corp", "10.1.2.3")


async def test_one_bad_address_of_a_name_refuses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    import asyncio

    async def found(*_: Any, **__: Any) -> list[Any]:
        return [(2, 1, 6, "", (PUBLIC, 443)), (2, 1, 6, "", ("10.0.0.1", 443))]

    class Loop:
        getaddrinfo = staticmethod(found)

    monkeypatch.setattr(asyncio, "get_running_loop", Loop)
    with pytest.raises(Blocked, match=r"10\.0\.0\.1"):
        await AddressGuard().resolve("two.example", 443)


_REDIRECT = """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(307)
        self.send_header("location", "http://169.254.169.254/latest/meta-data")
        self.send_header("content-length", "0")
        self.end_headers()
    def log_message(self, *_):
        pass
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


@pytest.mark.req("B20")
async def test_bad_addresses_redirects_and_shell_words_come_to_nothing(hub: RunningHub, tmp_path: Any) -> None:
    upstream = hub.hub.upstream
    for url in ("http://169.254.169.254/mcp", "http://10.0.0.5/mcp", "http://[::ffff:10.0.0.5]/mcp"):
        with pytest.raises(Blocked):
            await upstream.add({"bad": {"url": url}})
    with pytest.raises(Exception, match="must begin with http"):
        await upstream.add({"bad": {"url": "file:///etc/passwd"}})
    assert upstream.all() == []
    import sys

    port = free_port()
    async with process(sys.executable, "-c", _REDIRECT, str(port), port=port) as url:
        (facts,) = await upstream.add(json.dumps({"redirects": {"url": url}}))
        assert facts["state"] == "waiting"
        assert "redirects elsewhere, which is not followed" in facts["error"]
    mark = tmp_path / "shell-was-here"
    (facts,) = await upstream.add({"shell": {"command": f"true; touch {mark}"}})
    assert "is not found" in facts["error"]
    (facts,) = await upstream.add({"shell": {"command": "true", "args": [";", "touch", str(mark), "$(touch x)"]}})
    await until(lambda: state(hub, "shell") == "waiting")
    assert not mark.exists()
