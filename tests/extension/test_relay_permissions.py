"""Permissions at the extension's own gate, for agents over a relay without a hub: a real Chromium and relay.

Some agents speak the relay's protocol, some MCP over HTTP. The levels mean the same as in a hub's settings: reading is
free, and acting is refused (read), asked for (ask) or free (act). Whatever the level, the panel belongs to the person.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.extension.conftest import EXTENSION_ID, Site
from tests.extension.fakehub import Wire
from tests.extension.test_relay import Ask, answered, connected, panel, relay, state
from tests.harness.waiting import until
from tests.relay.engines.httpworld import http_relay
from tests.relay.independent import IndependentAgent
from tests.relay.world import RunningRelay, token

__all__ = ["panel", "relay"]

OWN = f"chrome-extension://{EXTENSION_ID}/panel/"


def cdp(method: str, **params: Any) -> tuple[str, dict[str, Any]]:
    return "forwardCDPCommand", {"method": method, "params": params}


LOOKING = [
    ("getTabs", {}),
    cdp("Page.getLayoutMetrics"),
    cdp("DOM.enable"),
]
ACTING = [
    cdp("Runtime.evaluate", expression="1", throwOnSideEffect=True),
    cdp("Input.dispatchKeyEvent", type="char", text="a"),
    cdp("Page.navigate", url="about:blank#{n}"),
    ("subscribeCDPEvents", {"events": ["Network.requestWillBeSent"]}),
    ("subscribeCDPEvents", {"events": ["Page.loadEventFired"], "children": [{"method": "Page.enable"}]}),
    ("getCookies", {"url": "{site}/"}),
    ("createTab", {"url": "{site}/other"}),
    ("activateTab", {}),
]
"""One of each kind: a script, input, leaving the page, subscribing, configuring frames, stored data, opening, the
window."""
CASES = [("read", None), ("ask", False), ("ask", True), ("act", None)]
LOOK, DENIED = "may only look", "The person at the browser did not allow it."


@pytest.mark.parametrize(("level", "allow"), CASES)
async def test_every_level_works_as_in_the_hub(
    relay: RunningRelay, panel: Ask, wire: Wire, site: Site, level: str, allow: bool | None
) -> None:
    there = {tab["tabId"] for tab in (await wire.ask("getTabs"))["tabs"]}
    made = (await wire.ask("createTab", url=f"{site.url}/", waitUntil="load"))["tabId"]
    await connected(panel, relay, level=level)
    for method, given in (*LOOKING, *ACTING):
        await wire.ask("browser_navigate", tabId=made, url=f"{site.url}/", waitUntil="load")
        params = {"tabId": made, **given}
        if "url" in given:
            params["url"] = given["url"].format(site=site.url)
        # Approvals apply to one connection: each connection asks again.
        async with IndependentAgent(relay.url, token()) as agent:
            await agent.ready()
            calling = await agent.begin(method, params)
            if (method, given) in ACTING and allow is not None:
                question = await answered(panel, allow=allow)
                assert question["site"] == site.url, method
            answer = await calling
        refused = {"read": LOOK, "ask": None if allow else DENIED, "act": None}[level]
        if (method, given) in LOOKING or refused is None:
            assert "result" in answer, (method, answer)
        else:
            assert refused in answer["error"]["message"], (method, answer)
        left = {tab["tabId"] for tab in (await wire.ask("getTabs"))["tabs"]} - there
        for tab_id in left - {made}:
            await wire.ask("closeTab", tabId=tab_id)
        if refused is not None:
            assert left == {made}, method
    assert not (await state(panel, lambda facts: True))["questions"]
    await wire.ask("closeTab", tabId=made)


@pytest.mark.parametrize(("level", "allow"), CASES)
async def test_every_level_applies_to_agents_over_mcp_at_the_relay(
    panel: Ask, wire: Wire, site: Site, level: str, allow: bool | None
) -> None:
    made = (await wire.ask("createTab", url=f"{site.url}/", waitUntil="load"))["tabId"]
    async with http_relay() as relay, relay.agent() as agent:
        await connected(panel, relay.relay, level=level)
        (engine,) = relay.engines()
        await until(lambda: any(tab.chrome_id == made for tab in engine.browsers.book))
        listed = (await agent.call("browser_list_tabs"))["result"]["structuredContent"]["tabs"]
        (tab_id,) = [tab["tabId"] for tab in listed if tab["url"] == f"{site.url}/"]
        script = {"tabId": tab_id, "code": "return document.title"}
        calling = asyncio.create_task(agent.call("browser_execute_script", script))
        if allow is not None:
            assert (await answered(panel, allow=allow))["site"] == site.url
        answer = (await calling)["result"]
        refused = {"read": LOOK, "ask": None if allow else DENIED, "act": None}[level]
        assert bool(answer.get("isError")) is (refused is not None), answer
        if refused is None:
            assert answer["structuredContent"]["value"] == "Home"
        else:
            assert refused in answer["content"][0]["text"]
        await panel("relay.set", url="", token="")
    await wire.ask("closeTab", tabId=made)


async def test_asking_is_the_default(relay: RunningRelay, panel: Ask, site: Site) -> None:
    await connected(panel, relay)
    assert (await state(panel, lambda facts: True))["level"] == "ask"
    async with IndependentAgent(relay.url, token()) as agent:
        await agent.ready()
        calling = await agent.begin("createTab", {"url": f"{site.url}/"})
        await answered(panel, allow=False)
        assert DENIED in (await calling)["error"]["message"]


async def test_an_approval_for_one_site_does_not_apply_after_the_tab_navigates(
    relay: RunningRelay, panel: Ask, wire: Wire, site: Site
) -> None:
    made = (await wire.ask("createTab", url=f"{site.url}/", waitUntil="load"))["tabId"]
    await connected(panel, relay, level="ask")
    script = {"method": "Runtime.evaluate", "params": {"expression": "document.title = 'acted'"}}
    async with IndependentAgent(relay.url, token()) as agent:
        await agent.ready()
        calling = await agent.begin("forwardCDPCommand", {"tabId": made, **script})
        await state(panel, lambda facts: bool(facts["questions"]))
        await wire.ask("browser_navigate", tabId=made, url="about:blank")
        assert (await answered(panel, allow=True))["site"] == site.url
        assert (await answered(panel, allow=False))["site"] == "about:"
        assert DENIED in (await calling)["error"]["message"]
    titles = {tab["tabId"]: tab["title"] for tab in (await wire.ask("getTabs"))["tabs"]}
    assert titles[made] != "acted"
    await wire.ask("closeTab", tabId=made)


@pytest.mark.parametrize("level", ["ask", "act"])
async def test_no_agent_acts_in_the_panel_whatever_the_level(
    relay: RunningRelay, panel: Ask, wire: Wire, site: Site, level: str
) -> None:
    (made,) = [tab["tabId"] for tab in (await wire.ask("getTabs"))["tabs"] if tab["url"].startswith(OWN)]
    await connected(panel, relay, level=level)
    script = {"tabId": made, "method": "Runtime.evaluate", "params": {"expression": "document.title"}}
    key = {"tabId": made, "method": "Input.dispatchKeyEvent", "params": {"type": "char", "text": "a"}}
    async with IndependentAgent(relay.url, token()) as agent:
        await agent.ready()
        for method, params in (
            ("forwardCDPCommand", script),
            ("forwardCDPCommand", key),
            ("browser_navigate", {"tabId": made, "url": f"{site.url}/"}),
            ("subscribeCDPEvents", {"tabId": made, "events": ["Network.requestWillBeSent"]}),
            ("closeTab", {"tabId": made}),
        ):
            refused = await agent.error(method, params)
            assert "which agents cannot use" in refused["message"], (method, refused)
    assert not (await state(panel, lambda facts: True))["questions"]


async def test_many_denials_stop_further_questions(relay: RunningRelay, panel: Ask, site: Site) -> None:
    await connected(panel, relay, level="ask")
    for turn in ("a", "b"):
        async with IndependentAgent(relay.url, token()) as agent:
            await agent.ready()
            urls = [f"http://{turn}{number}.example" for number in range(30)]
            waiting = [await agent.begin("createTab", {"url": f"{url}/"}) for url in urls]
            most = (await state(panel, lambda facts: len(facts["questions"]) == 5))["questions"]
            assert [question["site"] for question in most] == urls[:5]
            for _ in most:
                await answered(panel, allow=False)
            answers = [await each for each in waiting]
            assert all(DENIED in answer["error"]["message"] for answer in answers[:5])
            assert all("already waiting for the person" in answer["error"]["message"] for answer in answers[5:])
    # Another connection is another agent, and another site is another question; the person is the same.
    async with IndependentAgent(relay.url, token()) as agent:
        await agent.ready()
        refused = await agent.error("createTab", {"url": "http://one-more.example/"})
        assert "denied 10 requests in the last minute" in refused["message"]
        assert not (await state(panel, lambda facts: True))["questions"]
    await connected(panel, relay, level="ask")  # the person sets it again
    async with IndependentAgent(relay.url, token()) as agent:
        await agent.ready()
        opening = await agent.begin("createTab", {"url": "http://a1.example/"})
        assert (await answered(panel, allow=False))["site"] == "http://a1.example"
        assert DENIED in (await opening)["error"]["message"]
