"""A hub and its browser as a person starts them: `tabhub start --launch` in its own process, with a real Chromium."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import orjson
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from websockets.asyncio.client import ClientConnection, connect

from tabhub.store.home import Home
from tests.harness.agent import PROGRAM
from tests.harness.agent import client as http_client
from tests.harness.hub import AGENT, Address, agent_token
from tests.harness.waiting import wait_for

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or "chromium"
EXTENSION = "chrome-extension://fbfngjfcbbkgoepkeecjnefoncaahigp"
_HOSTS = "MAP *.invalid ~NOTFOUND, MAP chromewebstore.google.com ~NOTFOUND, MAP intranet.test 127.0.0.1"
_NO_NET = f"--host-resolver-rules={_HOSTS}"
_names = itertools.count(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveHub(Address):
    """A running hub with a managed browser."""

    home: Path
    env: dict[str, str]
    process: subprocess.Popen[bytes]

    def health(self) -> dict[str, Any]:
        """`/health` as the person sees it."""
        answer = httpx2.get(f"{self.url}/health", headers=self.person.bearer, timeout=30, verify=False)
        facts: dict[str, Any] = answer.json()
        return facts

    @property
    def connected(self) -> bool:
        return self.health()["extensionConnected"] is True

    @property
    def ready(self) -> bool:
        """Whether a browser is connected and has reported its tabs."""
        return any(b["connected"] and b["extension"]["sentTabs"] for b in self.health()["legs"]["browsers"])

    @property
    def browser_pid(self) -> int | None:
        """The managed browser, which leads a process group."""
        managed = self.health()["legs"]["managedBrowser"]
        pid: int | None = managed["pid"]
        return pid

    def kill_browser(self) -> int:
        """Send SIGKILL to the managed browser and all its processes."""
        pid = self.browser_pid
        assert pid is not None
        os.killpg(pid, signal.SIGKILL)
        return pid

    def tabhub(self, *argv: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "tabhub", *argv]
        return subprocess.run(command, env=self.env, capture_output=True, text=True, timeout=30, check=False)

    @contextlib.asynccontextmanager
    async def mcp(self, mode: str, path: str = PROGRAM, **more: Any) -> AsyncIterator[Client]:
        """The official client, with further arguments for it; `legacy` is the handshake era."""
        async with http_client(self) as http:
            transport = streamable_http_client(f"{self.url}{path}", http_client=http)
            async with Client(transport, mode=mode, **more) as client:
                yield client


@dataclass(slots=True)
class Caller:
    """An agent with its own session, over REST."""

    hub: LiveHub
    http: httpx2.AsyncClient
    opened: list[int] = field(default_factory=list)
    kept: int | None = None
    """The tab of `visit`."""
    unchanged: str = ""
    """The URL of the page in it that has only been read."""

    async def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Call a tool and return the whole result."""
        reply = await self.http.post(f"/tools/{name}/call", json={"arguments": arguments})
        answer: dict[str, Any] = reply.json()
        return answer

    async def get(self, name: str, /, **arguments: Any) -> Any:
        """Call a tool that must succeed and return its structured content."""
        answer = await self.call(name, **arguments)
        assert not answer.get("isError"), answer
        return answer["structuredContent"]

    async def fail(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Call a tool that must fail and return the error with its `text`."""
        answer = await self.call(name, **arguments)
        assert answer.get("isError"), answer
        error: dict[str, Any] = answer.get("error", {})
        return {**error, "text": answer["content"][0]["text"]}

    async def open(self, url: str, **more: Any) -> int:
        """Open a tab that is closed at the end, and return its id."""
        tab_id: int = (await self.get("browser_open_tab", url=url, **more))["tabId"]
        self.opened.append(tab_id)
        return tab_id

    async def visit(self, url: str) -> int:
        """Load a page in the tab of the last visit, or in a new tab if that one cannot be used; returns its id."""
        self.unchanged = ""
        if self.kept is not None:
            answer = await self.call("browser_navigate_tab", tabId=self.kept, url=url)
            if not answer.get("isError"):
                return self.kept
            await self.leave()
        self.kept = await self.open(url)
        return self.kept

    async def read(self, url: str) -> int:
        """Visit a page without changing it: it is loaded again only if it may have been changed."""
        tab_id = self.kept
        if tab_id is None or self.unchanged != url:
            tab_id = await self.visit(url)
            self.unchanged = url
        return tab_id

    async def leave(self) -> None:
        """Close the tab of `visit`, whatever its state."""
        if self.kept is not None:
            await self.call("browser_close_tab", tabId=self.kept)
            self.opened.remove(self.kept)
            self.kept, self.unchanged = None, ""

    async def run(self, code: str, **more: Any) -> Any:
        """Run a script that must succeed and return its result."""
        return (await self.get("browser_execute_script", code=code, **more))["value"]


@contextlib.asynccontextmanager
async def caller(hub: LiveHub) -> AsyncIterator[Caller]:
    """A new agent; at the end the tabs it opened are closed and its session is ended."""
    name = f"agent-{next(_names)}"
    async with http_client(hub, **{"Tabhub-Session": name}) as http:
        agent = Caller(hub, http)
        yield agent
        if hub.connected:
            there = {tab["tabId"] for tab in (await agent.get("browser_list_tabs"))["tabs"]}
            for tab_id in there & set(agent.opened):
                await agent.call("browser_close_tab", tabId=tab_id)
            await http.post(f"/sessions/rest:{AGENT}:{name}/end")


class Wire:
    """One connection to the browser's debugging port."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._ids = itertools.count(1)

    async def send(
        self, method: str, session: str | None = None, /, *, until: str | None = None, **params: Any
    ) -> dict[str, Any]:
        """Send a command to the browser, or to a page by its session; returns the reply, or the event that replaces
        it."""
        number = next(self._ids)
        request = {"id": number, "method": method, "params": params, **({"sessionId": session} if session else {})}
        await self._socket.send(orjson.dumps(request).decode())
        while True:
            message = orjson.loads(await self._socket.recv())
            if until is not None and message.get("method") == until:
                return dict(message["params"])
            if until is None and message.get("id") == number:
                assert "error" not in message, message
                return dict(message["result"])

    async def attach(self, target: str) -> str:
        """A session with one page."""
        session: str = (await self.send("Target.attachToTarget", targetId=target, flatten=True))["sessionId"]
        return session


class DevTools:
    """The browser's debugging port, for the tests only; the hub opens none."""

    def __init__(self, hub: LiveHub) -> None:
        port = (hub.home / "managed" / "profile" / "DevToolsActivePort").read_text().split("\n")
        self._address = f"ws://127.0.0.1:{port[0]}{port[1]}"

    @contextlib.asynccontextmanager
    async def connected(self) -> AsyncIterator[Wire]:
        async with connect(self._address, max_size=None) as socket:
            yield Wire(socket)

    async def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command to the browser."""
        async with self.connected() as wire:
            return await wire.send(method, **params)

    async def targets(self, kind: str, url: str = "") -> list[str]:
        """The ids of the targets of a type whose URL begins with this."""
        found = (await self.send("Target.getTargets"))["targetInfos"]
        return [target["targetId"] for target in found if target["type"] == kind and target["url"].startswith(url)]

    async def open(self, url: str) -> str:
        """Open a page as a person would, and return its target."""
        opened: str = (await self.send("Target.createTarget", url=url))["targetId"]
        return opened

    async def touch(self, url: str) -> None:
        """Give the page at a URL a user activation."""
        async with self.connected() as wire:
            session = await wire.attach(*await self.targets("page", url))
            await wire.send("Runtime.evaluate", session, expression="1", userGesture=True)

    async def crash(self, url: str) -> None:
        """Crash the page at a URL."""
        async with self.connected() as wire:
            session = await wire.attach(*await self.targets("page", url))
            # There is no reply, because the page that would send it has crashed; an event reports it.
            await wire.send("Page.crash", session, until="Inspector.targetCrashed")

    async def stop_worker(self) -> None:
        """Stop the extension's service worker."""
        (target,) = await self.targets("service_worker", EXTENSION)
        await self.send("Target.closeTarget", targetId=target)


def plugin(hub: LiveHub, *argv: str) -> str:
    """Run `tabhub plugin`, which must succeed."""
    ran = hub.tabhub("plugin", *argv)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def start(folder: Path, *argv: str, **settings: str) -> LiveHub:
    """Start a hub with a browser that also has a debugging port, and wait until both are connected. `settings` are
    additional environment variables."""
    browser = folder / "browser"
    browser.write_text(f'#!/bin/sh\nexec {CHROMIUM} "$@" --remote-debugging-port=0 "{_NO_NET}"\n')
    browser.chmod(0o755)
    home = folder / "home"
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TABHUB_")}
    env = kept | {"TABHUB_HOME": str(home), "TABHUB_BROWSER": str(browser)} | settings
    command = [sys.executable, "-m", "tabhub", "start", "--launch", "--headless", "--port", "0", *argv]
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(command, env=env, stdout=output, stderr=subprocess.STDOUT)
    try:
        wait_for(lambda: (home / "hub.json").exists() or process.poll() is not None)
        assert process.poll() is None, (folder / "output").read_text()
        port = json.loads((home / "hub.json").read_text())["port"]
        wait_for((home / "run" / "person.key").exists)
        hub = LiveHub(
            port=port,
            token=agent_token(Home(home)),
            extension_key=json.loads((home / "extension" / "auth.json").read_text())["secret"],
            person_key=(home / "run" / "person.key").read_text(),
            home=home,
            env=env,
            process=process,
        )
        wait_for(lambda: _answers(hub) and hub.ready)
    except BaseException:
        process.kill()
        process.wait()
        raise
    return hub


def _answers(hub: LiveHub) -> bool:
    try:
        hub.health()
    except httpx2.TransportError:
        return False
    return True


def stop(hub: LiveHub) -> None:
    """Stop a hub like Ctrl+C."""
    if hub.process.poll() is None:
        hub.process.send_signal(signal.SIGINT)
    hub.process.wait(20)
