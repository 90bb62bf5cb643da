"""Plugins in a real Chromium: their adapters in pages, the states of their tabs, and their calls."""

from __future__ import annotations

import asyncio

import pytest

from tests.extension.conftest import Chromium, Site
from tests.extension.fakehub import FakeHub, Message
from tests.extension.pluginbench import Bench, bench, refusal

__all__ = ["bench"]

HERE = "*://127.0.0.1/*"


@pytest.mark.req("S002-dispatch-04")
async def test_an_adapter_works_under_a_strict_csp_and_is_frozen(bench: Bench, site: Site) -> None:
    await bench.sync(bench.plugin("strict", HERE))
    page = await bench.open(f"{site.url}/strict")
    await bench.state("strict", "ready", (page.tab, True))
    output = await bench.call("strict", "echo", input={"a": [1, None, "ä"]})
    assert output == {"version": "1", "path": "/strict", "input": {"a": [1, None, "ä"]}}
    adapter = "__openTabs.adapters.strict"
    assert await page.run(f"Object.isFrozen({adapter}) && {adapter}.tools.every(Object.isFrozen)")
    assert (
        await page.run(f"{adapter} = 1, delete {adapter}, {adapter}.tools[0].name = 'x', {adapter}.tools[0].name")
        == "echo"
    )
    assert await page.run("seen.join()") == "echo began,echo ended true"


@pytest.mark.req("S002-ws-extension-04")
async def test_tabs_are_closed_unavailable_and_ready_as_pages_come_and_go(bench: Bench, site: Site) -> None:
    page = await bench.open(f"{site.url}/other")
    await page.run("void (window.notReady = true)")
    await bench.sync(bench.plugin("states", f"{site.url}/other*"), bench.plugin("never", "https://example.com/*"))
    await bench.state("never", "closed")
    await bench.state("states", "unavailable", (page.tab, False))
    error = await refusal(bench.call("states", "echo"))
    assert (error.code, error.data) == (
        -32000,
        {"category": "unavailable", "code": "not_ready", "retryable": True, "sent": False},
    )
    assert f"not ready in tab {page.tab}" in error.message
    await page.run("void (window.notReady = false)")
    await bench.state("states", "ready", (page.tab, True))
    second = await bench.open(f"{site.url}/other?again")
    await bench.state("states", "ready", (page.tab, True), (second.tab, True))
    at = len(bench.wire.seen)
    await bench.wire.ask("browser_navigate", tabId=second.tab, url=f"{site.url}/")
    await bench.state("states", "ready", (page.tab, True), after=at)
    await bench.wire.ask("closeTab", tabId=page.tab)
    await bench.state("states", "closed", after=at)
    error = await refusal(bench.call("states", "echo"))
    assert error.data["code"] == "closed"
    assert "Open one at" in error.message
    assert (await refusal(bench.call("unknown", "echo"))).data["sent"] is False


@pytest.mark.req("S002-ws-server-05")
async def test_a_call_goes_to_the_tab_in_front_or_the_named_one_and_never_to_a_page_of_another_site(
    bench: Bench, site: Site
) -> None:
    await bench.sync(bench.plugin("rank", f"{site.url}/r*", excludePatterns=[f"{site.url}/r-not*"]))
    one, two = await bench.open(f"{site.url}/r1"), await bench.open(f"{site.url}/r2")
    await bench.state("rank", "ready", (one.tab, True), (two.tab, True))
    for front in (one, two, one):
        await bench.wire.ask("activateTab", tabId=front.tab)
        assert (await bench.call("rank", "echo"))["path"] == ("/r1" if front is one else "/r2")
    assert (await bench.call("rank", "echo", tabId=two.tab))["path"] == "/r2"
    await one.run("void (window.notReady = true)")
    assert (await bench.call("rank", "echo"))["path"] == "/r2"
    assert (await refusal(bench.call("rank", "echo", tabId=one.tab))).data["category"] == "unavailable"
    other = await bench.open(f"{site.url}/r-not")
    error = await refusal(bench.call("rank", "echo", tabId=other.tab))
    assert (error.data["category"], error.data["code"], error.data["sent"]) == ("validation", "wrong_tab", False)
    error = await refusal(bench.call("rank", "echo", tabId=999_999))
    assert (error.data["category"], error.data["code"]) == ("not_found", "no_tab")
    assert await other.run("typeof __openTabs") == "undefined"


