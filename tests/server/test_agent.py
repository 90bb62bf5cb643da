"""The agent in the panel: messages, what happens told as it happens, approvals, a stop, and conversations kept."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from tests.agent.scripted import Scripted, Turn, scripted
from tests.harness.approver import Panel
from tests.harness.hub import running_hub, until

ASKED = "browser_execute_script"
SCRIPT = {"tabId": 7, "code": "return 1"}


def settings(server: Scripted, **more: Any) -> dict[str, Any]:
    return {"agent": {"baseUrl": server.url, "model": "m1"}, **more}


async def events(panel: Panel) -> list[dict[str, Any]]:
    """What is told until the work has ended."""
    heard: list[dict[str, Any]] = []
    while not heard or heard[-1]["event"] != "ended":
        heard.append((await panel.told("agent.event"))["params"])
    return heard


def names(heard: list[dict[str, Any]]) -> list[str]:
    """The kinds of events in order, those in a row once."""
    kinds = [each["event"] for each in heard]
    return [kind for at, kind in enumerate(kinds) if at == 0 or kinds[at - 1] != kind]


async def test_a_message_is_worked_on_and_each_step_is_told(tmp_path: Path) -> None:
    turns = (Turn("I look.", (("browser_list_tabs", {}),)), Turn("One tab."), Turn("You are welcome."))
    with scripted(*turns) as server:
        async with running_hub(tmp_path, **settings(server)) as hub, Panel(hub) as panel:
            ident = (await panel.get("agent.send", {"text": "Which tabs?"}))["conversation"]
            heard = await events(panel)
            assert names(heard) == ["spoke", "started", "finished", "spoke", "ended"]
            assert {each["conversation"] for each in heard} == {ident}
            assert (heard[-1]["why"], heard[-1]["steps"]) == ("done", 2)
            assert "".join(each["text"] for each in heard if each["event"] == "spoke") == "I look.One tab."
            await panel.get("agent.send", {"text": "Thanks", "conversation": ident})
            assert (await events(panel))[-1]["why"] == "done"
            await until(lambda: hub.hub.agent._chats[ident].loop is None)
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
    assert [m["content"] for m in server.asked[2]["messages"] if m["role"] == "user"] == ["Which tabs?", "Thanks"]


async def test_what_it_wants_to_do_is_asked_in_the_panel_and_a_denial_is_told_to_the_model(tmp_path: Path) -> None:
    permissions = {"browser": {"tools": {ASKED: "ask"}}}
    with scripted(Turn("", ((ASKED, SCRIPT),)), Turn("I may not.")) as server:
        async with running_hub(tmp_path, **settings(server, permissions=permissions)) as hub, Panel(hub) as panel:
            await panel.get("agent.send", {"text": "Run it"})
            request = await panel.decide("deny", "Not today")
            assert request["tool"] == ASKED
            heard = await events(panel)
    (finished,) = [each for each in heard if each["event"] == "finished"]
    assert finished["result"]["failed"] is True
    assert "Not today" in server.results(1)[0]


async def test_it_can_be_stopped_and_goes_on_after_the_hub_was_started_anew(tmp_path: Path) -> None:
    hold = threading.Event()
    with scripted(Turn("Once upon a time", hold=hold), Turn("The end.")) as server:
        async with running_hub(tmp_path, **settings(server)) as hub, Panel(hub) as panel:
            ident = (await panel.get("agent.send", {"text": "Tell me"}))["conversation"]
            heard = (await panel.told("agent.event"))["params"]
            assert heard["event"] == "spoke"
            busy = await panel.ask("agent.send", {"text": "More", "conversation": ident})
            assert "still at work" in busy["error"]["message"]
            assert (await panel.get("agent.stop", {"conversation": ident})) == {"stopped": True}
            assert (await events(panel))[-1]["why"] == "stopped"
            hold.set()
            await until(lambda: hub.hub.agent._chats[ident].loop is None)
            assert (await panel.get("agent.stop", {"conversation": ident})) == {"stopped": False}
        async with running_hub(tmp_path, **settings(server)) as hub, Panel(hub) as panel:
            (listed,) = (await panel.get("agent.list"))["conversations"]
            assert (listed["id"], listed["title"], listed["running"]) == (ident, "Tell me", False)
            await panel.get("agent.send", {"text": "Go on", "conversation": ident})
            assert (await events(panel))[-1]["why"] == "done"
    assert [m["role"] for m in server.asked[1]["messages"]] == ["system", "user", "assistant", "user"]


async def test_work_that_runs_when_the_hub_ends_is_stopped_and_kept(tmp_path: Path) -> None:
    hold = threading.Event()
    with scripted(Turn("Once upon a time", hold=hold)) as server:
        async with running_hub(tmp_path, **settings(server)) as hub, Panel(hub) as panel:
            await panel.get("agent.send", {"text": "Tell me"})
            await panel.told("agent.event")
        hold.set()
        async with running_hub(tmp_path, **settings(server)) as hub, Panel(hub) as panel:
            (listed,) = (await panel.get("agent.list"))["conversations"]
            shown = await panel.get("agent.resume", {"conversation": listed["id"]})
            assert [m["role"] for m in shown["messages"]] == ["user", "assistant"]


async def test_without_a_model_and_with_wrong_words_it_says_what_to_do(tmp_path: Path) -> None:
    async with running_hub(tmp_path) as hub, Panel(hub) as panel:
        unset = await panel.ask("agent.send", {"text": "Hi"})
        assert "The agent has no model yet" in unset["error"]["message"]
        for params in ({}, {"text": " "}, {"text": "x" * 20_001}, {"text": 3}):
            assert "`text` must be" in (await panel.ask("agent.send", params))["error"]["message"]
        for method in ("agent.stop", "agent.resume"):
            assert "`conversation` must be" in (await panel.ask(method, {}))["error"]["message"]
        gone = await panel.ask("agent.resume", {"conversation": "0" * 12})
        assert "No conversation is called" in gone["error"]["message"]
        assert (await panel.get("agent.list")) == {"conversations": []}


async def test_a_provider_that_refuses_ends_the_work_with_its_words(tmp_path: Path) -> None:
    given = {"agent": {"baseUrl": "http://127.0.0.1:1", "model": "m"}, "limits": {"agent_tries": 1}}
    async with running_hub(tmp_path, **given) as hub, Panel(hub) as panel:
        await panel.get("agent.send", {"text": "Hi"})
        (ended,) = await events(panel)
    assert ended["why"] == "failed"
    assert "cannot be reached" in ended["words"]
