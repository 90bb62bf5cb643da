"""Two users, three agents, two browsers (a real Chromium and a fake), two relay nodes and a NATS server."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import random
import re
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tabhub.errors import LinkLost
from tests.e2e.live import Caller
from tests.e2e.pagesite import PageSite, prefix
from tests.e2e.site import Site
from tests.e2e.test_plugins import _NOTES, Notebooks
from tests.e2e.zoo import Zoo
from tests.extension.conftest import EXTENSION_ID, Chromium
from tests.extension.fakehub import FakeHub
from tests.harness.agent import client
from tests.harness.hub import RunningHub, running_hub
from tests.harness.ports import free_port
from tests.harness.process import tabhub
from tests.harness.waiting import eventually, until
from tests.links.test_relay_link import FarBrowser
from tests.relay.independent import IndependentAgent
from tests.relay.natsd import NatsServer, nats_server
from tests.relay.world import SECRET, RunningRelay, running_relay, token

_URL = re.compile(rb"is running on ws://127\.0\.0\.1:(\d+)")
_SET = """(async () => {
  const port = chrome.runtime.connect({ name: "panel" });
  const answer = new Promise((done) => port.onMessage.addListener((m) => m.type === "answer" && done(m)));
  port.postMessage({ type: "ask", id: 1, method: "relay.set", params: %s });
  return await answer;
})()"""


_HELD = """
const hex = (buffer) => Array.from(new Uint8Array(buffer), (byte) => byte.toString(16).padStart(2, "0")).join("");
const content = async (file) =>
  [file.name, file.type, file.size, hex(await crypto.subtle.digest("SHA-256", await file.arrayBuffer()))];
const files = await Promise.all([...document.getElementById("many").files].map(content));
while (!log.at(-1)?.startsWith("made")) await new Promise((done) => setTimeout(done, 10));
return { files, log: log.slice(-1) };
"""
_WATCHED = """
window.seen = new Set();
for (const kind of ["click", "mouseover", "input"]) field.addEventListener(kind, () => window.seen.add(kind));
"""
Call = Callable[..., Awaitable[dict[str, Any]]]


class Node:
    """A relay node in its own process, on one port."""

    def __init__(self, home: Path, bus: str) -> None:
        self._home = home
        self._bus = bus
        self.port = free_port()
        self.process: asyncio.subprocess.Process

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}"

    async def start(self) -> None:
        key = self._home / "relay.key"
        key.write_text(SECRET)
        argv = ("relay", "start", "--port", str(self.port), "--key-file", str(key), "--bus", self._bus)
        self.process = await tabhub(self._home, *argv)
        assert self.process.stdout is not None
        async with asyncio.timeout(30):
            found = _URL.search(await self.process.stdout.readline())
        assert found is not None
        assert self.process.stderr is not None
        self._drain = asyncio.create_task(self.process.stderr.read())

    async def kill(self) -> None:
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()
        await self._drain


@dataclass(slots=True)
class World:
    """Two users on two nodes: ann's Chromium at the first, bob's fake browser and ann's hub at the second."""

    nats: NatsServer
    first: Node
    second: Node
    hub: RunningHub
    ann: IndependentAgent
    bob: IndependentAgent
    fake: FarBrowser

    def reaches(self) -> bool:
        """Whether the hub has the remote browser and its tabs."""
        return any(
            b.get("relay") and b["connected"] and b["extension"]["sentTabs"] for b in self.hub.hub.browsers.status()
        )

    async def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        async with client(self.hub, **{"Tabhub-Session": "e2e"}) as http:
            reply = await http.post(f"/tools/{name}/call", json={"arguments": arguments})
        answer: dict[str, Any] = reply.json()
        return answer


@asynccontextmanager
async def nodes(folder: Path, bus: str) -> AsyncIterator[tuple[Node, Node]]:
    both = [Node(folder / name, bus) for name in ("one", "two")]
    for name in ("one", "two"):
        (folder / name).mkdir()
    try:
        await asyncio.gather(*(node.start() for node in both))
        yield both[0], both[1]
    finally:
        for node in both:
            await node.kill()


