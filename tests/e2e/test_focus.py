"""What the person looks at keeps the focus, whatever the pages that agents use open.

Without a screen every window reports that it has the focus, and focusing one changes nothing; so the tests check what
the extension requests of the browser.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.e2e.live import EXTENSION, Caller, DevTools
from tests.e2e.zoo import Zoo
from tests.harness.waiting import eventually

CLICK = "browser_click_element"
_BUTTON = """
const button = document.createElement("button");
button.id = "small";
button.textContent = "Small window";
button.onclick = () => window.open("/other", "small", "popup,width=400,height=300");
document.body.append(button);
"""
_LISTEN = """{
  globalThis.asked = [];
  const { update } = chrome.windows;
  globalThis.unlisten = () => { chrome.windows.update = update; };
  chrome.windows.update = (...wish) => { asked.push(wish); return update.apply(chrome.windows, wish); };
}"""
_RISES = """{
  const { getLastFocused } = chrome.windows;
  let looks = 0;
  chrome.windows.getLastFocused = async () => {
    const window = await getLastFocused.call(chrome.windows);
    looks += 1;
    if (looks === 3) chrome.windows.getLastFocused = getLastFocused;
    return { ...window, focused: looks === 3 };
  };
}"""
"""At first another program has the focus; then the window gets it."""


@dataclass(frozen=True, slots=True)
class Worker:
    """The extension's worker."""

    run: Callable[[str], Awaitable[Any]]

    async def asked(self) -> list[Any]:
        """What the extension has requested of windows so far, by the browser's own ids."""
        wishes: list[Any] = json.loads((await self.run("JSON.stringify(asked)"))["value"])
        return wishes


@pytest.fixture
async def worker(devtools: DevTools) -> AsyncIterator[Worker]:
    (target,) = await devtools.targets("service_worker", EXTENSION)
    async with devtools.connected() as wire:
        session = await wire.attach(target)

        async def run(code: str) -> Any:
            return (await wire.send("Runtime.evaluate", session, expression=code, returnByValue=True))["result"]

        await run(_LISTEN)
        yield Worker(run)
        await run("unlisten()")


async def test_a_popup_returns_the_focus_to_the_previous_window(agent: Caller, zoo: Zoo, worker: Worker) -> None:
    await agent.open(zoo.at("act_dialogs.html"))
    # The person continues in a window of their own, the agent in its tab of the other.
    number = (await agent.get("browser_create_window", focused=True))["window"]["windowId"]
    await agent.run(_BUTTON, tabId=agent.opened[0])
    (opened,) = (await agent.get(CLICK, selector="#small"))["opened"]
    agent.opened.append(opened)
    ((_, wish),) = await eventually(worker.asked)
    assert wish == {"focused": True}
    await agent.get("browser_close_window", windowId=number)


async def test_a_popup_opens_behind_the_focused_program(agent: Caller, zoo: Zoo, worker: Worker) -> None:
    await agent.open(zoo.at("act_dialogs.html"))
    number = (await agent.get("browser_create_window", focused=True))["window"]["windowId"]
    await agent.get("browser_update_window", windowId=number, focused=False)
    await agent.run(_BUTTON, tabId=agent.opened[0])
    (opened,) = (await agent.get(CLICK, selector="#small"))["opened"]
    agent.opened.append(opened)

    async def given_up() -> list[Any]:
        return (await worker.asked())[1:]

    ((_, wish),) = await eventually(given_up)
    assert wish == {"focused": False}
    await agent.get("browser_close_window", windowId=number)


async def test_a_new_window_opens_behind_the_others_unless_focused(agent: Caller, worker: Worker) -> None:
    for focused in (True, False):
        made = await agent.get("browser_create_window", focused=focused)
        await agent.get("browser_close_window", windowId=made["window"]["windowId"])
    ((_, wish),) = await worker.asked()
    assert wish == {"focused": False}


async def test_input_that_raises_its_window_returns_the_focus(agent: Caller, zoo: Zoo, worker: Worker) -> None:
    await agent.open(zoo.at("act_buttons.html"), active=True)
    await worker.run(_RISES)
    await agent.get(CLICK, selector="#plain")
    ((_, wish),) = await eventually(worker.asked)
    assert wish == {"focused": False}


async def test_a_file_chooser_is_suppressed_and_the_answer_suggests_upload_file(
    agent: Caller, zoo: Zoo, subtests: pytest.Subtests
) -> None:
    # A browser opens none for a tab behind others; for one that is seen, it covers the window until it is answered.
    await agent.open(zoo.at("act_files.html"), active=True)
    ways: dict[str, tuple[str, dict[str, str]]] = {
        "field": (CLICK, {"selector": "#one"}),
        "button": (CLICK, {"selector": "#choose"}),
        "key": ("browser_press_key", {"selector": "#choose", "key": "Enter"}),
    }
    for way, (tool, how) in ways.items():
        with subtests.test(way):
            answer = await agent.get(tool, **how)
            assert "browser_upload_file" in answer["note"]


async def test_a_click_the_browser_withholds_from_the_page_is_reported(
    agent: Caller, zoo: Zoo, devtools: DevTools
) -> None:
    await agent.open(zoo.at("act_buttons.html"))
    assert "note" not in await agent.get(CLICK, selector="#plain")
    async with devtools.connected() as wire:
        session = await wire.attach(*await devtools.targets("page", zoo.at("act_buttons.html")))
        # As behind a dialog of the browser's own, for which there is no screen here.
        await wire.send("Input.setIgnoreInputEvents", session, ignore=True)
        answer = await agent.get(CLICK, selector="#plain")
        await wire.send("Input.setIgnoreInputEvents", session, ignore=False)
    assert "The page did not receive the click." in answer["note"]
    assert "note" not in await agent.get(CLICK, selector="#plain")
