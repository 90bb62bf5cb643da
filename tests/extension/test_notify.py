"""Approvals as desktop notifications: shown only while the approval is pending."""

from __future__ import annotations

from typing import Any

from tests.extension.conftest import EXTENSION_ID, Chromium
from tests.extension.fakehub import Wire
from tests.harness.waiting import becomes


async def notices(command: Any) -> list[str]:
    code = "chrome.notifications.getAll().then((all) => Object.keys(all))"
    answer = await command("Runtime.evaluate", expression=code, awaitPromise=True, returnByValue=True)
    shown: list[str] = answer["result"]["value"]
    return shown


async def test_a_notification_that_is_answered_before_it_is_shown_is_removed(wire: Wire, chromium: Chromium) -> None:
    async with chromium.page(f"chrome-extension://{EXTENSION_ID}/manifest.json") as command:
        await wire.notify("confirmation.request", id="early", client="an agent", tool="a_tool", notify=True)
        await wire.notify("confirmation.done", id="early")
        await wire.notify("confirmation.request", id="late", client="an agent", tool="a_tool", notify=True)
        await becomes(lambda: notices(command), ["approval:late"])
        await wire.notify("confirmation.done", id="late")
        await becomes(lambda: notices(command), list[str]())
