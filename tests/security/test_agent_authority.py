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
from tests.harness.hub import AGENT, Address, RunningHub, running_hub
from tests.harness.panel import Panel
from tests.harness.raw import Answer, Header, exchange, request, wire

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

PERSONS: list[tuple[str, str, Any]] = [
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
]
SPELLINGS = [
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
    "http://127.0.0.1:{port}/audit",
    "//127.0.0.1:{port}/audit",
    "/tools/..%2faudit",
    "/tools/%252e%252e/audit",
    "/tools/x%2fcall/../../audit",
    "/%2e/audit",
    "/audit;x=/tools",
    "/audit%3fx",
    "/audit#/tools",
    "/Audit?limit=1",
    "/metrics/",
    "//metrics",
    "/%6detrics",
    "/ws-info/",
    "/tools/..;/metrics",
    "/\\audit",
    "/tools\\..\\audit",
    "*",
    "audit",
]
ALIASES = [
    "/tools/config.set/call",
    "/tools/upstream.add/call",
    "/tools/opentabs_call/call",
    "/tools/tabhub_call/call",
    "/tools/../upstream/add/call",
    "/tools/%2e%2e%2fupstream%2fadd/call",
    "/tools/upstream/add/call",
    "/tools//upstream/add/call",
    "/tools/x/call/../../../upstream/add",
    "/Tools/browser_list_tabs/call",
    "/tools/long_hidden/call",
    "/tools/LONG_TEXT/call",
    "/tools/long_text%00/call",
    "/plugins/long/tools/long_text/call",
    "/call/long_text",
]


@dataclass(frozen=True, slots=True)
class Attacked:
    """A hub with a person at the panel, an agent at work, and a call that waits for approval."""

    hub: RunningHub
    panel: Panel
    attacker: Address
    victim: Agent
    result: str
    """The handle of a long result of the victim."""
    handle: str
    """The handle of a session of the victim, in which it holds a tab."""
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
        assert hub.sessions.require(self.handle, "handle").tab is not None


async def _long(ctx: CallContext, args: dict[str, Any]) -> ToolResult:
    return ToolResult.text("the victim's words\n" * 20_000)


async def _ask(ctx: CallContext, args: dict[str, Any]) -> ToolResult:
    return ToolResult.text("done")


@pytest.fixture(params=["token", "old secret"])
async def attacked(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Attacked]:
    rates = {"admin_rate": 0, "session_rate": 0, "auth_failure_rate": 0}
    permissions: dict[str, Any] = {"default": "auto", "long": {"tools": {"ask": "ask"}}}
    permissions["long"]["tools"]["hidden"] = "off"
    async with running_hub(tmp_path, limits=rates, permissions=permissions, requireTokens=False) as hub:
        hub.home.old_secret.write_text(old_secret.hash_of(OLD_SECRET))
        read_only = {"readOnlyHint": True}
        tools = [Tool("long_text", LONG, "", {"type": "object"}, annotations=read_only), Tool("long_ask", LONG, "")]
        tools.append(Tool("long_hidden", LONG, "The hidden ledger"))
        hub.hub.tabs.register(LONG, [Entry(tools[0], _long), Entry(tools[1], _ask), Entry(tools[2], _ask)])
        token = create(hub.home, "attacker", 1.0) if request.param == "token" else OLD_SECRET
        async with Panel(hub) as panel, Agent(hub) as victim:
            result = (await victim.call("long_text"))["result"]["_meta"]["tabhub/result"]["handle"]
            opened = stateless("tools/call", {"name": "browser_open_tab", "arguments": {"url": "about:blank"}})
            answered = await victim.http.post("/mcp", json=opened[0], headers=opened[1])
            handle = answered.json()["result"]["_meta"]["tabhub/session"]
            waiting = asyncio.create_task(victim.call("long_ask"))
            approval = (await panel.request())["id"]
            made = Attacked(hub, panel, Address(port=hub.port, token=token), victim, result, handle, approval)
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
async def test_the_persons_routes_refuse_agents(attacked: Attacked) -> None:
    session = attacked.victim.headers["Mcp-Session-Id"]
    for method, path, body in PERSONS:
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
async def test_no_spelling_of_a_path_reaches_the_persons_routes(attacked: Attacked) -> None:
    for path in SPELLINGS:
        answer = await attacked.send("GET", path.format(port=attacked.hub.port))
        refused(answer, 400, 403, 404, 405)
        assert b"long_text" not in answer.body, path


