"""Calls of plugin tools: which tab gets them, what is sent, and the result of each kind of failure."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from tabhub.calls.sources.plugin_calls import _result
from tests.harness.agent import Agent, message
from tests.harness.fake_extension import FakeExtension, Refuses, Silent, tab
from tests.harness.hub import RunningHub, running_hub
from tests.harness.waiting import until
from tests.plugins.packages import folder, tool

_SITES = {"site": {"type": "url", "label": "Site"}}
_INSTANCES = {"demo": {"site": {"work": "https://work.example", "home": "https://home.example"}}}


class Scene:
    """A hub with one plugin, a browser and an agent."""

    def __init__(self, hub: RunningHub, browser: FakeExtension, agent: Agent) -> None:
        self.hub, self.browser, self.agent = hub, browser, agent

    def answers(self, answer: Callable[[dict[str, Any]], Any]) -> None:
        self.browser.handlers["tool.dispatch"] = answer

    async def call(self, name: str = "demo_read", /, **arguments: Any) -> dict[str, Any]:
        result: dict[str, Any] = (await self.agent.call(name, arguments))["result"]
        return result

    async def tab_of(self, **arguments: Any) -> int:
        """The tab, as the browser numbers it, that gets a call."""
        answer = await self.call(**arguments)
        assert "isError" not in answer, answer
        number: int = answer["structuredContent"]["tab"]
        return number


@asynccontextmanager
async def scene(tmp_path: Path, tabs: list[dict[str, Any]], **more: Any) -> AsyncIterator[Scene]:
    settings = more.pop("settings", {})
    limits = more.pop("limits", {})
    made = folder(tmp_path / "p", "demo", **more)
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        hub = await enter(running_hub(tmp_path, localPlugins=[str(made)], settings=settings, limits=limits))
        browser = await enter(FakeExtension(hub, tabs=tabs))
        agent = await enter(Agent(hub))
        play = Scene(hub, browser, agent)
        play.answers(lambda params: {"output": {"tab": params["tabId"]}})
        yield play


def with_plugins(hub: RunningHub, *folders: Path) -> None:
    """Change the plugins of the config file, and nothing else in it."""
    values = json.loads(hub.home.config.read_text())
    hub.home.config.write_text(json.dumps({**values, "localPlugins": [str(each) for each in folders]}))


def at(tab_id: int, host: str = "demo.example", **more: Any) -> dict[str, Any]:
    return tab(tab_id, f"https://{host}/page", **more)


@pytest.mark.req("S002-dispatch-02", "S002-ws-server-05", "S002-injected-02")
async def test_a_call_is_one_dispatch_without_the_hubs_own_parameters(tmp_path: Path) -> None:
    async with scene(tmp_path, [at(5)]) as play:
        answer = await play.call(text="x", tabId=5)
        assert answer["structuredContent"] == {"tab": 5}
        assert json.loads(answer["content"][0]["text"]) == {"tab": 5}
        assert answer["_meta"]["tabhub/untrusted"] == {"origin": "https://demo.example"}
        sent = await play.browser.next_request("tool.dispatch")
        assert sent["params"] == {
            "plugin": "demo",
            "tool": "read",
            "input": {"text": "x"},
            "tabId": 5,
            "dispatchId": str(sent["id"]),
            "urlPatterns": ["https://demo.example/*"],
            "timeoutMs": 300_000,
        }


@pytest.mark.parametrize("output", ["plain text", 7, None, ["a"], {"deep": {"er": [1]}}])
async def test_any_json_is_a_valid_result(tmp_path: Path, output: Any) -> None:
    async with scene(tmp_path, [at(5)]) as play:
        play.answers(lambda _: {"output": output})
        answer = await play.call()
        text = answer["content"][0]["text"]
        assert text == output if isinstance(output, str) else json.loads(text) == output
        assert answer.get("structuredContent") == (output if isinstance(output, dict) else None)


async def test_a_large_answer_is_passed_on_without_being_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scene(tmp_path, [at(5)]) as play:
        for value, shown in (("[" + ",".join(["[]"] * 500_000) + "]", "[[],[],"), ('"' + "é" * 700_000 + '"', "éé")):
            answers: list[str] = [f'{{"output": {value}}}', f'{{"output": {{"value": {value}}}}}']
            for written in answers:
                play.browser.handlers["tool.dispatch"] = lambda params: Silent
                calling = asyncio.create_task(play.call())
                asked = await play.browser.next_request("tool.dispatch")
                await play.browser.send(f'{{"jsonrpc":"2.0","id":{asked["id"]},"result":{written}}}')
                answer = await calling
                assert shown in answer["content"][0]["text"].replace("\n", "").replace(" ", "")
                assert ("structuredContent" in answer) == (written is answers[1])
    brackets = b"[" + b",".join([b"[]"] * 330_000) + b"]"
    parsed: list[int] = []
    decode = msgspec.json.decode

    def decode_and_record(data: bytes, **options: Any) -> Any:
        parsed.append(len(data))
        return decode(data, **options)

    monkeypatch.setattr(msgspec.json, "decode", decode_and_record)
    for output in (b"[1]", brackets):
        raw = b'{"output":%b}' % output
        made = _result(raw, *(cast("Any", SimpleNamespace(origin="o", tab_id=1, name="n")) for _ in range(3)))
        assert output in made.payload
    assert parsed == [3]


@pytest.mark.req("S002-tabid-02", "S002-dispatch-03")
async def test_a_call_without_a_tab_goes_to_the_best_tab(tmp_path: Path) -> None:
    focused: dict[str, Any] = {"windowFocused": True}
    active: dict[str, Any] = {"active": True}
    tabs = [
        at(1, lastAccessed=9.0),
        at(2, windowId=2, **focused),
        at(3, windowId=3, **active),
        at(4, windowId=2, **active, **focused),
        at(9, "other.example", **active, **focused),
    ]
    async with scene(tmp_path, tabs) as play:
        for best in (4, 3, 2, 1):
            assert await play.tab_of() == best
            play.browser.tabs = [each for each in play.browser.tabs if each["tabId"] != best]
            await play.browser.sync()
        missing = await play.call()
        assert "No open tab shows Demo" in missing["content"][0]["text"]
        assert missing["_meta"]["tabhub/error"]["category"] == "unavailable"
        assert missing["_meta"]["tabhub/error"]["outcome"] == "not_sent"


async def test_a_ready_tab_is_preferred(tmp_path: Path) -> None:
    async with scene(tmp_path, [at(1, active=True, windowFocused=True), at(2)]) as play:
        state = {"plugin": "demo", "state": "ready", "tabs": [{"tabId": 2, "ready": True}]}
        await play.browser.notify("tab.stateChanged", state)
        await play.browser.settle()
        assert await play.tab_of() == 2


@pytest.mark.req("S002-tabid-01")
async def test_a_call_with_a_tab_runs_there_or_fails(tmp_path: Path) -> None:
    async with scene(tmp_path, [at(1, active=True), at(2), at(3, "other.example")]) as play:
        assert await play.tab_of(tabId=2) == 2
        wrong = await play.call(tabId=3)
        assert "Tab 3 shows https://other.example/page, which is not a page of Demo" in wrong["content"][0]["text"]
        assert "There is no tab 77" in (await play.call(tabId=77))["content"][0]["text"]
        play.answers(lambda _: _refuse("unavailable", sent=False))
        assert (await play.call(tabId=2))["isError"] is True
        asked = [each["params"]["tabId"] for each in drained(play.browser)]
        assert asked == [2, 2]


@pytest.mark.req("S002-instance-04")
async def test_an_instance_chooses_the_site_and_a_tab_the_tab(tmp_path: Path) -> None:
    tabs = [at(1, "work.example", active=True), at(2, "home.example"), at(3, "home.example"), at(4)]
    async with scene(tmp_path, tabs, configSchema=_SITES, settings=_INSTANCES) as play:
        assert await play.tab_of(instance="work") == 1
        assert await play.tab_of(instance="home", tabId=3) == 3
        sent = drained(play.browser)[-1]["params"]
        assert (sent["input"], sent["urlPatterns"]) == ({}, ["*://home.example/*"])
        wrong = await play.call(instance="home", tabId=1)
        assert "not a page of Demo (home)" in wrong["content"][0]["text"]


async def test_excluded_pages_do_not_belong_to_the_plugin(tmp_path: Path) -> None:
    async with scene(tmp_path, [at(1)], excludePatterns=["*://demo.example/page*"]) as play:
        assert "No open tab" in (await play.call())["content"][0]["text"]


def _refuse(category: str, *, sent: bool = True, **more: Any) -> Any:
    raise Refuses(-32000, f"it is {category}", {"category": category, "retryable": False, "sent": sent, **more})


def drained(browser: FakeExtension) -> list[dict[str, Any]]:
    found = []
    while not browser.seen.empty():
        found.append(browser.seen.get_nowait())
    return [each for each in found if each["method"] == "tool.dispatch"]


@pytest.mark.parametrize("category", ["auth", "rate_limit", "not_found", "validation", "internal", "timeout"])
async def test_a_plugins_error_keeps_its_category_and_advice(tmp_path: Path, category: str) -> None:
    async with scene(tmp_path, [at(1), at(2)]) as play:
        play.answers(lambda _: _refuse(category, code="CODE_7", retryable=True, retryAfterMs=2500))
        answer = await play.call()
        facts = answer["_meta"]["tabhub/error"]
        assert (facts["category"], facts["pluginCode"], facts["retryable"]) == (category, "CODE_7", True)
        assert (facts["retryAfterMs"], facts["outcome"]) == (2500, "failed")
        assert f"it is {category}" in answer["content"][0]["text"]
        assert "Call again in 2.5 s." in answer["content"][0]["text"]
        assert len(drained(play.browser)) == 1  # its handler ran, so no other tab is tried
        line = play.hub.hub.engine.audit.recent(1)[0]
        assert line["error"]["category"] == category


@pytest.mark.parametrize(
    "data",
    [None, {}, {"category": "odd"}, {"category": 7, "code": ["x"], "retryAfterMs": "soon"}, {"category": {}}, "text"],
)
async def test_an_error_in_an_unknown_form_is_reported_as_an_error(tmp_path: Path, data: Any) -> None:
    async with scene(tmp_path, [at(1)]) as play:

        def refuse(_: Any) -> Any:
            refusal = Refuses(-32000, "broken")
            refusal.error["data"] = data
            raise refusal

        play.answers(refuse)
        answer = await play.call()
        assert answer["isError"] is True
        assert "broken" in answer["content"][0]["text"]


async def test_a_call_that_never_began_is_retried_in_another_tab(tmp_path: Path) -> None:
    async with scene(tmp_path, [at(1, active=True), at(2)]) as play:

        def answer(params: dict[str, Any]) -> Any:
            return _refuse("unavailable", sent=False) if params["tabId"] == 1 else {"output": {"tab": 2}}

        play.answers(answer)
        assert await play.tab_of() == 2
        play.answers(lambda _: _refuse("unavailable", sent=False))
        failed = await play.call()
        assert failed["_meta"]["tabhub/error"]["outcome"] == "not_sent"


async def test_closing_the_tab_fails_its_call_without_a_retry(tmp_path: Path) -> None:
    async with scene(tmp_path, [at(1, active=True), at(2)]) as play:
        play.answers(lambda _: Silent)
        calling = asyncio.create_task(play.call("demo_act"))
        await play.browser.next_request("tool.dispatch")
        await play.browser.notify("tab.stateChanged", {"tabId": 1, "change": "removed"})
        answer = await calling
        assert answer["_meta"]["tabhub/error"]["outcome"] == "unknown"
        assert drained(play.browser) == []


async def test_a_reading_call_is_retried_in_another_tab_when_its_own_closes(tmp_path: Path) -> None:
    reading = tool("read", annotations={"readOnlyHint": True})
    async with scene(tmp_path, [at(1, active=True), at(2)], tools=[reading]) as play:
        play.answers(lambda params: Silent if params["tabId"] == 1 else {"output": {"tab": 2}})
        calling = asyncio.create_task(play.tab_of())
        await play.browser.next_request("tool.dispatch")
        await play.browser.notify("tab.stateChanged", {"tabId": 1, "change": "removed"})
        assert await calling == 2


@pytest.mark.req("S002-ws-extension-05", "S002-dispatch-10")
async def test_progress_reaches_the_agent_and_extends_the_deadline(tmp_path: Path) -> None:
    limits = {"call_timeout": 3, "call_timeout_max": 30}
    async with scene(tmp_path, [at(1)], limits=limits) as play:
        numbers: list[int] = []
        received_one = asyncio.Semaphore(0)

        async def answer(params: dict[str, Any]) -> Any:
            numbers.append(int(params["dispatchId"]))
            for step in range(1, 9):
                update = {"dispatchId": params["dispatchId"], "progress": step, "total": 8, "message": f"step {step}"}
                await play.browser.notify("tool.progress", update)
                await received_one.acquire()
            return {"output": {"ok": True}}

        play.answers(answer)
        params = {"name": "demo_read", "arguments": {}, "_meta": {"progressToken": "p"}}
        async with play.agent.streamed("tools/call", params) as events:
            deadlines: list[float] = []
            for step in range(1, 9):
                received = (await events.message())["params"]
                assert (received["progress"], received["total"], received["message"]) == (step, 8, f"step {step}")
                (call,) = play.hub.hub.engine.calls
                deadlines.append(call.deadline)
                assert call.deadline > call.opened + limits["call_timeout"]
                received_one.release()
            assert deadlines == sorted(set(deadlines))
            assert (await events.message())["result"]["structuredContent"] == {"ok": True}
        play.answers(lambda _: Silent)
        late = await play.call()
        assert late["_meta"]["tabhub/error"]["category"] == "timeout"
        assert (await play.browser.next_notification("cancel"))["params"]["id"] > numbers[0]


async def test_a_call_that_is_cancelled_is_cancelled_in_the_browser(tmp_path: Path) -> None:
    async with scene(tmp_path, [at(1)]) as play:
        play.answers(lambda _: Silent)
        request = message("tools/call", {"name": "demo_read", "arguments": {}})
        calling = asyncio.create_task(play.agent.post(request))
        sent = await play.browser.next_request("tool.dispatch")
        await play.agent.post(
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": request["id"]}}
        )
        assert (await play.browser.next_notification("cancel"))["params"] == {"id": sent["id"]}
        calling.cancel()


async def test_a_tab_leased_by_another_session_is_not_used(tmp_path: Path) -> None:
    async with scene(tmp_path, [at(1, active=True), at(2)]) as play, Agent(play.hub) as other:
        sessions = {s.id: s for s in play.hub.hub.sessions.all()}
        play.hub.hub.binding.acquire(sessions[other.headers["Mcp-Session-Id"]], 1)
        assert await play.tab_of() == 2
        refused = await play.call(tabId=1)
        assert refused["_meta"]["tabhub/error"]["category"] == "conflict"
        mine = (await other.call("demo_read", {}))["result"]["structuredContent"]
        assert mine == {"tab": 1}


@pytest.mark.req("L6")
async def test_the_26th_call_of_a_plugin_waits_and_more_than_the_queue_holds_is_refused(tmp_path: Path) -> None:
    async with scene(tmp_path, [at(1)], limits={"queue_per_source": 2}) as play:
        gate = asyncio.Event()

        async def answer(params: dict[str, Any]) -> Any:
            await gate.wait()
            return {"output": {"text": params["input"]["text"]}}

        play.answers(answer)
        calls = [asyncio.create_task(play.call(text=str(n))) for n in range(27)]
        await until(lambda: len(play.hub.hub.engine.calls) == 27)
        await until(lambda: play.browser.seen.qsize() == 25)
        refused = await play.call(text="too many")
        assert refused["_meta"]["tabhub/error"]["category"] == "concurrency"
        assert "Wait for calls in flight" in refused["content"][0]["text"]
        await play.browser.settle()
        assert play.browser.seen.qsize() == 25
        gate.set()
        answers = await asyncio.gather(*calls)
        assert [each["structuredContent"]["text"] for each in answers] == [str(n) for n in range(27)]


async def test_a_call_in_flight_ends_with_the_plugin_it_began_with(tmp_path: Path) -> None:
    async with scene(tmp_path, [at(1)]) as play:
        done = asyncio.get_running_loop().create_future()
        play.answers(lambda _: done)
        calling = asyncio.create_task(play.call())
        await play.browser.next_request("tool.dispatch")
        folder(tmp_path / "p", "demo", "2.0.0", tools=[tool("other")])
        play.hub.hub.reload()
        with_plugins(play.hub)
        play.hub.hub.reload()
        done.set_result({"output": {"late": "but whole"}})
        assert (await calling)["structuredContent"] == {"late": "but whole"}
        assert play.hub.hub.registry.by_name.get("demo_read") is None


async def test_a_failing_plugin_does_not_affect_others(tmp_path: Path) -> None:
    other = folder(tmp_path / "o", "other")
    async with scene(tmp_path, [at(1), tab(2, "https://other.example/")]) as play:
        with_plugins(play.hub, tmp_path / "p", other)
        play.hub.hub.reload()
        play.answers(lambda params: Silent if params["plugin"] == "demo" else {"output": {"plugin": params["plugin"]}})
        hanging = [asyncio.create_task(play.call()) for _ in range(30)]
        await until(lambda: len(play.hub.hub.engine.calls) == 30)
        assert (await play.call("other_read"))["structuredContent"] == {"plugin": "other"}
        (tmp_path / "p/dist/adapter.iife.js").unlink()
        play.hub.hub.reload()
        assert (await play.call("other_read"))["structuredContent"] == {"plugin": "other"}
        for each in hanging:
            each.cancel()
