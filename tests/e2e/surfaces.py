"""Every way in which an agent calls a tool of a hub: the same call, and its result as JSON."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any

from tests.e2e.live import EXTENSION, DevTools, LiveHub
from tests.e2e.test_stdio import stdio
from tests.harness.agent import Agent, answer_in, client, stateless
from tests.harness.hub import Address
from tests.harness.waiting import eventually
from tests.relay.engines.httpworld import HttpRelay, http_relay
from tests.relay.world import token

Arguments = dict[str, Any]
Call = Callable[[str, Arguments], Awaitable[dict[str, Any]]]
Surface = Callable[[Any], AbstractAsyncContextManager[Call]]
_SET_RELAY = """(async () => {
  const port = chrome.runtime.connect({ name: "panel" });
  const answer = new Promise((done) => port.onMessage.addListener((m) => m.type === "answer" && done(m)));
  port.postMessage({ type: "ask", id: 1, method: "relay.set", params: %s });
  return (await answer).error ?? null;
})()"""


def _result(answer: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = answer.get("result", answer)
    return found


@asynccontextmanager
async def with_session(hub: Address, path: str = "/mcp") -> AsyncIterator[Call]:
    """MCP 2025-11-25."""

    async def call(name: str, arguments: Arguments) -> dict[str, Any]:
        return _result(await agent.call(*_call(path, name, arguments)))

    async with Agent(hub, path) as agent:
        yield call


@asynccontextmanager
async def without_session(hub: Address, path: str = "/mcp") -> AsyncIterator[Call]:
    """MCP 2026-07-28."""

    async def call(name: str, arguments: Arguments) -> dict[str, Any]:
        wanted, given = _call(path, name, arguments)
        body, headers = stateless("tools/call", {"name": wanted, "arguments": given})
        return _result(answer_in(await http.post(path, json=body, headers=headers)))

    async with client(hub) as http:
        yield call


def _call(path: str, name: str, arguments: Arguments) -> tuple[str, Arguments]:
    """What is called at an endpoint: the gateway has one tool that calls the others."""
    return (name, arguments) if path == "/mcp" else ("tabhub_call", {"name": name, "arguments": arguments})


@asynccontextmanager
async def rest(hub: Address) -> AsyncIterator[Call]:
    async def call(name: str, arguments: Arguments) -> dict[str, Any]:
        answer: dict[str, Any] = (await http.post(f"/tools/{name}/call", json={"arguments": arguments})).json()
        return answer

    async with client(hub, **{"Tabhub-Session": "surfaces"}) as http:
        yield call


@asynccontextmanager
async def bridge(hub: LiveHub, mode: str) -> AsyncIterator[Call]:
    """`tabhub start --stdio`, on the bridge socket."""

    async def call(name: str, arguments: Arguments) -> dict[str, Any]:
        try:
            return (await agent.call_tool(name, arguments)).model_dump(mode="json", by_alias=True, exclude_none=True)
        except Exception as error:  # whatever the client raises is what the agent sees
            return {"error": str(error)}

    async with stdio(hub, mode) as agent:
        yield call


SURFACES: dict[str, Surface] = {
    "MCP 2025-11-25": with_session,
    "MCP 2026-07-28": without_session,
    "gateway 2025-11-25": partial(with_session, path="/mcp/gateway"),
    "gateway 2026-07-28": partial(without_session, path="/mcp/gateway"),
    "REST": rest,
    "stdio 2025-11-25": partial(bridge, mode="legacy"),
    "stdio 2026-07-28": partial(bridge, mode="auto"),
}


@asynccontextmanager
async def at_a_relay(hub: LiveHub, sites: dict[str, str]) -> AsyncIterator[HttpRelay]:
    """The hub's browser is also at a relay, whose agents may act except on these sites."""
    async with http_relay() as relay, DevTools(hub).connected() as wire:
        target = (await wire.send("Target.createTarget", url=f"{EXTENSION}/panel/panel.html"))["targetId"]
        page = await wire.attach(target)

        async def loaded() -> bool:
            answer = await wire.send("Runtime.evaluate", page, expression="typeof chrome.runtime?.connect")
            return bool(answer["result"]["value"] == "function")

        await eventually(loaded)

        async def set_relay(**settings: Any) -> None:
            expression = _SET_RELAY % json.dumps(settings)
            answer = await wire.send("Runtime.evaluate", page, expression=expression, awaitPromise=True)
            assert answer["result"]["subtype"] == "null", answer

        levels = [{"site": site, "level": level} for site, level in sites.items()]
        await set_relay(url=relay.ws, token=token("ann"), level="act", sites=levels)
        try:
            yield relay
        finally:
            await set_relay(url="", token="", level="ask", sites=[])
            await wire.send("Target.closeTarget", targetId=target)
