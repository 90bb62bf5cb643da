"""A real Chromium with the real extension, a fake hub, and a small web site."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from playwright.async_api import Browser
from websockets.asyncio.client import ClientConnection, connect

from tests.extension import panelpage
from tests.extension.fakehub import SECRET as SECRET
from tests.extension.fakehub import FakeHub, Wire
from tests.extension.pagetab import PageTab
from tests.harness.waiting import LONG, eventually

EXTENSION = Path(__file__).parents[2] / "extension"
EXTENSION_ID = "fbfngjfcbbkgoepkeecjnefoncaahigp"
CHROMIUM = shutil.which("chromium") or "chromium"
INTRANET = "intranet.test"
"""A host name of the test's sites: over plain HTTP their pages are no secure context, unlike those of 127.0.0.1."""
SWITCHES = [
    "--headless=new",
    "--disable-features=DisableLoadExtensionCommandLineSwitch",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--password-store=basic",
    "--remote-debugging-port=0",
    f"--host-resolver-rules=MAP {INTRANET} 127.0.0.1",
]
FORGET = """(async () => {
  self.fetch = () => new Promise(() => {});  // so that no hub is found before all is loaded anew
  const tabs = await chrome.tabs.query({});
  const blank = tabs.find(({ url, groupId }) => url === "about:blank" && groupId === -1);
  if (blank) await chrome.tabs.update(blank.id, { active: true });
  else await chrome.windows.create({ url: "about:blank" });
  await chrome.tabs.remove(tabs.filter((tab) => tab !== blank).map(({ id }) => id));
  const [{ children: folders }] = await chrome.bookmarks.getTree();
  const kept = folders.flatMap(({ children }) => children);
  const kinds = ["cache", "cookies", "downloads", "history", "indexedDB", "localStorage", "serviceWorkers"];
  await Promise.all([
    ...kept.map(({ id }) => chrome.bookmarks.removeTree(id)),
    chrome.browsingData.remove({}, Object.fromEntries(kinds.map((kind) => [kind, true]))),
    ...Object.keys(await chrome.notifications.getAll()).map((id) => chrome.notifications.clear(id)),
    chrome.scripting.unregisterContentScripts(),
    chrome.alarms.clearAll(),
    chrome.storage.session.clear(),
    chrome.storage.local.clear(),
  ]);
})()"""
"""Removes what a test file may have left in the browser; run in the extension's worker."""


@pytest.fixture(scope="module")
def anyio_backend() -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": True}