@pytest.mark.req("B24")
async def test_no_version_method_or_host_reaches_the_persons_routes(attacked: Attacked) -> None:
    port = attacked.hub.port
    bearer = list(attacked.attacker.bearer.items())
    here = ("Host", f"127.0.0.1:{port}")
    for method in ("GET", "get", "HEAD", "OPTIONS", "TRACE", "POST", "PUT", "CONNECT", "PROPFIND"):
        for version in ("1.0", "1.1"):
            for headers in ([here], [], [("Host", f"localhost.:{port}")], [("Host", f"LOCALHOST:{port}"), here]):
                data = request(method, "/audit", [*headers, *bearer, ("Content-Length", "0")], version=version)
                async with wire(port) as connection:
                    await connection.send(data)
                    status, _ = await connection.head()
                assert status in (400, 403, 404, 405, 501), (method, version, headers)
    for name in (
        "localhost.",
        "127.0.0.1.",
        "127.1",
        "0x7f.1",
        "2130706433",
        "[::ffff:127.0.0.1]",
        "tabhub.localhost",
        "",
    ):
        answer = await exchange(port, request("GET", "/tools", [("Host", f"{name}:{port}"), *bearer]))
        refused(answer, 400, 403)


@pytest.mark.req("B24")
async def test_no_alias_of_a_call_over_rest_does_more(attacked: Attacked) -> None:
    given = {"json": {"pwn": {"command": "/bin/true"}}, "name": "upstream.add", "arguments": {"a": 1}}
    for path in ALIASES:
        answer = await attacked.send("POST", path, body=given)
        assert answer.status in (400, 403, 404, 405, 422), (path, answer)
        assert b"victim" not in answer.body, path


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
async def test_methods_of_the_panel_do_not_exist_for_agents(attacked: Attacked) -> None:
    params = {"id": attacked.approval, "decision": "allow_once", "json": {"a": {"command": "true"}}, "value": True}
    async with Agent(attacked.attacker) as agent, client(attacked.attacker) as http:
        for method in PANEL_METHODS:
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


@pytest.mark.req("B24")
async def test_no_id_of_a_session_opens_that_of_another_agent(attacked: Attacked) -> None:
    victim, handle = attacked.victim.headers["Mcp-Session-Id"], attacked.handle
    tab = attacked.hub.hub.sessions.require(handle, "handle").tab
    async with Agent(attacked.attacker) as agent, client(attacked.attacker) as http:
        for name in (handle, victim, handle[:8], f"{handle} ", "rest:test:rest", "stateless", f"stateless {AGENT}"):
            given = {"name": "browser_get_tab_info", "arguments": {"session": name}}
            answers = [await agent.call("browser_list_sessions", {"session": name})]
            for path, params in (("/mcp", given), ("/mcp/gateway", {"name": "tabhub_call", "arguments": given})):
                body, headers = stateless("tools/call", params)
                answers.append((await http.post(path, json=body, headers=headers)).json())
            answers.append(
                {"result": (await http.post("/tools/browser_list_sessions/call", json=given["arguments"])).json()}
            )
            for answer in answers:
                assert "error" in answer or answer["result"]["isError"], (name, answer)
                assert f'"tabId": {tab}' not in json.dumps(answer)
        for name in (handle, victim, "rest", AGENT):
            named = {"Tabhub-Session": name[:64], "Tabhub-Client": "cli"}
            listed = (await http.post("/tools/browser_list_sessions/call", json={}, headers=named)).json()
            assert [each["leases"] for each in listed["structuredContent"]["sessions"]] == [[]]
        for name, arguments in (
            ("browser_release_tab", {"tabId": tab}),
            ("browser_close_tab", {"tabId": tab}),
            ("browser_navigate_tab", {"tabId": tab, "url": "https://attacker.example/"}),
        ):
            assert (await agent.call(name, arguments))["result"]["isError"], name


