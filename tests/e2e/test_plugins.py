"""Plugins end to end: installed and configured by the command line, run by the real extension in real pages."""

from __future__ import annotations

import asyncio
import io
import json
import shutil
import tarfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.e2e import live
from tests.e2e.live import Caller, LiveHub
from tests.harness.local_server import LocalServer, QuietHandler
from tests.harness.waiting import becomes, eventually, until_outside

_EXAMPLES = Path(__file__).resolve().parents[2] / "examples/plugins"
_NOTES = _EXAMPLES / "opentabs-plugin-notes"
_STRICT = "default-src 'none'; script-src 'none'; connect-src 'none'; require-trusted-types-for 'script'"
_NOTEBOOK = "<!doctype html><title>{}</title><ul data-notes><li>first note</li></ul>"
_LOCKED = "<!doctype html><html data-locked><title>Locked</title><ul data-notes></ul></html>"
_BARE = json.dumps({"limits": {"admin_rate": 1000}})
_TIMER = "<!doctype html><title>Timer</title><b data-left=0>0</b>"


class Notebooks(LocalServer):
    """A site at its own host name, whose pages allow no scripts."""

    def __init__(self, title: str) -> None:
        class Handler(QuietHandler):
            def answer(self) -> None:
                page = {"/timer": _TIMER, "/locked": _LOCKED}.get(self.path, _NOTEBOOK.format(title))
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Security-Policy", _STRICT)
                self.end_headers()
                self.wfile.write(page.encode())

        super().__init__(Handler)


def packed(folder: Path, package: Path, version: str | None = None) -> str:
    """A plugin's folder as a tarball, as `npm pack` makes it."""
    with tarfile.open(package, "w:gz") as tar:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                data = path.read_bytes()
                if path.name == "package.json" and version is not None:
                    data = json.dumps({**json.loads(data), "version": version}).encode()
                info = tarfile.TarInfo(f"package/{path.relative_to(folder)}")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    return str(package)


@pytest.fixture(scope="module")
def work() -> Iterator[Notebooks]:
    site = Notebooks("Work notebook")
    yield site
    site.stop()


@pytest.fixture(scope="module")
def home() -> Iterator[Notebooks]:
    site = Notebooks("Home notebook")
    yield site
    site.stop()


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveHub]:
    folder = tmp_path_factory.mktemp("plugins")
    (folder / "home").mkdir(mode=0o700)
    (folder / "home" / "config.json").write_text(_BARE)
    hub = live.start(folder)
    yield hub
    live.stop(hub)


@pytest.fixture
def own_hub(started: LiveHub) -> LiveHub:
    """A separate hub without plugins, so that the installation does not affect other tests."""
    shutil.rmtree(started.home / "plugins", ignore_errors=True)
    (started.home / "config.json").write_text(_BARE)
    assert reload(started)["plugins"] == 0
    return started


@pytest.fixture
async def caller(own_hub: LiveHub) -> AsyncIterator[Caller]:
    async with live.caller(own_hub) as agent:
        yield agent


def reload(hub: LiveHub) -> dict[str, Any]:
    """Make the hub reload its files, and return its answer."""
    output: dict[str, Any] = httpx2.post(
        f"{hub.url}/reload", headers=hub.person.bearer, timeout=30, verify=False
    ).json()
    return output


def use_local(hub: LiveHub, plugin: Path) -> None:
    """Make the hub use a local plugin."""
    (hub.home / "config.json").write_text(json.dumps({**json.loads(_BARE), "localPlugins": [str(plugin)]}))
    assert reload(hub)["plugins"] == 1


def state(hub: LiveHub, plugin: str) -> dict[str, Any]:
    found = [each for each in hub.health()["pluginDetails"] if each["name"] == plugin]
    return found[0] if found else {}


async def ready(hub: LiveHub, plugin: str, tabs: int) -> None:
    """Wait until this many tabs of a plugin are ready."""
    await until_outside(lambda: sum(each["ready"] for each in state(hub, plugin).get("tabs", ())) == tabs)


@pytest.mark.req("S002-dispatch-04", "S002-instance-04")
async def test_a_plugin_from_a_tarball_with_two_instances(
    own_hub: LiveHub, caller: Caller, work: Notebooks, home: Notebooks, tmp_path: Path
) -> None:
    assert "Installed Notes 1.0.0" in live.plugin(own_hub, "install", packed(_NOTES, tmp_path / "notes-1.0.0.tgz"))
    sites = (f"site.work={work.url}", f"site.home={home.url}")
    assert home.url in live.plugin(own_hub, "configure", "notes", *sites, "signature=Ada")
    at_work, at_home = await caller.open(f"{work.url}/"), await caller.open(f"{home.url}/")
    await ready(own_hub, "notes", 2)
    missing = await caller.fail("notes_list_notes")
    assert "instance" in missing["text"]
    listed = await caller.get("notes_list_notes", instance="work")
    assert listed == {"notebook": "Work notebook", "notes": ["first note"], "site": work.url}
    assert (await caller.get("notes_add_note", instance="home", tabId=at_home, text="milk"))["count"] == 2
    assert (await caller.get("notes_list_notes", instance="home"))["notes"] == ["first note", "milk (Ada)"]
    assert (await caller.get("notes_list_notes", instance="work"))["notes"] == ["first note"]
    wrong = await caller.fail("notes_list_notes", instance="home", tabId=at_work)
    assert "not a page of Notes (home)" in wrong["text"]
    gone = await caller.fail("notes_remove_note", instance="work", number=7)
    assert (gone["category"], gone["pluginCode"]) == ("not_found", "NO_NOTE")
    tabs = (await caller.get("plugin_list_tabs", plugin="notes"))["plugins"][0]["tabs"]
    assert {(each["tabId"], each["instance"], each["ready"]) for each in tabs} == {
        (at_work, "work", True),
        (at_home, "home", True),
    }
    live.plugin(own_hub, "configure", "notes", "site.home=")
    assert (await caller.get("notes_list_notes"))["notebook"] == "Work notebook"


