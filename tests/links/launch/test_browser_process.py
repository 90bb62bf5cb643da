"""A managed browser from start to stop, with a real Chromium and an extension of ten lines."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.http11 import Request, Response
from websockets.typing import Subprotocol

from tabhub.errors import SetupError
from tabhub.limits import DEFAULTS
from tabhub.links.launch.browser_process import BrowserExit, ManagedBrowser, has_display
from tabhub.links.launch.browser_profile import free_profile, group_runs
from tabhub.links.launch.browser_switches import Loading
from tabhub.links.launch.extension_files import install_extension
from tabhub.links.launch.installed_browsers import FoundBrowser, find_browsers
from tabhub.trust.tokens import challenge_proof
from tests.links.processes import BOUND, ended, handles_of, listening_sockets, open_files, processes_with

QUICK = dataclasses.replace(DEFAULTS, browser_restart_min=0.05)
SECRET = "ab" * 32
BACKGROUND = """
fetch("auth.json").then((answer) => answer.json()).then((auth) => {
  const socket = new WebSocket(`ws://127.0.0.1:${auth.port}/ws`, ["tabhub", auth.secret, "probe"]);
  socket.onopen = () => socket.send("WORD");
  socket.onmessage = () => chrome.runtime.reload();
});
"""


class Hub:
    """The other end: the messages of connected extensions."""

    def __init__(self) -> None:
        self.messages: asyncio.Queue[str] = asyncio.Queue()
        self.connections: list[ServerConnection] = []
        self.server: Server | None = None

    @property
    def port(self) -> int:
        assert self.server is not None
        return int(next(iter(self.server.sockets)).getsockname()[1])

    def respond(self, connection: ServerConnection, request: Request) -> Response | None:
        """Prove that the secret is known; only then does an extension send its own."""
        challenge = request.path.partition("/health?challenge=")[2]
        if not challenge:
            return None
        proof = challenge_proof(SECRET.encode(), self.port, challenge)
        return connection.respond(200, json.dumps({"status": "ok", "proof": proof}))

    async def serve(self, connection: ServerConnection) -> None:
        assert connection.request is not None
        assert connection.request.path == "/ws"
        assert connection.request.headers["Origin"].startswith("chrome-extension://")
        self.connections.append(connection)
        async for message in connection:
            self.messages.put_nowait(str(message))

    async def message(self) -> str:
        async with asyncio.timeout(BOUND):
            return await self.messages.get()


@pytest.fixture
async def hub() -> AsyncIterator[Hub]:
    hub = Hub()
    protocols = [Subprotocol("tabhub")]
    async with serve(hub.serve, "127.0.0.1", 0, subprotocols=protocols, process_request=hub.respond) as server:
        hub.server = server
        yield hub


@pytest.fixture
def extension(hub: Hub, tmp_path: Path) -> Path:
    folder = tmp_path / "extension"
    folder.mkdir()
    manifest = {"manifest_version": 3, "name": "probe", "version": "1", "background": {"service_worker": "bg.js"}}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    (folder / "bg.js").write_text(BACKGROUND.replace("WORD", "hello"))
    (folder / "auth.json").write_text(json.dumps({"port": hub.port, "secret": "s"}))
    return folder


Make = Callable[..., ManagedBrowser]


@pytest.fixture
async def make(tmp_path: Path) -> AsyncIterator[Make]:
    """Creates managed browsers, and ends those that a test leaves running."""
    made: list[ManagedBrowser] = []

    def build(extension_dir: Path, browser: FoundBrowser | None = None, **options: Any) -> ManagedBrowser:
        values: dict[str, Any] = {
            "extension_dir": extension_dir,
            "profile_dir": tmp_path / "managed" / "profile",
            "log_file": tmp_path / "logs" / "browser.log",
            "headless": True,
            "limits": QUICK,
        }
        made.append(ManagedBrowser(browser or find_browsers()[0], **(values | options)))
        return made[-1]

    yield build
    for managed in made:
        await managed.stop()


def script(path: Path, text: str) -> FoundBrowser:
    """A shell script as a browser; with a manifest, so that its folder can be loaded as an extension."""
    (path.parent / "manifest.json").write_text('{"version": "1"}')
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return FoundBrowser("Chromium", path, branded=False)


@pytest.mark.parametrize("loading", ["switch", "pipe"])
async def test_a_started_browser_connects_and_a_stopped_one_leaves_no_process(
    hub: Hub, extension: Path, make: Make, tmp_path: Path, loading: Loading
) -> None:
    browser = make(extension, loading=loading)
    assert (browser.pid, browser.alive) == (None, False)
    await browser.start()
    assert await hub.message() == "hello"
    pid = browser.pid
    assert pid is not None
    assert browser.alive
    assert len(processes_with(str(tmp_path / "managed"))) > 1
    async with asyncio.timeout(BOUND):
        await browser.stop()
    assert (browser.pid, browser.alive) == (None, False)
    assert not group_runs(pid)
    assert processes_with(str(tmp_path / "managed")) == {}
    await browser.stop()


@pytest.mark.parametrize("loading", ["switch", "pipe"])
async def test_the_shipped_extension_connects_with_its_secret(
    hub: Hub, make: Make, tmp_path: Path, loading: Loading
) -> None:
    extension = install_extension(tmp_path / "managed" / "extension", key=SECRET, port=hub.port, managed=True)
    await make(extension, loading=loading).start()
    hello = json.loads(await hub.message())
    assert hello["method"] == "extension.hello"
    assert hello["params"]["managed"] is True
    request = hub.connections[0].request
    assert request is not None
    assert request.headers["Sec-WebSocket-Protocol"].split(", ")[:2] == ["tabhub", SECRET]


@pytest.mark.parametrize("loading", ["switch", "pipe"])
async def test_a_changed_extension_is_loaded_at_the_next_start(
    hub: Hub, extension: Path, make: Make, loading: Loading
) -> None:
    browser = make(extension, loading=loading)
    for word in ("first", "second", "third"):
        (extension / "bg.js").write_text(BACKGROUND.replace("WORD", word))
        await browser.start()
        assert await hub.message() == word
        await browser.stop()


@pytest.mark.parametrize("loading", ["switch", "pipe"])
async def test_an_extension_that_reloads_itself_runs_its_new_files(
    hub: Hub, extension: Path, make: Make, loading: Loading
) -> None:
    (extension / "bg.js").write_text(BACKGROUND.replace("WORD", "old"))
    await make(extension, loading=loading).start()
    assert await hub.message() == "old"
    (extension / "bg.js").write_text(BACKGROUND.replace("WORD", "new"))
    await hub.connections[-1].send("reload")
    assert await hub.message() == "new"


@pytest.mark.req("F1")
async def test_a_killed_browser_is_restarted(hub: Hub, extension: Path, make: Make) -> None:
    exits: asyncio.Queue[BrowserExit] = asyncio.Queue()
    browser = make(extension, on_exit=exits.put_nowait)
    await browser.start()
    await hub.message()
    first = browser.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    async with asyncio.timeout(BOUND):
        assert await browser.wait() == -signal.SIGKILL
        end = await exits.get()
    assert end == BrowserExit(f"{browser.browser.name} was killed by signal 9", -9, QUICK.browser_restart_min)
    assert await hub.message() == "hello"
    assert not group_runs(first)
    assert browser.alive
    assert browser.pid != first


async def test_a_browser_exits_when_its_hub_is_killed(hub: Hub, extension: Path, tmp_path: Path) -> None:
    code = f"""
