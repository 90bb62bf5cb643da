"""The routes for the person about sessions: who is there and holds what, ending one, freeing a tab, pausing all.

Owns what panel and command line are told of sessions. What agents are told of their own is the tools'.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from tabhub.calls.pause import Mode
from tabhub.errors import InvalidParams, SessionNotFound, TabNotFound
from tabhub.http.messages import Request, Response, json_response

if TYPE_CHECKING:
    from tabhub.core.leases import Lease
    from tabhub.core.sessions import Session
    from tabhub.server.hub import Hub

log = logging.getLogger("tabhub.sessions")

_WORDS = 300


class SessionRoutes:
    """Everything about sessions that is for the person."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    async def all(self, request: Request) -> Response:
        """`GET /sessions`: every session, and whether agents are paused."""
        return json_response(self.picture())

    def picture(self) -> dict[str, Any]:
        """All sessions, with the tabs they hold."""
        held: dict[Session, list[Lease]] = {}
        for lease in self._hub.leases:
            held.setdefault(lease.holder, []).append(lease)
        sessions = [self._facts(session, held.get(session, [])) for session in self._hub.sessions.all()]
        return {"sessions": sessions, "paused": self._hub.engine.pause.facts()}

    def _facts(self, session: Session, held: list[Lease]) -> dict[str, Any]:
        now = self._hub.engine.clock()
        return {
            "id": session.id,
            "kind": session.kind,
            "client": session.client,
            "openSeconds": round(now - session.opened),
            "idleSeconds": round(max(0.0, now - session.called)),
            "connected": session.busy > 0,
            "gone": session.gone,
            "callsInFlight": len(self._hub.engine.calls.of_session(session.id)),
            "tabId": session.tab,
            "ownTabs": sorted(session.own_tabs),
            "leases": [self._lease(lease, now) for lease in held],
        }

    def _lease(self, lease: Lease, now: float) -> dict[str, Any]:
        tab = self._hub.browsers.book.get(lease.tab)
        facts: dict[str, Any] = {"tabId": lease.tab, "heldSeconds": round(now - lease.since)}
        return facts if tab is None else {**facts, "title": tab.title, "url": tab.url, "browserId": tab.browser_id}

    async def act(self, request: Request) -> Response:
        """`POST /sessions/<id>/end` and `POST /sessions/<id>/release` with `{"tabId": N}`."""
        session_id, _, what = request.path.removeprefix("/sessions/").rpartition("/")
        session = self._hub.sessions.get(session_id)
        if session is None:
            raise SessionNotFound(
                f"There is no session {session_id[:100]!r}.", hint="`tabhub sessions` lists those there are."
            )
        body = self._body(request, {"tabId"} if what == "release" else set())
        if what == "end":
            own = sorted(session.own_tabs)
            self._hub.end_session(session.id, "the person ended the session")
            closed = [] if self._hub.binding.keep_tabs else own
            return json_response({"ok": True, "id": session.id, "closing": closed})
        tab_id = body.get("tabId")
        if type(tab_id) is not int:
            raise InvalidParams("`tabId` must be the number of a tab.")
        if not self._hub.leases.free(session, tab_id):
            held = ", ".join(str(lease.tab) for lease in self._hub.leases.of(session)) or "none"
            raise TabNotFound(f"{session.client} does not hold tab {tab_id}.", hint=f"Tabs it holds: {held}.")
        return json_response({"ok": True, "id": session.id, "tabId": tab_id})

    async def pause(self, request: Request) -> Response:
        """`POST /pause` with `{"reason"?, "mode"?: "wait" | "fail"}`: calls that act wait, or fail, until `/resume`."""
        body = self._body(request, {"reason", "mode", "by"})
        reason, mode, by = body.get("reason", ""), body.get("mode", "wait"), body.get("by", _client(request))
        for name, value in (("reason", reason), ("by", by)):
            if not isinstance(value, str) or len(value) > _WORDS or not (value.isprintable() or not value):
                raise InvalidParams(f"`{name}` must be printable text of at most {_WORDS} characters.")
        if mode not in ("wait", "fail"):
            raise InvalidParams("`mode` must be wait or fail.")
        return json_response({"ok": True, "paused": await self.set_pause(by or "a person", reason, mode)})

    async def set_pause(self, by: str, reason: str, mode: Mode) -> dict[str, Any] | None:
        """Pause, also over a restart of the hub."""
        self._hub.engine.pause.begin(by, reason, mode)
        log.info("paused by %s: %s", by, reason or "no reason given")
        await self._kept()
        return self._hub.engine.pause.facts()

    async def resume(self, request: Request) -> Response:
        """`POST /resume`: calls that waited go on, in the order they came."""
        self._body(request, set())
        was = self._hub.engine.pause.paused is not None
        released = await self.end_pause()
        return json_response({"ok": True, "wasPaused": was, "callsReleased": released})

    async def end_pause(self) -> int:
        """Resume; gives how many calls had waited."""
        released = self._hub.engine.pause.end()
        await self._kept()
        return released

    async def _kept(self) -> None:
        await self._hub.keeping.keep(changed=True)

    def _body(self, request: Request, known: set[str]) -> dict[str, Any]:
        return request.json_object(self._hub.engine.limits, known, may_be_empty=True)


def _client(request: Request) -> str:
    """The client's name, as far as it gives one."""
    named = request.headers.get(b"tabhub-client", b"")
    return "".join(c for c in named.decode("latin-1")[:100] if c.isprintable())
