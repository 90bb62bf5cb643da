"""Cross-site frames and workers in real Chromium: all their requests are recorded; closed ones are not waited for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e import live
from tests.e2e.live import Caller, DevTools, LiveHub
from tests.e2e.netsite import NetSite
from tests.harness.waiting import eventually

FRAME = """
const frame = document.createElement("iframe");
const message = new Promise((done) => { addEventListener("message", done, { once: true }); });
frame.src = args.to;
frame.name = "far";
document.body.append(frame);
if (args.wait) await message;
"""


@pytest.fixture(scope="module")
def net() -> Iterator[NetSite]:
    site = NetSite()
    yield site
    site.stop()


async def requests(agent: Caller, wanted: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await agent.get("browser_get_network_requests", filter=wanted))["requests"]
    return found


async def paused(agent: Caller) -> list[dict[str, Any]]:
    waiting: list[dict[str, Any]] = (await agent.get("browser_intercept_requests"))["paused"]
    return waiting


async def test_a_cross_site_frame_is_always_recorded_from_its_first_request(agent: Caller, net: NetSite) -> None:
    for number in range(5):
        # A new site each time, and therefore a new process; the last one is already known.
        there = f"http://s{number % 4}.localhost:{net.port}/net_first?{number}"
        await agent.get("browser_navigate_tab", url=f"{net.url}/net_index?{number}")
        await agent.get("browser_get_network_requests", clear=True)
        await agent.run(FRAME, args={"to": there, "wait": True})
        seen = {(r["type"], r["url"].partition(f":{net.port}")[2]) for r in await requests(agent, "localhost")}
        first = {("document", f"/net_first?{number}"), ("script", "/script.js?first")}
        assert seen >= first | {("fetch", f"/api/items?first={number}")}


async def test_the_first_request_of_a_new_frame_or_worker_can_be_intercepted(agent: Caller, net: NetSite) -> None:
    await agent.open(f"{net.url}/net_index")
    await agent.get("browser_intercept_requests", urlPatterns=["*script.js?first", "*by=worker"])
    await agent.run(FRAME, args={"to": f"{net.elsewhere}/net_first?i", "wait": False})
    (script,) = await eventually(lambda: paused(agent))
    answer = {"Content-Type": "text/javascript", "Cache-Control": "no-store"}
    await agent.get(
        "browser_fulfill_request", requestId=script["id"], status=200, body="window.answered = 1", headers=answer
    )
    assert await eventually(lambda: agent.run("return globalThis.answered ?? null", frame="far")) == 1
    before = net.count("/api/items?by=worker")
    await agent.run("new Worker('/worker.js')")
    (asked,) = await eventually(lambda: paused(agent))
    assert asked["url"] == f"{net.url}/api/items?by=worker"
    await agent.get("browser_fail_request", requestId=asked["id"])
    await agent.get("browser_stop_intercepting")
    assert net.count("/api/items?by=worker") == before


async def test_requests_that_change_process_are_finished_in_the_record(agent: Caller, net: NetSite) -> None:
    await agent.open(f"{net.url}/net_index")
    await agent.run(FRAME, args={"to": f"{net.elsewhere}/net_first?e", "wait": True})
    await agent.run("new Worker('/worker.js'); new SharedWorker('/worker.js?shared')")
    await agent.get("browser_wait_for", networkIdle=True, timeout=30_000)
    (document,) = await requests(agent, "net_first?e")
    (script,) = await requests(agent, "*/worker.js")
    for request, content in ((document, "Speaks at once"), (script, "from the worker")):
        assert request["bytes"] > 0
        assert "pending" not in request
        result = await agent.get("browser_get_network_request", requestId=request["id"], part="response")
        assert content in result["responseBody"]


async def test_network_idle_ignores_requests_of_a_closed_page_frame_or_worker(agent: Caller, net: NetSite) -> None:
    slow = "fetch('/slow?s=60&{}'); 0"
    await agent.open(f"{net.url}/net_index")
    await agent.run(slow.format("page"))
    await agent.get("browser_navigate_tab", url=f"{net.url}/net_frames")
    await agent.run(slow.format("frame"), frame="far")
    await agent.run(
        "const code = `fetch('${location.origin}/slow?s=60&worker'); postMessage(0)`;"
        "const w = new Worker(URL.createObjectURL(new Blob([code]))); await new Promise((d) => { w.onmessage = d; });"
        "document.querySelector('[name=far]').remove(); w.terminate()"
    )
    await agent.get("browser_wait_for", networkIdle=True, timeout=30_000)
    errors = {r["url"].rpartition("&")[2]: r.get("error", "") for r in await requests(agent, "/slow")}
    assert {"page", "frame"} <= set(errors)
    assert all("aborted" in error for error in errors.values())


async def test_ending_a_session_releases_intercepted_requests_of_the_persons_page(
    live_hub: LiveHub, net: NetSite, devtools: DevTools
) -> None:
    """The tab is the person's, so it stays open, and its paused request continues."""
    page = f"{net.url}/net_index?person"
    await devtools.open(page)
    async with live.caller(live_hub) as agent:

        async def opened() -> list[int]:
            return [t["tabId"] for t in (await agent.get("browser_list_tabs"))["tabs"] if t["url"] == page]

        (tab,) = await eventually(opened)
        await agent.get("browser_intercept_requests", tabId=tab, urlPatterns=["*stopped*"])
        await agent.run("window.stopped = fetch('/api/items?stopped').then((answer) => answer.status); 0", tabId=tab)
        await eventually(lambda: paused(agent))
    async with live.caller(live_hub) as other:
        assert await other.run("return await stopped", tabId=tab) == 200
        await other.get("browser_close_tab", tabId=tab)


async def test_two_agents_record_their_own_tabs(agent: Caller, live_hub: LiveHub, net: NetSite) -> None:
    async with live.caller(live_hub) as other:
        for each, name in ((agent, "one"), (other, "two")):
            await each.open(f"{net.url}/net_index?{name}")
            await each.get("browser_enable_network_capture", urlFilter="/api/")
            await each.run(f"await (await fetch('/api/items?{name}')).text()")
        assert [r["url"] for r in await requests(agent, "/api/items?")] == [f"{net.url}/api/items?one"]
        await agent.get("browser_get_network_requests", clear=True)
        await agent.get("browser_disable_network_capture")
        assert [r["url"] for r in await requests(other, "/api/items?")] == [f"{net.url}/api/items?two"]
        result = await other.get("browser_get_network_requests", withBodies=True)
        assert '"apple"' in result["requests"][-1]["responseBody"]
        assert "Only URLs with '/api/'" in result["note"]
