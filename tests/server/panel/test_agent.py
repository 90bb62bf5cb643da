"""The assistant in the panel: messages, events, approvals, stopping, and saved conversations."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from tabhub.errors import SetupError
from tabhub.store.conversations import ConversationStore, Message
from tabhub.store.home import Home
from tabhub.store.tokens import create
from tests.agent.scripted import Scripted, Turn, scripted
from tests.harness.hub import running_hub
from tests.harness.panel import Panel
from tests.harness.waiting import until

ASKED = "browser_execute_script"
SCRIPT = {"tabId": 7, "code": "return 1"}


def settings(server: Scripted, **more: Any) -> dict[str, Any]:
    return {"agent": {"baseUrl": server.url, "model": "m1"}, **more}


async def events(panel: Panel) -> list[dict[str, Any]]:
    """The events until the run has ended."""
    received: list[dict[str, Any]] = []
    while not received or received[-1]["event"] != "ended":
        received.append((await panel.next_notification("agent.event"))["params"])
    return received


def names(received: list[dict[str, Any]]) -> list[str]:
    """The kinds of events in order, without repetitions."""
    kinds = [each["event"] for each in received]
    return [kind for at, kind in enumerate(kinds) if at == 0 or kinds[at - 1] != kind]


async def test_a_message_starts_a_run_whose_steps_are_published(tmp_path: Path) -> None:
    turns = (Turn("I look.", (("browser_list_tabs", {}),)), Turn("One tab."), Turn("You are welcome."))
    with scripted(*turns) as server:
        async with running_hub(tmp_path, **settings(server)) as hub, Panel(hub) as panel:
            ident = (await panel.get("agent.send", {"text": "Which tabs?"}))["conversation"]
            received = await events(panel)
            assert names(received) == ["message", "text", "started", "finished", "text", "ended"]
            assert received[0]["text"] == "Which tabs?"
            assert {each["conversation"] for each in received} == {ident}
            assert (received[-1]["why"], received[-1]["steps"]) == ("done", 2)
            assert "".join(each["text"] for each in received if each["event"] == "text") == "I look.One tab."
            await panel.get("agent.send", {"text": "Thanks", "conversation": ident})
            assert (await events(panel))[-1]["why"] == "done"
            await until(lambda: hub.hub.agent.chats[ident].loop is None)
            clients = [session["client"] for session in (await panel.get("config.getState"))["sessions"]]
            assert len([client for client in clients if client.startswith("tabhub-panel")]) == 1
            shown = await panel.get("agent.resume", {"conversation": ident})
            assert [m["role"] for m in shown["messages"]] == [
                "user",
                "assistant",
                "tool",
                "assistant",
                "user",
                "assistant",
            ]
    assert [m["content"] for m in server.requests[2]["messages"] if m["role"] == "user"] == ["Which tabs?", "Thanks"]


async def test_a_call_is_approved_in_the_panel_and_a_denial_reaches_the_model(tmp_path: Path) -> None:
    permissions = {"browser": {"tools": {ASKED: "ask"}}}
    with scripted(Turn("", ((ASKED, SCRIPT),)), Turn("I may not.")) as server:
        async with running_hub(tmp_path, **settings(server, permissions=permissions)) as hub, Panel(hub) as panel:
            await panel.get("agent.send", {"text": "Run it"})
            request = await panel.decide("deny", "Not today")
            assert request["tool"] == ASKED
            received = await events(panel)
    (finished,) = [each for each in received if each["event"] == "finished"]
    assert finished["result"]["failed"] is True
    assert finished["result"]["denied"] is True
    assert finished["session"] == request["session"]
    assert "Not today" in server.results(1)[0]


async def test_a_stopped_conversation_continues_after_a_restart_of_the_hub(tmp_path: Path) -> None:
    hold = threading.Event()
    with scripted(Turn("Once upon a time", hold=hold), Turn("The end.")) as server:
        async with running_hub(tmp_path, **settings(server)) as hub, Panel(hub) as panel:
            ident = (await panel.get("agent.send", {"text": "Tell me"}))["conversation"]
            kinds = [(await panel.next_notification("agent.event"))["params"]["event"] for _ in range(2)]
            assert kinds == ["message", "text"]
            busy = await panel.ask("agent.send", {"text": "More", "conversation": ident})
            assert "still working" in busy["error"]["message"]
            assert (await panel.get("agent.stop", {"conversation": ident})) == {"stopped": True}
            assert (await events(panel))[-1]["why"] == "stopped"
            hold.set()
            await until(lambda: hub.hub.agent.chats[ident].loop is None)
            assert (await panel.get("agent.stop", {"conversation": ident})) == {"stopped": False}
        async with running_hub(tmp_path, **settings(server)) as hub, Panel(hub) as panel:
            (listed,) = (await panel.get("agent.list"))["conversations"]
            assert (listed["id"], listed["title"], listed["running"]) == (ident, "Tell me", False)
            await panel.get("agent.send", {"text": "Go on", "conversation": ident})
            assert (await events(panel))[-1]["why"] == "done"
    assert [m["role"] for m in server.requests[1]["messages"]] == ["system", "user", "assistant", "user"]


async def test_a_run_is_stopped_and_saved_when_the_hub_shuts_down(tmp_path: Path) -> None:
    hold = threading.Event()
    with scripted(Turn("Once upon a time", hold=hold)) as server:
        async with running_hub(tmp_path, **settings(server)) as hub, Panel(hub) as panel:
            await panel.get("agent.send", {"text": "Tell me"})
            await until(lambda: len(server.requests) == 1)
            for _ in range(2):
                await panel.next_notification("agent.event")
        hold.set()
        async with running_hub(tmp_path, **settings(server)) as hub, Panel(hub) as panel:
            (listed,) = (await panel.get("agent.list"))["conversations"]
            shown = await panel.get("agent.resume", {"conversation": listed["id"]})
            assert [m["role"] for m in shown["messages"]] == ["user", "assistant"]


async def test_invalid_messages_and_a_missing_model_are_refused_with_a_reason(tmp_path: Path) -> None:
    async with running_hub(tmp_path) as hub, Panel(hub) as panel:
        unset = await panel.ask("agent.send", {"text": "Hi"})
        assert "The agent has no model yet" in unset["error"]["message"]
        for params in ({}, {"text": " "}, {"text": "x" * 20_001}, {"text": 3}):
            assert "text`" in (await panel.ask("agent.send", params))["error"]["message"]
        for method in ("agent.stop", "agent.resume"):
            assert "`conversation`" in (await panel.ask(method, {}))["error"]["message"]
        gone = await panel.ask("agent.resume", {"conversation": "0" * 12})
        assert "There is no conversation" in gone["error"]["message"]
        assert (await panel.get("agent.list")) == {"conversations": []}


async def test_an_error_of_the_provider_ends_the_run_with_its_message(tmp_path: Path) -> None:
    given = {"agent": {"baseUrl": "http://127.0.0.1:1", "model": "m"}, "limits": {"agent_tries": 1}}
    async with running_hub(tmp_path, **given) as hub, Panel(hub) as panel:
        await panel.get("agent.send", {"text": "Hi"})
        ended = (await events(panel))[-1]
        ident = (await panel.get("agent.list"))["conversations"][0]["id"]
        shown = await panel.get("agent.resume", {"conversation": ident})
    assert (shown["why"], shown["explanation"]) == ("failed", ended["explanation"])
    assert ended["why"] == "failed"
    assert "cannot be reached" in ended["explanation"]


async def test_a_panel_opened_during_a_run_gets_all_its_events(tmp_path: Path) -> None:
    hold = threading.Event()
    turns = (Turn("I look.", (("browser_list_tabs", {}),)), Turn("I see one, and", hold=hold), Turn("Bye."))
    with scripted(*turns) as server:
        async with running_hub(tmp_path, **settings(server)) as hub, Panel(hub) as panel:
            ident = (await panel.get("agent.send", {"text": "Which tabs?"}))["conversation"]
            shown: dict[str, Any] = {"events": []}
            async with asyncio.timeout(30):
                while not shown["events"] or shown["events"][-1].get("text") != "I see one, and":
                    await panel.next_notification("agent.event")
                    shown = await panel.get("agent.resume", {"conversation": ident})
            assert shown["running"] is True
            assert shown["messages"] == []
            assert [each["event"] for each in shown["events"]] == ["message", "text", "started", "finished", "text"]
            assert all(each["secondsAgo"] >= 0 for each in shown["events"])
            (listed,) = (await panel.get("agent.list"))["conversations"]
            assert (listed["id"], listed["title"], listed["running"]) == (ident, "Which tabs?", True)
            refused = await panel.ask("agent.remove", {"conversation": ident})
            assert "is working" in refused["error"]["message"]
            hold.set()
            await until(lambda: hub.hub.agent.chats[ident].loop is None)
            shown = await panel.get("agent.resume", {"conversation": ident})
            assert (shown["running"], shown["events"], shown["why"]) == (False, [], "done")
            assert "seconds" in shown["messages"][2]["results"][0]


async def test_a_conversation_changed_elsewhere_is_reloaded_and_a_removed_one_is_not_found(
    tmp_path: Path,
) -> None:
    with scripted(Turn("One."), Turn("Two.")) as server:
        async with running_hub(tmp_path, **settings(server)) as hub, Panel(hub) as panel:
            ident = (await panel.get("agent.send", {"text": "Count"}))["conversation"]
            await events(panel)
            await until((hub.home.root / "conversations" / f"{ident}.json").exists)
            store = ConversationStore(hub.home.root / "conversations", 10)
            kept = store.load(ident)
            kept.add(Message("user", "From a terminal"))
            kept.changed += 1
            store.save(kept)
            shown = await panel.get("agent.resume", {"conversation": ident})
            assert [each["text"] for each in shown["messages"]] == ["Count", "One.", "From a terminal"]
            assert (await panel.get("agent.remove", {"conversation": ident})) == {"ok": True}
            assert (await panel.get("agent.list")) == {"conversations": []}
            gone = await panel.ask("agent.resume", {"conversation": ident})
            assert "There is no conversation" in gone["error"]["message"]


async def test_the_assistant_has_its_own_token(tmp_path: Path) -> None:
    with scripted(Turn("", (("browser_list_tabs", {}),)), Turn("Done.")) as server:
        async with running_hub(tmp_path, **settings(server, requireTokens=True)) as hub, Panel(hub) as panel:
            await panel.get("agent.send", {"text": "Look"})
            received = await events(panel)
            assert (received[-1]["why"], received[-1]["explanation"]) == ("done", "")
            (session,) = (await panel.get("config.getState"))["sessions"]
            assert session["token"] == "tabhub-panel"
            (made,) = [each for each in hub.hub.engine.audit.recent(10) if each["tool"] == "browser_list_tabs"]
            assert made["tokenName"] == "tabhub-panel"
    with pytest.raises(SetupError, match="the name of the agent in the panel"):
        create(Home(tmp_path), "tabhub-panel", 0.0)


async def test_the_state_has_the_model_and_the_missing_settings(tmp_path: Path) -> None:
    async with running_hub(tmp_path, agent={"model": "m1", "steps": 7}) as hub, Panel(hub) as panel:
        shown = (await panel.get("config.getState"))["assistant"]
    assert shown == {"missing": ["agent.baseUrl"], "model": "m1", "steps": 7, "tokens": 1_000_000}
