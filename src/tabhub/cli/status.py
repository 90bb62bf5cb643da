"""`tabhub status`: whether the hub runs and what is connected, as its health report says; also for `doctor`."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from typing import Any

from tabhub.cli.command import JSON, Command
from tabhub.cli.hub.background import describe
from tabhub.cli.hub.client import fetch, find_hub, unexpected_form
from tabhub.cli.sessions import pause_summary
from tabhub.cli.terminal import count, paint, print_json, safe
from tabhub.client_errors import CliError, HubDownError

SKIPPED = "Permissions are skipped: agents act without asking you, except for tools that are off."
NO_BROWSER = (
    "none connected. Load the extension (tabhub extension open), or let the hub start one: "
    "tabhub stop, then tabhub start --launch"
)


def status(args: Namespace) -> int:
    hub = find_hub()
    try:
        facts = fetch("/health", hub=hub, timeout=5.0)
    except HubDownError as down:
        if args.json:
            print_json({"status": "down", "address": hub.address, "home": hub.home})
            return down.exit_code
        raise
    if not isinstance(facts, dict):
        raise unexpected_form("status")
    if args.json:
        print_json(facts)
        return 0
    if "version" not in facts:
        raise CliError(
            f"The hub on {hub.address} does not accept our key, so it reports no details.",
            "It may be the hub of another home (TABHUB_HOME), or of an older version: restart it. "
            "Run `tabhub doctor` to diagnose the setup.",
        )
    rows = [*_rows(facts), ("home", hub.home), ("address", describe(hub, facts))]
    if isinstance(hub.record.get("socket"), str):
        rows.append(("socket", hub.record["socket"]))
    for name, text in rows:
        print(f"{paint(name.ljust(10), 'bold')} {safe(text)}")
    return 0


def _rows(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "hub", "running" if facts.get("status") == "ok" else str(facts.get("status"))
    for problem in facts.get("problems") or []:
        yield "problem", str(problem)
    for notice in (*(facts.get("notices") or ()), *(facts.get("pageNotices") or ())):
        yield "notice", str(notice)
    if paused := facts.get("paused"):
        yield "paused", pause_summary(paused)
    if facts.get("skipPermissions"):
        yield "warning", SKIPPED
    if pending := facts.get("approvalsPending"):
        yield "approvals", f"{count(pending, 'pending call')}: use the panel or `tabhub approve`"
    known = browsers(facts)
    for browser in known:
        yield "browser", describe_browser(browser, own_browser(facts).get("error"))
        for tab_id in browser.get("stoppedTabs", []):
            yield "stopped", f"tab {tab_id}, where you pressed Cancel; to return it: tabhub resume {tab_id}"
    if not known:
        yield "browser", _missing_browser(own_browser(facts))
    if "toolCount" in facts:
        yield "tools", str(facts["toolCount"])
    if "mcpClients" in facts:
        running = facts.get("callsInFlight", 0)
        yield "agents", f"{count(facts['mcpClients'], 'MCP client')}, {count(running, 'running call')}"
    if audit := facts.get("auditSummary"):
        yield "calls", f"{audit.get('totalInvocations', 0)} so far, {audit.get('failureCount', 0)} failed"
    if failed := facts.get("failedPlugins"):
        yield "plugins", f"{count(len(failed), 'plugin')} failed to load: `tabhub plugin list` shows why"


def browsers(facts: dict[str, Any]) -> list[dict[str, Any]]:
    """The browsers the hub knows, including those that disconnected recently."""
    known: list[dict[str, Any]] = facts.get("legs", {}).get("browsers", [])
    return known


def own_browser(facts: dict[str, Any]) -> dict[str, Any]:
    """The browser that the hub starts, with the error by which it ended, if it did; empty without one."""
    return facts.get("legs", {}).get("managedBrowser") or {}


def _missing_browser(own: dict[str, Any]) -> str:
    if not own:
        return NO_BROWSER
    if own.get("error"):
        return f"the hub's own, {own.get('name')}, did not start: {own['error']}"
    if not own.get("starting"):
        return NO_BROWSER
    return f"the hub's own, {own.get('name')}, is starting"


def describe_browser(browser: dict[str, Any], own_error: str | None = None) -> str:
    name = str(browser.get("browserName") or browser.get("browserId") or "a browser")
    if browser.get("browserVersion"):
        name += f" {browser['browserVersion']}"
    if browser.get("managed"):
        name += " (started by the hub)"
    if not browser.get("connected"):
        if browser.get("managed") and own_error:
            return f"{name}: {own_error}"
        return f"{name}: connection lost ({browser.get('reason') or 'no reason given'})"
    parts = [count(browser["tabs"], "tab")] if "tabs" in browser else []
    if browser.get("extensionVersion"):
        parts.append(f"extension {browser['extensionVersion']}")
    attached = attached_tabs(browser)
    parts.append(f"debugger on {count(attached, 'tab')}" if attached else "debugger idle")
    return f"{name}: {', '.join(parts)}"


def attached_tabs(browser: dict[str, Any]) -> int:
    return len(browser.get("debugger", {}).get("attachedTabs", []))


COMMAND = Command(
    status,
    JSON,
    details="The exit code is 0 if the hub is running and 2 if it is not.",
    examples=(("tabhub status --json | jq .extensionConnected", "for a script"),),
)
