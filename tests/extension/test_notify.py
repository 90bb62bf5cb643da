"""Desktop notifications: approvals while they are pending, and those of agents, which cannot look like them."""

from __future__ import annotations

from typing import Any

from tests.extension.conftest import EXTENSION_ID, Chromium, in_worker
from tests.extension.fakehub import Wire
from tests.extension.test_browser_commands import PIXEL
from tests.harness.waiting import becomes


async def notices(command: Any) -> list[str]:
    code = "chrome.notifications.getAll().then((all) => Object.keys(all))"
    answer = await command("Runtime.evaluate", expression=code, awaitPromise=True, returnByValue=True)
    shown: list[str] = answer["result"]["value"]
    return shown


RECORD = """(() => {
  globalThis.createNotice = chrome.notifications.create;
  const create = createNotice.bind(chrome.notifications);
  globalThis.shownNotices = [];
  chrome.notifications.create = (id, options) => {
    shownNotices.push(options);
    return create(id, options);
  };
})()"""


async def test_an_agents_notification_cannot_look_like_an_approval(wire: Wire, chromium: Chromium) -> None:
    await in_worker(chromium, RECORD)
    said = {"sentence": 'Cursor wants to click "Pay now"', "title": "Payments", "origin": "https://bank.example"}
    await wire.notify("confirmation.request", id="real", client="c", tool="browser_click", notify=True, **said)
    await becomes(lambda: in_worker(chromium, "shownNotices.length"), 1)
    (real,) = await in_worker(chromium, "shownNotices")
    copy = {"title": real["title"], "message": real["message"], "contextMessage": real["contextMessage"]}
    made = [
        await wire.ask("showNotification", agent="cursor", requireInteraction=True, imageUrl=PIXEL, **copy),
        await wire.ask("showNotification", agent="Tabhub", **copy),
    ]
    (_, *copies) = await in_worker(chromium, "shownNotices")
    assert real["title"] == said["sentence"]
    assert real["message"] == "Payments · bank.example"
    assert [each["title"] for each in real["buttons"]] == ["Review", "Deny"]
    assert [each["title"] for each in copies] == [
        f"Message from {agent}: {real['title']}" for agent in ("cursor", "Tabhub")
    ]
    assert [each["type"] for each in copies] == ["image", "basic"]
    assert all(each["iconUrl"].endswith("/icons/agent-128.png") for each in copies)
    assert not real["iconUrl"].endswith("/icons/agent-128.png")
    assert all("buttons" not in each for each in copies)
    await in_worker(chromium, "chrome.notifications.create = globalThis.createNotice, 1")
    await wire.notify("confirmation.done", id="real")
    for each in made:
        await in_worker(chromium, f"chrome.notifications.clear({each['notificationId']!r})")
    async with chromium.page(f"chrome-extension://{EXTENSION_ID}/manifest.json") as command:
        await becomes(lambda: notices(command), list[str]())


async def test_a_notification_that_is_answered_before_it_is_shown_is_removed(wire: Wire, chromium: Chromium) -> None:
    async with chromium.page(f"chrome-extension://{EXTENSION_ID}/manifest.json") as command:
        await wire.notify("confirmation.request", id="early", client="an agent", tool="a_tool", notify=True)
        await wire.notify("confirmation.done", id="early")
        await wire.notify("confirmation.request", id="late", client="an agent", tool="a_tool", notify=True)
        await becomes(lambda: notices(command), ["approval:late"])
        await wire.notify("confirmation.done", id="late")
        await becomes(lambda: notices(command), list[str]())
