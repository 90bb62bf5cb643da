"""Network tools in real Chromium, in background tabs: reading, capture, HAR, interception, throttling."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e import live
from tests.e2e.live import Caller, LiveHub
from tests.e2e.netsite import NetSite
from tests.harness.waiting import becomes, eventually


@pytest.fixture(scope="module")
def net() -> Iterator[NetSite]:
    site = NetSite()
    yield site
    site.stop()


async def requests(agent: Caller, wanted: str = "", **more: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await agent.get("browser_get_network_requests", filter=wanted, **more))["requests"]
    return found


async def one(agent: Caller, wanted: str, **more: Any) -> dict[str, Any]:
    return (await requests(agent, wanted, **more))[-1]


async def restart_recording(agent: Caller, url: str) -> None:
    """Visit a page; requests recorded before are cleared."""
    if agent.kept is not None:
        await agent.get("browser_get_network_requests", tabId=agent.kept, clear=True)
        await agent.get("browser_get_websocket_frames", tabId=agent.kept, clear=True)
    await agent.visit(url)


async def paused(agent: Caller, count: int = 1) -> list[dict[str, Any]]:
    """Wait until this many requests are paused."""

    async def enough() -> list[dict[str, Any]] | None:
        waiting: list[dict[str, Any]] = (await agent.get("browser_intercept_requests"))["paused"]
        return waiting if len(waiting) >= count else None

    return await eventually(enough)


async def test_requests_are_recorded_from_the_start_of_a_page(agent: Caller, net: NetSite) -> None:
    await agent.open(f"{net.url}/net_index")
    await agent.run("await window.ready")
    seen = {r["url"].removeprefix(net.url): r for r in await requests(agent)}
    assert (seen["/net_index"]["type"], seen["/net_index"]["status"]) == ("document", 200)
    assert seen["/script.js"]["type"] == "script"
    assert seen["/picture.png"]["mime"] == "image/png"
    assert seen["/api/items"]["type"] == "fetch"
    assert seen["/api/items"]["ms"] >= 0
    assert seen["/api/items"]["bytes"] > 50


async def test_filters_limit_and_clear(guest: Caller, net: NetSite) -> None:
    await restart_recording(guest, f"{net.url}/net_index")
    await guest.run(
        "await window.ready; await fetch('/api/missing'); await fetch('/api/items', {method: 'POST', body: 'a=1'});"
        "await fetch('http://127.0.0.1:9/refused').catch(() => 0)"
    )
    assert [r["url"] for r in await requests(guest, "status:404 type:fetch")] == [f"{net.url}/api/missing"]
    assert [r["method"] for r in await requests(guest, "method:POST")] == ["POST"]
    assert {r["type"] for r in await requests(guest, "type:script")} == {"script"}
    assert {r["url"] for r in await requests(guest, "*/api/items")} == {f"{net.url}/api/items"}
    (refused,) = await requests(guest, "status:failed :9/")
    assert "ERR_" in refused["error"]
    answer = await guest.get("browser_get_network_requests", limit=1, clear=True)
    assert len(answer["requests"]) == 1
    assert "older ones are left out" in answer["note"]
    assert await requests(guest) == []
    assert "not a status" in (await guest.fail("browser_get_network_requests", filter="status:many"))["text"]


async def test_one_request_has_bodies_headers_redirects_and_timing(guest: Caller, net: NetSite) -> None:
    await restart_recording(guest, f"{net.url}/net_index")
    await guest.run(
        "const r = await fetch('/api/moved', {headers: {Authorization: 'Bearer very-secret', 'X-Plain': 'seen'}});"
        "await r.json(); await fetch('/echo', {method: 'POST', body: 'name=anna&password=hunter22',"
        "headers: {'Content-Type': 'application/x-www-form-urlencoded'}}); await (await fetch('/api/login')).text()"
    )
    moved = await one(guest, "/api/moved")
    assert moved["status"] == 302
    facts = await guest.get("browser_get_network_request", requestId=moved["id"])
    assert facts["initiator"].startswith("script tabhub-script.js:")
    assert facts["redirectedTo"] == f"{net.url}/api/items"
    assert facts["requestHeaders"]["Authorization"] == "Bearer [redacted]"
    assert facts["requestHeaders"]["X-Plain"] == "seen"
    assert "redirect" in facts["responseBody"]
    items = await guest.get("browser_get_network_request", requestId=(await one(guest, "/api/items"))["id"])
    assert '"apple"' in items["responseBody"]
    assert items["timing"]["total"] > 0
    posted = await guest.get("browser_get_network_request", requestId=(await one(guest, "method:POST"))["id"])
    assert posted["status"] == 201
    assert posted["requestBody"] == "name=anna&password=[redacted]"
    only = await guest.get("browser_get_network_request", requestId=moved["id"], part="timing")
    assert "requestHeaders" not in only
    login = await guest.get("browser_get_network_request", requestId=(await one(guest, "/api/login"))["id"])
    cookies = {name.lower(): value for name, value in login["responseHeaders"].items()}["set-cookie"]
    assert cookies == "sid=[redacted]"
    assert "abcdef123456" not in json.dumps(login)
    await guest.run("await fetch('/api/items?later=1')")
    later = await guest.get("browser_get_network_request", requestId=(await one(guest, "later=1"))["id"])
    assert "sid=[redacted]" in {n.lower(): v for n, v in later["requestHeaders"].items()}["cookie"]
    missing = await guest.fail("browser_get_network_request", requestId="r99999")
    assert "/api/items?later=1" in missing["text"]


async def test_big_binary_and_streamed_bodies_can_be_read(guest: Caller, net: NetSite) -> None:
    await restart_recording(guest, f"{net.url}/net_index")
    await guest.run("for (const path of ['/api/big', '/data.bin', '/stream']) await (await fetch(path)).arrayBuffer()")
    found = await requests(guest, "type:fetch", withBodies=True)
    listed = {r["url"].removeprefix(net.url): r["responseBody"] for r in found}
    assert listed["/stream"] == "".join(f"part {n}\n" for n in range(5))
    assert listed["/data.bin"] == "[256 bytes application/octet-stream]"
    assert listed["/api/big"].endswith("more characters)")
    assert len(listed["/api/big"]) < 5000


async def test_websocket_frames_are_recorded_in_both_directions(guest: Caller, net: NetSite) -> None:
    await restart_recording(guest, f"{net.url}/net_index")
    await guest.run(
        "const s = new WebSocket(args.to); await new Promise((done) => { s.onopen = done; });"
        "const got = new Promise((done) => { let n = 0; s.onmessage = () => { n += 1; if (n === 2) done(); }; });"
        "s.send('hello'); s.send(new Uint8Array([1, 2, 3])); await got; s.close()",
        args={"to": net.socket},
    )
    answer = await guest.get("browser_get_websocket_frames")
    (socket,) = answer["sockets"]
    assert (socket["url"], socket["status"], socket["type"]) == (net.socket, 101, "websocket")
    result = [(f["sent"], f["data"]) for f in answer["frames"] if not f["type"].startswith("opcode")]
    assert result == [(True, "hello"), (True, "AQID"), (False, "echo hello"), (False, "AQID")]
    await guest.get("browser_get_websocket_frames", clear=True)
    assert (await guest.get("browser_get_websocket_frames"))["frames"] == []


async def test_capture_keeps_bodies_across_navigations_and_filters(agent: Caller, net: NetSite) -> None:
    await agent.open(f"{net.url}/net_inner")
    on = await agent.get("browser_enable_network_capture", maxRequests=8, urlFilter="/api/", maxWsFrames=5)
    assert (on["capturing"], on["maxRequests"], on["maxWsFrames"]) == (True, 8, 5)
    await agent.run("await (await fetch('/api/items?kept=1')).text()")
    await agent.get("browser_navigate_tab", url=f"{net.url}/net_frames")
    await agent.get("browser_navigate_tab", url=f"{net.elsewhere}/net_inner")
    answer = await agent.get("browser_get_network_requests", filter="kept=1", withBodies=True)
    assert '"apple"' in answer["requests"][0]["responseBody"]
    assert "Only URLs with '/api/'" in answer["note"]
    first = (f"{net.url}/net_inner", f"{net.url}/favicon.ico")  # a browser requests the icon of a new site
    assert all("/api/" in r["url"] for r in await requests(agent) if r["url"] not in first)
    await agent.run("for (let i = 0; i < 10; i += 1) await fetch('/api/items?n=' + i)")
    assert len(await requests(agent)) == 8
    assert (await agent.get("browser_disable_network_capture"))["capturing"] is False
    await agent.run("await fetch('/slow?s=0')")
    assert await requests(agent, "/slow")


async def test_the_archive_is_valid_har_with_redacted_secrets(guest: Caller, net: NetSite) -> None:
    await restart_recording(guest, f"{net.url}/net_index")
    await guest.run(
        "await fetch('/api/login', {headers: {Authorization: 'Bearer very-secret'}});"
        "await (await fetch('/api/moved?x=1&y=two')).text(); await fetch('/echo', {method: 'POST', body: '{}'});"
        "const s = new WebSocket(args.to); await new Promise((done) => { s.onopen = done; });"
        "const got = new Promise((done) => { s.onmessage = done; }); s.send('hello'); await got",
        args={"to": net.socket},
    )
    answer = await guest.get("browser_export_har", includeWebSocketFrames=True, filePath="net/site.har")
    archive = json.loads((live_files(guest) / "net" / "site.har").read_text())
    log = archive["log"]
    assert log["version"] == "1.2"
    assert answer["entries"] == len(log["entries"])
    pages = {page["id"] for page in log["pages"]}
    for entry in log["entries"]:
        assert entry["pageref"] in pages
        assert {"startedDateTime", "time", "request", "response", "cache", "timings"} <= set(entry)
        assert {"method", "url", "httpVersion", "cookies", "headers", "queryString", "headersSize", "bodySize"} <= set(
            entry["request"]
        )
        assert {"status", "statusText", "httpVersion", "cookies", "headers", "content", "redirectURL"} <= set(
            entry["response"]
        )
        timings = entry["timings"]
        assert all(timings[name] >= 0 for name in ("send", "wait", "receive"))
        spent = sum(v for n, v in timings.items() if n != "ssl" and v > 0)
        assert abs(spent - entry["time"]) < 0.01
    by_path = {entry["request"]["url"].removeprefix(net.url): entry for entry in log["entries"]}
    moved = by_path["/api/moved?x=1&y=two"]
    assert moved["response"]["redirectURL"] == f"{net.url}/api/items"
    assert moved["request"]["queryString"] == [{"name": "x", "value": "1"}, {"name": "y", "value": "two"}]
    assert '"pear"' in by_path["/api/items"]["response"]["content"]["text"]
    assert by_path["/picture.png"]["response"]["content"]["encoding"] == "base64"
    frames = next(e["_webSocketMessages"] for e in log["entries"] if e["request"]["url"] == net.socket)
    assert [(f["type"], f["data"]) for f in frames] == [("send", "hello"), ("receive", "echo hello")]
    text = json.dumps(archive)
    assert not any(secret in text for secret in ("very-secret", "s3cr3t-value", "abcdef123456"))
    again = await guest.fail("browser_export_har", filePath="net/site.har")
    assert "exists already" in again["text"]
    await guest.get("browser_export_har", filePath="net/site.har", overwrite=True, clear=True)
    inline = await guest.get("browser_export_har")
    assert inline["har"]["log"]["entries"] == []


def live_files(agent: Caller) -> Any:
    return agent.hub.home / "files"


async def test_requests_are_paused_fulfilled_failed_and_continued(guest: Caller, net: NetSite) -> None:
    await restart_recording(guest, f"{net.url}/net_index")
    begun = await guest.get("browser_intercept_requests", urlPatterns=["*/api/stop/*"])
    assert begun["paused"] == []
    await guest.run(
        "window.got = {}; const headers = {'X-Api-Key': 'k3y'};"
        "for (const n of ['a', 'b', 'c']) fetch('/api/stop/' + n, {headers}).then("
        "async (r) => { got[n] = [r.status, await r.text(), r.headers.get('x-own')]; }, (e) => { got[n] = String(e); })"
    )
    waiting = {p["url"].rpartition("/")[2]: p for p in await paused(guest, 3)}
    assert set(waiting) == {"a", "b", "c"}
    assert waiting["a"]["headers"]["X-Api-Key"] == "[redacted]"
    listed = await requests(guest, "/api/stop/")
    assert {r["paused"] for r in listed} == {p["id"] for p in waiting.values()}
    await guest.get(
        "browser_fulfill_request",
        requestId=waiting["a"]["id"],
        status=418,
        body='{"tea":"grün"}',
        headers={"X-Own": "yes"},
    )
    by_record = next(r["id"] for r in listed if r["url"].endswith("/b"))
    failed = await guest.get("browser_fail_request", requestId=by_record, errorReason="ConnectionRefused")
    assert failed["errorReason"] == "ConnectionRefused"
    assert net.count("/api/stop/c") == 0
    one_on = await guest.get("browser_stop_intercepting", requestId=waiting["c"]["id"])
    assert (one_on["intercepting"], one_on["continued"]) == (True, 1)
    got = await guest.run(
        "while (Object.keys(got).length < 3) await new Promise((done) => setTimeout(done, 20)); return got"
    )
    assert got["a"] == [418, '{"tea":"grün"}', "yes"]
    assert "Failed to fetch" in got["b"]
    assert got["c"][0] == 404
    assert net.count("/api/stop/a") == net.count("/api/stop/b") == 0
    gone = await guest.fail("browser_fail_request", requestId=waiting["a"]["id"])
    assert "No request is paused" in gone["text"]
    assert (await guest.get("browser_stop_intercepting"))["intercepting"] is False
    assert "Nothing was intercepted" in (await guest.get("browser_stop_intercepting"))["note"]
    assert await guest.run("return (await fetch('/api/stop/d')).status") == 404


async def test_stopping_continues_all_requests_and_cross_process_frames_are_intercepted(
    guest: Caller, net: NetSite
) -> None:
    await restart_recording(guest, f"{net.url}/net_frames")
    await guest.get("browser_intercept_requests", urlPatterns=["*kind=held*"])
    for frame in (0, "near", "far"):
        await guest.run("window.held = fetch('/api/items?kind=held').then((r) => r.status)", frame=frame)
    assert len(await paused(guest, 3)) == 3
    ended = await guest.get("browser_stop_intercepting")
    assert ended["continued"] == 3
    for frame in (0, "near", "far"):
        assert await guest.run("return await held", frame=frame) == 200


async def test_a_document_request_can_be_fulfilled(guest: Caller, net: NetSite) -> None:
    await restart_recording(guest, f"{net.url}/net_index")
    await guest.get("browser_intercept_requests", urlPatterns=["*/made-up"])
    await guest.get("browser_navigate_tab", url=f"{net.url}/made-up", waitUntil="none")
    (waits,) = await paused(guest)
    page = "<!doctype html><title>Made up</title>"
    await guest.get(
        "browser_fulfill_request", requestId=waits["id"], status=200, body=page, headers={"Content-Type": "text/html"}
    )
    await guest.get("browser_stop_intercepting")
    await becomes(lambda: guest.run("return document.title"), "Made up")
    assert net.count("/made-up") == 0


async def test_invalid_headers_are_refused_before_anything_is_sent(guest: Caller, net: NetSite) -> None:
    await restart_recording(guest, f"{net.url}/net_index")
    for headers in ({"A\r\nB": "x"}, {"A": "x\r\nSet-Cookie: y=1"}, {"A:": "x"}):
        failed = await guest.fail("browser_fulfill_request", requestId="p1", status=200, headers=headers)
        assert "not a valid header" in failed["text"]


async def test_throttling_slows_disconnects_and_ends(agent: Caller, net: NetSite) -> None:
    free = await agent.open(f"{net.url}/net_index")
    await agent.open(f"{net.url}/net_index")
    fetched = "return (await fetch('/api/items')).status"
    # So long that no answer arrives before the throttling ends, however slow the machine is.
    on = await agent.get("browser_throttle_network", latency=60_000)
    assert (on["offline"], on["latency"], on["downloadThroughput"]) == (False, 60_000, -1)
    await agent.run("window.slow = fetch('/api/items?slow').then(() => 'answered', String)")
    throttled = (await agent.get("browser_get_tab_info"))["tabId"]
    assert await agent.run(fetched, tabId=free) == 200
    assert await agent.run("return Promise.race([slow, 'waiting'])", tabId=throttled) == "waiting"
    off = await agent.get("browser_throttle_network", preset="offline")
    assert off["offline"] is True
    assert "Failed to fetch" in await agent.run("return String(await fetch('/api/items').catch((e) => e))")
    assert (await agent.get("browser_clear_network_throttle"))["cleared"] is True
    assert await agent.run(fetched) == 200
    assert (await agent.get("browser_clear_network_throttle"))["cleared"] is False
    assert "slow-3g" in (await agent.fail("browser_throttle_network"))["text"]


async def test_clearing_affects_only_the_own_session(agent: Caller, live_hub: LiveHub, net: NetSite) -> None:
    tab_id = await agent.open(f"{net.url}/net_index")
    async with live.caller(live_hub) as other:
        assert await requests(other, tabId=tab_id, clear=True)
        assert await requests(other, tabId=tab_id) == []
    assert await requests(agent)


async def test_the_record_of_a_busy_page_is_bounded(guest: Caller, net: NetSite) -> None:
    await restart_recording(guest, f"{net.url}/net_index")
    await guest.run(
        # Requests of the page itself are recorded like all others, and cost the site nothing.
        "const fifty = (to) => Promise.all(Array.from({length: 50}, (_, n) => fetch(to + n)));"
        "for (let i = 0; i < 11; i += 1) await fifty('data:text/plain,' + i + '-'); await fifty('/api/items?n=')"
    )
    answer = await guest.get("browser_get_network_requests", limit=5)
    assert answer["requests"][-1]["url"].startswith(f"{net.url}/api/items?n=")
    assert "no longer kept" in answer["note"]


async def test_the_record_can_be_read_while_a_dialog_is_open(agent: Caller, net: NetSite) -> None:
    await agent.open(f"{net.url}/net_index")
    await agent.run("await window.ready; console.log('before the question')")
    await agent.fail("browser_execute_script", code="alert('wait')")
    output = (await agent.get("browser_get_console_logs"))["messages"]
    assert "before the question" in {m["text"] for m in output}
    assert await requests(agent, "/api/items")
