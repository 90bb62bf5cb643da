"""A running call stays on the site it was permitted for: another one is checked like a new call, step by step."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.harness.agent import Agent, client
from tests.harness.fake_extension import answer_scripts, script_value, tab
from tests.harness.hub import RunningHub, running_hub
from tests.harness.panel import Panel
from tests.harness.waiting import until

EVIL, BANK = "https://evil.example", "https://bank.example"
KEYS: dict[str, Any] = {"tabId": 7, "actions": [{"action": "press", "key": key} for key in "abc"]}


class Browser(Panel):
    """A person's browser whose page goes to another site when a key is pressed."""

    has_frames = True

    def __init__(self, hub: RunningHub, goes_to: str = f"{BANK}/pay") -> None:
        super().__init__(hub, tabs=[tab(7, f"{EVIL}/news")])
        self.goes_to = goes_to
        self.pressed: list[str] = []
        """The keys that arrived, with the site that the hub says they are for."""
        self.handlers["forwardCDPCommand"] = self._command

    async def _command(self, params: dict[str, Any]) -> dict[str, Any]:
        if params["method"] == "Input.dispatchKeyEvent":
            self.pressed.append(f"{params['ahead'][0]['params']['key']} {params.get('site')}")
            await self.moves(self.goes_to)
        if params["method"] == "Page.getFrameTree":
            return {"frameTree": {"frame": {"id": "F", "url": f"{EVIL}/"}}}
        return answer_scripts(params)

    async def visits(self, params: dict[str, Any]) -> dict[str, Any]:
        await self.moves(params["url"])
        return {"tabId": 7, "url": params["url"], "title": "There", "status": "complete"}

    async def moves(self, url: str) -> None:
        frame = {"frame": {"id": "F", "url": url}}
        await self.notify("cdp.event", {"tabId": 7, "method": "Page.frameNavigated", "params": frame})