@pytest.mark.req("S002-dispatch-03")
async def test_tabs_in_front_come_before_tabs_of_the_focused_window_and_these_before_the_rest(
    bench: Bench, site: Site
) -> None:
    await bench.sync(bench.plugin("order", f"{site.url}/o*"))
    ask = bench.wire.ask
    beside = await bench.open(f"{site.url}/o-beside")
    first = (await ask("selectTab", tabId=beside.tab))["windowId"]
    await ask("activateTab", tabId=(await bench.open(f"{site.url}/")).tab)
    made = await ask("createWindow", url=f"{site.url}/o-front")
    second, front = made["window"]["windowId"], made["tab"]["tabId"]
    hidden = (await ask("createTab", url=f"{site.url}/o-hidden", windowId=second))["tabId"]
    bench.tabs += [front, hidden]
    await bench.state("order", "ready", (beside.tab, True), (front, True), (hidden, True))

    async def best(focused: int) -> str:
        await ask("updateWindow", windowId=focused, focused=True)
        return str((await bench.call("order", "echo"))["path"])

    assert await best(first) == "/o-front"
    await ask("closeTab", tabId=front)
    await ask("activateTab", tabId=(await ask("createTab", url="about:blank", windowId=second))["tabId"])
    assert await best(first) == "/o-beside"
    assert await best(second) == "/o-hidden"
    await ask("activateTab", tabId=beside.tab)
    assert await best(second) == "/o-beside"
    await ask("activateTab", tabId=hidden)
    assert await best(second) == "/o-hidden"
    await ask("closeWindow", windowId=second)


async def test_a_call_for_one_instance_stays_with_its_pages(bench: Bench, site: Site) -> None:
    home, away = f"http://localhost:{site.port}/*", f"http://127.0.0.1:{site.port}/*"
    instances = [{"name": "home", "urlPatterns": [home]}, {"name": "away", "urlPatterns": [away]}]
    await bench.sync(bench.plugin("inst", instances=instances))
    one, two = await bench.open(f"http://localhost:{site.port}/other"), await bench.open(f"{site.url}/other")
    await bench.state("inst", "ready", (one.tab, True), (two.tab, True))
    script = {"script": "location.host"}
    for _ in range(2):
        assert await bench.call("inst", "give", input=script, urlPatterns=[home]) == f"localhost:{site.port}"
        assert await bench.call("inst", "give", input=script, urlPatterns=[away]) == f"127.0.0.1:{site.port}"
    error = await refusal(bench.call("inst", "echo", urlPatterns=[home], tabId=two.tab))
    assert error.data["code"] == "wrong_tab"


async def test_an_update_replaces_the_adapter_and_running_calls_end_on_the_old_one(bench: Bench, site: Site) -> None:
    await bench.sync(bench.plugin("upd", HERE), bench.plugin("beside", HERE))
    page = await bench.open(f"{site.url}/")
    await bench.state("upd", "ready", (page.tab, True))
    await bench.state("beside", "ready", (page.tab, True))
    _, running = await bench.wire.start("tool.dispatch", **bench.params("upd", "until"))
    await page.until("window.end")
    await bench.wire.notify("plugin.update", plugin=bench.plugin("upd", HERE, version="2"))
    assert (await bench.call("upd", "echo"))["version"] == "2"
    assert not running.done()
    await page.run("end()")
    assert (await running)["result"] == {"output": "1"}
    seen = await page.run("seen")
    assert [word for word in seen if word.startswith("1 ")] == ["1 deactivated", "1 torn down"]
    assert (await bench.call("beside", "echo"))["version"] == "1"
    # Sending the same list again, as after a reconnect, changes nothing.
    await bench.sync(bench.plugin("upd", HERE, version="2"), bench.plugin("beside", HERE))
    await bench.call("upd", "echo")
    assert "2 torn down" not in await page.run("seen")


