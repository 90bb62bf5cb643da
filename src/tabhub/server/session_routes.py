"""The person's HTTP routes for sessions: list them, end one, release a tab, pause and resume all agents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tabhub.http.messages import Request, Response, json_response
from tabhub.limits import Limits
from tabhub.server.session_control import SessionControl
from tabhub.wire.messages import convert
from tabhub.wire.panel import HeldTab, PauseRequest


@dataclass(frozen=True, slots=True)
class SessionRoutes:
    """`/sessions`, `/pause` and `/resume`."""

    control: SessionControl
    limits: Limits

    async def all(self, request: Request) -> Response:
        """`GET /sessions`: every session, and whether agents are paused."""
        return json_response(self.control.overview())

    async def act(self, request: Request) -> Response:
        """`POST /sessions/<id>/end` and `POST /sessions/<id>/release` with `{"tabId": N}`."""
        session_id, _, action = request.path.removeprefix("/sessions/").rpartition("/")
        session = self.control.require(session_id)
        answer: dict[str, Any] = {"ok": True, "id": session.id}
        if action == "end":
            self._body(request)
            closing = self.control.tabs_to_close(session)
            self.control.end(session.id)
            return json_response({**answer, "closing": closing})
        tab_id = convert("release", self._body(request, "tabId"), HeldTab).tab_id
        self.control.release(session, tab_id)
        return json_response({**answer, "tabId": tab_id})

    async def pause(self, request: Request) -> Response:
        """`POST /pause` with `{"reason"?, "mode"?: "wait" | "fail"}`: calls that act wait, or fail, until `/resume`."""
        wanted = convert("pause", self._body(request, "reason", "mode", "by"), PauseRequest)
        by = wanted.by or _client(request) or "a person"
        return json_response({"ok": True, "paused": await self.control.pause(by, wanted.reason, wanted.mode)})

    async def resume(self, request: Request) -> Response:
        """`POST /resume`: waiting calls continue in their order; with `{"tabId": N}`, agents may use that tab again."""
        if body := self._body(request, "tabId"):
            tab_id = convert("resume", body, HeldTab).tab_id
            await self.control.resume_tab(tab_id)
            return json_response({"ok": True, "tabId": tab_id})
        was_paused = self.control.paused
        released = await self.control.resume()
        return json_response({"ok": True, "wasPaused": was_paused, "callsReleased": released})

    def _body(self, request: Request, *known: str) -> dict[str, Any]:
        return request.json_object(self.limits, set(known), may_be_empty=True)


def _client(request: Request) -> str:
    named = request.headers.get(b"tabhub-client", b"")
    return "".join(c for c in named.decode("latin-1")[:100] if c.isprintable())
