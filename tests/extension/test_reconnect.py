"""The extension's connection: it comes back by itself, there is only ever one, and its state is shown in words."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.extension.conftest import EXTENSION_ID, SECRET, Chromium
from tests.extension.fakehub import FakeHub, Wire


@pytest.fixture(autouse=True)
async def one_socket_at_a_time(hub: FakeHub) -> AsyncIterator[None]:
    yield
    assert hub.most_at_once <= 1


@pytest.mark.req("F2")
async def test_a_stopped_worker_comes_back_with_the_next_event_of_a_tab(
    hub: FakeHub, chromium: Chromium, wire: Wire
) -> None:
    browser = wire.protocols[2]
    for _ in range(20):
        seen = len(hub.wires)
        before = hub.wires[-1]
        await chromium.stop_worker()
        await asyncio.wait_for(before.closed.wait(), 5)
        made = await chromium.devtools("Target.createTarget", url="about:blank", background=True)
        back = await hub.connection(seen + 1)
        assert back.protocols[2] == browser
        tabs = [t["tabId"] for t in (await back.ask("getTabs"))["tabs"]]
        assert len(tabs) == len(set(tabs))
        await chromium.devtools("Target.closeTarget", targetId=made["targetId"])


@pytest.mark.req("F2")
async def test_a_stopped_worker_comes_back_by_its_alarm_alone(hub: FakeHub, chromium: Chromium, wire: Wire) -> None:
    seen = len(hub.wires)
    await chromium.stop_worker()
    await hub.connection(seen + 1, within=45)


async def test_what_a_stopped_worker_debugged_is_let_go_of_and_can_be_debugged_again(
    hub: FakeHub, chromium: Chromium, wire: Wire
) -> None:
    tab = (await wire.ask("createTab"))["tabId"]
    await wire.cdp(tab, "Runtime.evaluate", expression="1")
    seen = len(hub.wires)
    await chromium.stop_worker()
    await chromium.devtools("Target.createTarget", url="about:blank", background=True)
    back = await hub.connection(seen + 1)
    assert (await back.ask("getState"))["debugger"] == {"attached": []}
    assert (await back.cdp(tab, "Runtime.evaluate", expression="1+1"))["result"]["value"] == 2
    await back.ask("closeTab", tabId=tab)


async def test_it_finds_the_hub_again_after_a_restart_and_with_a_new_secret(
    hub: FakeHub, chromium: Chromium, wire: Wire
) -> None:
    seen = len(hub.wires)
    await hub.stop()
    assert "No hub answers" in await popup_says(chromium, "No hub answers")
    chromium.write_auth(hub.port, secret="ab" * 32, debuggerIdleMs=1500)
    await hub.listen()
    back = await hub.connection(seen + 1, within=40)
    assert back.protocols[1] == "ab" * 32
    chromium.write_auth(hub.port, debuggerIdleMs=1500)
    await back.socket.close(4001, "secret rotated")
    again = await hub.connection(seen + 2)
    assert again.protocols[1] == SECRET


async def test_a_hub_that_shuts_down_is_looked_for_soon(hub: FakeHub, wire: Wire) -> None:
    seen = len(hub.wires)
    started = time.monotonic()
    await wire.socket.close(4004, "shutting down")
    await hub.connection(seen + 1)
    assert time.monotonic() - started < 3


async def test_without_settings_it_waits_for_setup_and_then_connects(
    hub: FakeHub, chromium: Chromium, wire: Wire
) -> None:
    seen = len(hub.wires)
    (chromium.extension / "auth.json").write_text('{"secret": "short"}')
    await wire.socket.close(4004, "shutting down")
    assert "secret is not 64 hex digits" in await popup_says(chromium, "Waiting for setup")
    (chromium.extension / "auth.json").unlink()
    assert "auth.json is missing" in await popup_says(chromium, "auth.json is missing")
    chromium.write_auth(hub.port)
    await hub.connection(seen + 1, within=40)
    assert "Connected" in await popup_says(chromium, "Connected")


@pytest.mark.req("F8")
async def test_a_browser_that_was_replaced_does_not_fight_for_its_place(
    hub: FakeHub, chromium: Chromium, wire: Wire
) -> None:
    seen = len(hub.wires)
    started = time.monotonic()
    await wire.socket.close(4000, "replaced")
    assert "took this one's place" in await popup_says(chromium, "took this one's place")
    # Neither a person who looks nor a worker that starts anew shortens the pause.
    await chromium.stop_worker()
    await chromium.devtools("Target.createTarget", url="about:blank", background=True)
    await hub.connection(seen + 1, within=65)
    assert time.monotonic() - started >= 29


async def popup_says(chromium: Chromium, wanted: str, *, within: float = 40) -> str:
    """The text of the popup once it holds what is wanted."""
    url = f"chrome-extension://{EXTENSION_ID}/panel/popup.html"
    async with chromium.page(url) as page:
        async with asyncio.timeout(within):
            text: Any = await page(
                "Runtime.evaluate",
                expression="new Promise(end => { const t = setInterval(() => { const s = document.body.innerText;"
                f" if (s.includes({wanted!r})) {{ clearInterval(t); end(s); }} }}, 20) }})",
                awaitPromise=True,
            )
        return str(text["result"]["value"])
