"""`tabhub audit`: calls from the hub and from the log on disk, filtered and shown as a table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.cli.fake_http_hub import FakeHub
from tests.harness.terminal import Terminal

ENTRIES: list[dict[str, Any]] = [
    {
        "timestamp": "2999-01-01T00:00:00.000Z",
        "tool": "slack_send",
        "plugin": "slack",
        "success": False,
        "durationMs": 12,
        "session": "cli",
        "error": {"code": -32009, "message": "too late\nsecond line"},
    },
    {
        "timestamp": "2026-01-01T00:00:00.000Z",
        "tool": "browser_open_tab",
        "plugin": "browser",
        "success": True,
        "durationMs": 1.25,
    },
]


def test_audit_asks_the_hub_with_the_filters(hub: FakeHub, tabhub: Run) -> None:
    hub.answer("GET /audit", ENTRIES)
    done = tabhub("audit", "--plugin", "slack", "--tool", "slack_send", "--failed", "--limit", "7")
    assert done.returncode == 0
    assert hub.requests[-1].path == "/audit?limit=7&plugin=slack&tool=slack_send&success=false"
    rows = done.stdout.splitlines()
    assert rows[0].endswith("  failed     cli: slack_send, 12 ms, too late")
    assert rows[1].endswith("  done       ?: browser_open_tab, 1.2 ms")
    assert rows[-1] == "2 calls, 1 failed"
    assert json.loads(tabhub("audit", "--json").stdout) == ENTRIES
    assert json.loads(tabhub("audit", "--json", "--since", "1h").stdout) == ENTRIES[:1]
    assert json.loads(tabhub("audit", "--json", "--since", "2020-01-01").stdout) == ENTRIES


@pytest.mark.req("S002-audit-05")
def test_audit_without_hub_points_to_the_file_and_reads_it(home: Path, tabhub: Run) -> None:
    assert "tabhub audit --file" in tabhub("audit", TABHUB_PORT="1").stderr
    assert tabhub("audit", "--file").stdout == "No calls.\n"
    lines = [json.dumps(entry) for entry in reversed(ENTRIES)]
    (home / "audit.log").write_text("\n".join([*lines, '{"torn": ']))
    done = tabhub("audit", "--file", "--json")
    assert json.loads(done.stdout) == ENTRIES
    assert "1 unreadable line" in done.stderr
    assert json.loads(tabhub("audit", "--file", "--json", "--success").stdout) == ENTRIES[1:]
    assert tabhub("audit", "--file", "--tool", "x").stdout == "No matching calls.\n"


def test_audit_in_an_unexpected_form_is_an_error(hub: FakeHub, tabhub: Run) -> None:
    hub.answer("GET /audit", {"a": 1})
    done = tabhub("audit")
    assert done.returncode == 1
    assert "expected form" in done.stderr


def test_audit_distinguishes_page_tool_changes_from_calls(home: Path, tabhub: Run) -> None:
    when = "2026-02-21T10:30:00.000Z"
    event: dict[str, Any] = {"timestamp": when, "tool": "page.tools", "event": True, "success": True, "tabId": 7}
    event.update(origin="https://shop.example", added=["find", "buy"], removed=["old"])
    call: dict[str, Any] = {"timestamp": when, "tool": "shop_find", "success": True, "durationMs": 2}
    call.update(session="a1b2", via="gateway")
    (home / "audit.log").write_text("".join(json.dumps(each) + "\n" for each in (event, call)))
    shown = tabhub("audit", "--file").stdout
    assert "https://shop.example (tab 7) offers find, buy; no longer offers old" in shown
    assert "done       a1b2: shop_find, 2.0 ms\n" in shown
    assert "1 call, 0 failed" in shown
    assert "? ms" not in shown


PAID: dict[str, Any] = {
    "timestamp": "2026-02-21T10:32:07.000Z",
    "tool": "browser_click_element",
    "what": 'click "Pay now"',
    "client": "claude-code 1.0.3",
    "tokenName": "claude-code",
    "origin": "https://bank.example",
    "success": True,
    "durationMs": 140,
    "waitedMs": 8200,
    "approval": {"by": "panel", "decision": "allow_once"},
}


def test_audit_says_who_did_what_where_and_who_approved_it(home: Path, tabhub: Run) -> None:
    timed_out = {**PAID, "success": False, "error": {"message": "no answer", "category": "timeout"}}
    denied = {**PAID, "success": False, "approval": {"by": "terminal", "decision": "deny"}}
    (home / "audit.log").write_text("".join(json.dumps(each) + "\n" for each in (PAID, timed_out, denied)))
    no, late, done = tabhub("audit", "--file").stdout.splitlines()[:3]
    assert done.endswith(
        'done       Claude Code: click "Pay now", https://bank.example, allowed once in the panel, '
        "waited 8 s for the person, 140 ms"
    )
    assert "  timed out  Claude Code: " in late
    assert "  denied     Claude Code: " in no
    assert "denied in a terminal" in no


async def test_audit_folds_its_rows_at_the_edge_of_a_terminal(home: Path, tabhub: Run) -> None:
    (home / "audit.log").write_text(json.dumps(PAID) + "\n")
    async with Terminal(home, "audit", "--file") as terminal:
        await terminal.sees("1 call, 0 failed")
        day, *rows = terminal.shown.decode().splitlines()
    assert day == "Saturday, 21 February 2026"
    assert all(len(row) <= 80 for row in rows)
    assert 'Claude Code: click "Pay now"' in rows[0]
    assert rows[1].startswith(" " * 21)
    assert "allowed once in the panel" in " ".join(row.strip() for row in rows)
