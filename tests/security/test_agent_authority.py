"""An agent that holds only its token, or the secret of version 0.1.0, and tries to reach what is the person's."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tabhub.core.registry import Entry
from tabhub.core.tools import CallContext, Source, Tool, ToolResult
from tabhub.store import old_secret
from tabhub.store.tokens import create
from tests.harness.agent import ACCEPT, Agent, client, message, stateless
from tests.harness.bridge_client import BridgeClient, connected
from tests.harness.hub import Address, RunningHub, running_hub
from tests.harness.panel import Panel
from tests.harness.raw import Answer, Header, exchange, request

OLD_SECRET = "0d" * 32
LONG = Source("plugin", "long")
OURS = "chrome-extension://fbfngjfcbbkgoepkeecjnefoncaahigp"
UPGRADE: list[Header] = [
    ("Connection", "Upgrade"),
    ("Upgrade", "websocket"),
    ("Sec-WebSocket-Version", "13"),
    ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
]
PANEL_METHODS = (
    "config.getState",
    "config.set",
    "config.setToolPermission",
    "config.setSkipPermissions",
    "sites.set",
    "grants.revoke",
    "upstream.add",
    "plugin.install",
    "sessions.end",
    "hub.pause",
    "audit.list",
    "agent.send",
    "confirmation.response",
)


@dataclass(frozen=True, slots=True)
class Attacked:
    """A hub with a person at the panel, an agent at work, and a call that waits for approval."""

    hub: RunningHub
    panel: Panel
    attacker: Address
    victim: Agent
    result: str
    """The handle of a long result of the victim."""
    approval: str

    def send(self, method: str, path: str, *headers: Header, body: Any = None) -> Any:
        """One request, written by hand, with the attacker's token unless the headers say otherwise."""
        data = b"" if body is None else json.dumps(body).encode()
        sent = [("Host", f"127.0.0.1:{self.hub.port}"), ("Content-Length", str(len(data)))]
        if not any(name.lower() == "authorization" for name, _ in headers):
            sent += self.attacker.bearer.items()
        return exchange(self.hub.port, request(method, path, [*sent, *headers], data))

    def unharmed(self) -> None:
        """Nothing of what was tried has taken effect."""
        hub = self.hub.hub
        assert [each["id"] for each in hub.approvals.pending()] == [self.approval]
        assert hub.reload.count == 0
        assert hub.upstream.all() == []
        assert hub.engine.pause.paused is None
        assert hub.settings.current.skip_permissions is False
        assert [link.browser_id for link in hub.browsers.links()] == ["fake-browser"]
        assert hub.sessions.get(self.victim.headers["Mcp-Session-Id"]) is not None


async def _long(ctx: CallContext, args: dict[str, Any]) -> ToolResult:
    return ToolResult.text("the victim's words\n" * 20_000)


async def _ask(ctx: CallContext, args: dict[str, Any]) -> ToolResult:
    return ToolResult.text("done")


@pytest.fixture(params=["token", "old secret"])
async def attacked(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Attacked]:
    rates = {"admin_rate": 0, "session_rate": 0, "auth_failure_rate": 0}
    permissions = {"default": "auto", "long": {"tools": {"ask": "ask"}}}
    async with running_hub(tmp_path, limits=rates, permissions=permissions, requireTokens=False) as hub:
        hub.home.old_secret.write_text(old_secret.hash_of(OLD_SECRET))
        read_only = {"readOnlyHint": True}
        tools = [Tool("long_text", LONG, "", {"type": "object"}, annotations=read_only), Tool("long_ask", LONG, "")]
        hub.hub.tabs.register(LONG, [Entry(tools[0], _long), Entry(tools[1], _ask)])
        token = create(hub.home, "attacker", 1.0) if request.param == "token" else OLD_SECRET
        async with Panel(hub) as panel, Agent(hub) as victim:
            result = (await victim.call("long_text"))["result"]["_meta"]["tabhub/result"]["handle"]
            waiting = asyncio.create_task(victim.call("long_ask"))
            approval = (await panel.request())["id"]
            made = Attacked(hub, panel, Address(port=hub.port, token=token), victim, result, approval)
            async with client(made.attacker) as http:  # it is a real agent
                assert (await http.post("/tools/browser_list_tabs/call", json={})).status_code == 200
            yield made
            made.unharmed()
            await panel.answer(approval, "deny")
            await waiting


def refused(answer: Answer, *statuses: int) -> None:
    """It is an error with a message, and of the kind expected."""
    assert answer.status in statuses, (answer.status, answer.body[:300])
    assert json.loads(answer.body)["error"]["message"]


