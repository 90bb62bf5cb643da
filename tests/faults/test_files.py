"""Files that fail under a running hub: a full disk, a broken configuration, a key that is replaced."""

from __future__ import annotations

import asyncio
import errno
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from websockets.exceptions import InvalidStatus

from tabhub.store import extension_key
from tests.harness.agent import Agent, client
from tests.harness.fake_extension import FakeExtension
from tests.harness.hub import RunningHub, running_hub
from tests.harness.probe import Probe


class FullDisk:
    """Makes writes below a folder fail or end early, like a full disk; other writes are unaffected."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self._write: Callable[[int, Any], int] = os.write
        self._folder = str(folder)
        self.room: int | None = None
        """Bytes that still fit; None for unlimited."""
        self.error = 28
        monkeypatch.setattr(os, "write", self.write)

    def write(self, fd: int, data: Any) -> int:
        if self.room is None or not str(Path(f"/proc/self/fd/{fd}").readlink()).startswith(self._folder):
            return self._write(fd, data)
        if not self.room:
            raise OSError(self.error, os.strerror(self.error))
        part = data[: self.room]
        self.room -= len(part)
        return self._write(fd, part)


async def health(http: httpx2.AsyncClient) -> dict[str, Any]:
    found: dict[str, Any] = (await http.get("/health")).json()
    return found


@pytest.mark.req("F11")
@pytest.mark.parametrize(("room", "error"), [(0, errno.ENOSPC), (40, errno.ENOSPC), (0, errno.EROFS), (0, errno.EIO)])
async def test_unwritable_disk_keeps_calls_running_is_reported_by_health_and_leaves_no_partial_line(
    hub: RunningHub, monkeypatch: pytest.MonkeyPatch, room: int, error: int
) -> None:
    Probe(hub)
    disk = FullDisk(monkeypatch, hub.home.root)
    disk.error = error
    async with Agent(hub) as agent, client(hub) as http:

        async def call(value: str) -> None:
            answer = await agent.call("probe_echo", {"value": value})
            assert answer["result"]["structuredContent"] == {"value": value}

        await call("before")
        assert (await health(http))["status"] == "ok"
        disk.room = room
        await call("one")
        await call("two")
        report = await health(http)
        assert report["status"] == "degraded"
        assert os.strerror(error) in report["problems"][0]
        async with httpx2.AsyncClient(verify=False, base_url=hub.url) as anyone:
            assert (await anyone.get("/health")).json() == {"status": "degraded"}
        assert all(json.loads(line) for line in hub.home.audit.read_bytes().splitlines())
        assert len((await http.get("/audit")).json()) == 3  # the in-memory record still works
        disk.room = None
        await call("after")
        assert (await health(http))["status"] == "ok"
        entries = [json.loads(line) for line in hub.home.audit.read_bytes().splitlines()]
        assert [entry["success"] for entry in entries] == [True] * 4


async def test_long_result_is_answered_even_if_it_cannot_be_stored(tmp_path: Path) -> None:
    async with running_hub(tmp_path, limits={"result_tokens": 500}) as hub:
        Probe(hub)
        async with Agent(hub) as agent:
            hub.home.results.write_text("not a folder")
            long = "words and more words. " * 5000
            answer = await agent.call("probe_echo", {"value": long})
            assert len(json.dumps(answer)) < len(long) / 2
            assert "isError" not in answer["result"]


@pytest.mark.req("F13")
@pytest.mark.parametrize(
    "broken", ["", "{", '{"settings": ', "[]", '{"limits": {"call_timeout": "soon"}}', "\x00" * 100]
)
async def test_a_broken_configuration_leaves_the_last_good_one_in_force(hub: RunningHub, broken: str) -> None:
    Probe(hub)
    off = {"permissions": {"probe": {"permission": "off"}}}
    async with Agent(hub) as agent, client(hub) as http:

        async def allowed() -> bool:
            return "isError" not in (await agent.call("probe_echo", {"value": "x"}))["result"]

        assert await allowed()
        hub.home.config.write_text(json.dumps(off))
        assert (await http.post("/reload")).status_code == 200
        assert not await allowed()
        hub.home.config.write_text(broken)
        refused = await http.post("/reload")
        assert refused.status_code == 422
        assert str(hub.home.config) in refused.json()["error"]["message"]
        assert not await allowed()
        report = await health(http)
        assert report["status"] == "degraded"
        assert "config" in report["problems"][0]
        hub.home.config.write_text(json.dumps({"permissions": {"default": "auto"}}))
        assert (await http.post("/reload")).json()["ok"] is True
        assert await allowed()
        assert (await health(http))["problems"] == []


@pytest.mark.req("F19")
async def test_a_rotated_key_locks_the_old_one_out_at_once_and_closes_its_sockets(hub: RunningHub) -> None:
    async with Agent(hub) as agent, FakeExtension(hub) as browser, client(hub) as http:
        call = asyncio.create_task(agent.call("browser_get_tab_content", {"tabId": 7}))
        fresh = extension_key.rotate(hub.home)
        hub.hub.extension_key.check_file()
        assert await browser.ended() == (4001, "the key was rotated")
        assert hub.hub.browsers.links() == []
        assert (await http.get("/tools")).status_code == 200  # agents have tokens of their own
        with pytest.raises(InvalidStatus, match="401"):
            async with FakeExtension(hub):
                raise AssertionError("the old key was accepted")
        async with FakeExtension(replace(hub, extension_key=fresh)):
            assert len(hub.hub.browsers.links()) == 1
        await asyncio.wait([call])  # whatever came of it, it was answered


@pytest.mark.req("F19")
async def test_a_key_rotated_on_disk_is_noticed_without_a_reload(hub: RunningHub) -> None:
    async with FakeExtension(hub) as browser:
        extension_key.rotate(hub.home)
        assert (await browser.ended())[0] == 4001


async def test_a_key_file_that_breaks_leaves_the_key_in_force(hub: RunningHub) -> None:
    async with FakeExtension(hub) as browser:
        for text in ("", "{", '{"secret": 7, "scope": "extension"}', '{"secret": "short", "scope": "extension"}'):
            hub.home.auth.write_text(text)
            hub.hub.extension_key.check_file()
            async with FakeExtension(hub, "another"):
                assert len(hub.hub.browsers.links()) == 2
        await browser.settle()
