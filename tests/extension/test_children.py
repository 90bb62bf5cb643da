"""Frames in other processes and workers: commands run before their scripts do, and none stays paused."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.extension.conftest import Chromium, Shared, Site
from tests.extension.fakehub import FakeHub, Refused, Wire

ANNOUNCED = "Target.attachedToTarget"
MARK = {"method": "Page.addScriptToEvaluateOnNewDocument", "params": {"source": "window.ran = 1"}}
FIRST: list[Any] = [{"method": "Page.enable"}, MARK, {"method": "Tabhub.isNoDomain"}]
FRAME = """new Promise((done) => {
  const frame = document.createElement("iframe");
  frame.onload = () => done(true);
  frame.src = %s;
  document.body.append(frame);
})"""
KINDS = """(async () => {
  const script = (code) => URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
  const ran = (worker) => new Promise((done) => { worker.onmessage = () => done(true); });
  const inner = script("postMessage(1)");
  const outer = script(`const w = new Worker("${inner}"); w.onmessage = () => postMessage(1)`);
  const shared = new SharedWorker(script("onconnect = (e) => e.ports[0].postMessage(1)"));
  const { audioWorklet } = new OfflineAudioContext(1, 128, 44100);
  const sound = script("registerProcessor('x', class extends AudioWorkletProcessor {})");
  return Promise.all([
    ran(new Worker(inner)), ran(new Worker(inner, { type: "module" })), ran(new Worker(outer)), ran(shared.port),
    audioWorklet.addModule(sound).then(() => true),
  ]);
})()"""


@pytest.fixture(scope="module")
async def chromium(hub: FakeHub, shared: Shared) -> AsyncIterator[Chromium]:
    """A Chromium whose debugger stays attached for long: paused targets must continue before it detaches."""
    async with shared.at(hub, debuggerIdleMs=60_000) as browser:
        yield browser


async def value(wire: Wire, tab: int, expression: str, session: str | None = None) -> Any:
    """The awaited value of an expression in the page."""
    wish = {"expression": expression, "returnByValue": True, "awaitPromise": True}
    return (await wire.cdp(tab, "Runtime.evaluate", session, **wish))["result"].get("value")


def framed(site: Site, path: str) -> str:
    """A script that adds a frame of another site to the page, and waits until it has loaded."""
    return FRAME % json.dumps(f"http://localhost:{site.port}{path}")


async def in_page(chromium: Chromium, url: str, expression: str) -> Any:
    """The value of an expression in the page at a URL, bypassing the extension."""
    targets = (await chromium.devtools("Target.getTargets"))["targetInfos"]
    (target,) = [t["targetId"] for t in targets if t["type"] == "page" and t["url"] == url]
    session = (await chromium.devtools("Target.attachToTarget", targetId=target, flatten=True))["sessionId"]
    wish = {"expression": expression, "returnByValue": True, "awaitPromise": True}
    async with asyncio.timeout(30):
        answer = await chromium.devtools("Runtime.evaluate", session=session, **wish)
    await chromium.devtools("Target.detachFromTarget", sessionId=session)
    return answer["result"].get("value")


async def test_a_new_frame_gets_commands_before_it_runs_and_existing_ones_are_announced_as_running(
    wire: Wire, tab: int, site: Site
) -> None:
    await wire.ask("browser_navigate", tabId=tab, url=f"{site.url}/")
    before = len(wire.seen)
    await wire.ask("subscribeCDPEvents", tabId=tab, events=[ANNOUNCED], children=FIRST)
    assert await value(wire, tab, framed(site, "/framed")) is True
    child = (await wire.notified("cdp.event", after=before, tabId=tab, method=ANNOUNCED))["params"]
    assert (child["targetInfo"]["type"], child["waitingForDebugger"]) == ("iframe", True)
    assert await value(wire, tab, "window.ran", child["sessionId"]) == 1
    # Children without commands are not paused, and existing ones are announced as running.
    await wire.ask("subscribeCDPEvents", tabId=tab, events=["Page.loadEventFired"])
    before = len(wire.seen)
    await wire.ask("subscribeCDPEvents", tabId=tab, events=[ANNOUNCED])
    again = (await wire.notified("cdp.event", after=before, tabId=tab, method=ANNOUNCED))["params"]
    assert (again["sessionId"], again["waitingForDebugger"]) == (child["sessionId"], False)
    before = len(wire.seen)
    await wire.ask("browser_navigate", tabId=tab, url=f"{site.url}/framed")
    fresh = (await wire.notified("cdp.event", after=before, tabId=tab, method=ANNOUNCED))["params"]
    assert fresh["waitingForDebugger"] is False


async def test_workers_of_every_kind_and_frames_within_frames_run(wire: Wire, tab: int, site: Site) -> None:
    await wire.ask("browser_navigate", tabId=tab, url=f"{site.url}/")
    await wire.ask("subscribeCDPEvents", tabId=tab, events=[ANNOUNCED], children=FIRST)
    assert await value(wire, tab, KINDS) == [True] * 5
    before = len(wire.seen)
    assert await value(wire, tab, framed(site, "/framed")) is True
    outer = (await wire.notified("cdp.event", after=before, tabId=tab, method=ANNOUNCED))["params"]["sessionId"]
    inner = FRAME % json.dumps(f"{site.url}/framed")
    assert await value(wire, tab, inner, outer) is True
    within = await wire.notified("cdp.event", after=before, tabId=tab, sessionId=outer, method=ANNOUNCED)
    assert within["params"]["waitingForDebugger"] is True
    assert await value(wire, tab, "window.ran", within["params"]["sessionId"]) == 1


async def test_a_disconnected_hub_leaves_no_frame_and_no_request_waiting(
    hub: FakeHub, chromium: Chromium, wire: Wire, tab: int, site: Site
) -> None:
    page = f"{site.url}/?left"
    await wire.ask("browser_navigate", tabId=tab, url=page)
    before = len(wire.seen)
    await wire.ask("subscribeCDPEvents", tabId=tab, events=[ANNOUNCED, "Fetch.requestPaused"], children=FIRST)
    await wire.cdp(tab, "Fetch.enable", patterns=[{"urlPattern": "*/empty"}])
    await value(wire, tab, "window.stopped = fetch('/empty').then((answer) => answer.status); 0")
    await wire.notified("cdp.event", after=before, tabId=tab, method="Fetch.requestPaused")
    await hub.stop()
    try:
        assert await in_page(chromium, page, "window.stopped") == 204
        assert await in_page(chromium, page, "fetch('/empty').then((answer) => answer.status)") == 204
        assert await in_page(chromium, page, framed(site, "/other")) is True
    finally:
        seen = len(hub.wires)
        await hub.listen()
    back = await hub.connection(seen + 1)
    await back.ask("closeTab", tabId=tab)


async def test_a_stopped_service_worker_leaves_no_frame_waiting(
    hub: FakeHub, chromium: Chromium, wire: Wire, site: Site
) -> None:
    tab = (await wire.ask("createTab"))["tabId"]
    page = f"{site.url}/?stopped"
    await wire.ask("browser_navigate", tabId=tab, url=page)
    await wire.ask("subscribeCDPEvents", tabId=tab, events=[ANNOUNCED], children=FIRST)
    seen = len(hub.wires)
    await chromium.stop_worker()
    assert await in_page(chromium, page, framed(site, "/other")) is True
    back = await hub.connection(seen + 1)
    await back.ask("closeTab", tabId=tab)


async def test_commands_for_children_are_validated(wire: Wire, tab: int) -> None:
    wrongs: list[Any] = ["Page.enable", [1], [{}], [{"method": 1}]]
    for wrong in wrongs:
        with pytest.raises(Refused, match=r"children|method"):
            await wire.ask("subscribeCDPEvents", tabId=tab, events=[ANNOUNCED], children=wrong)
