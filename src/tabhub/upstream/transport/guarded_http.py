"""HTTP to an external server: only to addresses the guard allows, bounded, with failures as responses.

Owns the transport below the SDK's client. It connects to the very address that was checked, follows no redirect (the
SDK does, within one origin, and each of its requests comes through here), and turns a failure of one request into a
response to that request, because the SDK would otherwise end all others with it.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import anyio
import httpx2
import mcp_types as types
import orjson

from tabhub.errors import LoginRequired, TabhubError
from tabhub.upstream.transport.address_guard import AddressGuard
from tabhub.upstream.transport.messages import SurrogateFilter, replace_surrogates
from tabhub.wire import urls as addresses

NOT_SENT = -32017
"""In answers made here: the request did not leave."""
LOGIN = -32019
"""The person has to log in first."""
LOST = -32018
"""The request left, and its answer did not come."""
_KNOWN_FOR = 30.0
_TIMEOUT = httpx2.Timeout(30.0, read=None)
_SIDE_REQUEST = 30.0
"""Seconds for an exchange that carries no request of the session: a notification, a step of a login."""
_LIMITS = httpx2.Limits(max_connections=100, max_keepalive_connections=20, keepalive_expiry=60.0)
_JSON, _EVENTS = "application/json", "text/event-stream"
_ACCEPT = f"{_JSON}, {_EVENTS}"
_FOR_THE_SDK = (202, 401, 403, 404)
"""Statuses the SDK acts on, beside redirects: no answer, log in, unknown session."""


@dataclass(slots=True)
class LastRefusal:
    """The last unsuccessful response, for error messages."""

    status: int = 0
    content_type: str = ""


class _Exchanges:
    """The open HTTP exchanges of one request: its POST, and a GET that resumes its event stream."""

    def __init__(self) -> None:
        self.ended = False
        self._scopes: set[anyio.CancelScope] = set()

    @contextmanager
    def scope(self, deadline: float = float("inf")) -> Iterator[anyio.CancelScope]:
        with anyio.CancelScope(deadline=deadline) as scope:
            self._scopes.add(scope)
            try:
                yield scope
            finally:
                self._scopes.discard(scope)

    def end(self) -> None:
        self.ended = True
        for scope in self._scopes:
            scope.cancel()


_CURRENT: ContextVar[_Exchanges | None] = ContextVar("tabhub_upstream_exchanges", default=None)


@contextmanager
def closing_exchanges() -> Iterator[None]:
    """Close what requests sent in this block leave open: a server may stream on after a call was cancelled."""
    exchanges = _Exchanges()
    before = _CURRENT.set(exchanges)
    try:
        yield
    finally:
        _CURRENT.reset(before)
        exchanges.end()


class _EventStream(httpx2.AsyncByteStream):
    """An event stream, until its request has ended. The SDK bounds the size of each event."""

    def __init__(self, inner: Any, exchanges: _Exchanges) -> None:
        self._inner = inner
        self._exchanges = exchanges

    async def __aiter__(self) -> AsyncIterator[bytes]:
        surrogates = SurrogateFilter()
        chunks = aiter(self._inner)
        while not self._exchanges.ended:
            chunk: bytes | None = None
            with self._exchanges.scope():
                chunk = await anext(chunks, None)
            if chunk is None:
                return
            yield surrogates.feed(chunk)

    async def aclose(self) -> None:
        await self._inner.aclose()


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Requests to checked addresses."""

    def __init__(self, guard: AddressGuard, context: ssl.SSLContext, largest: int, url: str) -> None:
        """`url` is the server's, as the person entered it."""
        self._guard = guard
        self._local = addresses.names_this_machine(httpx2.URL(url).host)
        self._largest = largest
        self._context = context
        self._inner: dict[str, httpx2.AsyncHTTPTransport] = {}
        """By host: two hosts on one address must not share a connection whose certificate was held against one."""
        self._known: dict[tuple[str, int], tuple[float, list[str]]] = {}
        self.last_refusal = LastRefusal()
        self.established = False
        """Whether the server has accepted a message of a negotiated session."""
        self.session_expired = False
        """Whether the server has answered that it no longer knows the session."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        request_id = _request_id(request)
        long = request_id is not None or request.headers.get("accept", "").startswith(_EVENTS)
        current = _CURRENT.get()
        exchanges = current if current is not None and long else _Exchanges()
        if exchanges.ended:
            return _failed(request, "the request has ended", NOT_SENT)
        deadline = float("inf") if long else anyio.current_time() + _SIDE_REQUEST
        response = None
        with exchanges.scope(deadline):
            response = await self._exchange(request, request_id, exchanges)
        return response if response is not None else _failed(request, "it was cancelled, or took too long", LOST)

    async def _exchange(
        self, request: httpx2.Request, request_id: types.RequestId | None, exchanges: _Exchanges
    ) -> httpx2.Response:
        try:
            response = await self._send(request)
            kind = response.headers.get("content-type", "").lower()
            self._note(request, response.status_code, kind)
            if response.headers.get("content-encoding", "identity") != "identity":
                await response.stream.aclose()  # type: ignore[union-attr]
                return _failed(request, "its answer is compressed, which was not asked for", types.PARSE_ERROR)
            if kind.startswith(_EVENTS):
                response.stream = _EventStream(response.stream, exchanges)
                return response
            body = await self._read(response)
        except TabhubError as error:
            return _failed(request, error.text(), NOT_SENT)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout) as error:
            return _failed(request, f"no connection to {request.url.host}: {error or type(error).__name__}", NOT_SENT)
        except httpx2.TransportError as error:
            return _failed(request, f"the connection broke: {error or type(error).__name__}", LOST)
        if body is None:
            return _failed(request, f"its answer is larger than {self._largest} bytes", types.PARSE_ERROR)
        status = response.status_code
        if self.established and request_id is not None and status not in _FOR_THE_SDK and not 300 <= status < 400:
            return _answer(request, request_id, response, body)
        return _response(request, response, body)

    def _note(self, request: httpx2.Request, status: int, kind: str) -> None:
        posted = request.method == "POST"
        if status == 404 and "mcp-session-id" in request.headers:
            self.session_expired = True
        if status >= 300 or (posted and status != 202 and not kind.startswith((_JSON, _EVENTS))):
            self.last_refusal = LastRefusal(status, kind[:100])
        elif posted and "mcp-protocol-version" in request.headers and request.headers.get("accept") == _ACCEPT:
            self.established = True

    async def _read(self, response: httpx2.Response) -> bytes | None:
        """The body, without lone surrogates; None if it is too large."""
        assert isinstance(response.stream, httpx2.AsyncByteStream)  # noqa: S101 - the async transport's promise
        body = bytearray()
        try:
            async for chunk in response.stream:
                body += chunk
                if len(body) > self._largest:
                    return None
        finally:
            await response.stream.aclose()
        return replace_surrogates(bytes(body))

    async def _send(self, request: httpx2.Request) -> httpx2.Response:
        url = request.url
        if url.scheme not in ("http", "https"):
            raise TabhubError(f"An address with {url.scheme}: is not reached.")
        host = url.host
        inner = self._inner.get(host)
        if inner is None:
            inner = httpx2.AsyncHTTPTransport(verify=self._context, trust_env=False, limits=_LIMITS)
            self._inner[host] = inner
        addresses = await self._addresses(host, url.port or (443 if url.scheme == "https" else 80))
        for number, address in enumerate(addresses):
            request.url = url.copy_with(host=address)
            # The name stays in the Host header, which is set already, and in what the certificate is held against.
            request.extensions = {**request.extensions, "sni_hostname": host}
            try:
                return await inner.handle_async_request(request)
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                if number + 1 == len(addresses):
                    raise
            finally:
                request.url = url
        raise TabhubError(f"The host {host} has no address.")

    async def _addresses(self, host: str, port: int) -> list[str]:
        """The checked addresses of a host, cached for a while."""
        now = asyncio.get_running_loop().time()
        known = self._known.get((host, port))
        if known is not None and now - known[0] < _KNOWN_FOR:
            return known[1]
        found = await self._guard.resolve(host, port, local=self._local)
        self._known[host, port] = (now, found)
        return found

    async def aclose(self) -> None:
        for inner in self._inner.values():
            await inner.aclose()


def _request_id(request: httpx2.Request) -> types.RequestId | None:
    """The id of the JSON-RPC request that an HTTP request carries, if it carries one."""
    if request.method != "POST" or request.headers.get("accept") != _ACCEPT:
        return None
    message = orjson.loads(request.content)
    found: types.RequestId | None = message.get("id") if "method" in message else None
    return found


def _answer(
    request: httpx2.Request, request_id: types.RequestId, response: httpx2.Response, body: bytes
) -> httpx2.Response:
    """The answer to a request, or an error in its place: the SDK would wait for an answer with the right id."""
    kind = response.headers.get("content-type", "").lower()
    try:
        message = orjson.loads(body) if kind.startswith(_JSON) else None
    except ValueError:
        message = None
    if isinstance(message, dict) and "method" not in message and ("error" in message or response.status_code < 400):
        if "error" in message and message.get("id") is None:
            return _response(request, response, orjson.dumps({**message, "id": request_id}))
        if str(message.get("id")) == str(request_id):
            return _response(request, response, body)
        return _failed(request, "it answered with a message that is no answer to this request", types.INVALID_REQUEST)
    if response.status_code >= 400:
        return _failed(request, f"it answered with status {response.status_code}", types.INTERNAL_ERROR)
    if not kind.startswith(_JSON):
        return _failed(request, f"it answered with {kind[:100] or 'no content type'}", types.INVALID_REQUEST)
    return _failed(request, f"its answer is no JSON-RPC message: {body[:80]!r}", types.PARSE_ERROR)


def _response(request: httpx2.Request, response: httpx2.Response, body: bytes) -> httpx2.Response:
    headers = [
        each for each in response.headers.multi_items() if each[0] not in ("content-length", "transfer-encoding")
    ]
    return httpx2.Response(response.status_code, headers=headers, content=body, request=request)


def _failed(request: httpx2.Request, message: str, code: int) -> httpx2.Response:
    body = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}}
    return httpx2.Response(502, headers={"content-type": _JSON}, content=orjson.dumps(body), request=request)


class _Client(httpx2.AsyncClient):
    """A client that turns a required login into an error response for one request of a session."""

    def __init__(self, transport: GuardedTransport, **options: Any) -> None:
        super().__init__(transport=transport, **options)
        self._guarded = transport

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        try:
            return await super().send(request, **options)
        except LoginRequired as error:
            if not self._guarded.established:
                raise  # there is no session without it
            return _failed(request, error.message, LOGIN)


def make_client(
    transport: GuardedTransport, headers: dict[str, str], auth: httpx2.Auth | None = None
) -> httpx2.AsyncClient:
    made = _Client(transport, headers=headers, timeout=_TIMEOUT, auth=auth, trust_env=False)
    made.headers["accept-encoding"] = "identity"  # a small body can decompress to any size
    return made