async def test_a_page_that_needs_the_person_first_is_not_ready(
    own_hub: LiveHub, caller: Caller, work: Notebooks, tmp_path: Path
) -> None:
    live.plugin(own_hub, "install", packed(_NOTES, tmp_path / "notes.tgz"))
    live.plugin(own_hub, "configure", "notes", f"site={work.url}")
    closed = await caller.fail("notes_list_notes")
    assert "No open tab shows Notes" in closed["text"]
    await caller.open(f"{work.url}/locked")
    await until_outside(lambda: state(own_hub, "notes")["tabState"] == "unavailable")
    refused = await caller.fail("notes_list_notes")
    assert (refused["category"], refused["outcome"]) == ("unavailable", "not_sent")
    open_tab = await caller.open(f"{work.url}/")
    await ready(own_hub, "notes", 1)
    answer = await caller.call("notes_list_notes")
    assert answer["_meta"]["tabhub/plugin"]["tabId"] == open_tab


async def test_an_update_reaches_open_pages_and_an_uninstall_leaves_them_clean(
    own_hub: LiveHub, caller: Caller, work: Notebooks, tmp_path: Path
) -> None:
    live.plugin(own_hub, "install", packed(_NOTES, tmp_path / "1.tgz"))
    live.plugin(own_hub, "configure", "notes", f"site={work.url}")
    tab = await caller.open(f"{work.url}/")
    await ready(own_hub, "notes", 1)
    stamp = "globalThis.__openTabs?.adapters?.notes?.__adapterHash ?? null"
    before = await caller.run(f"return {stamp}", tabId=tab)
    fresh = tmp_path / "fresh"
    shutil.copytree(_NOTES, fresh)
    script = fresh / "dist/adapter.iife.js"
    script.write_text(script.read_text().replace("notebook: document.title", "notebook: 'new ' + document.title"))
    assert "1.1.0" in live.plugin(own_hub, "install", packed(fresh, tmp_path / "2.tgz", "1.1.0"))
    await ready(own_hub, "notes", 1)
    assert (await caller.get("notes_list_notes"))["notebook"] == "new Work notebook"
    assert await caller.run(f"return {stamp}", tabId=tab) not in (None, before)
    live.plugin(own_hub, "remove", "notes")
    await becomes(lambda: caller.run(f"return {stamp}", tabId=tab), None)
    assert "There is no tool named" in (await caller.fail("notes_list_notes"))["text"]
    assert own_hub.health()["plugins"] == 0
    assert not list((own_hub.home / "managed/extension/adapters").iterdir())


async def test_a_running_call_survives_a_plugin_reload(own_hub: LiveHub, caller: Caller, work: Notebooks) -> None:
    use_local(own_hub, _EXAMPLES / "timer")
    tab = await caller.open(f"{work.url}/timer")
    await ready(own_hub, "timer", 1)
    assert (await caller.get("timer_set_timer", seconds=5)) == {"left": 5}
    waiting = asyncio.create_task(caller.get("timer_wait_for_timer", seconds=20))
    await until_outside(lambda: own_hub.health()["callsInFlight"] == 1)
    assert reload(own_hub)["ok"] is True
    assert not waiting.done()
    await caller.run("document.querySelector('[data-left]').dataset.left = '0'", tabId=tab)
    assert await waiting == {"left": 0}
    await until_outside(lambda: state(own_hub, "timer")["logBufferSize"] == 1)


async def test_a_saved_plugin_file_reaches_the_browser_without_a_reload(
    own_hub: LiveHub, caller: Caller, work: Notebooks, tmp_path: Path
) -> None:
    mine = tmp_path / "timer"
    shutil.copytree(_EXAMPLES / "timer", mine)
    use_local(own_hub, mine)
    await caller.open(f"{work.url}/timer")
    await ready(own_hub, "timer", 1)
    assert (await caller.get("timer_read_timer"))["left"] == 0
    page = mine / "page.js"
    page.write_text(page.read_text().replace("running: left() > 0", "running: left() > 0, saved: true"))

    async def saved() -> bool:
        return "saved" in (await caller.call("timer_read_timer")).get("structuredContent", {})

    await eventually(saved)
