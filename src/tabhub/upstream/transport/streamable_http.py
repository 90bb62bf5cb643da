"""A server over Streamable HTTP: the SDK's two streams, made of POST requests and event streams.

Owns the HTTP of a session: its headers, logins, redirects within the origin, event streams that are resumed, and
bounds. Every request ends with its answer or with an error that says what happened instead; a failure ends no other
request. Connections are made only to addresses that the guard has checked. It knows no tool.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from urllib.parse import urljoin, urlsplit

import mcp_types as types
from anyio.abc import ObjectSendStream
from mcp.shared.message import ClientMessageMetadata, SessionMessage
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from tabhub import __version__
from tabhub.client_errors import HttpConnectError, HttpError, InvalidHttpResponse
from tabhub.errors import BadInput, LoginRequired, TabhubError, UpstreamError, UpstreamLost, UpstreamOffline
from tabhub.net.async_http import Bounds, Connections, Response
from tabhub.upstream.launch_plan import ConnectionPlan
from tabhub.upstream.oauth import Login
from tabhub.upstream.transport.address_guard import AddressGuard
from tabhub.upstream.transport.messages import ReceivedMessages, read_message, write_message
from tabhub.wire import urls
from tabhub.wire.sse import EventReader

log = logging.getLogger("tabhub.upstream")

_JSON, _EVENTS = "application/json", "text/event-stream"
_SESSION, _VERSION = "mcp-session-id", "mcp-protocol-version"
_MESSAGE_TIMEOUT = 30.0
"""Seconds for a message that has no answer. The SDK sends these in order: one that hangs would delay the next."""
_END_TIMEOUT = 5.0
_MAX_HOPS = 5
"""Redirects and logins of one request."""
_MAX_FAILURES = 2
"""Failures in a row to open an event stream."""
_RETRY_DELAY, _MIN_RETRY_DELAY, _MAX_RETRY_DELAY = 1.0, 0.05, 30.0
_DRAIN_TIMEOUT = 1.0
"""Seconds for an event stream to end after the answer, so that its connection can be used again."""
_TLS = ssl.create_default_context()
"""Made with the import, which is in a thread: loading the certificates is slow."""


class StreamableHttp(ObjectSendStream[SessionMessage]):
    """The connection to one server; the session sends its messages here."""

    def __init__(self, plan: ConnectionPlan, guard: AddressGuard, max_answer: int, login: Login | None) -> None:
        assert plan.url is not None  # noqa: S101 - a server has a URL or a command
        self._name = plan.name
        self._url = plan.url
        self._headers = {
            "user-agent": f"tabhub/{__version__}",
            **{name.lower(): value for name, value in plan.headers.items()},
            "content-type": _JSON,
            "accept": f"{_JSON}, {_EVENTS}",
            "accept-encoding": "identity",  # a small body can decompress to any size
        }
        self._max_answer = max_answer
        self._login = login
        local = urls.names_this_machine(urlsplit(plan.url).hostname or "")
        self._connections = Connections(_TLS, lambda host, port: guard.resolve(host, port, local=local))
        self._session_id: str | None = None
        self._version: str | None = None
        self._requests: dict[types.RequestId, asyncio.Task[None]] = {}
        self._listening: asyncio.Task[bool] | None = None
        self._received = ReceivedMessages()
        self._established = False
        """Whether a request has been answered."""
        self.session_expired = False
        """Whether the server no longer knows the session."""
        self.ended = False
        self.failure: UpstreamError | None = None
        """Why there can be no session."""

    @asynccontextmanager
    async def streams(self) -> AsyncIterator[tuple[ReceivedMessages, StreamableHttp]]:
        """The SDK's two streams. Leaving ends the session."""
        try:
            yield self._received, self
        finally:
            tasks = [*self._requests.values(), *([self._listening] if self._listening else [])]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            if self._session_id is not None and not self.session_expired:
                with contextlib.suppress(HttpError, TabhubError, TimeoutError):
                    async with asyncio.timeout(_END_TIMEOUT), self._exchange("DELETE", {}):
                        pass
            self._received.close()
            self._connections.close()

    async def aclose(self) -> None:
        """The session has nothing more to send; `streams` ends the connection."""

    async def send(self, item: SessionMessage) -> None:
        """Send a message. A task of each request receives its answer."""
        message = item.message
        self._received.expect(message)
        headers = item.metadata.headers or {} if isinstance(item.metadata, ClientMessageMetadata) else {}
        if isinstance(message, types.JSONRPCRequest):
            self._version = None if message.method == "initialize" else headers.get(_VERSION, self._version)
            task = asyncio.ensure_future(self._request(message, headers))
            self._requests[message.id] = task
            task.add_done_callback(lambda _: self._requests.pop(message.id, None))
        elif isinstance(message, types.JSONRPCNotification) and message.method == "notifications/cancelled":
            await self._cancel((message.params or {}).get("requestId"), message)
        else:
            await self._send_only(message, headers)
            if isinstance(message, types.JSONRPCNotification) and message.method == "notifications/initialized":
                self._listen()

    async def _cancel(self, request_id: types.RequestId | None, message: types.JSONRPCNotification) -> None:
        """Cancel a request: in the stateless era by closing it, else with a message."""
        task = self._requests.get(request_id) if request_id is not None else None
        try:
            if self._version not in MODERN_PROTOCOL_VERSIONS:
                await self._send_only(message, {})
        finally:
            if task is not None:
                task.cancel()

    async def _send_only(self, message: types.JSONRPCMessage, headers: Mapping[str, str]) -> None:
        try:
            async with asyncio.timeout(_MESSAGE_TIMEOUT):
                async with self._exchange("POST", headers, write_message(message)) as response:
                    await response.body()
        except (HttpError, TabhubError, TimeoutError) as error:
            log.debug("%s did not receive a message: %r", self._name, error)

    async def _request(self, message: types.JSONRPCRequest, headers: Mapping[str, str]) -> None:
        """Send a request and receive what the server sends up to its answer."""
        try:
            async with self._exchange("POST", headers, write_message(message)) as response:
                events = await self._receive(message, response)
            if events is not None:  # the stream ended without the answer
                await asyncio.sleep(_delay(events))
                if not await self._open_event_stream(events, message.id):
                    raise HttpError("its event stream ended without a response")
            return
        except HttpConnectError as error:
            failure: UpstreamError = UpstreamOffline(f"{self._name} cannot be reached: {error}.")
        except InvalidHttpResponse as error:
            failure = UpstreamError(f"{self._name} answered {message.method} with an error: {error}.")
        except HttpError as error:
            failure = UpstreamLost(f"{self._name} did not answer {message.method}: {error}.")
        except UpstreamError as error:
            failure = error
        except TabhubError as error:
            failure = UpstreamOffline(f"{self._name} cannot be reached: {error.text()}")
        except Exception as error:  # noqa: BLE001 - whatever a server sends, the request has to end
            failure = UpstreamLost(f"{self._name} did not answer {message.method}: {type(error).__name__}: {error}.")
        if isinstance(failure, LoginRequired) and not self._established:
            self.failure = failure  # the SDK would try again in another way, and ask the person again
            self._received.close()
        data = types.ErrorData(code=types.INTERNAL_ERROR, message=failure.message, data=failure)
        self._received.put(types.JSONRPCError(jsonrpc="2.0", id=message.id, error=data))

    async def _receive(self, message: types.JSONRPCRequest, response: Response) -> EventReader | None:
        """Read a response. Returns the reader of an event stream that ended without the answer."""
        kind = response.headers.get("content-type", "").lower()
        if response.headers.get("content-encoding", "identity") != "identity":
            raise self._error(message, "its answer is compressed, which was not requested")
        if message.method == "initialize":
            self._session_id = response.headers.get(_SESSION)
        if kind.startswith(_EVENTS) and response.status < 300:
            events = EventReader(self._max_answer)
            try:
                answered = await self._read_events(response, events, message.id)
            except HttpError:
                if events.last_id is None:
                    raise
                answered = False
            return None if answered else events
        body = await response.body()
        if response.status == 404 and self._session_id is not None and message.method != "initialize":
            self.session_expired = True
            raise UpstreamOffline(f"{self._name} no longer knows the session; a new one is opened.")
        if kind.startswith(_JSON):
            problem = "it answered with a message for another request"
            try:
                if self._pass_answer(read_message(body), message.id, error_only=response.status >= 400):
                    return None
            except ValueError:
                problem = f"its answer is not a JSON-RPC message: {body[:80]!r}"
            if response.status < 300:
                raise self._error(message, problem)
        raise self._refusal(message, response)

    def _pass_answer(
        self, answer: types.JSONRPCMessage, request_id: types.RequestId, *, error_only: bool = False
    ) -> bool:
        """Pass on a message if it answers the request; returns whether it does."""
        if isinstance(answer, types.JSONRPCError):
            fits = answer.id is None or str(answer.id) == str(request_id)
        elif isinstance(answer, types.JSONRPCResponse):
            fits = str(answer.id) == str(request_id) and not error_only
            self._established = self._established or fits
        else:
            return False
        if fits:
            answer.id = request_id
            self._received.put(answer)
        return fits

    def _error(self, message: types.JSONRPCRequest, reason: str) -> UpstreamError:
        return UpstreamError(f"{self._name} answered {message.method} with an error: {reason}.")

    def _refusal(self, message: types.JSONRPCRequest, response: Response) -> UpstreamError:
        """The error for a response that is not MCP."""
        kind = response.headers.get("content-type", "")[:100]
        status = "202 Accepted" if response.status == 202 else f"status {response.status}"
        if 300 <= response.status < 400:
            where = response.headers.get("location", "")[:300].partition("?")[0]
            return UpstreamOffline(f"{self._name} redirects elsewhere, which is not followed: {where!r}.")
        if response.status in (401, 403):
            return UpstreamError(
                f"{self._name} refuses the hub with {status}.",
                hint="Check the required headers, or log in: tabhub mcp refresh " + self._name,
            )
        if self._established:
            return self._error(message, f"it answered with {status if response.status != 200 else kind or status}")
        return UpstreamError(
            f"{self._name} does not speak Streamable HTTP: it answered a POST of JSON-RPC 2.0 with {status}"
            + (f" and {kind}." if kind else "."),
            hint="Check the URL; it often ends in /mcp. The old SSE transport alone is not supported.",
        )

    def _listen(self) -> None:
        """Receive what the server sends outside of requests, if it offers such a stream."""
        if self._session_id is not None:
            self._listening = asyncio.ensure_future(self._open_event_stream(EventReader(self._max_answer), None))

    async def _open_event_stream(self, events: EventReader, request_id: types.RequestId | None) -> bool:
        """Open or resume an event stream, again when it ends. Returns whether it brought the answer to a request."""
        failures = 0
        while failures < _MAX_FAILURES:
            headers = {"accept": _EVENTS} | ({"last-event-id": events.last_id} if events.last_id else {})
            try:
                async with self._exchange("GET", headers) as response:
                    if response.status >= 500:
                        raise HttpError(f"the server answered with status {response.status}")
                    if not response.headers.get("content-type", "").lower().startswith(_EVENTS):
                        return False
                    failures = 0
                    if await self._read_events(response, events, request_id):
                        return True
            except (HttpError, TabhubError) as error:
                log.debug("an event stream of %s ended: %s", self._name, error)
                failures += 1
            await asyncio.sleep(_delay(events))
            events = EventReader(self._max_answer, events.last_id, events.retry)
        return False

    async def _read_events(self, response: Response, events: EventReader, request_id: types.RequestId | None) -> bool:
        """Pass on the messages of a stream. Returns whether the answer to the request was among them."""
        chunks = response.chunks()
        async for chunk in chunks:
            try:
                found = [read_message(event.data) for event in events.feed(chunk) if event.data]
            except BadInput as error:
                raise UpstreamError(f"{self._name} sent too much: {error.message}") from None
            except ValueError:
                raise UpstreamError(f"{self._name} sent an event that is not a JSON-RPC message.") from None
            for message in found:
                if request_id is not None and self._pass_answer(message, request_id):
                    with contextlib.suppress(HttpError, TimeoutError):
                        async with asyncio.timeout(_DRAIN_TIMEOUT):
                            async for _ in chunks:
                                pass
                    return True
                if isinstance(message, types.JSONRPCRequest | types.JSONRPCNotification):
                    self._received.put(message)
        return False

    @asynccontextmanager
    async def _exchange(
        self, method: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> AsyncIterator[Response]:
        """Send an HTTP request; logs in where the server requires it and follows redirects within its origin."""
        url = self._url
        bounds = Bounds(silence=None, max_body=self._max_answer, connect=_MESSAGE_TIMEOUT)
        for hop in range(_MAX_HOPS):
            sent = {**self._headers, **headers}
            if self._session_id is not None:
                sent[_SESSION] = self._session_id
            if self._version is not None:
                sent[_VERSION] = self._version
            if self._login is not None:
                sent |= await self._login.headers()
            async with self._connections.request(method, url, sent, body, bounds) as response:
                if hop + 1 < _MAX_HOPS and method != "DELETE":
                    if response.status in (401, 403) and self._login is not None:
                        if await self._renew(self._login, url, sent, response):
                            continue
                    elif (target := _redirect_within_origin(method, url, response)) is not None:
                        url = target
                        continue
                yield response
                return

    async def _renew(self, login: Login, url: str, sent: Mapping[str, str], refused: Response) -> bool:
        try:
            return await login.renew(url, sent, refused, self._connections)
        except TabhubError:
            raise
        except Exception as error:  # noqa: BLE001 - the SDK's errors of a login, and those of what a server sent for it
            reason = f"{type(error).__name__}: {str(error)[:300]}"
            raise UpstreamOffline(f"The login at {self._name} failed: {reason}") from None


def _delay(events: EventReader) -> float:
    """Seconds to wait before an event stream is resumed."""
    delay = _RETRY_DELAY if events.retry is None else events.retry / 1000
    return min(max(delay, _MIN_RETRY_DELAY), _MAX_RETRY_DELAY)


def _redirect_within_origin(method: str, url: str, response: Response) -> str | None:
    """Where to send the request again: at the same origin, or at its https form, with the same method."""
    location = response.headers.get("location")
    if not location or response.status not in ((301, 302, 303, 307, 308) if method == "GET" else (307, 308)):
        return None
    target = urljoin(url, location)
    before, after = urls.split(url), urls.split(target)
    if before is None or after is None or "@" in location:
        return None
    same = (before.scheme, before.hostname, before.port) == (after.scheme, after.hostname, after.port)
    upgraded = (before.scheme, after.scheme) == ("http", "https") and before.hostname == after.hostname
    return target if same or (upgraded and before.port is None and after.port is None) else None