@asynccontextmanager
async def chromium_at(folder: Path, url: str) -> AsyncIterator[Chromium]:
    """A real browser, connected to a relay through the panel."""
    hub = FakeHub()
    await hub.listen()
    browser = Chromium(folder, hub)
    await browser.start()
    try:
        await hub.connection(1, within=40)
        (browser.extension / "panel" / "test.html").write_text("<!doctype html><title>Test</title>")
        async with browser.page(f"chrome-extension://{EXTENSION_ID}/panel/test.html") as command:
            given = json.dumps({"url": url, "token": token("ann"), "level": "act", "instead": True})
            answer = await command("Runtime.evaluate", expression=_SET % given, awaitPromise=True, returnByValue=True)
            assert "error" not in answer["result"]["value"], answer
        yield browser
    finally:
        await browser.stop()
        await hub.stop()


@asynccontextmanager
async def world(folder: Path) -> AsyncIterator[World]:
    (folder / "chromium").mkdir()
    file = folder / "ann.token"
    file.write_text(token("ann"))
    async with (
        nats_server() as nats,
        nodes(folder, nats.url) as (first, second),
        chromium_at(folder / "chromium", first.url),
        FarBrowser(second.url, token("bob"), "bobs") as fake,
        IndependentAgent(first.url, token("ann")) as ann,
        IndependentAgent(first.url, token("bob")) as bob,
        running_hub(folder, relays=[{"url": second.url, "tokenFile": str(file)}]) as hub,
    ):
        made = World(nats, first, second, hub, ann, bob, fake)
        await ann.handshake()
        await bob.handshake()
        await ann.join((await ann.listed(1))[0]["id"])
        await bob.join((await bob.listed(1))[0]["id"])
        await until(made.reaches, 30)
        yield made


@pytest.fixture(scope="module")
async def relay(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningRelay]:
    """One node in this process, with a Chromium of ann's; each test has its own hub."""
    async with running_relay() as relay, chromium_at(tmp_path_factory.mktemp("chromium"), relay.url):
        yield relay


@pytest.mark.timeout(240)
async def test_users_browsers_and_agents_on_two_nodes(tmp_path: Path, site: Site, zoo: Zoo) -> None:
    async with world(tmp_path) as there:
        # every agent reaches its own user's browser, on its own node or the other
        opened = await there.call("browser_open_tab", url=f"{site.url}/")
        assert not opened.get("isError"), opened
        tab_id = opened["structuredContent"]["tabId"]
        ran = await there.call("browser_execute_script", tabId=tab_id, code="return 6 * 7")
        assert ran["structuredContent"]["value"] == 42
        await used_by_hand(there.call, site)
        await files_given(there, zoo)
        seen = (await there.ann.result("getTabs"))["tabs"]
        assert [tab["url"] for tab in seen].count(f"{site.url}/") == 1
        assert (await there.bob.result("getTabs"))["tabs"][0]["tabId"] == 7
        await isolated(there)
        await node_killed(there, tab_id)
        await nats_killed(there)
        assert [request["method"] for request in there.fake.requests].count("goBack") == 1


async def used_by_hand(call: Call, site: Site) -> None:
    """Click, type, hover and take a screenshot; each is verified in the page or in the picture."""

    async def done(name: str, **arguments: Any) -> dict[str, Any]:
        answer = await call(name, **arguments)
        assert not answer.get("isError"), answer
        return answer

    tab_id = (await done("browser_open_tab", url=f"{site.url}/stay"))["structuredContent"]["tabId"]
    await done("browser_execute_script", tabId=tab_id, code=_WATCHED)
    for name, more in (
        ("browser_click_element", {"selector": "#field"}),
        ("browser_hover_element", {"selector": "#field"}),
        ("browser_type_text", {"selector": "#field", "text": "typed far away"}),
    ):
        await done(name, tabId=tab_id, **more)
    seen = await done("browser_execute_script", tabId=tab_id, code="return [field.value, [...window.seen]]")
    value, events = seen["structuredContent"]["value"]
    assert value == "typed far away"
    assert {"click", "mouseover", "input"} <= set(events)
    shot = await done("browser_screenshot_tab", tabId=tab_id)
    (picture,) = [part for part in shot["content"] if part["type"] == "image"]
    assert len(base64.b64decode(picture["data"])) > 1000
    await done("browser_close_tab", tabId=tab_id)