import asyncio, pathlib, uvloop
from tabhub.links.launch.installed_browsers import find_browsers
from tabhub.links.launch.browser_process import ManagedBrowser
async def main():
    home = pathlib.Path({str(tmp_path)!r})
    browser = ManagedBrowser(find_browsers()[0], extension_dir=home / "extension", profile_dir=home / "profile",
                             log_file=home / "browser.log", headless=True)
    await browser.start()
    print(browser.pid, flush=True)
    await asyncio.Event().wait()
uvloop.run(main())
"""
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=subprocess.PIPE)
    assert process.stdout is not None
    pid = int(await process.stdout.readline())
    await hub.message()
    running = processes_with(str(tmp_path))
    assert pid in running
    handles = handles_of(running)
    process.kill()
    await process.wait()
    for handle in handles:
        await ended(handle)
    assert not group_runs(pid)


async def test_the_browser_of_a_dead_hub_is_ended(hub: Hub, extension: Path, make: Make, tmp_path: Path) -> None:
    left = make(extension, limits=DEFAULTS)
    await left.start()
    await hub.message()
    pid = left.pid
    assert pid is not None
    await free_profile(tmp_path / "managed" / "profile", grace=5)
    assert not group_runs(pid)
    assert not (tmp_path / "managed" / "profile" / "SingletonLock").is_symlink()


@pytest.mark.parametrize("steps", range(12))
async def test_stopping_a_browser_that_exits_at_the_same_moment(make: Make, tmp_path: Path, steps: int) -> None:
    answer = r"""{"id":1,"result":{"product":"Fake/1"}}\0"""
    browser = make(tmp_path, script(tmp_path / "browser", f"printf '{answer}' >&4; exec sleep 1000"), limits=DEFAULTS)
    await browser.start()
    assert browser.pid is not None
    os.killpg(browser.pid, signal.SIGKILL)
    await browser.wait()
    for _ in range(steps):  # the supervisor may be at any point
        await asyncio.sleep(0)
    async with asyncio.timeout(30):
        await browser.stop()
    assert not browser.alive


@pytest.mark.parametrize("steps", range(1, 16, 2))
async def test_a_start_that_is_cancelled_leaves_no_process(make: Make, tmp_path: Path, steps: int) -> None:
    text = f"printf 'no answer' >&4; exec sleep 1000 {tmp_path}"
    browser = make(tmp_path, script(tmp_path / "browser", text), limits=DEFAULTS)
    starting = asyncio.create_task(browser.start())
    for _ in range(steps):
        await asyncio.sleep(0)
    starting.cancel()
    with pytest.raises((asyncio.CancelledError, SetupError)):
        await starting
    assert not processes_with(str(tmp_path))


async def test_a_lock_of_another_host_name_does_not_prevent_a_start(
    hub: Hub, extension: Path, make: Make, tmp_path: Path
) -> None:
    profile = tmp_path / "managed" / "profile"
    profile.mkdir(parents=True)
    (profile / "SingletonLock").symlink_to("another-host-1")
    (profile / "SingletonCookie").symlink_to("123")
    await make(extension).start()
    assert await hub.message() == "hello"


async def test_two_hubs_do_not_share_one_profile(hub: Hub, extension: Path, make: Make) -> None:
    await make(extension).start()
    with pytest.raises(SetupError, match="Another hub") as caught:
        await make(extension).start()
    assert "tabhub stop" in caught.value.text()
    assert await hub.message() == "hello"


async def test_no_tcp_port_is_opened(hub: Hub, extension: Path, make: Make, tmp_path: Path) -> None:
    await make(extension).start()
    await hub.message()
    opened = open_files(processes_with(str(tmp_path / "managed")))
    assert opened
    assert not listening_sockets() & opened
    assert listening_sockets() & open_files([os.getpid()]), "the hub's own socket is listed"


async def test_a_browser_connects_only_to_the_hub(hub: Hub, extension: Path, make: Make, tmp_path: Path) -> None:
    record = tmp_path / "net.json"
    browser = make(extension, env=os.environ | {"TABHUB_BROWSER_ARGS": f"--log-net-log={record}"})
    await browser.start()
    await hub.message()
    await browser.stop()
    urls = set(re.findall(r'"url":"([^"]+)"', record.read_text()))
    assert f"ws://127.0.0.1:{hub.port}/ws" in urls
    assert {url for url in urls if urlsplit(url).hostname != "127.0.0.1"} == set()


async def test_the_error_for_a_browser_that_exits_at_once_has_its_last_message(make: Make, tmp_path: Path) -> None:
    broken = script(tmp_path / "broken", "echo 'FATAL: No usable sandbox! Update your kernel' >&2; exit 7")
    browser = make(tmp_path, broken)
    with pytest.raises(SetupError, match=r"exit code 7.*No usable sandbox") as caught:
        await browser.start()
    assert "TABHUB_BROWSER_ARGS=--no-sandbox" in caught.value.text()
    assert str(tmp_path / "logs" / "browser.log") in caught.value.text()
    assert not browser.alive


async def test_a_browser_that_does_not_respond_is_killed_and_reported(make: Make, tmp_path: Path) -> None:
    hanging = script(tmp_path / "hanging", "trap '' TERM; sleep 1000 & wait; sleep 1000")
    limits = dataclasses.replace(DEFAULTS, browser_start=0.3, browser_stop=0.2)
    with pytest.raises(SetupError, match=r"not ready after 0\.3 seconds"):
        await make(tmp_path, hanging, limits=limits).start()
    assert processes_with(str(tmp_path / "hanging")) == {}


async def test_an_extension_that_cannot_be_loaded_is_reported(make: Make, tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"nothing/manifest\.json cannot be read"):
        await make(tmp_path / "nothing").start()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "manifest.json").write_text('{"version": "1"}')
    with pytest.raises(SetupError, match="did not load the extension"):
        await make(tmp_path / "broken", loading="pipe").start()


async def test_a_debugging_port_cannot_be_opened(extension: Path, make: Make) -> None:
    with pytest.raises(SetupError, match="--remote-debugging-port"):
        await make(extension, env={"TABHUB_BROWSER_ARGS": "--remote-debugging-port=9222"}).start()


async def test_a_window_that_a_person_closed_stays_closed(make: Make, tmp_path: Path) -> None:
    answer = r"""printf '{"id":1,"result":{"product":"Fake/1"}}\0' >&4; head -c 1 <&3 >/dev/null; exit 0"""
    exits: asyncio.Queue[BrowserExit] = asyncio.Queue()
    browser = make(tmp_path, script(tmp_path / "closed", answer), headless=False, on_exit=exits.put_nowait)
    await browser.start()
    async with asyncio.timeout(BOUND):
        assert (await exits.get()).restart_in is None
    assert not browser.alive


async def test_failed_restarts_back_off(make: Make, tmp_path: Path) -> None:
    text = f"""test -e {tmp_path}/ran && exit 5; touch {tmp_path}/ran
