"""The routes for the person about sessions: list them, end one, release a tab, pause and resume."""

from __future__ import annotations

from typing import Any

from tabhub.errors import InvalidParams
from tabhub.http.messages import Request, Response, json_response
from tabhub.limits import Limits
from tabhub.server.session_control import SessionControl

_MAX_TEXT = 300


class SessionRoutes:
    """`/sessions`, `/pause` and `/resume`."""

    def __init__(self, control: SessionControl, limits: Limits) -> None:
        self._control = control
        self._limits = limits

    async def all(self, request: Request) -> Response:
        """`GET /sessions`: every session, and whether agents are paused."""
        return json_response(self._control.facts())

    async def act(self, request: Request) -> Response:
        """`POST /sessions/<id>/end` and `POST /sessions/<id>/release` with `{"tabId": N}`."""
        session_id, _, action = request.path.removeprefix("/sessions/").rpartition("/")
        session = self._control.require(session_id)
        body = self._body(request, {"tabId"} if action == "release" else set())
        if action == "end":
            closing = self._control.tabs_to_close(session)
            self._control.end(session.id)
            return json_response({"ok": True, "id": session.id, "closing": closing})
        tab_id = body.get("tabId")
        if type(tab_id) is not int:
            raise InvalidParams("`tabId` must be the number of a tab.")
        self._control.release(session, tab_id)
        return json_response({"ok": True, "id": session.id, "tabId": tab_id})

    async def pause(self, request: Request) -> Response:
        """`POST /pause` with `{"reason"?, "mode"?: "wait" | "fail"}`: calls that act wait, or fail, until `/resume`."""
        body = self._body(request, {"reason", "mode", "by"})
        reason, mode, by = body.get("reason", ""), body.get("mode", "wait"), body.get("by", _client(request))
        for name, value in (("reason", reason), ("by", by)):
            if not isinstance(value, str) or len(value) > _MAX_TEXT or not (value.isprintable() or not value):
                raise InvalidParams(f"`{name}` must be printable text of at most {_MAX_TEXT} characters.")
        if mode not in ("wait", "fail"):
            raise InvalidParams("`mode` must be wait or fail.")
        return json_response({"ok": True, "paused": await self._control.pause(by or "a person", reason, mode)})

    async def resume(self, request: Request) -> Response:
        """`POST /resume`: calls that waited go on, in the order they came."""
        self._body(request, set())
        was_paused = self._control.paused
        released = await self._control.resume()
        return json_response({"ok": True, "wasPaused": was_paused, "callsReleased": released})

    def _body(self, request: Request, known: set[str]) -> dict[str, Any]:
        return request.json_object(self._limits, known, may_be_empty=True)


def _client(request: Request) -> str:
    """The client's name, as far as it gives one."""
    named = request.headers.get(b"tabhub-client", b"")
    return "".join(c for c in named.decode("latin-1")[:100] if c.isprintable())
