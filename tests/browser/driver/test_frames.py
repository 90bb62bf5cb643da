"""Finding the frames of a tab."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

from tabhub.browser.driver.frames import list_frames
from tabhub.browser.driver.page import Page
from tabhub.browser.driver.tab_watch import TabWatch
from tests.browser.conftest import Bench
from tests.browser.fake_browser import NO_ANSWER, settle

TREES: dict[str | None, dict[str, Any]] = {
    None: {"frame": {"id": "MAIN", "url": "https://site1.example/"}},
    "S": {"frame": {"id": "FAR", "parentId": "MAIN", "url": "https://far.example/"}},
}


async def test_frames_in_other_processes_are_listed_also_by_the_first_call_in_a_tab(bench: Bench) -> None:
    browser = bench.browser
    browser.answers["subscribeCDPEvents"] = lambda _: NO_ANSWER

    answered = itertools.count()

    def tree(_params: dict[str, Any]) -> dict[str, Any]:
        asked = browser.commands("Page.getFrameTree")[next(answered)]
        return {"frameTree": TREES[asked["params"].get("sessionId")]}

    browser.answers["Page.getFrameTree"] = tree
    page = Page(bench.browsers, TabWatch(bench.browsers), bench.browsers.tab(1))
    listing = asyncio.ensure_future(list_frames(page))
    await settle()
    # The browser reports frames in other processes before it confirms that the tab is watched.
    info = {"targetId": "FAR", "type": "iframe", "url": "https://far.example/"}
    attached = {"sessionId": "S", "targetInfo": info, "waitingForDebugger": False}
    browser.notify("cdp.event", tabId=1, method="Target.attachedToTarget", params=attached)
    for subscription in browser.commands("subscribeCDPEvents"):
        browser.reply(subscription["id"], {})
    assert [(frame.frame_id, frame.session_id) for frame in await listing] == [("MAIN", None), ("FAR", "S")]
