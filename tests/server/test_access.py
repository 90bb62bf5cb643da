"""Named tokens: each agent has its own name, sessions and permissions, and without one it is not admitted."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tabhub.store import old_secret
from tabhub.store.tokens import create, revoke
from tests.harness.agent import ACCEPT, PROGRAM, Agent, client, message, stateless, streamed
from tests.harness.bridge_client import connected
from tests.harness.fake_extension import FakeExtension
from tests.harness.hub import Address, RunningHub, running_hub
from tests.harness.panel import Panel
from tests.harness.waiting import until

OLD_SECRET = "0d" * 32
TOOL = "browser_execute_script"
ARGUMENTS = {"tabId": 7, "code": "return 1"}
PERSONS = ("/audit", "/sessions", "/pause", "/reload", "/plugin-settings", "/approvals/x", "/upstream/add", "/ws-info")


@dataclass(frozen=True, slots=True, kw_only=True)
class As(Address):
    """A hub as the holder of a token uses it."""


def named(hub: RunningHub, name: str) -> As:
    return As(port=hub.port, token=create(hub.home, name, 1.0))


def with_old_secret(hub: RunningHub) -> As:
    """The hub as an agent of version 0.1.0 sees it, with the secret that all share."""
    hub.home.old_secret.write_text(old_secret.hash_of(OLD_SECRET))
    hub.home.old_secret.chmod(0o600)
    return As(port=hub.port, token=OLD_SECRET)


async def test_a_tokens_client_has_its_name_in_the_audit_log_and_the_panel(hub: RunningHub) -> None:
    ci = named(hub, "ci")
    async with Panel(hub) as panel, Agent(ci) as agent, client(ci) as http:
        await agent.call(TOOL, ARGUMENTS)
        line = hub.hub.engine.audit.recent(1)[0]
        assert (line["client"], line["tokenName"]) == ("raw 1", "ci")
        await http.post("/tools/browser_list_tabs/call", json={})
        assert hub.hub.engine.audit.recent(1)[0]["tokenName"] == "ci"
        body, headers = stateless("tools/call", {"name": "browser_list_tabs", "arguments": {}})
        await http.post("/mcp", json=body, headers=headers)
        assert hub.hub.engine.audit.recent(1)[0]["tokenName"] == "ci"
        state = await panel.get("config.getState")
        assert "ci" in [session.get("token") for session in state["sessions"]]


async def test_sessions_of_other_tokens_are_not_found(hub: RunningHub) -> None:
    ci, other = named(hub, "ci"), named(hub, "other")
    async with FakeExtension(hub), Agent(ci) as agent, client(other) as http, client(hub.person) as person:
        for stranger in (http, person):
            answer = await stranger.post("/mcp", json=message("tools/list"), headers=agent.headers)
            assert answer.status_code == 404
        body, headers = stateless("tools/call", {"name": TOOL, "arguments": {"code": "return 1"}})
        async with client(ci) as own:
            handle = (await own.post("/mcp", json=body, headers=headers)).json()["result"]["_meta"]["tabhub/session"]
            params = {"name": "browser_get_tab_info", "arguments": {"session": handle}}
            body, headers = stateless("tools/call", params)
            assert "result" in (await own.post("/mcp", json=body, headers=headers)).json()
            theirs = (await http.post("/mcp", json=body, headers=headers)).json()
            params["arguments"] = {"session": "s_made-up"}
            body, headers = stateless("tools/call", params)
            nobodys = (await http.post("/mcp", json=body, headers=headers)).json()
            assert theirs["error"] == nobodys["error"]
        # the same REST session name is another session
        for who in (ci, other):
            async with client(who, **{"Tabhub-Session": "work"}) as rest:
                await rest.post("/tools/browser_list_tabs/call", json={})
        ids = {session.id for session in hub.hub.sessions.all()}
        assert {"rest:ci:work", "rest:other:work"} <= ids


async def test_a_stateless_client_cannot_use_a_tab_of_another_token_by_changing_its_name(
    hub: RunningHub,
) -> None:
    ci, other = named(hub, "ci"), named(hub, "other")
    async with FakeExtension(hub), client(ci) as own, client(other) as http:
        first, headers = stateless("tools/call", {"name": "browser_open_tab", "arguments": {"url": "data:text/html,x"}})
        opened = (await own.post(PROGRAM, json=first, headers=headers)).json()["result"]
        again = {"name": TOOL, "arguments": {"tabId": opened["structuredContent"]["tabId"], "code": "return 1"}}
        body, headers = stateless("tools/call", again)
        theirs = (await http.post("/mcp", json=body, headers=headers)).json()["result"]
        assert theirs["_meta"]["tabhub/error"]["code"] == -32007
        assert not (await own.post("/mcp", json=body, headers=headers)).json()["result"].get("isError")
        asked = {"name": "browser_list_sessions", "arguments": {"session": opened["_meta"]["tabhub/session"]}}
        body, headers = stateless("tools/call", asked)
        assert "isError" not in (await own.post("/mcp", json=body, headers=headers)).json()["result"]
        assert (await http.post("/mcp", json=body, headers=headers)).json()["result"]["isError"] is True


async def test_a_token_admits_to_agent_routes_only(hub: RunningHub) -> None:
    async with client(named(hub, "ci")) as http:
        assert (await http.get("/tools")).status_code == 200
        assert (await http.get("/health")).json() == {"status": "ok"}
        for method, path in (
            ("GET", "/audit"),
            ("GET", "/sessions"),
            ("POST", "/pause"),
            ("POST", "/reload"),
            ("POST", "/plugin-settings"),
            ("GET", "/approvals"),
            ("POST", "/approvals/x"),
        ):
            answer = await http.request(method, path)
            assert (answer.status_code, "for the person" in answer.text) == (403, True), path


async def test_a_metrics_token_survives_restarts_and_opens_the_metrics_only(tmp_path: Path) -> None:
    async with running_hub(tmp_path) as hub:
        scraper = As(port=hub.port, token=create(hub.home, "prometheus", 1.0, "metrics"))
        async with client(scraper) as http:
            assert (await http.get("/metrics")).status_code == 200
    async with running_hub(tmp_path) as hub:
        scraper = As(port=hub.port, token=scraper.token)
        async with client(scraper) as http, client(named(hub, "ci")) as agent, connected(hub) as bridge:
            assert "tabhub_calls_in_flight 0.0" in (await http.get("/metrics")).text
            assert (await agent.get("/metrics")).status_code == 403
            for path in ("/mcp", "/mcp/gateway", "/tools/browser_list_tabs/call", "/nothing", *PERSONS):
                answer = await http.post(path, json={}, headers=ACCEPT)
                assert (answer.status_code, "opens /metrics and nothing else" in answer.text) == (403, True), path
            assert (await http.get("/health")).json() == {"status": "ok"}
            bridge.send("REGISTER", client="x", agentToken=scraper.token)
            assert (await bridge.receive())["type"] == "ERROR"
            revoke(hub.home, "prometheus")
            assert (await http.get("/metrics")).status_code == 401


@pytest.mark.req("B9")
@pytest.mark.parametrize("wrong", ["thb_", "thb_" + "0" * 64, "thb_" + "0" * 100_000, "prefix", "query"])
async def test_a_wrong_token_is_refused_everywhere(hub: RunningHub, wrong: str, caplog: Any) -> None:
    token = create(hub.home, "ci", 1.0)
    shown = {"prefix": token[:-1], "query": "x"}.get(wrong, wrong)
    query = f"?token={token}" if wrong == "query" else ""
    async with client(As(port=hub.port, token=shown)) as http:
        for path in ("/mcp", "/mcp/gateway", "/tools", "/tools/browser_list_tabs/call"):
            answer = await http.post(f"{path}{query}", json={}, headers=ACCEPT)
            assert answer.status_code in (401, 431), path
    # The test's own HTTP client may log the URLs it requests.
    assert not [
        record for record in caplog.records if record.name.startswith("tabhub") and token in record.getMessage()
    ]


async def test_a_revoked_token_is_refused_at_once(hub: RunningHub) -> None:
    ci = named(hub, "ci")
    async with FakeExtension(hub), client(ci) as http:
        for _ in range(3):  # the head has been received by then
            assert (await http.post("/tools/browser_list_tabs/call", json={})).status_code == 200
        revoke(hub.home, "ci")
        assert (await http.post("/tools/browser_list_tabs/call", json={})).status_code == 401


async def listens(http: Any) -> Any:
    """The stream of a stateless client that follows the list of tools."""
    body, headers = stateless("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    return streamed(http, "POST", "/mcp", json=body, headers=headers)


@pytest.mark.parametrize("how", ["revoked", "required"])
async def test_a_locked_out_client_gets_no_notifications_and_loses_its_tabs(tmp_path: Path, how: str) -> None:
    async with running_hub(tmp_path, requireTokens=False) as hub, FakeExtension(hub):
        who = named(hub, "ci") if how == "revoked" else with_old_secret(hub)
        stays = named(hub, "other")
        register = {"client": "x", "agentToken": who.token if how == "revoked" else None}
        async with Agent(who) as agent, client(who) as http, connected(hub) as bridge, Agent(stays) as other:
            await agent.call(TOOL, ARGUMENTS)
            await bridge.register(**register)
            await bridge.initialize()
            async with agent.listening() as own, await listens(http) as followed, other.listening() as others:
                for stream in (own, followed, others):
                    await stream.next()
                if how == "revoked":
                    revoke(hub.home, "ci")
                else:
                    hub.home.config.write_text('{"requireTokens": true, "permissions": {"default": "auto"}}')
                    hub.hub.reload()
                await until(lambda: len(hub.hub.sessions) == 1)
                for stream in (own, followed):
                    assert [each for each in await stream.rest() if (each.message or {}).get("params")] == []
                assert len(hub.hub.leases) == 0
                bridge.ask("tools/call", {"name": "browser_list_tabs", "arguments": {}})
                reply = await bridge.receive()
                while reply["type"] == "EVENT":
                    reply = await bridge.receive()
                assert (reply["type"], reply["error"]["code"]) == ("ERROR", -32012), reply
                hub.hub.notices.changed("tools")
                assert (await others.message())["method"] == "notifications/tools/list_changed"
                assert "isError" not in (await other.call(TOOL, ARGUMENTS))["result"]


async def test_required_tokens_exclude_agents_with_the_old_secret_or_none(tmp_path: Path) -> None:
    unnamed = running_hub(tmp_path, requireTokens=False)
    async with unnamed as hub, client(with_old_secret(hub)) as old, FakeExtension(hub) as browser:
        for _ in range(3):
            assert (await old.post("/tools/browser_list_tabs/call", json={})).status_code == 200
        assert hub.hub.engine.audit.recent(1)[0]["tokenName"] == "unnamed"
        ci = named(hub, "ci")
        hub.home.config.write_text('{"requireTokens": true, "permissions": {"default": "auto"}}')
        hub.hub.reload()
        for path in ("/mcp", "/mcp/gateway", "/tools/browser_list_tabs/call"):
            answer = await old.post(path, json={}, headers=ACCEPT)
            assert (answer.status_code, "tabhub setup --migrate" in answer.text) == (401, True), path
        async with client(ci) as http:
            assert (await http.post("/tools/browser_list_tabs/call", json={})).status_code == 200
        async with connected(hub) as bare:
            bare.send("REGISTER", client="x", agentToken=None)
            assert (await bare.receive())["error"]["code"] == -32002
        async with connected(hub) as wrong:
            wrong.send("REGISTER", client="x", agentToken="thb_" + "0" * 64)
            assert (await wrong.receive())["error"]["code"] == -32002
        async with connected(hub) as right:
            said = await right.register(client="x", agentToken=ci.token)
            session = hub.hub.sessions.get(said["sessionId"])
            assert session is not None
            assert session.token == "ci"
        await browser.settle()  # the extension has its own key
        assert not browser.closed.done()


async def test_permissions_can_be_set_per_token(tmp_path: Path) -> None:
    permissions = {
        "default": "ask",
        "clients": {"ci": {"default": "auto"}, "guest": {"browser": {"permission": "off"}}},
    }
    async with running_hub(tmp_path, permissions=permissions) as hub, Panel(hub) as panel:
        ci, guest = named(hub, "ci"), named(hub, "guest")
        async with client(ci) as http:
            assert (await http.post(f"/tools/{TOOL}/call", json=ARGUMENTS)).status_code == 200
            hub.hub.session_control.end("rest:ci:rest", "done")
        async with client(guest) as http:
            answer = await http.post(f"/tools/{TOOL}/call", json=ARGUMENTS)
            assert "switched off" in answer.text
        async with client(hub) as http:
            calling = asyncio.create_task(http.post(f"/tools/{TOOL}/call", json=ARGUMENTS))
            await panel.decide("allow_once")
            assert (await calling).status_code == 200