@pytest.mark.req("S002-ws-server-03")
async def test_an_uninstalled_plugin_leaves_nothing_behind(bench: Bench, site: Site) -> None:
    await bench.sync(bench.plugin("gone", HERE), bench.plugin("stays", HERE))
    page = await bench.open(f"{site.url}/")
    await bench.state("gone", "ready", (page.tab, True))
    await bench.state("stays", "ready", (page.tab, True))
    assert await bench.wire.ask("plugin.uninstall", name="gone") == {}
    assert await page.run("Object.keys(__openTabs.adapters).join()") == "stays"
    assert await page.run("seen.join()") == "1 deactivated,1 torn down"
    assert [a["plugin"] for a in (await bench.wire.ask("getAdapters"))["adapters"]] == ["stays"]
    assert (await refusal(bench.call("gone", "echo"))).data["category"] == "unavailable"
    assert await bench.wire.ask("plugin.uninstall", name="stays") == {}
    assert await page.run("'__openTabs' in globalThis") is False


async def test_a_url_change_within_the_page_notifies_the_adapter_or_removes_it(bench: Bench, site: Site) -> None:
    await bench.sync(bench.plugin("spa", f"{site.url}/app*"))
    page = await bench.open(f"{site.url}/app")
    await bench.state("spa", "ready", (page.tab, True))
    await page.run("void (location.hash = '#two')")
    await page.until("seen.includes('1 at #two')")
    at = len(bench.wire.seen)
    await page.run("history.pushState({}, '', '/elsewhere')")
    await bench.state("spa", "closed", after=at)
    await page.until("seen.includes('1 torn down') && !('__openTabs' in globalThis)")
    await page.run("history.pushState({}, '', '/app/3')")
    await bench.state("spa", "ready", (page.tab, True), after=at)
    assert (await bench.call("spa", "echo"))["path"] == "/app/3"


@pytest.mark.parametrize("way", ["navigate", "close"])
async def test_a_page_that_closes_during_a_call_fails_it_as_sent(bench: Bench, site: Site, way: str) -> None:
    await bench.sync(bench.plugin("leaves", f"{site.url}/other"))
    page = await bench.open(f"{site.url}/other")
    await bench.state("leaves", "ready", (page.tab, True))
    _, running = await bench.wire.start("tool.dispatch", **bench.params("leaves", "waits"))
    await page.until("window.seen?.includes('waiting')")
    if way == "close":
        await bench.wire.ask("closeTab", tabId=page.tab)
    else:
        await bench.wire.ask("browser_navigate", tabId=page.tab, url=f"{site.url}/")
    error = (await asyncio.wait_for(running, 30))["error"]
    assert "was closed or navigated during the call" in error["message"]
    assert (error["data"]["category"], error["data"]["sent"]) == ("unavailable", True)


@pytest.mark.req("S002-ws-extension-05")
async def test_progress_extends_the_timeout_and_cannot_be_forged_from_another_tab(bench: Bench, site: Site) -> None:
    await bench.sync(bench.plugin("steps", HERE))
    one, two = await bench.open(f"{site.url}/"), await bench.open(f"{site.url}/other")
    await bench.state("steps", "ready", (one.tab, True), (two.tab, True))
    # The other tab finds out its own channel and knows the id of the call, but it does not run the call.
    await two.run(
        "void (document.dispatchEvent = function (event) { window.channel ??= event.type;"
        " return EventTarget.prototype.dispatchEvent.call(document, event); })"
    )
    await bench.call("steps", "steps", input={"steps": [{"progress": 1}]}, tabId=two.tab)
    # Timers of background pages are throttled.
    await bench.wire.ask("activateTab", tabId=one.tab)
    steps = [{"progress": n, "total": 8, "message": f"step {n}"} for n in range(8)]
    params = bench.params("steps", "steps", input={"steps": steps}, tabId=one.tab, timeoutMs=600)
    at = len(bench.wire.seen)
    _, running = await bench.wire.start("tool.dispatch", **params)
    forged = f'{{"dispatchId":"{params["dispatchId"]}","progress":99}}'
    await bench.wire.notified("tool.progress", after=at, dispatchId=params["dispatchId"])
    await two.run(f"document.dispatchEvent(new CustomEvent(window.channel, {{ detail: '{forged}' }}))")
    assert (await running)["result"] == {"output": "done"}
    progress = [m["params"] for m in bench.wire.seen[at:] if m.get("method") == "tool.progress"]
    mine = [p for p in progress if p["dispatchId"] == params["dispatchId"]]
    assert mine[0] == {"dispatchId": params["dispatchId"], "progress": 0, "total": 8, "message": "step 0"}
    assert [p["progress"] for p in mine] == list(range(8))