@pytest.mark.req("B24")
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/audit", None),
        ("GET", "/audit?limit=500&success=true", None),
        ("GET", "/sessions", None),
        ("POST", "/sessions/{session}/end", {}),
        ("POST", "/sessions/{session}/release", {"tabId": 7}),
        ("POST", "/pause", {"reason": "x"}),
        ("POST", "/resume", {}),
        ("GET", "/approvals", None),
        ("POST", "/approvals/{approval}", {"decision": "allow_once"}),
        ("POST", "/approvals/{approval}", {"decision": "allow_always"}),
        ("POST", "/reload", {}),
        ("POST", "/extension/reload", {}),
        ("POST", "/plugin-settings", {"plugin": "long", "settings": {}}),
        ("GET", "/upstream", None),
        ("POST", "/upstream/add", {"json": {"pwn": {"command": "/bin/true"}}}),
        ("POST", "/upstream/set", {"name": "a", "enabled": True}),
        ("POST", "/upstream/refresh", {"name": "a"}),
        ("POST", "/upstream/remove", {"name": "a"}),
        ("POST", "/permissions/explain", {"tool": "browser_snapshot", "url": "https://bank.example/"}),
        ("GET", "/metrics", None),
        ("GET", "/ws-info", None),
    ],
)
async def test_the_persons_routes_refuse_agents(attacked: Attacked, method: str, path: str, body: Any) -> None:
    session = attacked.victim.headers["Mcp-Session-Id"]
    address = path.format(session=session, approval=attacked.approval)
    refused(await attacked.send(method, address, body=body), 403)


@pytest.mark.req("B24")
async def test_headers_do_not_make_an_agent_the_person(attacked: Attacked) -> None:
    own, key = attacked.attacker.token, attacked.hub.extension_key
    for headers in (
        [("Tabhub-Approver", own)],
        [("Tabhub-Client", "cli")],
        [("Origin", OURS)],
        [("X-Forwarded-For", "127.0.0.1"), ("Forwarded", "for=127.0.0.1")],
        [("X-HTTP-Method-Override", "POST"), ("X-Original-URL", "/tools")],
        [("Sec-WebSocket-Protocol", f"tabhub, {key}, fake-browser")],
        [("Cookie", f"Authorization=Bearer {key}")],
    ):
        refused(await attacked.send("GET", "/audit", *headers), 403)
    for value in (f"Basic {own}", f"Bearer {own}, Bearer {own}", f"Bearer tabhub-cli:{own}", f"Bearer {key}", "Bearer"):
        refused(await attacked.send("GET", "/audit", ("Authorization", value)), 401)
    twice = [("Authorization", f"Bearer {own}"), ("Authorization", f"Bearer {key}")]
    refused(await attacked.send("GET", "/audit", *twice), 401)
    for query in (f"?token={own}", f"?access_token={key}", "?agent=tabhub-cli"):
        refused(await attacked.send("GET", f"/audit{query}", ("Authorization", "")), 401)


@pytest.mark.req("B24")
@pytest.mark.parametrize(
    "path",
    [
        "/tools/../audit",
        "/tools/x/call/../../../audit",
        "/tools/%2e%2e/audit",
        "/tools;/../audit",
        "//audit",
        "/audit/",
        "/AUDIT",
        "/%61udit",
        "/audit%00",
        "/audit%2f",
        "/./audit",
        "/mcp/../audit",
        "/mcp/gateway/../../audit",
        "http://127.0.0.1/audit",
    ],
)
async def test_no_spelling_of_a_path_reaches_the_persons_routes(attacked: Attacked, path: str) -> None:
    answer = await attacked.send("GET", path)
    refused(answer, 400, 403, 404, 405)
    assert b"long_text" not in answer.body


@pytest.mark.req("B24")
async def test_agents_do_not_connect_as_the_extension(attacked: Attacked) -> None:
    own = attacked.attacker.token
    offers = [
        f"tabhub, {own}, fake-browser",
        f"tabhub, {own}, own-browser",
        f"tabhub, {own}",
        f"opentabs, {own}",
        f"tabhub,{own},x",
        f"{own}, tabhub, x",
        f"tabhub, Bearer {own}, x",
        f"tabhub, {attacked.hub.person_key}, x",  # not even the person's key
        "tabhub",
        "tabhub, , x",
    ]
    for offer in offers:
        for more in ([], [("Origin", OURS)]):
            headers = [*UPGRADE, ("Sec-WebSocket-Protocol", offer), *more]
            answer = await attacked.send("GET", "/ws", *headers)
            assert (answer.status, b"Only the browser extension connects" in answer.body) == (401, True), offer
    for path in ("/ws", f"/ws?token={own}", f"/ws?secret={own}"):
        assert (await attacked.send("GET", path, *UPGRADE)).status == 401
    for path in ("/ws/", "/mcp", "/tools", "/audit"):
        offered = ("Sec-WebSocket-Protocol", f"tabhub, {own}, x")
        assert (await attacked.send("GET", path, *UPGRADE, offered)).status != 101


