"""The stateless era, 2026-07-28: every request carries its own envelope, and nothing is remembered between two.

Owns server/discover, subscriptions/listen, multi-round-trip input and the `session` handle. Closing the request is
cancelling the call.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import InitVar, dataclass
from typing import Any

import orjson

from tabhub.calls.engine import Answers, Engine, InputRequired, Questions
from tabhub.core.sessions import Session
from tabhub.core.tools import ToolResult
from tabhub.errors import InvalidParams, MethodNotFound, MissingCapability, TabhubError, UnknownTool, UnsupportedVersion
from tabhub.http.event_streams import EventStream, serve
from tabhub.http.messages import JSON, Response
from tabhub.http.messages import Request as HttpRequest
from tabhub.mcp.exchange import Exchange, HttpExchange, McpCaller
from tabhub.mcp.notifications import ListNotifier
from tabhub.mcp.resources import FORWARDED, LISTS, UpstreamResources
from tabhub.mcp.subscriptions import ResourceSubscriber
from tabhub.mcp.surface import Surface, failure_result
from tabhub.wire.jsonrpc import (
    Message,
    Notification,
    Request,
    encode_failure,
    encode_notification,
    encode_result,
    name_and_arguments,
)
from tabhub.wire.jsonrpc import Response as RpcResponse
from tabhub.wire.mcp import (
    LIST_CHANGED,
    LOG_LEVELS,
    META_SERVER,
    META_SUBSCRIPTION,
    RESOURCE_UPDATED,
    STATELESS,
    SUPPORTED,
    Envelope,
    acknowledged,
    read_envelope,
    read_followed,
    read_listen,
    stateless_payload,
)
from tabhub.wire.param_headers import check as check_params

_DISCOVER_TTL_MS = 60_000
_JSON = (JSON,)


class StatelessCaller(McpCaller):
    """One call of a stateless client."""

    log_level: str | None

    def log(self, level: str, logger: str, data: Any) -> None:
        if self.log_level is not None and LOG_LEVELS.index(level) >= LOG_LEVELS.index(self.log_level):
            self.send_log(level, logger, data)

    async def ask(self, tool: str, questions: Questions) -> Answers:
        """Answers that came with the request; what is missing ends this round."""
        answers = self.answers or {}
        missing = {key: question for key, question in questions.items() if key not in answers}
        for method, _ in missing.values():
            self.require(tool, method)
        if missing:
            raise InputRequired(missing)
        return {key: answers[key] for key in questions}


@dataclass(eq=False)
class StatelessEdge:
    """The 2026-07-28 side of one endpoint."""

    engine: Engine
    surface: Surface
    notices: ListNotifier
    resources: UpstreamResources
    server: InitVar[dict[str, Any]]
    capabilities: Callable[[], dict[str, Any]]
    instructions: InitVar[str]

    def __post_init__(self, server: dict[str, Any], instructions: str) -> None:
        self._state_key = secrets.token_bytes(32)
        self._discovered = {
            "resultType": "complete",
            "supportedVersions": list(SUPPORTED),
            "instructions": instructions,
            "ttlMs": _DISCOVER_TTL_MS,
            "cacheScope": "private",
            "_meta": {META_SERVER: server},
        }

    async def post(self, message: Message, version: str, http: HttpRequest, tools: str | None) -> Response | None:
        if not isinstance(message, Request):
            return self._receive_other(message, version)
        envelope = read_envelope(message, version, http.headers)
        if message.method == "tools/call" or message.method in FORWARDED:
            exchange = HttpExchange(http, http.on_disconnect, self._new_stream)
            try:
                answer = await self.answer(message, envelope, exchange, http.raw_headers, None, http.agent, tools)
            except TabhubError as error:
                if exchange.stream is None:
                    raise
                answer = encode_failure(message.id, error)
            if exchange.stream is None:
                return Response(200, answer, _JSON)
            await exchange.finish((answer,))
            return None
        if message.method == "subscriptions/listen":
            await self._listen(message, http)
            return None
        return Response(200, encode_result(message.id, self.simple(message, tools, http.agent)), _JSON)

    def _receive_other(self, message: Notification | RpcResponse, version: str) -> Response:
        """This revision has no notifications from client to server over HTTP: they are accepted and dropped."""
        if isinstance(message, RpcResponse):
            raise InvalidParams("A client does not post responses in this revision: retry with inputResponses.")
        if version != STATELESS:
            raise UnsupportedVersion(version, SUPPORTED)
        return Response(202)

    def simple(
        self, request: Request, tools: str | None = None, agent: str | None = None, session: Session | None = None
    ) -> bytes:
        """The result of a method that only looks something up, for an agent."""
        if request.method == "tools/list":
            cursor = request.params.get("cursor")
            if cursor is not None and not isinstance(cursor, str):
                raise InvalidParams("`cursor` must be a string.")
            page = self.surface.page(cursor, stateless=True, tools=tools, agent=agent, session=session)
            return stateless_payload(page)
        if request.method in LISTS:
            return stateless_payload(self.resources.page(request.method, request.params, stateless=True, agent=agent))
        if request.method == "server/discover":
            return orjson.dumps({**self._discovered, "capabilities": self.capabilities()})
        raise MethodNotFound(f"Method not found: {request.method[:100]}")

    async def answer(
        self,
        request: Request,
        envelope: Envelope,
        exchange: Exchange,
        raw_headers: list[tuple[bytes, bytes]] | None = None,
        own: Session | None = None,
        agent: str | None = None,
        tools: str | None = None,
    ) -> bytes:
        """The answer to a tool call, or to a request that an external server answers (a resource, a prompt).

        The bridge has no headers, and a session of its own.
        """
        engine, params, wanted = self.engine, request.params, None
        if request.method == "tools/call":
            name, arguments = name_and_arguments(params)
            if raw_headers is not None:
                self._check_headers(name, arguments, raw_headers)
            session, handed = self._session(name, arguments, envelope, own, agent)
            about = name
        else:
            wanted = self.resources.find(request.method, params, agent if own is None else own.token)
            session = own if own is not None else self._temporary_session(envelope, agent)
            about = f"{wanted.method} {wanted.asked}"
        answers = self._answers(request, about) if "inputResponses" in params or "requestState" in params else {}
        token, capabilities = envelope.progress_token, envelope.capabilities
        caller = StatelessCaller(
            exchange,
            session,
            params,
            exchange.via,
            token,
            capabilities,
            answers,
            wanted is None and self.surface.structured(tools),
            envelope.log_level,
        )
        end = engine.left if own is None else engine.cancel_for  # the bridge knows when its client disconnects
        exchange.on_disconnect.append(lambda: end(caller, "the client closed the request"))
        session.busy += 1
        try:
            if wanted is not None:
                payload = await self.resources.answer(caller, wanted, stateless=True)
            else:
                try:
                    result = await self.surface.call(caller, name, arguments)
                except (UnknownTool, MissingCapability):
                    raise
                except TabhubError as error:
                    result = failure_result(error)
                if session.tab is not None and not handed:
                    result = _with_handle(result, session)
                payload = result.payload
        except InputRequired as asked:
            return encode_result(request.id, self._input_required(asked.questions, answers, about))
        finally:
            session.busy -= 1
            session.seen = engine.clock()
        return encode_result(request.id, stateless_payload(payload))

    def _check_headers(self, name: str, arguments: dict[str, Any], raw_headers: list[tuple[bytes, bytes]]) -> None:
        """Check the headers that repeat arguments."""
        entry = self.engine.registry.by_name.get(name)
        if entry is not None and entry.tool.param_headers:
            check_params(entry.tool.param_headers, arguments, raw_headers)

    def _session(
        self, name: str, arguments: dict[str, Any], envelope: Envelope, own: Session | None, agent: str | None
    ) -> tuple[Session, bool]:
        """The session the handle names, the bridge's, or one that is not kept unless the call binds a tab to it."""
        if "session" in arguments and self.surface.takes_session(name):
            handle = arguments.pop("session")
            if not isinstance(handle, str):
                raise InvalidParams("`session` must be a string: the handle from an earlier result.")
            return self.engine.sessions.require(handle, "handle", agent), True
        return (own, True) if own is not None else (self._temporary_session(envelope, agent), False)

    def _temporary_session(self, envelope: Envelope, agent: str | None) -> Session:
        now = self.engine.clock()
        return Session("stateless", "handle", envelope.client, now, now, token=agent)

    def _new_stream(self) -> EventStream:
        return EventStream("", self.engine.limits, resumable=False)

    async def _listen(self, request: Request, http: HttpRequest) -> None:
        stream = self._new_stream()

        def end() -> None:
            done = {"resultType": "complete", "_meta": {META_SUBSCRIPTION: request.id}}
            stream.append(encode_result(request.id, orjson.dumps(done)))
            stream.finish()

        with self.listening(request, stream.append, end, http.agent):
            await serve(stream, http)

    @contextmanager
    def listening(
        self, request: Request, notify: Callable[[bytes], None], end: Callable[[], None], agent: str | None
    ) -> Iterator[None]:
        """Notify of the changes that `subscriptions/listen` names while the block runs; `end` is for a shutdown."""
        kinds, wanted = read_listen(request), read_followed(request)
        meta = {META_SUBSCRIPTION: request.id}
        subscriber = ResourceSubscriber(
            self.resources.subscribers,
            lambda uri: notify(encode_notification(RESOURCE_UPDATED, {"uri": uri, "_meta": meta})),
        )
        accepted = acknowledged(kinds, self.resources.subscribe(subscriber, wanted, agent))
        notify(encode_notification("notifications/subscriptions/acknowledged", {**accepted, "_meta": meta}))

        def notify_changed(kind: str) -> None:
            notify(encode_notification(LIST_CHANGED[kind], {"_meta": meta}))

        with closing(subscriber), self.notices.subscribe(notify_changed, end, kinds=kinds, token=agent):
            yield

    # multi-round-trip input: what was answered so far travels in a signed state

    def _input_required(self, questions: Questions, answers: Answers, name: str) -> bytes:
        state = orjson.dumps({"tool": name, "answers": answers})
        signed = hmac.digest(self._state_key, state, "sha256") + state
        return orjson.dumps(
            {
                "resultType": "input_required",
                "inputRequests": {k: {"method": m, "params": p} for k, (m, p) in questions.items()},
                "requestState": signed.hex(),
            }
        )

    def _answers(self, request: Request, name: str) -> Answers:
        answers: Answers = {}
        state = request.params.get("requestState")
        if state is not None:
            answers.update(self._open_state(state, name))
        given = request.params.get("inputResponses")
        if given is None:
            if "inputResponses" in request.params:
                raise InvalidParams("`inputResponses` must be an object.")
            return answers
        if not isinstance(given, dict) or not all(isinstance(v, dict) for v in given.values()):
            raise InvalidParams("`inputResponses` must be an object of objects.")
        answers.update(given)
        return answers

    def _open_state(self, state: Any, name: str) -> Answers:
        refused = InvalidParams("`requestState` is not one this hub gave out for this call.")
        if not isinstance(state, str):
            raise refused
        try:
            raw = bytes.fromhex(state)
        except ValueError:
            raise refused from None
        size = hashlib.sha256().digest_size
        if not hmac.compare_digest(hmac.digest(self._state_key, raw[size:], "sha256"), raw[:size]):
            raise refused
        opened = orjson.loads(raw[size:])
        if opened["tool"] != name:
            raise refused
        answers: Answers = opened["answers"]
        return answers


def _with_handle(result: ToolResult, session: Session) -> ToolResult:
    """Add how a stateless agent stays on the tab that was opened for it."""
    body = orjson.loads(result.payload)
    note = f"Session: {session.id} (tab {session.tab}). Pass it as `session` to go on in this tab."
    body["content"].append({"type": "text", "text": note})
    body["_meta"] = {**body.get("_meta", {}), "tabhub/session": session.id}
    return ToolResult(orjson.dumps(body), result.is_error)