printf '{{"id":1,"result":{{}}}}\\0' >&4; head -c 1 <&3 >/dev/null; exit 4"""
    exits: asyncio.Queue[BrowserExit] = asyncio.Queue()
    limits = dataclasses.replace(DEFAULTS, browser_restart_min=0.01, browser_restart_max=0.04)
    browser = make(tmp_path, script(tmp_path / "dying", text), limits=limits, on_exit=exits.put_nowait)
    await browser.start()
    async with asyncio.timeout(BOUND):
        ends = [await exits.get() for _ in range(4)]
    assert [each.restart_in for each in ends] == [0.01, 0.02, 0.04, 0.04]
    assert ends[0].reason == "Chromium ended with exit code 4"
    assert "exit code 5" in ends[1].reason


@pytest.mark.req("F11")
async def test_a_log_that_cannot_be_written_does_not_stop_the_browser(
    hub: Hub, extension: Path, make: Make, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("in the way")
    await make(extension, log_file=tmp_path / "file" / "browser.log").start()
    assert await hub.message() == "hello"


def test_a_display_is_needed_only_on_linux() -> None:
    assert not has_display({}, platform="linux")
    assert has_display({"WAYLAND_DISPLAY": "wayland-0"}, platform="linux")
    assert has_display({"DISPLAY": ":0"}, platform="linux")
    assert has_display({}, platform="darwin")
