"""Session tools: describe the agent's own session, release a tab, and request a tab that another session holds.

Owns who is asked to hand over a tab: always a person, through the holder's client, the requesting agent's client or the
hub; never an agent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

from tabhub.browser.browser_choice import browser_tool
from tabhub.browser.schemas import integer, list_of, rows, text
from tabhub.browser.tool_spec import Call, data_result, tool
from tabhub.core.descriptions import visible
from tabhub.core.leases import Lease
from tabhub.core.tabs import Tab
from tabhub.core.tools import ToolResult
from tabhub.errors import CommandFailed, InvalidArguments, PermissionDenied, TabhubError, TabLeased

_PROGRESS_INTERVAL = 3.0
"""Seconds between progress reports while a person decides."""

_SESSION = {
    "session": "string",
    "client": "string",
    "openSeconds?": "integer",
    "tabId": {"type": ["integer", "null"], "description": "The tab that calls without tabId go to."},
    "ownTabs": list_of("integer", "Opened by the session."),
    "leases": list_of("object", "Tabs it holds."),
}


@browser_tool(
    "browser_list_sessions",
    "List own sessions",
    "Shows your own session: its tab, the tabs it opened and the tabs it holds. Other agents' sessions are not shown.",
    params={"session?": text("A handle, where results gave one.", most=100)},
    output={"sessions": rows(_SESSION), "note?": "string"},
    read_only=True,
)
async def list_sessions(call: Call) -> ToolResult:
    choice, session, handle = call.box.choice, call.ctx.session, call.args.get("session")
    standing = choice.describe_session(session if handle is None else choice.session_by_handle(handle, session))
    if standing is None:
        note = "These calls belong to no session yet: one begins with the first call that opens a tab."
        return data_result({"sessions": [], "note": note})
    return data_result({"sessions": [visible_session(call, standing)]})


def visible_session(call: Call, session: dict[str, Any]) -> dict[str, Any]:
    """A session without the leases of tabs on sites that the agent is kept off."""

    def is_hidden(lease: dict[str, Any]) -> bool:
        tab = call.box.browsers.book.get(lease["tabId"])
        return tab is not None and call.hides_tab(tab)

    return {**session, "leases": call.view.keep(session["leases"], is_hidden, lambda lease: ("tab", lease["tabId"]))}


@tool(
    "browser_release_tab",
    "Release a tab",
    "Releases a tab you hold, so that other sessions can use it. It stays open, even after your session.",
    output={"tabId": "integer", "released": "boolean"},
    idempotent=True,
    open_world=False,
)
async def release_tab(call: Call) -> ToolResult:
    session = call.ctx.session
    tab_id = call.args.get("tabId", session.tab)
    if tab_id is None:
        raise InvalidArguments("This session has no tab to release.", hint="browser_list_sessions shows what it holds.")
    if not call.box.choice.release(session, tab_id):
        lease = call.box.choice.blocking_lease(session, tab_id)
        who = f"{lease.holder.client} ({lease.holder.short}) holds it" if lease is not None else "it is free"
        raise CommandFailed(
            f"This session does not hold tab {tab_id}: {who}.", hint="browser_list_sessions shows what it holds."
        )
    return data_result({"tabId": tab_id, "released": True})


@tool(
    "browser_request_tab",
    "Ask for a tab",
    "Requests a tab held by another session: granted at once if free or its holder is idle, else a person is asked.",
    params={
        "tabId": integer("The tab you want.", least=0),
        "reason": text("Why; the person reads it.", least=1, most=300),
    },
    output={
        "tabId": "integer",
        "granted": "boolean",
        "by": {"enum": ["free", "holder", "person"], "description": "Who agreed."},
        "url?": "string",
        "title?": "string",
    },
    idempotent=True,
    open_world=False,
)
async def request_tab(call: Call) -> ToolResult:
    choice, session, tab_id = call.box.choice, call.ctx.session, call.args["tabId"]
    tab = call.box.browsers.tab(tab_id).tab
    call.ctx.visit(tab_id, tab.site)
    lease, by = choice.blocking_lease(session, tab_id), "free"
    if lease is not None:
        by = await _ask_to_hand_over(call, lease, tab)
        now = choice.blocking_lease(session, tab_id)
        if now is not None and now.holder is not lease.holder:  # another session acquired it meanwhile
            raise choice.leased_error(now)
        if call.box.browsers.book.get(tab_id) is None:
            raise call.box.browsers.missing(tab_id)
    choice.acquire(session, tab_id)
    return data_result({"tabId": tab_id, "granted": True, "by": by, "url": tab.url, "title": tab.title})


async def _ask_to_hand_over(call: Call, lease: Lease, tab: Tab) -> str:
    """Who agreed; raises TabLeased otherwise."""
    asker, holder = call.ctx.session, lease.holder
    reason = visible(call.args["reason"])[0]
    title = visible(tab.title[:100] or tab.url[:100])[0]
    about = f"tab {tab.tab_id} ({title}), which {holder.client} is working in. Reason given: {reason}"
    if holder.asker is not None:
        question = _elicitation(f"{asker.client} asks for {about}. Accept to hand the tab over.")
        return await _wait_for_decision(
            call, lease, f"the person at {holder.client}", "holder", holder.asker(*question)
        )
    if call.ctx.can("elicitation"):
        question = _elicitation(f"This agent ({asker.client}) asks for {about}. Accept to take the tab from it.")
        return await _wait_for_decision(call, lease, "the person", "person", _ask_own_client(call, lease, question))
    asked = call.ctx.confirm(f"{asker.client} asks for {about}. Allow it to take the tab from it.", tab.tab_id)
    if asked is not None:
        return await _wait_for_decision(call, lease, "the person", "person", _ask_at_hub(asked))
    if holder.is_disconnected:
        return await _wait_for_decision(call, lease, f"{holder.client}, which is disconnected", "free")
    raise _refusal(call, lease, "No one could be asked: neither client supports elicitation.")


async def _ask_own_client(call: Call, lease: Lease, question: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    key = f"tab-{lease.tab}-{lease.since:.3f}"
    return (await call.ctx.ask({key: question}))[key]


async def _ask_at_hub(asked: Awaitable[bool]) -> dict[str, Any]:
    return {"action": "accept" if await asked else "decline"}


async def _wait_for_decision(
    call: Call, lease: Lease, whom: str, by: str, answer: Awaitable[dict[str, Any]] | None = None
) -> str:
    """Wait for the decision, or until the tab is free; reports progress so that the call does not time out."""
    limits = call.box.browsers.limits
    most, step = limits.tab_request, min(_PROGRESS_INTERVAL, limits.call_timeout / 2)
    who = f"{whom[0].upper()}{whom[1:]}"
    # Without a question, only the release is awaited.
    asking = asyncio.get_running_loop().create_future() if answer is None else asyncio.ensure_future(answer)
    waited = 0.0
    try:
        while waited < most:
            await asyncio.wait([asking], timeout=min(step, most - waited))
            if asking.done() and not asking.cancelled():
                if asking.result().get("action") != "accept":
                    raise _refusal(call, lease, f"{who} was asked and did not agree.")
                return by
            if call.box.choice.blocking_lease(call.ctx.session, lease.tab) is None:  # released meanwhile
                asking.cancel()
                await asyncio.wait([asking])  # the question is withdrawn before the answer is sent
                return "free"
            if asking.cancelled():
                raise _refusal(call, lease, f"{who} could not answer: the client stopped listening.")
            if answer is None and not lease.holder.is_disconnected:
                raise _refusal(call, lease, f"{lease.holder.client} was disconnected and has reconnected.")
            waited += step
            call.ctx.progress(waited, most, f"Waiting for {whom}.")
    except TabLeased:
        raise
    except PermissionDenied:
        raise _refusal(call, lease, f"{who} was asked and gave no answer.") from None
    except TabhubError as error:
        raise _refusal(call, lease, f"{who} could not be asked: {error.message}") from None
    finally:
        asking.cancel()
    raise _refusal(call, lease, f"{who} was asked and gave no answer." if answer is not None else "It is not free yet.")


def _elicitation(text: str) -> tuple[str, dict[str, Any]]:
    schema = {"type": "object", "properties": {}}
    return "elicitation/create", {"mode": "form", "message": text, "requestedSchema": schema}


def _refusal(call: Call, lease: Lease, why: str) -> TabLeased:
    held = call.box.choice.leased_error(lease, asked=True)
    return TabLeased(f"{why} {held.message}", hint=held.hint, data=held.data)
