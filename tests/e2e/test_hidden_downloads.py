"""Downloads of a site that an agent is kept off: no file is left, and the agent learns neither name nor path."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from tests.e2e.blocked_site import HOST, SECRET, BlockedSite
from tests.e2e.live import Caller, LiveHub
from tests.e2e.test_blocked_site import keep_off
from tests.harness.waiting import becomes, eventually

DELETED = "it was stopped, and its file deleted"


@pytest.fixture(scope="module")
def sites() -> Iterator[BlockedSite]:
    site = BlockedSite()
    yield site
    site.stop()


@pytest.fixture
async def page(guest: Caller, live_hub: LiveHub, sites: BlockedSite) -> AsyncIterator[Caller]:
    """A page with a frame of the site, which was loaded before the site was blocked."""
    await guest.visit(f"{sites.shop}/files")
    await guest.get("browser_wait_for", networkIdle=True)
    await keep_off(live_hub, {f"*.{HOST}": "block"})
    yield guest
    await keep_off(live_hub, None)


def files(hub: LiveHub) -> list[str]:
    """The files of the site in the folder for downloads, whole or partial."""
    found = [path for path in (hub.home / "files").rglob("*") if path.is_file()]
    return [path.name for path in found if SECRET in path.name or SECRET.encode() in path.read_bytes()]


def deleted(hub: LiveHub) -> list[dict[str, Any]]:
    """What the audit log says of deleted downloads."""
    lines = (json.loads(line) for line in (hub.home / "audit.log").read_bytes().splitlines())
    return [line for line in lines if line["tool"] == "download deleted"]


@pytest.mark.req("B25")
async def test_a_download_that_leads_to_a_blocked_site_leaves_no_file(
    page: Caller, live_hub: LiveHub, sites: BlockedSite
) -> None:
    before, known = len(deleted(live_hub)), files(live_hub)

    async def count() -> int:
        return len(deleted(live_hub))

    # First, because the browser asks before a second one that nobody clicked for.
    await page.run("document.getElementById('link').click()")
    await becomes(count, before + 1)
    for path in ("/download", "/download?slow"):
        failed = await page.fail("browser_download_file", url=f"{sites.shop}{path}")
        assert DELETED in failed["text"]
        assert SECRET not in json.dumps(failed)
    answer = await page.get("browser_click_element", selector="#link")
    assert DELETED in answer["note"], answer
    assert "download" not in answer
    assert SECRET not in json.dumps(answer)
    await becomes(count, before + 4)
    # Those that a script or another frame starts may begin later than the answer.
    for number, button in enumerate(("slow", "script", "blob", "data"), 5):
        answer = await page.call("browser_click_element", selector=f"#{button}")
        assert SECRET not in json.dumps(answer)
        await becomes(count, before + number)
    assert [line["origin"] for line in deleted(live_hub)[before:]] == [sites.bank] * 8
    assert files(live_hub) == known
    listed = await page.get("browser_list_downloads")
    assert SECRET not in json.dumps(listed)
    assert HOST not in json.dumps(listed)


async def test_other_downloads_of_the_page_are_kept(page: Caller, live_hub: LiveHub, sites: BlockedSite) -> None:
    before = len(deleted(live_hub))
    answer = await page.get("browser_click_element", selector="#own")
    assert answer["download"] == "own.bin", answer

    async def saved() -> bool:
        return any(path.name.startswith("own") for path in (live_hub.home / "files").rglob("*.bin"))

    assert await eventually(saved)
    assert len(deleted(live_hub)) == before
