"""What people approved beyond one call: for a session, for good, a definition, a flow of data between sites.

Owns what is remembered until the session ends, and what is written down. The permission check reads it, an answer in
the inbox adds to it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from tabhub.core.sessions import Session
from tabhub.core.tools import Tool
from tabhub.errors import TabhubError
from tabhub.store.pins import PinStore
from tabhub.trust import pins
from tabhub.trust.approvals import Answer, Approval, Ask
from tabhub.trust.dataflow import DataFlows

log = logging.getLogger("tabhub.approvals")

PINNED = ("page", "plugin", "upstream")
"""Sources whose tools are defined by others: a definition may change after it was approved."""
_STATELESS = "stateless"


class _SessionApproval(NamedTuple):
    approval: Approval
    source: str
    definition: str


class ApprovalMemory:
    """The lasting approvals of one hub."""

    def __init__(self, pin_store: PinStore, save_setting: Callable[[tuple[str, ...]], Awaitable[None]]) -> None:
        self.flows = DataFlows()
        self.pins = pin_store
        self._pin_listeners: list[Callable[[], None]] = []
        self._save_setting = save_setting
        self._sessions: dict[tuple[str, str], _SessionApproval] = {}
        self._saving: set[asyncio.Future[Any]] = set()

    def on_pin(self, listener: Callable[[], None]) -> None:
        self._pin_listeners.append(listener)

    def session_approval(self, session: Session, tool: Tool, definition: str) -> Approval | None:
        """The approval for this session, unless the tool has changed since."""
        known = self._sessions.get((session.id, tool.name))
        return known.approval if known is not None and known.definition == definition else None

    def record(self, session: Session, tool: Tool, ask: Ask, answer: Answer) -> asyncio.Future[None] | None:
        """Remember an approval; a future if it is being saved to the settings."""
        if ask.crossing:
            self.flows.allow(flow_key(session), ask.crossing, ask.targets)
        if ask.why == "pin":
            self.pin(tool, ask.setting_name, ask.definition)
        if answer.decision == "allow_session":
            approval = Approval(answer.by, "allow_session", answer.reason)
            self._sessions[session.id, tool.name] = _SessionApproval(approval, tool.source.setting, ask.definition)
        elif answer.decision == "allow_always":
            saving = asyncio.ensure_future(self._save(session, tool, ask))
            self._saving.add(saving)
            saving.add_done_callback(self._saved)
            return saving
        return None

    def pin(self, tool: Tool, setting_name: str, definition: str) -> None:
        if tool.source.kind in PINNED:
            self.pins.approve(tool.source.setting, setting_name, pins.fingerprint(definition), definition)
        for listener in self._pin_listeners:
            listener()

    async def _save(self, session: Session, tool: Tool, ask: Ask) -> None:
        """Approve a tool for good: for the client the user of the token, else for everyone."""
        # Before the setting: a tool set to auto without a pin is pinned as it is at that moment.
        self.pin(tool, ask.setting_name, ask.definition)
        client = ("clients", session.token) if session.token is not None else ()
        await self._save_setting(("permissions", *client, tool.source.setting, "tools", ask.setting_name))

    def _saved(self, saving: asyncio.Future[Any]) -> None:
        self._saving.discard(saving)
        if not saving.cancelled() and (error := saving.exception()) is not None:
            text = error.text() if isinstance(error, TabhubError) else repr(error)
            log.error("the call was approved, but `allow always` could not be saved: %s", text)

    def forget_session(self, session_id: str) -> None:
        self.flows.end(session_id)
        self._sessions = {key: known for key, known in self._sessions.items() if key[0] != session_id}

    def forget_source(self, source: str) -> None:
        """The person changed a source's permissions: its tools are asked for again in all sessions."""
        self._sessions = {key: known for key, known in self._sessions.items() if known.source != source}


def flow_key(session: Session) -> str:
    """Whose reads count together: the session's, or those of a stateless client without one."""
    return session.id if session.id != _STATELESS else stateless_key(session)


def stateless_key(session: Session) -> str:
    return f"{_STATELESS}:{session.token or ''}:{session.client}"
