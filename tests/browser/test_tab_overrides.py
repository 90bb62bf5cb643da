"""Overrides that outlast a call: undone with their session, reported when lost, dropped with their tab."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.conftest import Bench
from tests.browser.fake_browser import Failure, settle

COMMANDS = (
    "setDeviceMetricsOverride",
    "clearDeviceMetricsOverride",
    "setTouchEmulationEnabled",
    "setUserAgentOverride",
    "setEmulatedVisionDeficiency",
)


@pytest.fixture
def emulating(bench: Bench) -> Bench:
    for name in COMMANDS:
        bench.browser.answers[f"Emulation.{name}"] = lambda _: {}
    return bench


def sent(bench: Bench) -> list[tuple[str, str | None]]:
    """The emulation commands that were sent, with the child session of each."""
    asked = [message["params"] for message in bench.browser.sent if message["method"] == "forwardCDPCommand"]
    return [
        (params["method"].removeprefix("Emulation."), params.get("sessionId"))
        for params in asked
        if params["method"].startswith("Emulation.")
    ]


async def device(bench: Bench) -> dict[str, Any]:
    return await bench.call("browser_emulate_device", tabId=1, width=300, height=200, userAgent="Phone/1.0")


async def test_overrides_are_applied_to_frames_that_appear_later(emulating: Bench) -> None:
    await device(emulating)
    emulating.browser.sent.clear()
    info = {"targetId": "T", "type": "iframe", "url": "https://far.example/"}
    attached = {"sessionId": "S", "targetInfo": info, "waitingForDebugger": False}
    emulating.browser.notify("cdp.event", tabId=1, method="Target.attachedToTarget", params=attached)
    assert ("setUserAgentOverride", "S") in sent(emulating)


def first(bench: Bench) -> list[str]:
    """The commands for new frames and workers before they run, as last subscribed."""
    return [command["method"] for command in bench.browser.commands("subscribeCDPEvents")[-1]["params"]["children"]]


async def test_overrides_are_applied_to_a_new_frame_before_it_runs(emulating: Bench) -> None:
    await emulating.call("browser_get_console_logs", tabId=1)
    usual = first(emulating)
    assert {"Network.enable", "Runtime.enable", "Page.enable"} <= set(usual)
    emulating.context.session = session = object()
    await device(emulating)
    assert first(emulating) == [*usual, "Emulation.setUserAgentOverride"]
    emulating.end(session)
    assert first(emulating) == usual


async def test_a_frame_that_waited_for_the_debugger_is_not_configured_twice(bench: Bench) -> None:
    await bench.call("browser_get_console_logs", tabId=1)
    bench.browser.sent.clear()
    for session, waited in (("S1", True), ("S2", False)):
        info = {"targetId": session, "type": "iframe", "url": "https://far.example/"}
        params = {"sessionId": session, "targetInfo": info, "waitingForDebugger": waited}
        bench.browser.notify("cdp.event", tabId=1, method="Target.attachedToTarget", params=params)
    assert {message["params"].get("sessionId") for message in bench.browser.sent} == {"S2"}


async def test_only_overrides_of_the_ended_session_are_undone(emulating: Bench) -> None:
    first, second = object(), object()
    emulating.context.session = first
    await device(emulating)
    emulating.context.session = second
    result = await emulating.call("browser_emulate_vision_deficiency", tabId=1, type="achromatopsia")
    assert len(result["active"]) == 2
    emulating.browser.sent.clear()
    emulating.end(first)
    await settle()
    assert sent(emulating) == [
        ("clearDeviceMetricsOverride", None),
        ("setTouchEmulationEnabled", None),
        ("setUserAgentOverride", None),
    ]
    cleared = await emulating.call("browser_clear_emulation", tabId=1)
    assert cleared["cleared"] == ["vision achromatopsia"]


async def test_lost_overrides_are_reported_once(emulating: Bench) -> None:
    await device(emulating)
    emulating.browser.notify("cdp.detached", tabId=1, reason="replaced_with_devtools")
    result = await emulating.call("browser_emulate_vision_deficiency", tabId=1, type="protanopia")
    assert result["active"] == ["vision protanopia"]
    assert result["note"] == (
        "No longer active, because the developer tools took the tab over: device 300 x 200, as Phone/1.0."
    )
    assert "note" not in await emulating.call("browser_emulate_vision_deficiency", tabId=1, type="none")


async def test_an_override_that_fails_is_not_active(emulating: Bench) -> None:
    def refused(_: Any) -> None:
        raise Failure(-32000, "not here")

    emulating.browser.answers["Emulation.setEmulatedVisionDeficiency"] = refused
    with pytest.raises(Exception, match="not here"):
        await emulating.call("browser_emulate_vision_deficiency", tabId=1, type="protanopia")
    assert (await emulating.call("browser_clear_emulation", tabId=1))["cleared"] == []


async def test_nothing_is_undone_in_a_closed_tab(emulating: Bench) -> None:
    emulating.context.session = session = object()
    await device(emulating)
    emulating.browser.notify("tab.stateChanged", tabId=1, change="removed")
    emulating.browser.sent.clear()
    emulating.end(session)
    await settle()
    assert sent(emulating) == []