async def files_given(there: World, zoo: Zoo) -> None:
    """Files of the hub's machine are sent to the browser's as bytes: they are complete there after they were deleted
    here."""
    folder = there.hub.home.root / "files"
    folder.mkdir(exist_ok=True)
    given = {"empty.bin2": b"", "größe 你.csv": "ü,1\n".encode(), "large.png": random.Random(1).randbytes(5 * 1024**2)}
    for name, content in given.items():
        (folder / name).write_bytes(content)
    opened = await there.call("browser_open_tab", url=zoo.at("act_files.html"))
    tab_id = opened["structuredContent"]["tabId"]

    async def give(*names: str, **target: str) -> dict[str, Any]:
        return await there.call("browser_upload_file", tabId=tab_id, paths=list(names), **target)

    assert not (await give(*given, selector="#many")).get("isError")
    (folder / "small.txt").write_text("small")
    assert not (await give("small.txt", text="Choose a file")).get("isError")
    for file in list(folder.iterdir()):
        file.unlink()
    held = (await there.call("browser_execute_script", tabId=tab_id, code=_HELD))["structuredContent"]["value"]
    types = ["", "text/csv", "image/png"]
    assert held["files"] == [
        [name, kind, len(content), hashlib.sha256(content).hexdigest()]
        for (name, content), kind in zip(given.items(), types, strict=True)
    ]
    assert held["log"][-1] == "made small.txt small"
    (folder / "huge.bin").write_bytes(bytes(6 * 1024**2 + 1))
    refused = await give("huge.bin", selector="#one")
    assert refused["isError"]
    assert "larger than 6 MB together" in refused["content"][0]["text"]
    assert "Give smaller files" in refused["content"][0]["text"]
    await there.call("browser_close_tab", tabId=tab_id)


@pytest.mark.req("S003-forwarded-04")
@pytest.mark.timeout(180)
async def test_click_type_hover_and_screenshot_work_on_every_link(
    tmp_path: Path, site: Site, agent: Caller, relay: RunningRelay
) -> None:
    await used_by_hand(agent.call, site)  # the extension's WebSocket to a hub on the same machine
    file = tmp_path / "ann.token"
    file.write_text(token("ann"))
    async with (
        running_hub(tmp_path, relays=[{"url": relay.url, "tokenFile": str(file)}]) as hub,
        client(hub, **{"Tabhub-Session": "e2e"}) as http,
    ):

        async def call(name: str, /, **arguments: Any) -> dict[str, Any]:
            answer: dict[str, Any] = (await http.post(f"/tools/{name}/call", json={"arguments": arguments})).json()
            return answer

        await until(lambda: any(b.get("relay") and b["connected"] for b in hub.hub.browsers.status()), 30)
        await used_by_hand(call, site)


async def isolated(there: World) -> None:
    """B13, in both directions: resources of another user look as if they did not exist."""
    (anns,), (bobs,) = await there.ann.browsers(), await there.bob.browsers()
    assert anns["id"] != bobs["id"]
    for agent, foreign in ((there.ann, bobs["id"]), (there.bob, anns["id"])):
        await agent.result("disconnect")
        refused = await agent.error("connect", {"extension_id": foreign})
        unknown = await agent.error("connect", {"extension_id": f"ext-{uuid.uuid4()}"})
        assert refused == unknown
        assert refused["code"] == -32000
    await there.ann.join(anns["id"])
    await there.bob.join(bobs["id"])
    assert [b["connected"] for b in there.hub.hub.browsers.status()] == [True]


