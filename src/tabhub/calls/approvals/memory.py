"""What people approved beyond one call: for a session, for good, a definition, a flow of data between sites.

Owns what is remembered until the session ends, and what is stored. Approvals for a session and for good cover one kind
of action on one site. The permission check reads them, an answer in the inbox adds to them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from tabhub.core.sessions import Session
from tabhub.core.tools import Tool
from tabhub.errors import SetupError
from tabhub.store.grants import GrantStore
from tabhub.store.pins import PinStore
from tabhub.trust import pins
from tabhub.trust.approvals import Answer, Approval, Ask
from tabhub.trust.dataflow import DataFlows
from tabhub.trust.grants import ANY, Grant, Scope, find

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

    def __init__(self, pin_store: PinStore, grants: GrantStore, wall: Callable[[], float]) -> None:
        self.flows = DataFlows()
        self.pins = pin_store
        self.grants = grants
        self._wall = wall
        self._pin_listeners: list[Callable[[], None]] = []
        self._sessions: dict[tuple[str, Scope], _SessionApproval] = {}
        self._saving: set[asyncio.Future[Any]] = set()

    def on_pin(self, listener: Callable[[], None]) -> None:
        self._pin_listeners.append(listener)

    def session_approval(self, session: Session, scope: Scope, definition: str) -> Approval | None:
        """The approval for this session, unless the tool has changed since."""
        known = self._sessions.get((session.id, scope))
        return known.approval if known is not None and known.definition == definition else None

    def grant(self, session: Session, scope: Scope) -> Grant | None:
        return find(self.grants.all(), session.token, scope)

    def record(self, session: Session, tool: Tool, ask: Ask, answer: Answer) -> asyncio.Future[None] | None:
        """Remember an approval; a future if a grant is being stored."""
        if ask.crossing:
            self.flows.allow(flow_key(session), ask.crossing, ask.targets)
        if ask.why == "pin":
            self.pin(tool, ask.setting_name, ask.definition)
        if answer.decision == "allow_session":
            approval = Approval(answer.by, "allow_session", answer.reason)
            known = _SessionApproval(approval, tool.source.setting, ask.definition)
            self._sessions |= dict.fromkeys(((session.id, scope) for scope in ask.scope), known)
        elif answer.decision == "allow_always":
            self.pin(tool, ask.setting_name, ask.definition)
            saving = asyncio.ensure_future(self._grant(session.token, ask, answer))
            self._saving.add(saving)
            saving.add_done_callback(self._saving.discard)
            return saving
        return None

    def pin(self, tool: Tool, setting_name: str, definition: str) -> None:
        if tool.source.kind in PINNED:
            self.pins.approve(tool.source.setting, setting_name, pins.fingerprint(definition), definition)
        for listener in self._pin_listeners:
            listener()

    async def _grant(self, asking: str | None, ask: Ask, answer: Answer) -> None:
        agent, scopes = granted(asking, ask.scope, answer)
        try:
            await asyncio.to_thread(self.grants.add, agent, scopes, answer.by, self._wall())
        except SetupError as error:
            log.error("the call was approved, but `always` could not be saved: %s", error.text())

    def forget_session(self, session_id: str) -> None:
        self.flows.end(session_id)
        self._sessions = {key: known for key, known in self._sessions.items() if key[0] != session_id}

    def forget_source(self, source: str) -> None:
        """The person changed a source's permissions: its tools are asked for again in all sessions."""
        self._sessions = {key: known for key, known in self._sessions.items() if known.source != source}

    def forget_grants(self, kinds: Iterable[str]) -> None:
        """The person set tools to ask or off: what was granted of their kinds is asked for again."""
        self.grants.forget(kinds)


def granted(agent: str | None, scope: tuple[Scope, ...], answer: Answer) -> tuple[str | None, tuple[Scope, ...]]:
    """Whom an `always` is for and what it covers, with what the person widened."""
    if answer.every_site:
        scope = tuple(dict.fromkeys(each._replace(site=ANY) if each.site is not None else each for each in scope))
    return ANY if answer.every_agent else agent, scope


def flow_key(session: Session) -> str:
    """Whose reads count together: the session's, or those of a stateless client without one."""
    return session.id if session.id != _STATELESS else stateless_key(session)


def stateless_key(session: Session) -> str:
    return f"{_STATELESS}:{session.token or ''}:{session.client}"