async def test_a_call_that_times_out_aborts_the_tools_signal(bench: Bench, site: Site) -> None:
    await bench.sync(bench.plugin("slow", HERE))
    page = await bench.open(f"{site.url}/")
    await bench.state("slow", "ready", (page.tab, True))
    error = await refusal(bench.call("slow", "waits", timeoutMs=200))
    assert error.data == {"category": "timeout", "retryable": False, "sent": True}
    await page.until("seen.includes('aborted')")


async def test_cancelling_reaches_the_tool(bench: Bench, site: Site) -> None:
    await bench.sync(bench.plugin("cancels", HERE))
    page = await bench.open(f"{site.url}/")
    await bench.state("cancels", "ready", (page.tab, True))
    number, running = await bench.wire.start("tool.dispatch", **bench.params("cancels", "waits"))
    await page.until("window.seen?.includes('waiting')")
    await bench.wire.notify("cancel", id=number)
    assert (await running)["error"]["code"] == -32010
    await page.until("seen.includes('aborted') && seen.includes('waits ended false')")


@pytest.mark.parametrize(
    ("thrown", "data"),
    [
        ({"code": "AUTH_ERROR", "more": {"category": "auth"}}, {"category": "auth", "code": "AUTH_ERROR"}),
        (
            {"code": "RATE", "more": {"category": "rate_limit", "retryable": True, "retryAfterMs": 1500}},
            {"category": "rate_limit", "code": "RATE", "retryable": True, "retryAfterMs": 1500},
        ),
        ({"code": "X", "more": {"category": "made up", "retryable": "yes", "retryAfterMs": -1}}, {"code": "X"}),
        ({}, {}),
    ],
)
async def test_what_a_tool_throws_becomes_an_error_with_category_and_retry_hint(
    bench: Bench, site: Site, thrown: Message, data: Message
) -> None:
    await bench.sync(bench.plugin("errs", HERE))
    page = await bench.open(f"{site.url}/")
    await bench.state("errs", "ready", (page.tab, True))
    error = await refusal(bench.call("errs", "fails", input={"words": "No such note.", **thrown}))
    assert (error.code, error.message) == (-32000, "No such note.")
    assert error.data == {"category": "internal", "retryable": False, "sent": True, **data}
    error = await refusal(bench.call("errs", "missing"))
    assert (error.data["category"], error.data["code"], error.data["sent"]) == ("not_found", "no_tool", False)


async def test_results_are_plain_json_and_bounded(bench: Bench, site: Site) -> None:
    await bench.sync(bench.plugin("odd", HERE))
    page = await bench.open(f"{site.url}/")
    await bench.state("odd", "ready", (page.tab, True))
    assert await bench.call("odd", "odd", input={"kind": "nothing"}) is None
    assert await bench.call("odd", "odd", input={"kind": "date"}) == "1970-01-01T00:00:00.000Z"
    for kind in ("cycle", "big"):
        error = await refusal(bench.call("odd", "odd", input={"kind": kind}))
        assert (error.data["category"], error.data["sent"]) == ("internal", True)
    assert "nested" in (await refusal(bench.call("odd", "odd", input={"kind": "deep"}))).message
    assert len(await bench.call("odd", "big", input={"size": 2_000_000})) == 2_000_000
    error = await refusal(bench.call("odd", "big", input={"size": 9_000_000}))
    assert error.data["code"] == "too_large"
    assert "Ask for less" in error.message


