"""HTTP to an external server: only to addresses the guard allows, bounded, with failures as responses.

Owns the transport below the SDK's client. It connects to the very address that was checked, follows no redirect (the
SDK does, within one origin, and each of its requests comes through here), and turns a failure of one request into a
response to that request, because the SDK would otherwise end all others with it.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx2
import orjson

from tabhub.errors import LoginRequired, TabhubError
from tabhub.upstream.transport.address_guard import AddressGuard
from tabhub.wire import urls as addresses

NOT_SENT = -32017
"""In answers made here: the request did not leave."""
LOGIN = -32019
"""The person has to log in first."""
LOST = -32018
"""The request left, and its answer did not come."""
_KNOWN_FOR = 30.0
_TIMEOUT = httpx2.Timeout(30.0, read=None)
_LIMITS = httpx2.Limits(max_connections=100, max_keepalive_connections=20, keepalive_expiry=60.0)


@dataclass(slots=True)
class LastRefusal:
    """The last unsuccessful response, for error messages."""

    status: int = 0
    content_type: str = ""


@dataclass(frozen=True, slots=True)
class RequestTemplate:
    """Where requests to the server go, and the headers they share."""

    host: str
    port: int
    secure: bool
    target: str
    headers: tuple[tuple[str, str], ...]

    def head(self) -> bytes:
        """The request head after the method, up to the request's own headers."""
        lines = "".join(f"{name}: {value}\r\n" for name, value in self.headers)
        return f" {self.target} HTTP/1.1\r\n{lines}".encode("latin-1")


_OWN = ("accept-encoding", "connection", "content-length", "last-event-id", "traceparent", "tracestate")
"""Headers that belong to one request, or to the way it was sent; those of MCP the session gives for each message."""
_SHARED = "mcp-session-id"
_ACCEPT = "application/json, text/event-stream"


def _request_template(request: httpx2.Request) -> RequestTemplate | None:
    """The template of a request in an established session; None for others, such as those of a login."""
    headers, url = request.headers, request.url
    if request.method != "POST" or "mcp-protocol-version" not in headers or headers.get("accept") != _ACCEPT:
        return None
    shared = tuple(
        (name, value)
        for name, value in headers.items()
        if name not in _OWN and (name == _SHARED or not name.startswith("mcp-"))
    )
    secure = url.scheme == "https"
    target = url.raw_path.decode("ascii")
    return RequestTemplate(url.host, url.port or (443 if secure else 80), secure, target, shared)


class ResponseTooLarge(httpx2.StreamError):
    """The response is larger than allowed, or broke off."""


class _Bounded(httpx2.AsyncByteStream):
    """A body of limited size; an event stream is limited per event, in the SDK."""

    def __init__(self, inner: httpx2.AsyncByteStream, most: int | None) -> None:
        self._inner = inner
        self._most = most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        try:
            async for chunk in self._inner:
                size += len(chunk)
                if self._most is not None and size > self._most:
                    raise ResponseTooLarge(f"the answer is larger than {self._most} bytes")
                yield chunk
        except httpx2.TransportError as error:
            if self._most is None:
                raise  # the SDK resumes a broken event stream
            raise ResponseTooLarge(f"the answer broke off: {type(error).__name__}") from None

    async def aclose(self) -> None:
        await self._inner.aclose()


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Requests to checked addresses."""

    def __init__(self, guard: AddressGuard, context: ssl.SSLContext, largest: int, url: str) -> None:
        """`url` is the server's, as the person entered it."""
        self._guard = guard
        self._local = addresses.names_this_machine(httpx2.URL(url).host)
        self._largest = largest
        self.context = context
        self._inner: dict[str, httpx2.AsyncHTTPTransport] = {}
        """By host: two hosts on one address must not share a connection whose certificate was held against one."""
        self._known: dict[tuple[str, int], tuple[float, list[str]]] = {}
        self.last_refusal = LastRefusal()
        self.template: RequestTemplate | None = None
        """What the last request of the session looked like that the server took."""
        self.session_expired = False
        """Whether the server has answered that it no longer knows the session."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            response = await self._send(request)
        except TabhubError as error:
            return _failed(request, error.text(), NOT_SENT)
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            return _failed(request, f"no connection to {request.url.host}: {error or type(error).__name__}", NOT_SENT)
        except httpx2.TransportError as error:
            return _failed(request, f"the connection broke: {error or type(error).__name__}", LOST)
        if response.status_code == 404 and "mcp-session-id" in request.headers:
            self.session_expired = True
        kind = response.headers.get("content-type", "")
        other = request.method == "POST" and response.status_code != 202 and not kind.startswith(_CONTENT_TYPES)
        if response.status_code >= 300 or other:
            self.last_refusal = LastRefusal(response.status_code, kind[:100])
        elif (template := _request_template(request)) is not None and template != self.template:
            self.template = template
        endless = kind.startswith("text/event-stream")
        assert isinstance(response.stream, httpx2.AsyncByteStream)  # noqa: S101 - the async transport's promise
        response.stream = _Bounded(response.stream, None if endless else self._largest)
        return response

    async def _send(self, request: httpx2.Request) -> httpx2.Response:
        url = request.url
        if url.scheme not in ("http", "https"):
            raise TabhubError(f"An address with {url.scheme}: is not reached.")
        host = url.host
        inner = self._inner.get(host)
        if inner is None:
            inner = httpx2.AsyncHTTPTransport(verify=self.context, trust_env=False, limits=_LIMITS)
            self._inner[host] = inner
        addresses = await self.addresses(host, url.port or (443 if url.scheme == "https" else 80))
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

    async def addresses(self, host: str, port: int) -> list[str]:
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


_CONTENT_TYPES = ("application/json", "text/event-stream")


def _failed(request: httpx2.Request, message: str, code: int) -> httpx2.Response:
    body = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}}
    return httpx2.Response(
        502, headers={"content-type": "application/json"}, content=orjson.dumps(body), request=request
    )


def make_context() -> ssl.SSLContext:
    """The TLS context of all servers; loading the certificates is slow, so call it in a thread."""
    return ssl.create_default_context()


class _Client(httpx2.AsyncClient):
    """A client that turns a required login into an error response for one request of a session."""

    def __init__(self, transport: GuardedTransport, **options: Any) -> None:
        super().__init__(transport=transport, **options)
        self._guarded = transport

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        try:
            return await super().send(request, **options)
        except LoginRequired as error:
            if self._guarded.template is None:
                raise  # there is no session without it
            return _failed(request, error.message, LOGIN)


def make_client(
    transport: GuardedTransport, headers: dict[str, str], auth: httpx2.Auth | None = None
) -> httpx2.AsyncClient:
    return _Client(transport, headers=headers, timeout=_TIMEOUT, auth=auth, trust_env=False)
