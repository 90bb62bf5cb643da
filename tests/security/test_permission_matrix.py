"""Permissions on every surface: off, ask and auto mean the same for every caller, in every browser.

A browser at a relay is the second place: a hub is an agent there, and its agents need the same approvals for that
browser as for a local one. Agents that reach the browser without a hub meet the extension's own gate, whose table is in
tests/extension/test_relay_permissions.py.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.harness.agent import Agent, client, stateless
from tests.harness.bridge_client import ENVELOPE, initialized, registered
from tests.harness.fake_extension import tab
from tests.harness.hub import RunningHub, running_hub
from tests.harness.panel import Panel
from tests.harness.process import tabhub
from tests.harness.waiting import until
from tests.links.test_relay_link import FarBrowser, hub_at, remote, tabs_reported
from tests.relay.world import running_relay, token

TOOL = "browser_execute_script"
FAR = "https://far.example/"
Result = dict[str, Any]
"""A CallToolResult."""
Call = Callable[[RunningHub], Awaitable[Result]]


def arguments(hub: RunningHub) -> dict[str, Any]:
    """Of a call in the browser at the relay if there is one, otherwise in the local one."""
    far = {link.browser_id for link in remote(hub)}
    at = next((each.tab_id for each in hub.hub.browsers.book if each.browser_id in far), 7)
    return {"tabId": at, "code": "return 1"}


async def by_handshake(hub: RunningHub) -> Result:
    async with Agent(hub) as agent:
        answer: Result = (await agent.call(TOOL, arguments(hub)))["result"]
        return answer


async def by_stateless(hub: RunningHub) -> Result:
    async with client(hub) as http:
        body, headers = stateless("tools/call", {"name": TOOL, "arguments": arguments(hub)})
        answer: Result = (await http.post("/mcp", json=body, headers=headers)).json()["result"]
        return answer


async def by_gateway(hub: RunningHub) -> Result:
    async with Agent(hub, "/mcp/gateway") as agent:
        answer: Result = (await agent.call("tabhub_call", {"name": TOOL, "arguments": arguments(hub)}))["result"]
        return answer


async def by_stateless_gateway(hub: RunningHub) -> Result:
    async with client(hub) as http:
        given = {"name": "tabhub_call", "arguments": {"name": TOOL, "arguments": arguments(hub)}}
        body, headers = stateless("tools/call", given)
        answer: Result = (await http.post("/mcp/gateway", json=body, headers=headers)).json()["result"]
        return answer


async def by_rest(hub: RunningHub) -> Result:
    async with client(hub) as http:
        answer: Result = (await http.post(f"/tools/{TOOL}/call", json=arguments(hub))).json()
        return answer


async def by_command_line(hub: RunningHub) -> Result:
    hub.home.hub_json.write_text(json.dumps({"pid": os.getpid(), "port": hub.port}))
    words = ("tool", "call", TOOL, json.dumps(arguments(hub)), "--json")
    process = await tabhub(hub.home.root, *words)
    out, errors = await process.communicate()
    if process.returncode:
        return {"isError": True, "content": [{"text": (out + errors).decode()}]}
    return {"content": [{"text": out.decode()}]}


async def by_bridge(hub: RunningHub) -> Result:
    async with initialized(hub) as agent:
        return await agent.call(TOOL, arguments(hub))


async def by_stateless_bridge(hub: RunningHub) -> Result:
    async with registered(hub) as agent:
        params = {"name": TOOL, "arguments": arguments(hub), "_meta": ENVELOPE}
        answer: Result = (await agent.request("tools/call", params))["data"]
        return answer


SURFACES: list[Call] = [
    by_handshake,
    by_stateless,
    by_gateway,
    by_stateless_gateway,
    by_rest,
    by_command_line,
    by_bridge,
    by_stateless_bridge,
]
CASES: list[tuple[str, dict[str, Any] | None, str]] = [
    ("nothing set, a person's own browser", None, "ask"),
    ("the default says auto", {"default": "auto"}, "auto"),
    ("the default says ask", {"default": "ask"}, "ask"),
    ("the default says off", {"default": "off"}, "off"),
    ("the source says auto", {"default": "off", "browser": {"permission": "auto"}}, "auto"),
    ("the tool says off", {"browser": {"permission": "auto", "tools": {TOOL: "off"}}}, "off"),
    ("the tool says ask", {"browser": {"permission": "off", "tools": {TOOL: "ask"}}}, "ask"),
    ("the tool says auto", {"default": "ask", "browser": {"permission": "off", "tools": {TOOL: "auto"}}}, "auto"),
]


def leave(hub: RunningHub) -> None:
    """End all sessions, so that none holds the tab."""
    for session in hub.hub.sessions.all():
        hub.hub.session_control.end(session.id, "the next case follows")


def text(result: Result) -> str:
    said: str = result["content"][0]["text"]
    return said


class Scene(NamedTuple):
    """A hub, the person's panel, and the tab a call reaches."""

    hub: RunningHub
    panel: Panel
    url: str
    kept: dict[str, Any]
    """Settings that apply in every case."""


