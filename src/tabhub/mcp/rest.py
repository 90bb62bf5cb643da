"""REST: `GET /tools` and `POST /tools/<name>/call`, for scripts and the command line."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qs

import orjson

from tabhub.calls.engine import Answers, Engine, Questions
from tabhub.core.listing.catalogue import Catalogue
from tabhub.core.sessions import Session
from tabhub.errors import BadInput, InvalidParams, MissingCapability, TabhubError
from tabhub.http.event_streams import EventStream
from tabhub.http.known_heads import HEAD, TOKEN, Head
from tabhub.http.responses import JSON as JSON_HEADER
from tabhub.http.responses import Receive, Scope, Send, read_body, respond, respond_error, respond_json
from tabhub.mcp.exchange import Exchange
from tabhub.mcp.surface import failure_result
from tabhub.wire import strict_json as strict
from tabhub.wire.mcp import CAPABILITY_OF

_SESSION_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class RestCaller:
    """A caller that only wants the answer."""

    __slots__ = ("_exchange", "session", "via")

    answers: Answers | None = None

    def __init__(self, session: Session, exchange: Exchange, via: str) -> None:
        self.session = session
        self.via = via
        self._exchange = exchange

    def at_once(self) -> bool:
        """Whether the answer would leave with the others of this turn."""
        return self._exchange.at_once()

    def slow(self) -> None:
        """Notice it when the client closes the request."""
        self._exchange.watch()

    def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """There is nowhere to show it."""

    def log(self, level: str, logger: str, data: Any) -> None:
        """There is nowhere to show it."""

    def can(self, capability: str) -> bool:
        """A REST caller has no capabilities."""
        return False

    async def ask(self, tool: str, questions: Questions) -> Answers:
        """There is no one to ask."""
        method = next(iter(questions.values()))[0]
        raise MissingCapability(tool, CAPABILITY_OF[method])


class Rest:
    """The two REST routes."""

    def __init__(self, engine: Engine, catalogue: Catalogue) -> None:
        self._engine = engine
        self._catalogue = catalogue

    async def list_tools(self, scope: Scope, receive: Receive, send: Send) -> None:
        """`GET /tools[?plugin=]`: every tool with its plugin."""
        query = parse_qs(scope["query_string"].decode("latin-1"))
        plugin = query.get("plugin", [None])[0]
        listing = []
        for tool in self._catalogue.tools():
            if plugin is None or tool.source.key == plugin:
                entry = {**tool.listing(), "plugin": tool.source.key, "source": tool.source.kind}
                if self._catalogue.disabled(tool):
                    entry["description"] = f"[Disabled] {entry['description']}"
                listing.append(entry)
        await respond_json(send, listing)

    async def call_tool(self, scope: Scope, receive: Receive, send: Send) -> None:
        """`POST /tools/<name>/call` with `{"arguments": {…}}`: the result as MCP has it."""
        await self.post(scope[HEAD], await read_body(receive, self._engine.limits), receive, send)

    async def post(self, head: Head, body: bytes, receive: Receive, send: Send) -> None:
        """The same, once its body is there."""
        engine = self._engine
        try:
            arguments = _arguments(strict.decode(body, engine.limits) if body else {})
            session = self._session(head)
        except TabhubError as error:
            engine.meter.refuse(error.status)
            await respond_error(send, error)
            return
        exchange = Exchange(receive, send, new_stream=self._no_stream)
        caller = RestCaller(session, exchange, head.facts[2])
        exchange.when_left(lambda: engine.left(caller, "the client closed the request"))
        session.busy += 1
        try:
            result = await engine.call(caller, head.path[len("/tools/") : -len("/call")], arguments)
            status = 422 if result.is_error else 200
            if not exchange.finished(result.payload, status):
                await exchange.finish(result.payload, status)
        except TabhubError as error:
            extra = [JSON_HEADER]
            if (retry_after := error.retry_after) is not None:
                extra.append((b"retry-after", b"%d" % retry_after))
            if exchange.left:
                return
            payload = orjson.loads(failure_result(error).payload)
            payload["error"] = {"message": error.message, **error.facts()}
            await respond(send, error.status, orjson.dumps(payload), extra)
        finally:
            session.busy -= 1
            session.seen = engine.clock()

    def _no_stream(self) -> EventStream:
        return EventStream("", self._engine.limits, resumable=False)

    def _session(self, head: Head) -> Session:
        """The session the caller names in `Tabhub-Session`, kept across calls; scripts that name none share one."""
        named: tuple[str, str, str] = head.facts or _named(head)
        head.facts = named
        key, client, _ = named
        sessions = self._engine.sessions
        token = head.headers.get(TOKEN, b"").decode() or None
        return sessions.get(key) or sessions.open(key, "rest", client, self._engine.clock(), token)


def _named(head: Head) -> tuple[str, str, str]:
    """The session's id and the client's name that a request's headers give, and by which way it came."""
    name = head.headers.get(b"tabhub-session", b"rest").decode("latin-1").strip()
    if not _SESSION_NAME.fullmatch(name):
        raise BadInput("Tabhub-Session must be 1 to 64 letters, digits, _ and -.")
    client = head.headers.get(b"tabhub-client", b"rest").decode("latin-1")[:100]
    token = head.headers.get(TOKEN, b"").decode()
    # Names are each client's own: no token leads to a session of another's.
    key = f"rest:{token}:{name}" if token else f"rest:{name}"
    return key, client, "cli" if client == "cli" else "rest"


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
