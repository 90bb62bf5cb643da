"""The archive of a page with all kinds of traffic, validated against HAR 1.2."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.har_format import problems
from tests.e2e.live import Caller
from tests.e2e.netsite import NetSite

BUSY = """
await window.ready;
const read = async (...given) => (await fetch(...given).catch(() => null))?.arrayBuffer().catch(() => null);
const post = (body, headers = {}) => read("/echo", { method: "POST", body, headers });
await read("/api/tagged"); await read("/api/tagged"); await read("/api/packed"); await read("/data.bin");
await read("/api/moved?x=1&y=&x=%E2%82%AC#part"); await read("/api/missing"); await read("/api/login");
await read("/stream"); await read("http://nowhere.invalid/"); await read(URL.createObjectURL(new Blob(["blob"])));
await read("data:text/plain,d");
await read(args.elsewhere + "/api/items", { method: "PUT", headers: { "X-Own": "1" } });
await read(location.origin.replace("//", "//anna:p4ss@") + "/x");
const form = new FormData(); form.append("file", new Blob(["content"]), "n\\u00e4me.txt"); form.append("word", "v");
await post(form); await post(new URLSearchParams({ a: "b", password: "hunter22" })); await post("text");
await post(new Uint8Array([0, 255, 254, 1])); await post(new Blob([new Uint8Array(70000)]));
await post("y".repeat(100000));
const xhr = new XMLHttpRequest(); xhr.open("GET", "/api/items?xhr", true, "anna", "p4ss");
await new Promise((done) => { xhr.onloadend = done; xhr.send(); });
const cut = new AbortController(); const slow = read("/slow?s=5", { signal: cut.signal });
for (const to of [args.socket, "ws://127.0.0.1:9/"]) {
  const socket = new WebSocket(to);
  socket.onopen = () => { socket.send("hello"); socket.send(new Uint8Array([1, 2])); socket.close(); };
  await new Promise((done) => { socket.onclose = done; });
}
cut.abort(); await slow; navigator.sendBeacon("/echo", "beacon");
fetch("/slow?s=9"); fetch("/stream");
"""


@pytest.fixture(scope="module")
def net() -> Iterator[NetSite]:
    site = NetSite()
    yield site
    site.stop()


def written(result: dict[str, Any]) -> str:
    return Path(result["filePath"]).read_text()


async def test_an_exported_archive_is_valid_har_for_all_kinds_of_traffic(agent: Caller, net: NetSite) -> None:
    await agent.open(f"{net.url}/net_frames")
    await agent.get("browser_navigate_tab", url=f"{net.url}/net_index")
    await agent.run(BUSY, args={"elsewhere": net.elsewhere, "socket": net.socket})
    result = await agent.get("browser_export_har", includeWebSocketFrames=True, filePath="busy.har", overwrite=True)
    log = json.loads(written(result))["log"]
    assert problems({"log": log}) == []
    by_path: dict[str, Any] = {}
    for entry in log["entries"]:
        by_path.setdefault(entry["request"]["url"].removeprefix(net.url), []).append(entry)
    first, again = by_path["/api/tagged"]
    assert (first["response"]["status"], first["response"]["bodySize"]) == (200, 6)
    assert (again["response"]["status"], again["response"]["bodySize"]) == (304, 0)
    (packed,) = by_path["/api/packed"]
    assert packed["response"]["content"]["size"] == 7000 > packed["response"]["bodySize"] > 0
    (moved,) = (entry for path, (entry, *_) in by_path.items() if path.startswith("/api/moved"))
    assert [(q["name"], q["value"]) for q in moved["request"]["queryString"]] == [("x", "1"), ("y", ""), ("x", "€")]
    sizes = {entry["request"]["bodySize"] for entry in by_path["/echo"]}
    assert {4, 70_000, 100_000} <= sizes
    assert {page["title"] for page in log["pages"]} == {f"{net.url}/net_frames", f"{net.url}/net_index"}
    assert "p4ss" not in str(log)
    assert "hunter22" not in str(log)


def test_the_har_validator_detects_violations() -> None:
    entry: dict[str, Any] = {
        "pageref": "p",
        "startedDateTime": "2026-01-31T12:00:00.000Z",
        "time": 3,
        "request": {
            "method": "GET",
            "url": "https://site.example/",
            "httpVersion": "HTTP/1.1",
            "cookies": [],
            "headers": [{"name": "a", "value": "b"}],
            "queryString": [],
            "headersSize": -1,
            "bodySize": 0,
        },
        "response": {
            "status": 200,
            "statusText": "OK",
            "httpVersion": "HTTP/1.1",
            "cookies": [],
            "headers": [],
            "content": {"size": 0, "mimeType": "x"},
            "redirectURL": "",
            "headersSize": -1,
            "bodySize": 0,
        },
        "cache": {},
        "timings": {"send": 1, "wait": 1, "receive": 1, "dns": -1},
    }
    page = {"startedDateTime": "2026-01-31T12:00:00Z", "id": "p", "title": "", "pageTimings": {}}
    good: dict[str, Any] = {
        "log": {"version": "1.2", "creator": {"name": "x", "version": "1"}, "pages": [page], "entries": [entry]}
    }
    assert problems(good) == []
    wrongs: tuple[tuple[tuple[str, ...], Any], ...] = (
        (("timings", "wait"), -1),
        (("time",), 9),
        (("extra",), 1),
        (("startedDateTime",), "yesterday"),
        (("pageref",), "q"),
        (("request", "bodySize"), "0"),
        (("request", "headers"), [{"name": "a", "value": "b\nc"}]),
        (("response", "status"), 42),
        (("response", "redirectURL"), "/x"),
        (("response", "content"), {"size": 5, "mimeType": "x", "text": "AA==", "encoding": "base64"}),
    )
    for path, value in wrongs:
        bad = copy.deepcopy(good)
        (place,) = bad["log"]["entries"]
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value
        assert problems(bad), path