def error_of(answer: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    result = answer["result"]
    assert result["isError"], result
    return result["content"][0]["text"], result["_meta"]["tabhub/error"]


@pytest.mark.req("B26")
async def test_batch_approved_for_one_site_stops_before_it_acts_on_another(tmp_path: Path) -> None:
    asking = running_hub(tmp_path, permissions=None)
    async with asking as hub, Browser(hub) as browser, Agent(hub) as agent:
        calling = asyncio.create_task(agent.call("browser_act", {**KEYS, "onError": "continue"}))
        request = await browser.decide("allow_once")
        assert request["origin"] == EVIL
        text, error = error_of(await calling)
        assert browser.pressed == [f"a {EVIL}"]
        assert "Action 2 of 3 (press) was not done" in text
        assert f"Tab 7 went from {EVIL} to {BANK}" in text
        assert "Done before: 1. Pressed a. Not begun: 3. press." in text
        assert f"To act on {BANK} make a new call" in text
        assert (error["outcome"], error["category"]) == ("failed", "permission")
        assert hub.hub.engine.audit.recent(1)[0]["origin"] == EVIL
        # a new call is asked for, with the site it is for
        calling = asyncio.create_task(agent.call("browser_press_key", {"tabId": 7, "key": "d"}))
        assert (await browser.decide("allow_once"))["origin"] == BANK
        assert not (await calling)["result"].get("isError")


@pytest.mark.parametrize("via", ["mcp", "rest"])
async def test_batch_that_navigates_to_a_site_not_approved_stops_there_and_reports_its_steps(
    tmp_path: Path, via: str
) -> None:
    async with (
        running_hub(tmp_path, permissions=None) as hub,
        Browser(hub, f"{EVIL}/more") as browser,
        Agent(hub) as agent,
        client(hub) as http,
    ):
        browser.handlers["browser_navigate"] = browser.visits
        steps = [KEYS["actions"][0], {"action": "navigate", "url": f"{BANK}/pay"}, *KEYS["actions"][1:]]
        batch = {"tabId": 7, "actions": steps}
        if via == "mcp":
            calling: asyncio.Task[Any] = asyncio.create_task(agent.call("browser_act", batch))
        else:
            calling = asyncio.create_task(http.post("/tools/browser_act/call", json={"arguments": batch}))
        await browser.decide("allow_once")
        answer = await calling
        text, error = error_of(answer if via == "mcp" else {"result": answer.json()})
        assert browser.pressed == [f"a {EVIL}"]
        assert text.startswith(f"Action 3 of 4 (press) was not done: Tab 7 went from {EVIL} to {BANK}")
        assert f"Done before: 1. Pressed a; 2. navigate {BANK}/pay. Not begun: 4. press." in text
        assert f"To act on {BANK} make a new call" in error["hint"]
        done = ["1. Pressed a", f"2. navigate {BANK}/pay"]
        assert error["batch"] == {"done": done, "stoppedAt": 3, "notBegun": ["4. press"]}
        assert error["outcome"] == "failed"


async def test_batch_goes_on_where_its_steps_need_no_approval_and_the_audit_line_names_all_sites(
    tmp_path: Path,
) -> None:
    async with running_hub(tmp_path) as hub, Browser(hub) as browser, Agent(hub) as agent:
        assert not (await agent.call("browser_act", KEYS))["result"].get("isError")
        assert browser.pressed == [f"a {EVIL}", f"b {BANK}", f"c {BANK}"]
        hub.hub.engine.audit.flush()
        line = json.loads(hub.home.audit.read_text().splitlines()[-1])
        assert line["sites"] == [EVIL, BANK]


@pytest.mark.req("B26")
async def test_step_that_would_carry_content_to_another_site_stops_the_batch(tmp_path: Path) -> None:
    guarded = running_hub(tmp_path, dataflow="ask")
    async with guarded as hub, Browser(hub, f"{EVIL}/more") as browser, Agent(hub) as agent:
        assert not (await agent.call("browser_act", KEYS))["result"].get("isError")
        browser.goes_to = f"{BANK}/pay"
        text, _ = error_of(await agent.call("browser_act", KEYS))
        assert f"has read {EVIL}, and now acts on {BANK}" in text
        assert browser.pressed[3:] == [f"a {EVIL}"]


async def test_step_set_to_ask_for_its_tool_stops_on_another_site(tmp_path: Path) -> None:
    tools = {"browser": {"tools": {"browser_press_key": "ask"}}}
    async with running_hub(tmp_path, permissions=tools) as hub, Browser(hub) as browser, Agent(hub) as agent:
        calling = asyncio.create_task(agent.call("browser_act", KEYS))
        await browser.decide("allow_once")
        text, _ = error_of(await calling)
        assert "browser_press_key was not done there" in text
        assert len(browser.pressed) == 1


async def test_navigation_step_runs_from_any_site_because_its_url_was_approved(tmp_path: Path) -> None:
    asking = running_hub(tmp_path, permissions=None)
    async with asking as hub, Browser(hub) as browser, Agent(hub) as agent:
        browser.handlers["browser_navigate"] = lambda params: {"tabId": 7, "url": params["url"], "status": "complete"}
        steps = [{"action": "press", "key": "a"}, {"action": "navigate", "url": f"{EVIL}/back"}, KEYS["actions"][1]]
        calling = asyncio.create_task(agent.call("browser_act", {"tabId": 7, "actions": steps}))
        await browser.decide("allow_once")
        assert not (await calling)["result"].get("isError")
        assert browser.pressed == [f"a {EVIL}", f"b {EVIL}"]


@pytest.mark.req("B26")
async def test_call_that_waited_while_paused_does_not_act_on_the_next_site(tmp_path: Path) -> None:
    asking = running_hub(tmp_path, permissions=None)
    async with asking as hub, Browser(hub) as browser, Agent(hub) as agent:
        await hub.hub.session_control.pause("test", "", "wait")
        calling = asyncio.create_task(agent.call("browser_press_key", {"tabId": 7, "key": "a"}))
        await browser.decide("allow_once")
        await until(lambda: len(hub.hub.engine.pause.held_calls) == 1)
        await browser.moves(f"{BANK}/pay")
        await browser.settle()
        await hub.hub.session_control.resume()
        text, error = error_of(await calling)
        assert f"went from {EVIL} to {BANK}" in text
        assert error["outcome"] == "not_sent"
        assert browser.pressed == []


@pytest.mark.req("B26")
@pytest.mark.parametrize("url", [f"{BANK}/pay", f"{EVIL}/other"])
async def test_answer_says_where_a_redirect_arrived(tmp_path: Path, url: str) -> None:
    async with running_hub(tmp_path) as hub, Browser(hub) as browser, Agent(hub) as agent:
        browser.handlers["browser_navigate"] = lambda _: {"tabId": 7, "url": url, "status": "complete"}
        answer = await agent.call("browser_navigate_tab", {"tabId": 7, "url": f"{EVIL}/go"})
        note = answer["result"]["structuredContent"].get("note", "")
        assert note.startswith(f"The tab was redirected from {EVIL} to {BANK}") is (url == f"{BANK}/pay")


@pytest.mark.req("B26")
@pytest.mark.parametrize("step", [{"action": "press", "key": "b"}, {"action": "wait", "text": "Balance"}])
async def test_batch_stops_before_a_step_on_a_blocked_site(tmp_path: Path, step: dict[str, Any]) -> None:
    actions = {"tabId": 7, "actions": [KEYS["actions"][0], step]}
    blocking = running_hub(tmp_path, sites={"bank.example": "block"})
    async with blocking as hub, Browser(hub) as browser, Agent(hub) as agent:
        text, error = error_of(await agent.call("browser_act", actions))
        assert "Action 2 of 2" in text
        assert "do not act on that site" in text
        assert (error["category"], browser.pressed) == ("permission", [f"a {EVIL}"])


class Framed(Browser):
    """The page has a frame of another site; keys go there while it has the focus."""

    has_frames = True

    def __init__(self, hub: RunningHub) -> None:
        super().__init__(hub)
        self.focused = True
        self.asked: list[str] = []
        """The methods of the commands that arrived."""

    async def _command(self, params: dict[str, Any]) -> dict[str, Any]:
        method, given = params["method"], params.get("params", {})
        self.asked.append(method)
        if method == "Input.dispatchKeyEvent":
            self.pressed.append(params["ahead"][0]["params"]["key"])
        answers: dict[str, Any] = {
            "Page.getFrameTree": {
                "frameTree": {
                    "frame": {"id": "F", "url": f"{EVIL}/"},
                    "childFrames": [{"frame": {"id": "P", "parentId": "F", "url": f"{BANK}/pay"}}],
                }
            },
            "Page.createIsolatedWorld": {"executionContextId": 3},
            "DOM.getFrameOwner": {"backendNodeId": 5},
            "DOM.resolveNode": {"object": {"objectId": "o"}},
            "Runtime.callFunctionOn": {"result": {"value": "e1"}},
        }
        value = script_value(given.get("expression", ""))
        if "frame element" in given.get("expression", ""):
            value = {"active": self.focused}
        return answers.get(method) or {"result": {"value": value}}


def framed(tmp_path: Path, **settings: Any) -> Any:
    return running_hub(tmp_path, **{"permissions": None, "dataflow": "off", **settings})


def press(key: str) -> tuple[str, dict[str, Any]]:
    return "browser_press_key", {"tabId": 7, "key": key}


async def test_an_action_in_a_frame_of_another_site_is_asked_about_for_that_site_too(tmp_path: Path) -> None:
    async with framed(tmp_path) as hub, Framed(hub) as browser, Agent(hub) as agent:
        calling = asyncio.create_task(agent.call(*press("a")))
        assert "frame" not in (await browser.decide("allow_session"))["message"]
        request = await browser.decide("allow_session")
        assert request["message"] == (
            f"It acts in a frame of {BANK} inside the page. browser_press_key acts, and is set to ask."
        )
        assert f"click and type on {BANK}" in request["scope"]
        assert request["url"] == f"{EVIL}/news"
        assert not (await calling)["result"].get("isError")
        line = hub.hub.engine.audit.recent(1)[0]
        assert (line["origin"], line["frames"]) == (EVIL, [BANK])
        assert not (await agent.call(*press("b")))["result"].get("isError")
        assert browser.pressed == ["a", "b"]


async def test_a_denied_frame_gets_nothing_and_the_page_around_it_still_does(tmp_path: Path) -> None:
    async with framed(tmp_path, sites={"evil.example": "act"}) as hub, Framed(hub) as browser, Agent(hub) as agent:
        calling = asyncio.create_task(agent.call(*press("a")))
        await browser.decide("deny")
        text, error = error_of(await calling)
        assert "The person denied browser_press_key" in text
        assert error["outcome"] == "not_sent"
        assert hub.hub.engine.audit.recent(1)[0]["frames"] == [BANK]
        browser.focused = False
        assert not (await agent.call(*press("b")))["result"].get("isError")
        assert browser.pressed == ["b"]


async def test_a_rule_or_navigation_while_the_person_decides_about_a_frame_still_counts(tmp_path: Path) -> None:
    async with framed(tmp_path, sites={"evil.example": "act"}) as hub, Framed(hub) as browser, Agent(hub) as agent:
        calling = asyncio.create_task(agent.call(*press("a")))
        request = await browser.request()
        frame = {"id": "P", "parentId": "F", "url": "https://other.example/"}
        await browser.notify("cdp.event", {"tabId": 7, "method": "Page.frameNavigated", "params": {"frame": frame}})
        await browser.answer(request["id"], "allow_once")
        text, _ = error_of(await calling)
        assert f"A frame of tab 7 went from {BANK} to https://other.example; nothing was done there." in text
        calling = asyncio.create_task(agent.call(*press("a")))
        request = await browser.request()
        hub.hub.settings.set_site("bank.example", None, "read")
        await browser.answer(request["id"], "allow_once")
        text, _ = error_of(await calling)
        assert "lets agents only read on bank.example" in text
        assert browser.pressed == []


async def test_a_step_in_a_frame_that_needs_an_approval_stops_the_batch(tmp_path: Path) -> None:
    async with framed(tmp_path, sites={"evil.example": "act"}) as hub, Framed(hub) as browser, Agent(hub) as agent:
        text, error = error_of(await agent.call("browser_act", KEYS))
        assert f"browser_press_key was not run in a frame of {BANK}: there it needs an approval." in text
        assert "Make it a call of its own" in error["hint"]
        assert browser.pressed == []


async def test_content_of_a_page_is_not_carried_into_a_frame_unasked(tmp_path: Path) -> None:
    async with running_hub(tmp_path, dataflow="ask") as hub, Framed(hub) as browser, Agent(hub) as agent:
        browser.focused = False
        assert not (await agent.call(*press("a")))["result"].get("isError")
        browser.focused = True
        calling = asyncio.create_task(agent.call(*press("b")))
        request = await browser.decide("allow_session")
        assert request["reason"] == "dataflow"
        assert f"has read {EVIL}, and now acts on {BANK}" in request["message"]
        assert not (await calling)["result"].get("isError")
        assert browser.pressed == ["a", "b"]


async def test_frames_cost_no_round_trip_where_no_rule_tells_them_apart(tmp_path: Path) -> None:
    async with running_hub(tmp_path) as hub, Framed(hub) as browser, Agent(hub) as agent:
        assert not (await agent.call(*press("a")))["result"].get("isError")
        browser.asked.clear()  # the first call looks for the main frame
        assert not (await agent.call(*press("b")))["result"].get("isError")
        assert browser.pressed == ["a", "b"]
        assert "Page.getFrameTree" not in browser.asked


async def test_the_answer_to_an_intercepted_request_is_judged_by_the_document_it_is_for(tmp_path: Path) -> None:
    """With a document of its own an agent would run scripts there."""
    sites = {"evil.example": "act", "bank.example": "read"}
    async with framed(tmp_path, sites=sites) as hub, Framed(hub) as browser, Agent(hub) as agent:
        assert not (await agent.call("browser_intercept_requests", {"tabId": 7}))["result"].get("isError")

        async def fulfilled(kind: str, url: str, frame: str) -> dict[str, Any]:
            request = {"requestId": f"{kind} {url} {frame}", "resourceType": kind, "frameId": frame}
            params = {**request, "request": {"url": url, "method": "GET"}}
            await browser.notify("cdp.event", {"tabId": 7, "method": "Fetch.requestPaused", "params": params})
            listed = await agent.call("browser_intercept_requests", {"tabId": 7})
            (paused,) = listed["result"]["structuredContent"]["paused"]
            answer = await agent.call("browser_fulfill_request", {"tabId": 7, "requestId": paused["id"], "status": 200})
            if answer["result"].get("isError"):
                await agent.call("browser_stop_intercepting", {"tabId": 7, "requestId": paused["id"]})
            return answer

        for kind, url, frame in (("Document", f"{BANK}/pay", "F"), ("Script", "https://cdn.example/a.js", "P")):
            text, _ = error_of(await fulfilled(kind, url, frame))
            assert "lets agents only read on bank.example" in text
        assert "Fetch.fulfillRequest" not in browser.asked
        assert not (await fulfilled("Script", "https://cdn.example/a.js", "F"))["result"].get("isError")
        assert not (await fulfilled("Document", f"{EVIL}/next", "F"))["result"].get("isError")