async def node_killed(there: World, tab_id: int) -> None:
    """The second node dies: its agents, and calls to its browsers, fail at once; the pair on the first node
    continues."""
    there.fake.silent.add("goBack")
    under_way = await there.bob.begin("goBack", {"tabId": 7})
    await until(lambda: bool(there.fake.asked("goBack")), 30)
    waits = "window.ran = (window.ran ?? 0) + 1; await new Promise(() => {})"
    slow = asyncio.create_task(there.call("browser_execute_script", tabId=tab_id, code=waits))

    async def runs() -> bool:
        looked = await there.call("browser_execute_script", tabId=tab_id, code="return window.ran ?? 0")
        return bool(looked["structuredContent"]["value"] == 1)

    await eventually(runs)
    await there.second.kill()
    answer = await slow
    assert (answer["error"]["code"], answer["error"]["outcome"]) == (LinkLost.code, "unknown"), answer
    lost = await under_way
    assert (lost["error"]["code"], lost["error"]["data"]["outcome"]) == (LinkLost.code, "unknown"), lost
    assert (await there.ann.result("getTabs"))["tabs"]
    await until(lambda: not there.reaches(), 30)
    await there.second.start()
    await until(there.reaches, 60)
    ran = await there.call("browser_execute_script", tabId=tab_id, code="return window.ran")
    assert ran["structuredContent"]["value"] == 1, ran  # once, and never again


async def nats_killed(there: World) -> None:
    """Without NATS the pair on one node continues, and calls across nodes fail with a clear error; with NATS, all works
    again."""
    await there.nats.kill()
    await until(lambda: not there.reaches(), 30)
    assert (await there.ann.result("getTabs"))["tabs"]
    assert (await there.call("browser_list_tabs"))["error"]["outcome"] == "not_sent"
    await there.nats.start()
    await until(there.reaches, 60)
    assert not (await there.call("browser_list_tabs")).get("isError")


@pytest.mark.timeout(180)
async def test_page_tools_and_plugins_of_a_remote_browser_work(
    tmp_path: Path, page_site: PageSite, relay: RunningRelay
) -> None:
    file = tmp_path / "ann.token"
    file.write_text(token("ann"))
    notebook = Notebooks("Far notebook")
    settings: dict[str, Any] = {
        "localPlugins": [str(_NOTES)],
        "settings": {"notes": {"site": notebook.url}},
        "permissions": {"default": "auto", "notes": {"permission": "auto"}},
    }
    try:
        async with (
            running_hub(tmp_path, relays=[{"url": relay.url, "tokenFile": str(file)}], **settings) as hub,
            client(hub, **{"Tabhub-Session": "e2e"}) as http,
        ):

            async def call(name: str, **arguments: Any) -> dict[str, Any]:
                answer: dict[str, Any] = (await http.post(f"/tools/{name}/call", json={"arguments": arguments})).json()
                assert not answer.get("isError"), answer
                return answer

            await until(lambda: any(facts.get("relay") for facts in hub.hub.browsers.status()), 30)
            await call("browser_open_tab", url=f"{page_site.url}/pages/webmcp.html")
            wanted = f"{prefix(page_site.url)}_tab1_add"
            await until(lambda: wanted in [tool.name for tool in hub.hub.catalogues.everything.tools()], 30)
            assert "5" in json.dumps((await call(wanted, a=2, b=3))["content"])
            await call("browser_open_tab", url=f"{notebook.url}/")
            await until(lambda: any(each["ready"] for each in plugin_tabs(hub)), 30)
            listed_notes = await call("notes_list_notes")
            assert listed_notes["structuredContent"]["notebook"] == "Far notebook"
    finally:
        notebook.stop()


def plugin_tabs(hub: RunningHub) -> list[dict[str, Any]]:
    """The tabs of the notes plugin, according to /health."""
    tabs: list[dict[str, Any]] = next(
        each for each in hub.hub.health.full()["pluginDetails"] if each["name"] == "notes"
    )["tabs"]
    return tabs