@pytest.mark.req("S002-ws-extension-06")
async def test_logs_come_in_batches_and_only_of_plugins_that_are_in_the_page(bench: Bench, site: Site) -> None:
    await bench.sync(bench.plugin("logs", HERE))
    page = await bench.open(f"{site.url}/")
    await bench.state("logs", "ready", (page.tab, True))
    at = len(bench.wire.seen)
    forged = (
        "window.postMessage({type: 'opentabs:plugin-logs', plugin: %s, nonce: %s, entries: [{message: 'forged'}]}, '*')"
    )
    await page.run(forged % ("'other'", "__openTabs._logNonce"))
    await page.run(forged % ("'logs'", "'guessed'"))
    lines = [["info", "read", {"a": 1}], ["warning", "slow\r\nx"], ["shout", "x" * 9000]]
    await bench.call("logs", "says", input={"lines": lines})
    entries = (await bench.wire.notified("plugin.log", after=at))["entries"]
    assert [(e["plugin"], e["level"], e.get("data")) for e in entries] == [
        ("logs", "info", [{"a": 1}]),
        ("logs", "warning", None),
        ("logs", "info", None),
    ]
    assert [e["message"] for e in entries[:2]] == ["read", "slow\r\nx"]
    assert len(entries[2]["message"]) == 4000


async def test_a_plugin_without_a_file_is_run_from_its_source(bench: Bench, site: Site) -> None:
    plugin = bench.plugin("remote", HERE)
    source = (bench.chromium.extension / plugin.pop("adapterFile")).read_text()
    await bench.sync({**plugin, "adapterSource": source})
    page = await bench.open(f"{site.url}/strict")
    await bench.state("remote", "ready", (page.tab, True))
    assert (await bench.call("remote", "echo"))["path"] == "/strict"


async def test_a_page_blocked_by_a_dialog_does_not_delay_other_tabs(bench: Bench, site: Site) -> None:
    await bench.sync(bench.plugin("held", HERE))
    held, free = await bench.open(f"{site.url}/"), await bench.open(f"{site.url}/other")
    await bench.state("held", "ready", (held.tab, True), (free.tab, True))
    await bench.wire.cdp(held.tab, "Page.enable")
    await held.run("void setTimeout(() => alert('here'), 0)")
    assert (await bench.call("held", "echo", tabId=free.tab))["path"] == "/other"
    await bench.wire.cdp(held.tab, "Page.handleJavaScriptDialog", accept=True)


@pytest.mark.req("S002-ws-extension-02")
async def test_a_hub_that_connects_gets_the_plugins_with_their_tabs(bench: Bench, hub: FakeHub, site: Site) -> None:
    await bench.sync(bench.plugin("again", HERE), bench.plugin("never", "https://example.com/*"))
    page = await bench.open(f"{site.url}/")
    await bench.state("again", "ready", (page.tab, True))
    count = len(hub.wires)
    await bench.wire.socket.close(4006)
    bench.wire = await hub.connection(count + 1)
    assert (await bench.wire.notified("tab.syncAll"))["plugins"] == {
        "again": {"state": "ready", "tabs": [{"tabId": page.tab, "ready": True}]},
        "never": {"state": "closed", "tabs": []},
    }


async def test_plugins_survive_a_stopped_worker(bench: Bench, hub: FakeHub, chromium: Chromium, site: Site) -> None:
    await bench.sync(bench.plugin("lasts", HERE))
    page = await bench.open(f"{site.url}/")
    await bench.state("lasts", "ready", (page.tab, True))
    await page.run("void (window.kept = __openTabs.adapters.lasts)")
    count = len(hub.wires)
    await chromium.stop_worker()
    await bench.wire.closed.wait()
    # Any browser event wakes it.
    await chromium.devtools("Target.createTarget", url="about:blank", background=True)
    bench.wire = await hub.connection(count + 1, within=60)
    await bench.state("lasts", "ready", (page.tab, True))
    assert (await bench.call("lasts", "echo"))["path"] == "/"
    after = await bench.wire.cdp(page.tab, "Runtime.evaluate", expression="kept === __openTabs.adapters.lasts")
    assert after["result"]["value"] is True
