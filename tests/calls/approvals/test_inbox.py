"""Asking a person: who is asked, whose answer counts, what it brings, and when the asking ends."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tabhub.calls.approvals.inbox import Answered, ApprovalInbox
from tabhub.calls.approvals.memory import ApprovalMemory
from tabhub.calls.protocols import Answers, Questions
from tabhub.config.settings import Config
from tabhub.core.registry import Entry
from tabhub.core.sessions import Session, Sessions
from tabhub.core.tools import CallContext, Source, Tool, ToolResult
from tabhub.errors import Busy
from tabhub.limits import Limits
from tabhub.links.browsers import Browsers
from tabhub.store.audit import AuditLog
from tabhub.store.grants import GrantStore
from tabhub.store.home import Home
from tabhub.store.pins import PinStore
from tabhub.trust.approvals import DECISIONS, Ask
from tabhub.trust.grants import Scope
from tabhub.trust.guard import EXTENSION_ORIGIN
from tabhub.wire.panel import Decision
from tests.harness.agent import Agent, client, message, stateless
from tests.harness.fake_extension import tab
from tests.harness.hub import RunningHub, running_hub
from tests.harness.panel import Panel
from tests.harness.waiting import until

NOTES = Source("plugin", "notes")
CAN: dict[str, Any] = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}


def offer(hub: RunningHub, description: str = "Writes a note.", version: str = "1.0") -> list[dict[str, Any]]:
    """A plugin with a tool that acts and one that reads; gives the arguments they ran with."""
    ran: list[dict[str, Any]] = []

    async def run(ctx: CallContext, args: dict[str, Any]) -> ToolResult:
        ran.append(args)
        return ToolResult.text("done")

    meta = {"tabhub/plugin": {"plugin": "notes", "version": version}}
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    tools = [
        Tool("notes_write", NOTES, description, schema, meta=meta),
        Tool("notes_read", NOTES, "Reads.", schema, annotations={"readOnlyHint": True}, meta=meta),
    ]
    hub.hub.tabs.register(NOTES, [Entry(tool, run) for tool in tools])
    return ran


def asking(tmp_path: Path, **settings: Any) -> Any:
    return running_hub(tmp_path, **{"permissions": None, **settings})


def waiting(hub: RunningHub) -> int:
    return len(hub.hub.approvals)


def events(hub: RunningHub, what: str) -> list[dict[str, Any]]:
    hub.hub.engine.audit.flush()
    lines = [json.loads(line) for line in hub.home.audit.read_text().splitlines()]
    return [line for line in lines if line["tool"] == what]


@pytest.mark.req("S002-ws-server-08", "S002-ws-extension-19")
async def test_the_request_names_client_and_tool_and_the_audit_log_the_approver(tmp_path: Path) -> None:
    async with asking(tmp_path) as hub, Panel(hub) as panel, Agent(hub) as agent:
        ran = offer(hub)
        calling = asyncio.create_task(agent.call("notes_write", {"text": "hello"}))
        request = await panel.decide("allow_once")
        assert (await calling)["result"]["content"][0]["text"] == "done"
        assert ran == [{"text": "hello"}]
        shown = {key: request[key] for key in ("tool", "plugin", "client", "params", "reason", "notify")}
        assert shown == {
            "tool": "notes_write",
            "plugin": "notes",
            "client": "raw 1",
            "params": {"text": "hello"},
            "reason": "permission",
            "notify": True,
        }
        assert request["sentence"] == 'test (raw) wants to use "write" of notes with text "hello"'
        assert request["expiresAt"] > hub.hub.engine.wall() * 1000
        done = (await panel.next_notification("confirmation.done"))["params"]
        assert done == {"id": request["id"], "decision": "allow_once", "by": "panel"}
        line = hub.hub.engine.audit.recent(1)[0]
        assert line["approval"] == {"by": "panel", "decision": "allow_once"}
        (event,) = events(hub, "approval")
        assert (event["of"], event["decision"], event["by"]) == ("notes_write", "allow_once", "panel")
        assert event["sentence"] == 'test (raw) wants to use "write" of notes'  # what was typed is not logged
        assert line["what"] == 'use "write" of notes'
        assert line["waitedMs"] >= 0
        # what only reads is not asked for, and the next act is asked for anew
        assert "error" not in await agent.call("notes_read")
        calling = asyncio.create_task(agent.call("notes_write", {}))
        await panel.decide("deny", "not now")
        refused = (await calling)["result"]
        assert refused["isError"]
        assert "They said: not now" in refused["content"][0]["text"]
        assert refused["_meta"]["tabhub/error"]["approval"] == {"decision": "deny", "by": "panel"}
        assert hub.hub.engine.audit.recent(1)[0]["approval"] == {"decision": "deny", "by": "panel"}
        assert len(ran) == 2


async def test_several_requests_queue_and_no_answer_reaches_another(tmp_path: Path) -> None:
    async with asking(tmp_path) as hub, Panel(hub) as panel, Agent(hub) as agent:
        ran = offer(hub)
        calls = [asyncio.create_task(agent.call("notes_write", {"text": str(n)})) for n in range(3)]
        requests = {(each := await panel.request())["params"]["text"]: each for _ in calls}
        state = await panel.get("config.getState")
        assert {each["id"] for each in state["approvals"]} == {each["id"] for each in requests.values()}
        await panel.answer("made-up", "allow_once")
        await panel.answer(requests["1"]["id"], "allow_forever")
        await panel.settle()
        assert waiting(hub) == 3
        await panel.answer(requests["1"]["id"], "allow_once")
        assert not (await calls[1])["result"].get("isError")
        assert ran == [{"text": "1"}]
        await panel.answer(requests["1"]["id"], "allow_once")  # a second answer to it answers nothing else
        await panel.settle()
        assert waiting(hub) == 2
        await panel.answer(requests["0"]["id"], "deny")
        await panel.answer(requests["2"]["id"], "allow_once")
        assert (await calls[0])["result"]["isError"]
        assert not (await calls[2])["result"].get("isError")


async def test_without_an_answer_the_call_is_refused_and_its_own_deadline_starts_after_one(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"approvalTimeout": 0.2, "limits": {"call_timeout": 2}}
    async with asking(tmp_path, **settings) as hub, Panel(hub) as panel, Agent(hub) as agent:
        offer(hub)
        result = (await agent.call("notes_write"))["result"]
        assert "no person answered within 0.2 s" in result["content"][0]["text"]
        assert result["_meta"]["tabhub/error"]["approval"] == {"decision": "none", "by": "timeout"}
        request = await panel.request()
        done = (await panel.next_notification("confirmation.done"))["params"]
        assert done == {"id": request["id"], "decision": None, "by": "nobody answered"}
        assert waiting(hub) == 0
        await panel.get("config.set", {"key": "approvalTimeout", "value": 60})
        calling = asyncio.create_task(agent.call("notes_write"))
        request = await panel.request()
        await asyncio.wait([calling], timeout=2.5)  # longer than the call itself may take
        await panel.answer(request["id"], "allow_once")
        assert not (await calling)["result"].get("isError")


@pytest.mark.parametrize("way", ["cancel", "leave", "end"])
async def test_the_asking_ends_when_the_agent_takes_the_call_back_or_goes(tmp_path: Path, way: str) -> None:
    async with asking(tmp_path) as hub, Panel(hub) as panel, Agent(hub) as agent:
        ran = offer(hub)
        body = message("tools/call", {"name": "notes_write", "arguments": {}})
        calling = asyncio.create_task(agent.post(body))
        request = await panel.request()
        if way == "cancel":
            await agent.notify("notifications/cancelled", {"requestId": body["id"]})
        elif way == "leave":
            calling.cancel()
        else:
            hub.hub.session_control.end(agent.headers["Mcp-Session-Id"], "the person ended the session")
        done = (await panel.next_notification("confirmation.done"))["params"]
        assert (done["id"], done["decision"]) == (request["id"], None)
        await until(lambda: waiting(hub) == 0)
        await panel.answer(request["id"], "allow_always")
        await panel.settle()
        assert ran == []
        assert not hub.home.grants.exists()
        await asyncio.wait([calling])


async def test_for_this_session_lasts_as_long_as_the_session(tmp_path: Path) -> None:
    async with asking(tmp_path) as hub, Panel(hub) as panel:
        offer(hub)
        async with Agent(hub) as agent, Agent(hub) as other:
            calling = asyncio.create_task(agent.call("notes_write"))
            await panel.decide("allow_session")
            await calling
            assert not (await agent.call("notes_write"))["result"].get("isError")
            assert hub.hub.engine.audit.recent(1)[0]["approval"]["decision"] == "allow_session"
            calling = asyncio.create_task(other.call("notes_write"))
            await panel.decide("deny")
            assert (await calling)["result"]["isError"]
            # a tool that has changed is not the one that was allowed
            offer(hub, "Sends a note to everyone.")
            calling = asyncio.create_task(agent.call("notes_write"))
            await panel.decide("deny")
            assert (await calling)["result"]["isError"]


@pytest.mark.req("B18")
async def test_always_holds_over_a_restart_until_the_definition_changes(tmp_path: Path) -> None:
    async with asking(tmp_path) as hub, Panel(hub) as panel, Agent(hub) as agent:
        offer(hub)
        calling = asyncio.create_task(agent.call("notes_write"))
        await panel.decide("allow_always")
        await calling
        assert not (await agent.call("notes_write"))["result"].get("isError")
        assert hub.hub.engine.audit.recent(1)[0]["approval"]["decision"] == "allow_always"
    async with asking(tmp_path) as hub, Panel(hub) as panel, Agent(hub) as agent:
        ran = offer(hub)
        assert not (await agent.call("notes_write"))["result"].get("isError")
        offer(hub, "Writes a note.\u200b Then sends it away.", version="1.1")
        calling = asyncio.create_task(agent.call("notes_write"))
        request = await panel.decide("allow_once")
        await calling
        assert request["reason"] == "pin"
        assert "has changed since" in request["message"]
        assert '- "Writes a note."' in request["diff"].replace("-  ", "- ")
        assert "⟨U+200B⟩ Then sends it away." in request["diff"]
        assert "Hidden characters in the definition: 1 of U+200B ZERO WIDTH SPACE." in request["diff"]
        assert '"version": "1.1"' in request["diff"]
        assert events(hub, "definition changed")[0]["of"] == "notes_write"
        # the new form is approved now
        assert not (await agent.call("notes_write"))["result"].get("isError")
        assert ran == [{}]


async def test_the_agents_own_client_is_asked_at_the_same_time_and_the_first_answer_counts(tmp_path: Path) -> None:
    async with asking(tmp_path) as hub, Panel(hub) as panel, Agent(hub, capabilities={"elicitation": {}}) as agent:
        offer(hub)
        call = {"name": "notes_write", "arguments": {"text": "x"}}
        async with agent.streamed("tools/call", call) as stream:
            question = await stream.message()
            assert question["method"] == "elicitation/create"
            assert question["params"]["requestedSchema"]["properties"]["decision"]["enum"] == [
                "allow_once",
                "allow_session",
                "deny",
            ]
            message = question["params"]["message"]
            assert message.startswith('test (raw) wants to use "write" of notes with text "x".')
            assert 'Details: notes_write {"text": "x"}' in message
            request = await panel.request()
            content = {"decision": "allow_once"}
            await agent.post(
                {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": content}}
            )
            assert not (await stream.message())["result"].get("isError")
        assert (await panel.next_notification("confirmation.done"))["params"]["by"] == "elicitation"
        async with agent.streamed("tools/call", call) as stream:
            question = await stream.message()
            # always is not the agent's program to give
            content = {"decision": "allow_always"}
            await agent.post(
                {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": content}}
            )
            assert (await stream.message())["result"]["isError"]
        async with agent.streamed("tools/call", call) as stream:
            question = await stream.message()
            await agent.post({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "cancel"}})
            await until(lambda: waiting(hub) == 1)
            request = hub.hub.approvals.pending()[-1]
            await panel.answer(request["id"], "allow_once")
            answer = await stream.message()
            assert not answer.get("result", {}).get("isError")


async def test_a_stateless_client_answers_by_calling_again(tmp_path: Path) -> None:
    async with asking(tmp_path) as hub, Panel(hub) as panel, client(hub) as http:
        ran = offer(hub)

        async def call(text: str, **more: Any) -> dict[str, Any]:
            given = {"name": "notes_write", "arguments": {"text": text}, **more}
            body, headers = stateless("tools/call", given, **CAN)
            result: dict[str, Any] = (await http.post("/mcp", json=body, headers=headers)).json()["result"]
            return result

        asked = await call("a")
        assert (asked["resultType"], ran) == ("input_required", [])
        (key,) = asked["inputRequests"]
        yes = {"inputResponses": {key: {"action": "accept", "content": {"decision": "allow_once"}}}}
        # the answer belongs to that call: another one's arguments are asked for anew
        other = await call("b", **yes, requestState=asked["requestState"])
        assert (other["resultType"], ran) == ("input_required", [])
        result = await call("a", **yes, requestState=asked["requestState"])
        assert (result["resultType"], ran) == ("complete", [{"text": "a"}])
        # and it counts once
        assert (await call("a", **yes, requestState=asked["requestState"]))["resultType"] == "input_required"
        # answered in the panel in between: that was first
        asked = await call("c")
        (key,) = asked["inputRequests"]
        await panel.answer(key.removeprefix("approve-"), "deny", "no")
        await panel.settle()
        late = {"inputResponses": {key: {"action": "accept", "content": {"decision": "allow_once"}}}}
        result = await call("c", **late, requestState=asked["requestState"])
        assert "They said: no" in result["content"][0]["text"]
        assert ran == [{"text": "a"}]


async def test_elicitation_can_be_switched_off(tmp_path: Path) -> None:
    settings = {"approvals": {"elicitation": False}}
    async with asking(tmp_path, **settings) as hub, Panel(hub) as panel, client(hub) as http:
        offer(hub)
        body, headers = stateless("tools/call", {"name": "notes_write", "arguments": {}}, **CAN)
        calling = asyncio.create_task(http.post("/mcp", json=body, headers=headers))
        await panel.decide("allow_once")
        assert (await calling).json()["result"]["resultType"] == "complete"


async def test_an_agent_gets_progress_while_its_call_waits_for_approval(tmp_path: Path) -> None:
    async with asking(tmp_path) as hub, Panel(hub) as panel, Agent(hub) as agent:
        offer(hub)
        params = {"name": "notes_write", "arguments": {}, "_meta": {"progressToken": "p"}}
        async with agent.streamed("tools/call", params) as stream:
            progress = (await stream.message())["params"]
            assert "waits for approval" in progress["message"]
            await panel.decide("allow_once")
            assert not (await stream.message())["result"].get("isError")


async def test_a_browser_of_the_hubs_own_asks_for_nothing_and_without_one_there_is_nothing_to_ask(
    tmp_path: Path,
) -> None:
    async with asking(tmp_path) as hub, Agent(hub) as agent:
        arguments = {"code": "return 1", "tabId": 7}
        result = (await agent.call("browser_execute_script", arguments))["result"]
        assert result["_meta"]["tabhub/error"]["code"] == -32000
        async with Panel(hub, "managed") as browser:
            await browser.notify("extension.hello", {"browserId": "managed", "managed": True})
            await browser.settle()
            tab = next(iter(hub.hub.browsers.book)).tab_id
            arguments = {"code": "return 1", "tabId": tab}
            assert not (await agent.call("browser_execute_script", arguments))["result"].get("isError")
            async with Panel(hub, "own") as own:
                # the tab that is named is the managed browser's still, but a new one would be the person's
                assert not (await agent.call("browser_execute_script", arguments))["result"].get("isError")
                mine = next(each.tab_id for each in hub.hub.browsers.book if each.browser_id == "own")
                calling = asyncio.create_task(agent.call("browser_execute_script", {**arguments, "tabId": mine}))
                await own.decide("allow_once")
                assert not (await calling)["result"].get("isError")


async def test_a_call_on_a_closed_or_leased_tab_fails_without_asking(tmp_path: Path) -> None:
    async with asking(tmp_path) as hub, Panel(hub) as panel, Agent(hub) as holder, Agent(hub) as agent:
        mine = next(iter(hub.hub.browsers.book)).tab_id
        calling = asyncio.create_task(holder.call("browser_execute_script", {"code": "return 1", "tabId": mine}))
        await panel.decide("allow_once")
        assert not (await calling)["result"].get("isError")
        for tab_id, words in ((mine, "is held by another session"), (mine + 1000, "There is no tab")):
            async with asyncio.timeout(30):
                refused = (await agent.call("browser_execute_script", {"code": "return 1", "tabId": tab_id}))["result"]
            assert words in refused["content"][0]["text"]
            assert waiting(hub) == 0


async def test_no_agent_acts_in_the_panel_itself_whatever_is_set(tmp_path: Path) -> None:
    url = f"{EXTENSION_ORIGIN.decode()}/panel/panel.html?full"
    async with running_hub(tmp_path) as hub, Panel(hub, tabs=[tab(7, url, active=True)]), Agent(hub) as agent:
        for name, more in (
            ("browser_execute_script", {"code": "1"}),
            ("browser_click_element", {"selector": "button"}),
        ):
            refused = (await agent.call(name, {"tabId": 7, **more}))["result"]
            assert "shows Tabhub's own panel" in refused["content"][0]["text"], name


async def test_more_requests_than_a_person_can_look_at_are_refused(tmp_path: Path) -> None:
    async with asking(tmp_path, limits={"approvals": 2}) as hub, Panel(hub) as panel, Agent(hub) as agent:
        offer(hub)
        calls = [asyncio.create_task(agent.call("notes_write")) for _ in range(2)]
        requests = [await panel.request() for _ in calls]
        refused = (await agent.call("notes_write"))["result"]
        assert "2 calls are waiting for approval already" in refused["content"][0]["text"]
        for request in requests:
            await panel.answer(request["id"], "deny")
        await asyncio.gather(*calls)


@pytest.mark.req("S000-overview-06")
async def test_the_tools_of_pages_are_guarded_as_all_others_are(tmp_path: Path) -> None:
    shop, name = "https://shop.example", "website_tool_shop_example_tab1_buy"
    buy = {
        "name": "buy",
        "description": "Buys.",
        "inputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": True},
    }
    where = {"tabId": 7, "frameId": 0, "documentId": "d", "origin": shop, "url": f"{shop}/", "title": "Shop"}
    ran: list[str] = []

    def bought(params: dict[str, Any]) -> dict[str, Any]:
        ran.append(params["toolName"])
        return {"success": True, "payload": {"content": [{"type": "text", "text": "bought"}]}}

    async with asking(tmp_path) as hub, Panel(hub, tabs=[tab(7, f"{shop}/")]) as panel, Agent(hub) as agent:
        panel.handlers["browser/executeTool"] = bought
        await panel.notify("browser/registerTools", {**where, "tools": [buy]})
        await panel.settle()
        async with client(hub, Authorization="Bearer wrong") as stranger:
            assert (await stranger.post(f"/tools/{name}/call", json={})).status_code == 401
        # That it only reads is the page's own word: a person is asked all the same.
        calling = asyncio.create_task(agent.call(name))
        request = await panel.decide("deny", "not today")
        assert (request["origin"], request["tool"]) == (shop, name)
        assert "not today" in (await calling)["result"]["content"][0]["text"]
        calling = asyncio.create_task(agent.call(name))
        await panel.decide("allow_once")
        assert (await calling)["result"]["content"][0]["text"].endswith("bought")
        assert await panel.get("config.setPluginPermission", {"plugin": shop, "permission": "off"}) is not None
        assert "switched off" in (await agent.call(name))["result"]["content"][0]["text"]
        assert name not in str(await agent.request("tools/list"))
    assert ran == ["buy"]


class Client:
    """A client that only waits (calls.protocols.Caller)."""

    via = "test"
    answers = None
    structured = True

    def __init__(self, session: Session) -> None:
        self.params: dict[str, Any] = {}
        self.session = session

    def progress(self, progress: float, total: float | None, message: str | None) -> None: ...

    def log(self, level: str, logger: str, data: Any) -> None: ...

    async def ask(self, tool: str, questions: Questions) -> Answers:
        raise AssertionError("this client cannot be asked")

    def can(self, capability: str) -> bool:
        return False


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from(DECISIONS))))
def test_an_answer_closes_only_the_request_it_names_and_only_with_an_offered_decision(
    tmp_path: Path, answers: list[tuple[int, Decision]]
) -> None:
    async def run() -> None:
        limits, sessions = Limits(approvals=3), Sessions(Limits())
        browsers = Browsers(limits, wall=lambda: 0.0)
        audit = AuditLog(tmp_path / "audit.log", limits, clock=lambda: 0.0)

        grants = GrantStore(Home(tmp_path / "home"), 100)
        inbox = ApprovalInbox(
            Config(),
            limits=limits,
            sessions=sessions,
            browsers=browsers,
            audit=audit,
            clock=lambda: 0.0,
            wall=lambda: 0.0,
            memory=ApprovalMemory(PinStore(tmp_path / "pins.json"), grants, lambda: 0.0),
        )
        caller = Client(sessions.open("s", "mcp", "test", 0.0))
        tool = Tool("notes_write", NOTES, "Writes.", {"type": "object"})
        scope = (Scope("plugin:notes_write", None),)
        asks = [
            Ask("permission", "", scope=scope),
            Ask("permission", "once", this_call_only=True),
            Ask("dataflow", "flow"),
        ]
        calls = [asyncio.ensure_future(inbox.ask(caller, tool, {"n": n}, ask)) for n, ask in enumerate(asks)]
        await asyncio.sleep(0)
        with pytest.raises(Busy):
            await inbox.ask(caller, tool, {"n": 9}, asks[0])
        offered = {request["id"]: request["choices"] for request in inbox.pending()}
        ids = [*offered, "made-up", "", "0"]
        still = list(offered)
        for n, decision in answers:
            taken = ids[n] in still and decision in offered[ids[n]]
            assert inbox.answer(ids[n], decision, "panel") is taken
            if taken:
                still.remove(ids[n])
            assert [request["id"] for request in inbox.pending()] == still
        inbox.cancel(lambda _caller, _session: True, "the test is over")
        ended = await asyncio.gather(*calls, return_exceptions=True)
        assert [isinstance(each, Answered) for each in ended] == [ident not in still for ident in offered]
        assert len(inbox) == 0
        audit.close()

    asyncio.run(run())
