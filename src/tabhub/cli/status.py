"""`tabhub status`: whether the hub runs and what is connected to it.

Owns how the hub's health report is shown.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tabhub.cli.command import JSON, Command
from tabhub.cli.hub.background import describe
from tabhub.cli.hub.client import fetch, find_hub, unexpected_form
from tabhub.cli.terminal import count, paint, print_json, safe
from tabhub.client_errors import CliError, HubDownError

if TYPE_CHECKING:
    from argparse import Namespace


def status(args: Namespace) -> int:
    hub = find_hub()
    try:
        facts = fetch("/health", hub=hub, timeout=5.0)
    except HubDownError as down:
        if args.json:
            print(json.dumps({"status": "down", "address": hub.address, "home": hub.home}, indent=2))
            return down.exit_code
        raise
    if not isinstance(facts, dict):
        raise unexpected_form("status")
    if args.json:
        return print_json(facts)
    if "version" not in facts:
        raise CliError(
            f"A hub answers on {hub.address}, but tells us nothing: it does not know our secret.",
            "It may be the hub of another home (TABHUB_HOME). `tabhub doctor` tells more.",
        )
    for name, text in rows(facts):
        print(f"{paint(name.ljust(10), 'bold')} {safe(text)}")
    print(f"{paint('home'.ljust(10), 'bold')} {hub.home}")
    print(f"{paint('address'.ljust(10), 'bold')} {describe(hub, facts)}")
    if isinstance(hub.record.get("socket"), str):
        print(f"{paint('socket'.ljust(10), 'bold')} {safe(hub.record['socket'])}")
    return 0


def rows(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """The lines of the status, each a name and a text."""
    shown = [("hub", "running" if facts.get("status") == "ok" else str(facts.get("status")))]
    shown += [("problem", str(problem)) for problem in facts.get("problems") or []]
    if isinstance(facts.get("paused"), dict):
        from tabhub.cli.sessions import paused_words

        shown.append(("paused", paused_words(facts["paused"]).removeprefix("paused ")))
    if facts.get("skipPermissions") is True:
        shown.append(("warning", SKIPPED))
    if facts.get("approvalsPending"):
        waiting = f"{count(facts['approvalsPending'], 'call')} waiting for approval: use the panel or `tabhub approve`"
        shown.append(("approvals", waiting))
    known = [("browser", browser_words(browser, own_end(facts))) for browser in browsers(facts)]
    shown += known or [("browser", missing(facts))]
    if isinstance(facts.get("toolCount"), int):
        shown.append(("tools", str(facts["toolCount"])))
    if isinstance(facts.get("mcpClients"), int):
        running = facts.get("callsInFlight", 0)
        shown.append(("agents", f"{count(facts['mcpClients'], 'MCP client')}, {count(running, 'call')} running"))
    audit = facts.get("auditSummary")
    if isinstance(audit, dict):
        shown.append(("calls", f"{audit.get('totalInvocations', 0)} so far, {audit.get('failureCount', 0)} failed"))
    failed = facts.get("failedPlugins")
    if isinstance(failed, list) and failed:
        shown.append(("plugins", f"{count(len(failed), 'plugin')} failed to load: `tabhub plugin list` says why"))
    return shown


def missing(facts: dict[str, Any]) -> str:
    """Why no browser is connected, as far as the hub knows."""
    managed = _own(facts)
    if not managed:
        return NO_BROWSER
    if managed.get("error"):
        return f"the hub's own, {managed.get('name')}, did not start: {managed['error']}"
    return f"the hub's own, {managed.get('name')}, is starting"


def own_end(facts: dict[str, Any]) -> str | None:
    """How the browser that the hub started has exited, and what happens next; None while it runs."""
    error = _own(facts).get("error")
    return str(error) if error else None


def _own(facts: dict[str, Any]) -> dict[str, Any]:
    legs = facts.get("legs")
    managed = legs.get("managedBrowser") if isinstance(legs, dict) else None
    return managed if isinstance(managed, dict) else {}


SKIPPED = "permissions are skipped: agents act without asking you, except for tools that are off"
NO_BROWSER = (
    "none connected. Load the extension (tabhub extension open), or let the hub start one: "
    "tabhub stop, then tabhub start --launch"
)


def browsers(facts: dict[str, Any]) -> list[dict[str, Any]]:
    """The browsers the hub knows, including those that disconnected recently."""
    legs = facts.get("legs")
    listed = legs.get("browsers") if isinstance(legs, dict) else None
    return [browser for browser in listed if isinstance(browser, dict)] if isinstance(listed, list) else []


def browser_words(browser: dict[str, Any], ended: str | None = None) -> str:
    """One browser in words: which, its tabs, its extension, its debugger; or why it is gone.

    `ended` says more of one that the hub started.
    """
    name = str(browser.get("browserName") or browser.get("browserId") or "a browser")
    if browser.get("browserVersion"):
        name += f" {browser['browserVersion']}"
    if browser.get("managed"):
        name += " (started by the hub)"
    if not browser.get("connected"):
        if browser.get("managed") and ended is not None:
            return f"{name}: {ended}"
        return f"{name}: connection lost ({browser.get('reason') or 'no reason given'})"
    parts = [count(browser["tabs"], "tab")] if isinstance(browser.get("tabs"), int) else []
    if browser.get("extensionVersion"):
        parts.append(f"extension {browser['extensionVersion']}")
    attached = attached_tabs(browser)
    parts.append(f"debugger on {count(len(attached), 'tab')}" if attached else "debugger idle")
    return f"{name}: {', '.join(parts)}"


def attached_tabs(browser: dict[str, Any]) -> list[Any]:
    debugger = browser.get("debugger")
    attached = debugger.get("attachedTabs") if isinstance(debugger, dict) else None
    return attached if isinstance(attached, list) else []


COMMAND = Command(
    "Show whether the hub is running and what is connected",
    status,
    JSON,
    details="The exit code is 0 when the hub runs and 2 when it does not.",
    examples=(("tabhub status", ""), ("tabhub status --json | jq .extensionConnected", "for a script")),
)
