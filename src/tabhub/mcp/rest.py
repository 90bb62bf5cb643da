"""REST: `GET /tools` and `POST /tools/<name>/call`, for scripts and the command line."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import msgspec
import orjson

from tabhub.calls.engine import Answers, Engine, Questions
from tabhub.core.listing.catalogue import Catalogues
from tabhub.core.listing.profiles import EVERYTHING
from tabhub.core.sessions import Session
from tabhub.errors import BadInput, InvalidParams, MissingCapability, TabhubError
from tabhub.http.messages import JSON, Request, Response, json_response, retry_after
from tabhub.mcp.surface import failure_result
from tabhub.wire import strict_json as strict
from tabhub.wire.mcp import CAPABILITY_OF

_SESSION_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class RestCaller(msgspec.Struct, eq=False):
    """A caller that only wants the answer."""

    session: Session
    via: str
    params: dict[str, Any] = {}
    answers: Answers | None = None
    structured: bool = True

    def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """There is nowhere to show it."""

    def log(self, level: str, logger: str, data: Any) -> None:
        """There is nowhere to show it."""

    def can(self, capability: str) -> bool:
        return False

    async def ask(self, tool: str, questions: Questions) -> Answers:
        method = next(iter(questions.values()))[0]
        raise MissingCapability(tool, CAPABILITY_OF[method])


@dataclass(eq=False)
class Rest:
    """The two REST routes."""

    engine: Engine
    catalogues: Catalogues

    async def list_tools(self, request: Request) -> Response:
        """`GET /tools[?plugin=]`: every tool with its plugin."""
        plugin = request.query_values().get("plugin")
        listing = []
        catalogue = self.catalogues.of(EVERYTHING, request.agent)
        for tool in catalogue.tools():
            if plugin is None or tool.source.key == plugin:
                entry = {**tool.listing(), "plugin": tool.source.key, "source": tool.source.kind}
                if catalogue.disabled(tool):
                    entry["description"] = f"[Disabled] {entry['description']}"
                listing.append(entry)
        return json_response(listing)

    async def call_tool(self, request: Request) -> Response:
        """`POST /tools/<name>/call` with `{"arguments": {…}}`: the result as MCP has it.

        Built-in tools answer with data, or with text if a `Tabhub-Answer: text` header asks for it.
        """
        engine = self.engine
        arguments = _arguments(strict.decode(request.body, engine.limits) if request.body else {})
        session, via = self._session(request)
        caller = RestCaller(session, via, structured=request.headers.get(b"tabhub-answer") != b"text")
        request.on_disconnect.append(lambda: engine.left(caller, "the client closed the request"))
        session.busy += 1
        try:
            result = await engine.call(caller, request.path[len("/tools/") : -len("/call")], arguments)
            return Response(422 if result.is_error else 200, result.payload, (JSON,))
        except TabhubError as error:
            payload = orjson.loads(failure_result(error).payload)
            payload["error"] = {"message": error.message, **error.details()}
            return json_response(payload, error.status, *retry_after(error))
        finally:
            session.busy -= 1
            session.seen = engine.clock()

    def _session(self, request: Request) -> tuple[Session, str]:
        """The session the caller names in `Tabhub-Session`, and how it came; scripts that name none share one."""
        name = request.headers.get(b"tabhub-session", b"rest").decode("latin-1").strip()
        if not _SESSION_NAME.fullmatch(name):
            raise BadInput("Tabhub-Session must be 1 to 64 letters, digits, _ and -.")
        client = request.headers.get(b"tabhub-client", b"rest").decode("latin-1")[:100]
        # Names are each client's own: no token leads to another's session.
        key = f"rest:{request.agent}:{name}" if request.agent is not None else f"rest:{name}"
        sessions = self.engine.sessions
        session = sessions.get(key) or sessions.open(key, "rest", client, self.engine.clock(), request.agent)
        return session, "cli" if client == "cli" else "rest"


def _arguments(body: Any) -> dict[str, Any]:
    """The arguments in a body: `{"arguments": {…}}`, or the arguments themselves."""
    if not isinstance(body, dict):
        raise InvalidParams('The body must be an object: {"arguments": {…}}.')
    if body.keys() == {"arguments"}:
        arguments = body["arguments"]
        if not isinstance(arguments, dict):
            raise InvalidParams("`arguments` must be an object.")
        return arguments
    return body