@asynccontextmanager
async def near(tmp_path: Path, **settings: Any) -> AsyncIterator[Scene]:
    """The local browser."""
    async with running_hub(tmp_path, **settings) as hub, Panel(hub) as panel:
        yield Scene(hub, panel, "https://example.com/", {})


@asynccontextmanager
async def over_relay(tmp_path: Path, **settings: Any) -> AsyncIterator[Scene]:
    """A browser at a relay, which claims to be the hub's own; the person uses the local one."""
    async with (
        running_relay() as relay,
        hub_at(tmp_path, relay, token(), **settings) as hub,
        Panel(hub) as panel,
        FarBrowser(relay.url, token(), managed=True) as far,
    ):
        far.answers["getTabs"] = {"tabs": [tab(7, FAR, active=True)]}
        far.answers["forwardCDPCommand"] = {"result": {"type": "string", "value": "far"}}
        await until(lambda: tabs_reported(hub))
        yield Scene(hub, panel, FAR, {"relays": json.loads(hub.home.config.read_text())["relays"]})


PLACES = [near, over_relay]


@pytest.mark.parametrize("place", PLACES, ids=lambda each: each.__name__)
@pytest.mark.parametrize("call", SURFACES, ids=lambda each: each.__name__)
async def test_every_level_means_the_same_on_every_surface(tmp_path: Path, call: Call, place: Any) -> None:
    async with place(tmp_path, permissions=None) as (hub, panel, url, kept):
        tab_id = arguments(hub)["tabId"]
        for case, permissions, level in CASES:
            settings = {"dataflow": "off", **kept} | ({} if permissions is None else {"permissions": permissions})
            hub.home.config.write_text(json.dumps(settings))
            hub.hub.reload()
            if level == "ask":
                for decision in ("deny", "allow_once"):
                    calling = asyncio.ensure_future(call(hub))
                    request = await panel.decide(decision, "not today" if decision == "deny" else "")
                    assert (request["tool"], request["params"]["code"]) == (TOOL, "return 1"), case
                    assert (request["tabId"], request["url"]) == (tab_id, url)
                    result = await calling
                    leave(hub)
                    assert bool(result.get("isError")) is (decision == "deny"), (case, result)
                    if decision == "deny":
                        assert "They said: not today" in text(result)
            else:
                result = await call(hub)
                leave(hub)
                assert bool(result.get("isError")) is (level == "off"), (case, result)
                if level == "off":
                    assert "switched off by the person" in text(result), case
        assert len(hub.hub.approvals) == 0


@pytest.mark.parametrize("place", PLACES, ids=lambda each: each.__name__)
@pytest.mark.parametrize("call", SURFACES, ids=lambda each: each.__name__)
async def test_skipped_permissions_need_no_approval_and_are_recorded_in_every_line(
    tmp_path: Path, call: Call, place: Any
) -> None:
    async with place(tmp_path, permissions={"default": "ask"}, skipPermissions=True) as (hub, _, _, _):
        assert not (await call(hub)).get("isError")
        line = hub.hub.engine.audit.recent(1)[0]
        assert line["approval"] == {"by": "nobody", "decision": "permissions skipped"}
