"""A real Chromium with the real extension, a hub that is only a test's, and a small web site."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import shutil
import signal
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

EXTENSION = Path(__file__).parents[2] / "extension"
EXTENSION_ID = "fbfngjfcbbkgoepkeecjnefoncaahigp"
CHROMIUM = shutil.which("chromium") or "chromium"
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
]


@pytest.fixture(scope="module")
def anyio_backend() -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": True}


class Chromium:
    """One Chromium with the extension, and its own debugging connection for what only a test does."""

    more_switches: tuple[str, ...] = ()

    def __init__(self, folder: Path, hub: FakeHub, **auth: Any) -> None:
        self.folder = folder
        self.extension = folder / "extension"
        shutil.copytree(EXTENSION, self.extension)
        self.write_auth(hub.port, **auth)
        self._ids = itertools.count(1)
        self._events: list[str | None] = []

    def write_auth(self, port: int, **auth: Any) -> None:
        """Write auth.json as the hub does."""
        values = {"secret": SECRET, "port": port, "host": "127.0.0.1", "managed": False, **auth}
        (self.extension / "auth.json").write_bytes(orjson.dumps(values))

    async def start(self) -> None:
        """Start it and open its debugging connection."""
        profile = self.folder / "profile"
        (profile / "Default").mkdir(parents=True)
        # Without developer mode an unpacked extension that reloads itself stays off.
        (profile / "Default" / "Preferences").write_text('{"extensions": {"ui": {"developer_mode": true}}}')
        self.process = await asyncio.create_subprocess_exec(
            CHROMIUM,
            *SWITCHES,
            *self.more_switches,
            *(["--no-sandbox"] if os.geteuid() == 0 else []),
            f"--load-extension={self.extension}",
            f"--user-data-dir={profile}",
            "about:blank",
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        assert self.process.stderr is not None
        async for line in self.process.stderr:
            if line.startswith(b"DevTools listening on "):
                self._address = line.split()[-1].decode()
                break
        self._drain = asyncio.create_task(self.process.stderr.read())
        self._devtools: ClientConnection = await connect(self._address, max_size=None)

    async def devtools(self, method: str, /, *, session: str | None = None, **params: Any) -> Any:
        """One command to the browser itself, beside the extension."""
        number = next(self._ids)
        request = {"id": number, "method": method, "params": params, **({"sessionId": session} if session else {})}
        await self._devtools.send(orjson.dumps(request).decode())
        while True:
            message = orjson.loads(await self._devtools.recv())
            self._events.append(message.get("method"))
            if message.get("id") == number:
                assert "error" not in message, message
                return message["result"]

    @contextlib.asynccontextmanager
    async def page(self, url: str) -> AsyncIterator[Callable[..., Awaitable[Any]]]:
        """A page of the test's own; gives a way to send it commands."""
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
        targets = (await self.devtools("Target.getTargets"))["targetInfos"]
        worker = next(t for t in targets if t["type"] == "service_worker" and t["url"].endswith("/background.js"))
        await self.devtools("Target.closeTarget", targetId=worker["targetId"])

    async def stop(self) -> None:
        """End it."""
        await self._devtools.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        await self.process.wait()
        await self._drain


PAGES: dict[str, tuple[str, str]] = {
    "/": ("", "<title>Home</title><h1>home</h1>"),
    "/other": ("", "<title>Other</title>other"),
    "/strict": ("Content-Security-Policy: default-src 'none'; script-src 'none'\r\n", "<title>Strict</title>"),
    "/red": ("", "<title>Red</title><body style='margin:0;background:#f00'>"),
    "/slow-image": ("", "<title>Slow</title><img src=/never>"),
}


class Site:
    """Pages at 127.0.0.1 and, as another site, at localhost."""

    def __init__(self) -> None:
        self.asked_never = asyncio.Event()
        self._open: set[asyncio.StreamWriter] = set()

    async def listen(self) -> None:
        """Begin."""
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"

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
            else:
                framed = f"<title>Outer</title><iframe src='http://localhost:{self.port}/other'></iframe>"
                header, body = ("", framed) if path == "/framed" else PAGES.get(path, ("", "<title>None</title>"))
                writer.write(
                    f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\n"
                    f"Connection: close\r\n{header}\r\n{body}".encode()
                )
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self._open.discard(writer)
            writer.close()

    async def stop(self) -> None:
        """End, also what still waits."""
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


@pytest.fixture(scope="module")
async def chromium(hub: FakeHub, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Chromium]:
    browser = Chromium(tmp_path_factory.mktemp("chromium"), hub, debuggerIdleMs=1500)
    await browser.start()
    yield browser
    await browser.stop()


@pytest.fixture
async def wire(hub: FakeHub, chromium: Chromium) -> Wire:
    """The present connection of the extension."""
    return await hub.connection(max(1, len(hub.wires)))


@pytest.fixture
async def tab(wire: Wire) -> AsyncIterator[int]:
    """A background tab, closed afterwards if the test has not."""
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
    """Opens a page by its name; the tab is closed afterwards."""
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
    """A Chromium without the extension, for the panel's page alone."""
    async with panelpage.chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Where the panel's page is."""
    with panelpage.files(EXTENSION) as address:
        yield address