@pytest.mark.req("B24")
async def test_no_uri_reads_what_is_not_a_resource(attacked: Attacked) -> None:
    session = attacked.victim.headers["Mcp-Session-Id"]
    uris = [
        *(f"{scheme}{attacked.result}" for scheme in ("tabhub://result/", "tabhub:", "result://", "")),
        *(f"tabhub://{session}/{attacked.result}", f"tabhub://session/{session}", "tabhub://config", "tabhub://audit"),
        *(f"file://{attacked.hub.home.person_key}", str(attacked.hub.home.person_key), "file:///etc/passwd"),
        *(
            f"http://127.0.0.1:{attacked.hub.port}/audit",
            "mcp://long/../audit",
            "../run/person.key",
            "tabhub://../../x",
        ),
    ]
    async with Agent(attacked.attacker) as agent, client(attacked.attacker) as http:
        for uri in uris:
            ref = {"ref": {"type": "ref/resource", "uri": uri}, "argument": {"name": "a", "value": ""}}
            for method, params in (
                ("resources/read", {"uri": uri}),
                ("resources/subscribe", {"uri": uri}),
                ("prompts/get", {"name": uri}),
                ("completion/complete", ref),
            ):
                answer = await agent.request(method, params)
                assert "error" in answer, (method, uri, answer)
                assert attacked.hub.person_key not in json.dumps(answer)
            body, headers = stateless("resources/read", {"uri": uri})
            assert "error" in (await http.post("/mcp", json=body, headers={**headers, "Mcp-Name": uri})).json(), uri


@pytest.mark.req("B24")
async def test_the_finder_finds_neither_what_is_off_nor_the_persons_methods(attacked: Attacked) -> None:
    async with Agent(attacked.attacker, "/mcp/gateway") as gateway, Agent(attacked.attacker) as agent:
        for query in ({"query": "hidden ledger"}, {"query": "long_hidden"}, {"plugin": "long", "limit": 500}):
            for detail in ("names", "summaries", "schemas"):
                for name in ("tabhub_list_tools", "opentabs_list_tools"):
                    found = await gateway.call(name, {**query, "detail": detail})
                    assert "long_hidden" not in found["result"]["content"][0]["text"]
        for method in PANEL_METHODS:
            found = await gateway.call("tabhub_list_tools", {"query": method, "detail": "names", "limit": 500})
            assert method not in json.loads(found["result"]["content"][0]["text"])["tools"]
        for called in ("long_hidden", "tabhub_call", "tabhub_list_tools", "opentabs_call", "tools/call", "/audit"):
            answer = await gateway.call("tabhub_call", {"name": called, "arguments": {}})
            assert "error" in answer or answer["result"]["isError"], called
        listed = await agent.request("tools/list")
        assert "long_hidden" not in json.dumps(listed)


@pytest.mark.req("B24")
async def test_calls_of_others_are_neither_cancelled_nor_answered_by_an_agent(attacked: Attacked) -> None:
    last: int = message("ping")["id"]
    calls = [call.id for call in attacked.hub.hub.engine.calls]
    decision = {"id": attacked.approval, "decision": "allow_once"}
    async with Agent(attacked.attacker) as agent:
        for ident in (*range(max(last - 30, 0), last), *calls, attacked.approval, attacked.handle):
            await agent.notify("notifications/cancelled", {"requestId": ident})
            await agent.post({"jsonrpc": "2.0", "id": ident, "result": {"action": "accept", "content": decision}})
        for method in ("elicitation/create", "notifications/elicitation/complete", "confirmation.response"):
            await agent.post({"jsonrpc": "2.0", "method": method, "params": decision})


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