class Chromium:
    """One Chromium with the extension, and a separate debugging connection for the tests."""

    more_switches: tuple[str, ...] = ()

    def __init__(self, folder: Path, hub: FakeHub, **auth: Any) -> None:
        self.folder = folder
        self.extension = folder / "extension"
        shutil.copytree(EXTENSION, self.extension)
        self.write_auth(hub.port, **auth)
        self._ids = itertools.count(1)
        self._events: list[str | None] = []

    def write_auth(self, port: int, **auth: Any) -> None:
        """Write auth.json like the hub."""
        values = {"secret": SECRET, "port": port, "host": "127.0.0.1", "managed": False, **auth}
        (self.extension / "auth.json").write_bytes(orjson.dumps(values))

    async def start(self) -> None:
        """Start it and open the debugging connection."""
        profile = self.folder / "profile"
        (profile / "Default").mkdir(parents=True)
        # Without developer mode an unpacked extension that reloads itself stays disabled.
        (profile / "Default" / "Preferences").write_text('{"extensions": {"ui": {"developer_mode": true}}}')
        self._launch(profile)
        port_file = profile / "DevToolsActivePort"

        async def listening() -> list[str]:
            lines = port_file.read_text().split() if port_file.exists() else []
            return lines if len(lines) == 2 else []

        port, path = await eventually(listening)
        self._address = f"ws://127.0.0.1:{port}{path}"
        await self.connect()

    def _launch(self, profile: Path) -> None:
        self.process = subprocess.Popen(
            [
                CHROMIUM,
                *SWITCHES,
                *self.more_switches,
                *(["--no-sandbox"] if os.geteuid() == 0 else []),
                f"--load-extension={self.extension}",
                f"--user-data-dir={profile}",
                "about:blank",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    async def connect(self) -> None:
        self._devtools: ClientConnection = await connect(self._address, max_size=None)

    async def disconnect(self) -> None:
        """Close the debugging connection; the browser continues to run."""
        await self._devtools.close()

    async def renew(self, hub: FakeHub, **auth: Any) -> None:
        """Reset it to a new state: nothing open or stored, and the extension reloaded, for another hub."""
        await self.connect()
        if await self._worker() is None:
            await self.devtools("Target.createTarget", url="about:blank", background=True)  # any event wakes it
        worker = await eventually(self._worker)
        session = (await self.devtools("Target.attachToTarget", targetId=worker, flatten=True))["sessionId"]
        answer = await self.devtools("Runtime.evaluate", session=session, expression=FORGET, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        shutil.rmtree(self.extension)
        shutil.copytree(EXTENSION, self.extension)
        self.write_auth(hub.port, **auth)
        # There is no reply, because the target that would send it is gone.
        await self._send("Runtime.evaluate", session, expression="chrome.runtime.reload()")
        await hub.connection(1)

    async def _worker(self) -> str | None:
        """The target of the extension's service worker, if it runs."""
        targets = (await self.devtools("Target.getTargets"))["targetInfos"]
        there = (
            t["targetId"] for t in targets if t["type"] == "service_worker" and t["url"].endswith("/background.js")
        )
        return next(there, None)

    async def _send(self, method: str, session: str | None, **params: Any) -> int:
        number = next(self._ids)
        request = {"id": number, "method": method, "params": params, **({"sessionId": session} if session else {})}
        await self._devtools.send(orjson.dumps(request).decode())
        return number

    async def devtools(self, method: str, /, *, session: str | None = None, **params: Any) -> Any:
        """Send a command to the browser itself, bypassing the extension."""
        number = await self._send(method, session, **params)
        while True:
            message = orjson.loads(await self._devtools.recv())
            self._events.append(message.get("method"))
            if message.get("id") == number:
                assert "error" not in message, message
                return message["result"]

    @contextlib.asynccontextmanager
    async def page(self, url: str) -> AsyncIterator[Callable[..., Awaitable[Any]]]:
        """A page for the test; yields a function that sends it commands."""
        target = (await self.devtools("Target.createTarget", url="about:blank", background=True))["targetId"]
        session = (await self.devtools("Target.attachToTarget", targetId=target, flatten=True))["sessionId"]
        await self.devtools("Page.enable", session=session)
        self._events.clear()
        await self.devtools("Page.navigate", session=session, url=url)
        while "Page.loadEventFired" not in self._events:
            self._events.append(orjson.loads(await self._devtools.recv()).get("method"))

        async def command(method: str, **params: Any) -> Any:
            return await self.devtools(method, session=session, **params)

        yield command
        await self.devtools("Target.closeTarget", targetId=target)

    async def stop_worker(self) -> None:
        """Stop the extension's service worker, as the browser does when it is idle."""
        await self.devtools("Target.closeTarget", targetId=await self._worker())

    async def stop(self) -> None:
        await self.disconnect()
        self.kill()

    def kill(self) -> None:
        """Kill its processes."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


async def in_worker(chromium: Chromium, expression: str) -> Any:
    """Run something in the extension's worker."""
    targets = (await chromium.devtools("Target.getTargets"))["targetInfos"]
    worker = next(t for t in targets if t["type"] == "service_worker" and EXTENSION_ID in t["url"])
    session = (await chromium.devtools("Target.attachToTarget", targetId=worker["targetId"], flatten=True))["sessionId"]
    answer = await chromium.devtools(
        "Runtime.evaluate", session=session, expression=expression, awaitPromise=True, returnByValue=True
    )
    await chromium.devtools("Target.detachFromTarget", sessionId=session)
    assert "exceptionDetails" not in answer, answer
    return answer["result"].get("value")


class Shared:
    """One Chromium for all files that need it in its initial state; if it cannot be reset, a new one is started."""

    def __init__(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        self._folders = tmp_path_factory
        self._browser: Chromium | None = None

    @contextlib.asynccontextmanager
    async def at(self, hub: FakeHub, **auth: Any) -> AsyncIterator[Chromium]:
        """The browser, reset, and connected to a hub."""
        browser = await self._renewed(hub, **auth)
        if browser is None:
            self._browser = browser = Chromium(self._folders.mktemp("chromium"), hub, **auth)
            await browser.start()
        yield browser
        # It keeps looking for a hub, and must not find one that has since got this one's port.
        (browser.extension / "auth.json").unlink(missing_ok=True)
        await browser.disconnect()

    async def _renewed(self, hub: FakeHub, **auth: Any) -> Chromium | None:
        if self._browser is None:
            return None
        try:
            async with asyncio.timeout(LONG):
                await self._browser.renew(hub, **auth)
        except Exception:  # whatever the previous file did to it
            self.kill()
            hub.wires.clear()
        return self._browser

    def kill(self) -> None:
        """Kill the browser if it runs."""
        if self._browser is not None:
            self._browser.kill()
        self._browser = None


STIRRING = """<canvas width=1 height=1></canvas><script>
  const pen = document.querySelector("canvas").getContext("2d");
  setInterval(() => { pen.fillRect(0, 0, 1, 1); pen.clearRect(0, 0, 1, 1); }, 100);
</script>"""
"""For pages that are captured: a background tab waits for a change (see browser/screenshots.py)."""

PAGES: dict[str, tuple[str, str]] = {
    "/": ("", "<title>Home</title><h1>home</h1>"),
    "/other": ("", "<title>Other</title>other"),
    "/strict": ("Content-Security-Policy: default-src 'none'; script-src 'none'\r\n", "<title>Strict</title>"),
    "/red": ("", f"<title>Red</title><body style='margin:0;background:#f00'>{STIRRING}"),
    "/slow-image": ("", "<title>Slow</title><img src=/never>"),
}


class Site:
    """Pages at 127.0.0.1 and, as another site, at localhost."""

    def __init__(self) -> None:
        self.asked_never = asyncio.Event()
        self._open: set[asyncio.StreamWriter] = set()

    async def listen(self) -> None:
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.intranet = f"http://{INTRANET}:{self.port}"

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            path = head.split(" ")[1]
            if path == "/never":
                self.asked_never.set()
                await reader.read()
                return
            if path == "/empty":
                writer.write(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
            elif path == "/moved":
                writer.write(
                    b"HTTP/1.1 302 Found\r\nLocation: /other\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                )
            else:
                status = "404 Not Found" if path == "/gone" else "200 OK"
                framed = f"<title>Outer</title><iframe src='http://localhost:{self.port}/other'></iframe>"
                header, body = ("", framed) if path == "/framed" else PAGES.get(path, ("", "<title>None</title>"))
                writer.write(
                    f"HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\n"
                    f"Connection: close\r\n{header}\r\n{body}".encode()
                )
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self._open.discard(writer)
            writer.close()

    async def stop(self) -> None:
        """Stop, and release held requests."""
        self._server.close()
        for writer in list(self._open):
            writer.close()
        await self._server.wait_closed()


@pytest.fixture(scope="module")
async def site() -> AsyncIterator[Site]:
    site = Site()
    await site.listen()
    yield site
    await site.stop()


@pytest.fixture(scope="module")
async def hub() -> AsyncIterator[FakeHub]:
    hub = FakeHub()
    await hub.listen()
    yield hub
    await hub.stop()


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    shared = Shared(tmp_path_factory)
    yield shared
    shared.kill()


@pytest.fixture(scope="module")
async def chromium(hub: FakeHub, shared: Shared) -> AsyncIterator[Chromium]:
    async with shared.at(hub, debuggerIdleMs=1500) as browser:
        yield browser


@pytest.fixture
async def wire(hub: FakeHub, chromium: Chromium) -> Wire:
    """The current connection of the extension."""
    return await hub.connection(max(1, len(hub.wires)))


@pytest.fixture
async def tab(wire: Wire) -> AsyncIterator[int]:
    """A background tab, closed after the test."""
    made: int = (await wire.ask("createTab"))["tabId"]
    yield made
    left = (await wire.ask("getTabs"))["tabs"] if not wire.closed.is_set() else []
    if any(t["tabId"] == made for t in left):
        await wire.ask("closeTab", tabId=made)


@pytest.fixture(scope="module")
async def shop() -> AsyncIterator[Site]:
    """The site whose pages offer tools."""
    from tests.extension.pagesite import PageSite

    site = PageSite()
    await site.listen()
    yield site
    await site.stop()


@pytest.fixture
async def visit(wire: Wire, shop: Site) -> AsyncIterator[Callable[[str], Awaitable[PageTab]]]:
    """Opens a page by its name; the tab is closed after the test."""
    opened: list[PageTab] = []

    async def visit(name: str) -> PageTab:
        opened.append(await PageTab.open(wire, f"{shop.url}/pages/{name}"))
        return opened[-1]

    yield visit
    left = {tab["tabId"] for tab in (await wire.ask("getTabs"))["tabs"]} if not wire.closed.is_set() else set()
    for page in opened:
        if page.tab in left:
            await wire.ask("closeTab", tabId=page.tab)


@pytest.fixture(scope="module")
async def browser() -> AsyncIterator[Browser]:
    """A Chromium without the extension, only for the panel's page."""
    async with panelpage.chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The URL of the panel's page."""
    with panelpage.files(EXTENSION) as address:
        yield address