@pytest.mark.req("B24")
@pytest.mark.parametrize("method", PANEL_METHODS)
async def test_methods_of_the_panel_do_not_exist_for_agents(attacked: Attacked, method: str) -> None:
    params = {"id": attacked.approval, "decision": "allow_once", "json": {"a": {"command": "true"}}, "value": True}
    async with Agent(attacked.attacker) as agent, client(attacked.attacker) as http:
        assert (await agent.request(method, params))["error"]["code"] == -32601
        await agent.post({"jsonrpc": "2.0", "method": method, "params": params})  # a notification: dropped
        assert (await agent.call(method, params))["error"]["code"] == -32602
        body, headers = stateless(method, params)
        assert (await http.post("/mcp", json=body, headers=headers)).json()["error"]["code"] == -32601
        gateway = {"name": "tabhub_call", "arguments": {"name": method, "arguments": params}}
        body, headers = stateless("tools/call", gateway)
        answer = (await http.post("/mcp/gateway", json=body, headers=headers)).json()
        assert "error" in answer or answer["result"]["isError"]
        assert (await http.post(f"/tools/{method}/call", json=params)).status_code == 404


@pytest.mark.req("B24")
async def test_agents_do_not_reach_sessions_and_results_of_others(attacked: Attacked) -> None:
    victim = attacked.victim
    async with Agent(attacked.attacker) as agent, client(attacked.attacker) as http:
        as_victim = {**ACCEPT, "Mcp-Session-Id": victim.headers["Mcp-Session-Id"]}
        assert (await http.post("/mcp", json=message("tools/list"), headers=as_victim)).status_code == 404
        assert (await http.get("/mcp", headers={**as_victim, "Accept": "text/event-stream"})).status_code == 404
        assert (await http.delete("/mcp", headers=as_victim)).status_code == 404
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
        assert (await http.post("/mcp", json=cancel, headers=as_victim)).status_code == 404
        stolen = (await agent.call("tabhub_read_result", {"handle": attacked.result}))["result"]
        assert stolen["isError"]
        assert "victim's words" not in str(stolen)
        # the same for agents without a session of their own
        body, headers = stateless("tools/call", {"name": "long_text", "arguments": {}})
        async with client(attacked.hub) as other:
            answer = (await other.post("/mcp", json=body, headers=headers)).json()["result"]
        handle = answer["_meta"]["tabhub/result"]["handle"]
        body, headers = stateless("tools/call", {"name": "tabhub_read_result", "arguments": {"handle": handle}})
        stolen = (await http.post("/mcp", json=body, headers=headers)).json()["result"]
        assert stolen["isError"]
        assert "victim's words" not in str(stolen)
        rest = await http.post("/tools/tabhub_read_result/call", json={"handle": attacked.result})
        assert rest.json()["isError"]


@pytest.mark.req("B24")
async def test_the_bridge_socket_gives_an_agent_no_more(attacked: Attacked) -> None:
    token = attacked.attacker.token
    async with connected(attacked.hub) as bridge:
        if token == OLD_SECRET:  # it is no token, and the bridge never took it
            bridge.send("REGISTER", agentToken=token)
            assert (await bridge.receive())["error"]["code"] == -32002
            return
        await bridge.register(agentToken=token, sessionId=attacked.victim.headers["Mcp-Session-Id"])
        assert bridge.session != attacked.victim.headers["Mcp-Session-Id"]
        await bridge.initialize()
        for method in PANEL_METHODS:
            assert (await bridge.request(method, {"id": attacked.approval}))["error"]["code"] == -32601
            bridge.send("EVENT", sessionId=bridge.session, event=method, params={"id": attacked.approval})
        for kind in ("APPROVE", "RELOAD", "CONFIG", "confirmation.response"):
            bridge.send(kind, id="x")
            assert (await bridge.receive())["type"] == "ERROR"
        other = attacked.victim.headers["Mcp-Session-Id"]
        assert await answered(bridge, other) == -32012


async def answered(bridge: BridgeClient, session: str) -> int:
    """The code of the error with which a request in another session is refused."""
    bridge.ask("tools/list", sessionId=session)
    code: int = (await bridge.receive())["error"]["code"]
    return code


async def test_the_extensions_key_opens_nothing_but_its_link(attacked: Attacked) -> None:
    key = ("Authorization", f"Bearer {attacked.hub.extension_key}")
    for method, path in (("GET", "/tools"), ("POST", "/mcp"), ("GET", "/audit"), ("POST", "/upstream/add")):
        refused(await attacked.send(method, path, key, body={} if method == "POST" else None), 401)
    assert json.loads((await attacked.send("GET", "/health", key)).body) == {"status": "ok"}
