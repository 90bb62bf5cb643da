"""`tabhub sessions`, `tabhub pause` and `tabhub resume` against a fake hub."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.cli.fake_http_hub import FakeHub

PAUSED = {"since": 1_700_000_000.0, "by": "the panel", "reason": "paying", "mode": "wait", "callsWaiting": 2}


def session(ident: str, kind: str = "mcp", **more: Any) -> dict[str, Any]:
    facts = {"id": ident, "kind": kind, "client": "Claude Code 2.1", "idleSeconds": 61, "callsInFlight": 0}
    return {**facts, "tabId": None, "ownTabs": [], "leases": [], **more}


def answer(hub: FakeHub, *sessions: dict[str, Any], paused: Any = None) -> None:
    hub.answer("GET /sessions", {"sessions": list(sessions), "paused": paused})


def test_sessions_are_listed_with_their_tabs(hub: FakeHub, tabhub: Run) -> None:
    leases = [{"tabId": 7, "heldSeconds": 130, "title": "The shop\nof all"}, {"tabId": 8, "heldSeconds": 1}]
    answer(
        hub, session("0123456789abcdef", tabId=7, ownTabs=[7], leases=leases), session("rest:script", "rest", gone=True)
    )
    done = tabhub("sessions")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "01234567  Claude Code 2.1, mcp, idle 1 min",
        "  → tab 7 (opened by it), held 2 min: The shop",
        "    tab 8, held 1 s: currently unreachable",
        "rest:script  Claude Code 2.1, rest, idle 1 min, disconnected",
    ]
    assert json.loads(tabhub("sessions", "list", "--json").stdout)["sessions"][0]["id"] == "0123456789abcdef"
    answer(hub, paused=PAUSED)
    output = tabhub("sessions").stdout
    assert "by the panel (paying); 2 calls waiting" in output
    assert "No sessions" in output


def test_session_is_ended_by_an_id_prefix(hub: FakeHub, tabhub: Run) -> None:
    answer(hub, session("abc1"), session("abd2"), session("rest:script", "rest"))
    hub.answer("POST /sessions/abc1/end", {"ok": True, "id": "abc1", "closing": [5]})
    done = tabhub("sessions", "end", "abc…")
    assert (done.returncode, done.stdout) == (
        0,
        "Ended the session of Claude Code 2.1. 1 tab that it opened will be closed.\n",
    )
    hub.answer("POST /sessions/rest:script/end", {"ok": True, "id": "rest:script", "closing": []})
    assert tabhub("sessions", "end", "script").returncode == 0
    many = tabhub("sessions", "end", "ab")
    assert (many.returncode, "2 sessions begin with 'ab'" in many.stderr) == (1, True)
    none = tabhub("sessions", "end", "zz")
    assert (none.returncode, "There is no session 'zz'" in none.stderr) == (1, True)


def test_tab_is_released_from_its_session(hub: FakeHub, tabhub: Run) -> None:
    answer(hub, session("abc1"), session("abd2", leases=[{"tabId": 7, "heldSeconds": 1}]))
    hub.answer("POST /sessions/abd2/release", {"ok": True, "id": "abd2", "tabId": 7})
    done = tabhub("sessions", "release", "7")
    assert (done.returncode, done.stdout) == (0, "Released tab 7, which Claude Code 2.1 held.\n")
    assert hub.requests[-1].json == {"tabId": 7}
    assert "No session holds tab 8" in tabhub("sessions", "release", "8").stderr


@pytest.mark.parametrize(
    "words", [("end",), ("release",), ("release", "x"), ("list", "x"), ("stop",), ("--nothing",)], ids=str
)
def test_wrong_arguments_are_rejected(hub: FakeHub, tabhub: Run, words: tuple[str, ...]) -> None:
    answer(hub)
    done = tabhub("sessions", *words)
    assert done.returncode == 2
    assert done.stderr.startswith("error:")


def test_pause_and_resume_report_their_effect(hub: FakeHub, tabhub: Run) -> None:
    hub.answer("POST /pause", {"ok": True, "paused": PAUSED})
    done = tabhub("pause", "--fail", "paying", "a bill")
    assert "fail at once until `tabhub resume`" in done.stdout
    assert hub.requests[-1].json == {"reason": "paying a bill", "mode": "fail"}
    assert hub.requests[-1].headers["tabhub-client"] == "the command line"
    tabhub("pause")
    assert hub.requests[-1].json == {"reason": "", "mode": "wait"}
    hub.answer("POST /resume", {"ok": True, "wasPaused": True, "callsReleased": 2})
    assert tabhub("resume").stdout == "Resumed: 2 waiting calls released.\n"
    hub.answer("POST /resume", {"ok": True, "wasPaused": False, "callsReleased": 0})
    assert tabhub("resume").stdout == "Agents were not paused.\n"
    assert json.loads(tabhub("resume", "--json").stdout)["wasPaused"] is False


def test_tab_is_returned_to_the_agents(hub: FakeHub, tabhub: Run) -> None:
    hub.answer("POST /resume", {"ok": True, "tabId": 7})
    assert tabhub("resume", "7").stdout == "Agents may use tab 7 again.\n"
    assert hub.requests[-1].json == {"tabId": 7}
    assert tabhub("resume", "seven").returncode == 2


def test_status_shows_the_tabs_in_which_agents_are_stopped(hub: FakeHub, tabhub: Run) -> None:
    browser = {"browserId": "b", "browserName": "Chromium", "connected": True, "tabs": 2, "stoppedTabs": [7]}
    hub.answer("GET /health", {"status": "ok", "version": "0.1.0", "uptime": 61, "legs": {"browsers": [browser]}})
    (row,) = [line for line in tabhub("status").stdout.splitlines() if line.startswith("stopped")]
    assert "tab 7" in row
    assert "tabhub resume 7" in row


def test_status_shows_a_pause(hub: FakeHub, tabhub: Run) -> None:
    hub.answer("GET /health", {"status": "ok", "version": "0.1.0", "uptime": 61, "paused": PAUSED})
    (row,) = [line for line in tabhub("status").stdout.splitlines() if line.startswith("paused")]
    assert "since 2023-11-1" in row
    assert "by the panel (paying)" in row


def test_a_call_names_its_session(hub: FakeHub, tabhub: Run) -> None:
    hub.answer("POST /tools/browser_list_tabs/call", {"content": []})
    tabhub("tool", "call", "browser_list_tabs", "--session", "three", TABHUB_SESSION="two")
    assert hub.requests[-1].headers["tabhub-session"] == "three"


def test_each_command_without_a_hub_exits_with_2(tabhub: Run) -> None:
    for words in (("sessions",), ("pause",), ("resume",)):
        done = tabhub(*words)
        assert (done.returncode, "is not running" in done.stderr) == (2, True)
