"""The connection between panel pages and the hub: events to the panel, listed requests to the hub."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from tests.extension.conftest import EXTENSION_ID, Chromium
from tests.extension.fakehub import FakeHub, Wire

Run = Callable[[str], Awaitable[Any]]
CONNECT = """
  window.received = [];
  window.port = chrome.runtime.connect({ name: "panel" });
  window.port.onMessage.addListener((message) => window.received.push(message));
  window.port.onDisconnect.addListener(() => window.received.push("disconnected"));
  window.next = () => new Promise((go) => {
    const on_message = () => { window.port.onMessage.removeListener(on_message); go(); };
    window.port.onMessage.addListener(on_message);
    window.port.onDisconnect.addListener(on_message);
  });
  window.until = async (wanted) => {
    for (let found; ; await window.next()) if ((found = window.received.find(wanted))) return found;
  };
  window.ask = (method, params) => {
    const id = Math.random();
    window.port.postMessage({ type: "ask", id, method, params });
    return window.until((message) => message.type === "answer" && message.id === id);
  };
"""


@pytest.fixture
async def panel(wire: Wire, chromium: Chromium) -> AsyncIterator[Run]:
    """A page next to the panel's own, connected; runs expressions there."""
    (chromium.extension / "panel" / "test.html").write_text("<!doctype html><title>Test</title>")
    async with chromium.page(f"chrome-extension://{EXTENSION_ID}/panel/test.html") as command:

        async def run(expression: str) -> Any:
            answer = await command("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
            assert "exceptionDetails" not in answer, answer
            return answer["result"].get("value")

        await run(f"{{ {CONNECT} }}")
        yield run


async def test_the_hub_learns_whether_a_panel_is_open_and_sends_it_events(wire: Wire, panel: Run) -> None:
    await wire.notified("panel.watch", open=True)
    shown = await panel("until(({ method }) => method === 'link.state')")
    assert shown["params"]["link"]["phase"] == "connected"
    for event in ("tool.invocationStart", "confirmation.request", "confirmation.done", "panel.changed"):
        await wire.notify(event, id="7", what=["sessions"])
        got = await panel(f"until(({{ method }}) => method === '{event}')")
        assert got == {"type": "event", "method": event, "params": {"id": "7", "what": ["sessions"]}}
    await panel("port.disconnect()")
    await wire.notified("panel.watch", open=False)


async def test_a_panel_can_send_only_listed_requests_to_the_hub(wire: Wire, panel: Run) -> None:
    wire.answers["config.getState"] = {"paused": False}
    answer = await panel("ask('config.getState', { full: true })")
    assert answer["result"] == {"paused": False}
    assert await wire.notified("config.getState") == {"full": True}
    assert (await panel("ask('confirmation.response', { id: '1', decision: 'deny' })"))["result"] == {}
    assert await wire.notified("confirmation.response") == {"id": "1", "decision": "deny"}
    at = len(wire.seen)
    refused = ("extension.hello", "tab.syncAll", "tool.progress", "__proto__", "panel.watch")
    for method in refused:
        refusal = await panel(f"ask('{method}', {{}})")
        assert refusal["error"]["message"] == f"A panel may not ask for {method}."
    assert (await panel("ask('link.state')"))["result"]["link"]["phase"] == "connected"
    assert [message["method"] for message in wire.seen[at:] if message.get("method") in (*refused, "link.state")] == []


async def test_a_new_hub_learns_that_a_panel_is_open(hub: FakeHub, wire: Wire, panel: Run) -> None:
    await wire.notified("panel.watch", open=True)
    count = len(hub.wires)
    await wire.socket.close(4006)
    again = await hub.connection(count + 1)
    await again.notified("panel.watch", open=True)


async def test_a_page_of_the_extension_that_is_not_a_panel_gets_no_answer(chromium: Chromium, wire: Wire) -> None:
    (chromium.extension / "elsewhere.html").write_text("<!doctype html><title>Test</title>")
    async with chromium.page(f"chrome-extension://{EXTENSION_ID}/elsewhere.html") as command:
        await command("Runtime.evaluate", expression=f"{{ {CONNECT} }}")
        answer = await command(
            "Runtime.evaluate", expression="until((m) => m === 'disconnected')", awaitPromise=True, returnByValue=True
        )
        assert answer["result"]["value"] == "disconnected"
