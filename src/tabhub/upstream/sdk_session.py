"""One open session with an external server, over the official SDK's client.

Owns opening a session in either era of the protocol, requests whose answers are returned unchanged, and dispatching
what the server sends on its own. Which agent a question of the server belongs to is decided by the hooks. This module
imports the SDK; others import it late, in a thread.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
import mcp.client.auth  # noqa: F401 - loaded here, in the thread, for those who log in
import mcp_types as types
from mcp import Client
from mcp.client.session import ClientRequestContext
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter, ValidationError

from tabhub import __version__
from tabhub.core.resources import SUBSCRIBE, UNSUBSCRIBE
from tabhub.errors import LoginRequired, UpstreamError, UpstreamLost, UpstreamOffline
from tabhub.limits import Limits
from tabhub.upstream.elicitation import with_server_name
from tabhub.upstream.failures import first_cause
from tabhub.upstream.launch_plan import ConnectionPlan
from tabhub.upstream.notifications import dispatch_change, subscribe_to_changes
from tabhub.upstream.subscriptions import ServerSubscriptions
from tabhub.upstream.transport.address_guard import AddressGuard
from tabhub.upstream.transport.guarded_http import (
    LOGIN,
    LOST,
    NOT_SENT,
    GuardedTransport,
    closing_exchanges,
    make_client,
)
from tabhub.upstream.transport.stdio import Process

log = logging.getLogger("tabhub.upstream")
for _noisy in ("mcp", "client"):  # failures are logged here in one line; the SDK would add its tracebacks
    logging.getLogger(_noisy).setLevel(logging.CRITICAL)

Progress = Callable[[float, float | None, str | None], Awaitable[None]]
_RAW: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any])
_PAGES = 200
_REQUESTS: Mapping[str, type[Any]] = {
    "tools/call": types.CallToolRequest,
    "resources/read": types.ReadResourceRequest,
    SUBSCRIBE: types.SubscribeRequest,
    UNSUBSCRIBE: types.UnsubscribeRequest,
    "prompts/get": types.GetPromptRequest,
    "completion/complete": types.CompleteRequest,
    "resources/list": types.ListResourcesRequest,
    "resources/templates/list": types.ListResourceTemplatesRequest,
    "prompts/list": types.ListPromptsRequest,
}
_CLOSED = "Connection closed"
_STREAM_ENDED = "SSE stream "
"""How messages of the SDK itself begin that have its code for a closed connection, which many servers use for errors of
their own."""
_NOT_PARSED = "Failed to parse "
TLS = ssl.create_default_context()
"""Made with the import, which is in a thread: loading the certificates is slow."""


@dataclass(frozen=True, slots=True)
class Hooks:
    """Callbacks of a session."""

    changed: Callable[[str], None]
    """A list has changed: tools, resources or prompts."""
    updated: Callable[[str], None]
    """A resource has changed."""
    log: Callable[[str, str, Any], None]
    ask: Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]
    """Ask the agent whose call the server asks about; raises if it cannot be asked."""
    lost: Callable[[], None]


class SdkSession:
    """An open session."""

    def __init__(
        self, name: str, client: Client, limits: Limits, transport: GuardedTransport | None, hooks: Hooks
    ) -> None:
        self._name = name
        self._client = client
        self._limits = limits
        self._transport = transport
        self._hooks = hooks
        self.session_expired = False

    @property
    def version(self) -> str:
        return self._client.protocol_version

    @property
    def modern(self) -> bool:
        """Whether it speaks the stateless era."""
        return self.version in MODERN_PROTOCOL_VERSIONS

    @property
    def info(self) -> dict[str, Any]:
        info = self._client.server_info
        return {} if info is None else {"name": info.name[:200], "version": info.version[:100]}

    def announces_changes(self, kind: str) -> bool:
        """Whether the server sends a notification when a list changes."""
        capability = getattr(self._client.server_capabilities, kind)
        return capability is not None and bool(capability.list_changed)

    @property
    def supports_subscriptions(self) -> bool:
        has = self._client.server_capabilities.resources
        return has is not None and bool(has.subscribe)

    @property
    def supports_completions(self) -> bool:
        return self._client.server_capabilities.completions is not None

    async def request(
        self, method: str, params: Mapping[str, Any], progress: Progress | None = None, *, background: bool = False
    ) -> dict[str, Any]:
        """Send a request and return its answer unchanged; failures are UpstreamErrors.

        A failed `background` request does not mark the connection as lost: the next call will find out.
        """
        try:
            built = _REQUESTS[method].model_validate({"method": method, "params": params}, by_name=False)
            session: Any = self._client.session  # typed for the SDK's models; the answer is wanted as it came
            with closing_exchanges():
                answer: dict[str, Any] = await session.send_request(built, _RAW, progress_callback=progress)
            return answer
        except MCPError as error:
            raise self._failure(method, error, background=background) from None
        except ValidationError as error:
            problem = error.errors(include_input=False, include_url=False)[0]
            where = ".".join(str(step) for step in problem["loc"])
            raise UpstreamError(
                f"{self._name} sent an answer that is not valid MCP: {where[:200]}: {problem['msg'][:200]}.",
                hint="The server may have done the work; only its answer cannot be used.",
            ) from None

    async def call(self, params: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
        """Call a tool. If its listing is out of date, list the tools again and retry once."""
        try:
            return await self.request("tools/call", params, progress)
        except UpstreamError as error:
            if not self.modern or (error.data or {}).get("upstream", {}).get("code") != types.HEADER_MISMATCH:
                raise
        await self.list_tools()
        return await self.request("tools/call", params, progress)

    async def list_all(self, method: str, key: str) -> list[Any] | None:
        """All entries of a list other than tools, page by page; None if the server lacks the capability."""
        if getattr(self._client.server_capabilities, method.partition("/")[0]) is None:
            return None
        found: list[Any] = []
        cursor: str | None = None
        for _ in range(_PAGES):
            try:
                page = await self.request(method, {"cursor": cursor} if cursor else {}, background=True)
            except UpstreamError as error:
                if (error.data or {}).get("upstream", {}).get("code") == types.METHOD_NOT_FOUND:
                    return found  # many servers have resources and no templates
                raise
            found += page[key]
            cursor = page.get("nextCursor")
            if not cursor or len(found) > self._limits.upstream_offers:
                break
        return found

    async def list_tools(self) -> list[Any]:
        """All tools, page by page, through the SDK's own method, which remembers what calls need."""
        if self._client.server_capabilities.tools is None:
            return []
        found: list[Any] = []
        cursor: str | None = None
        for _ in range(_PAGES):
            raw = await self._tools_page(types.PaginatedRequestParams(cursor=cursor))
            found += raw["tools"]
            cursor = raw.get("nextCursor")
            if not cursor or len(found) > 10 * self._limits.upstream_tools:
                break
        return found

    async def _tools_page(self, page: types.PaginatedRequestParams) -> dict[str, Any]:
        try:
            with closing_exchanges():
                async with asyncio.timeout(self._limits.upstream_connect):
                    listed = await self._client.session.list_tools(params=page)
        except MCPError as error:
            raise self._failure("tools/list", error) from None
        except TimeoutError:
            raise UpstreamOffline(f"{self._name} did not list its tools in time.") from None
        except ValidationError as error:
            problem = error.errors(include_input=False, include_url=False)[0]
            raise UpstreamError(f"{self._name} sent an invalid list of tools: {problem['msg']}") from None
        return listed.model_dump(by_alias=True, mode="json", exclude_none=True)

    def _failure(self, method: str, error: MCPError, *, background: bool = False) -> UpstreamError:
        code, message = error.code, error.message[:2000]
        data = {"upstream": {"server": self._name, "code": code}}
        if code == NOT_SENT:
            self._connection_lost(background)
            return UpstreamOffline(f"{self._name} cannot be reached: {message}", data=data)
        if code == LOGIN:
            return LoginRequired(
                f"{self._name} requires the person to log in for this.",
                hint=f"They ask for it with `tabhub mcp refresh {self._name}`, or in the panel; then call again.",
                data=data,
            )
        closed = code == types.CONNECTION_CLOSED
        if code == LOST or (closed and message.startswith(_STREAM_ENDED)):
            if not background:
                self._hooks.changed("tools")  # listing again shows whether the server is still there
            return UpstreamLost(f"{self._name} did not answer {method}: {message}.", data=data)
        if self._transport is not None and self._transport.session_expired:
            self.session_expired = self.session_expired or not background
            self._connection_lost(background)
            return UpstreamOffline(f"{self._name} no longer knows the session; a new one is opened.", data=data)
        if closed and message.startswith(_CLOSED):
            self._connection_lost(background)
            return UpstreamLost(f"{self._name} ended the connection before it answered.", data=data)
        if code == types.REQUEST_TIMEOUT and message == f"Request {method!r} timed out":
            return UpstreamLost(f"{self._name} did not answer {method} in time.", data=data)
        if self._transport is not None and message == "Server returned an error response":
            message = f"it answered with status {self._transport.last_refusal.status}"
        if code == types.PARSE_ERROR and message.startswith(_NOT_PARSED):
            message = "its answer is no JSON-RPC message"
        return UpstreamError(f"{self._name} answered {method} with an error: {message}", data=data)

    def _connection_lost(self, background: bool) -> None:
        if not background:
            self._hooks.lost()

    async def subscribe(self, subscriptions: ServerSubscriptions) -> None:
        """Receive changes in the stateless era. Returns when the server refuses."""
        await subscribe_to_changes(self._name, self._client, self._hooks, subscriptions)


@asynccontextmanager
async def open_session(
    plan: ConnectionPlan,
    hooks: Hooks,
    guard: AddressGuard,
    limits: Limits,
    *,
    legacy: bool,
    auth: httpx2.Auth | None = None,
) -> AsyncIterator[SdkSession]:
    """Connect, negotiate, and close on leaving. Failures say what the server did instead of answering."""
    process = Process(plan, limits.upstream_answer) if plan.url is None else None
    transport = GuardedTransport(guard, TLS, limits.upstream_answer, plan.url) if plan.url is not None else None

    async def handle_message(message: Any) -> None:
        dispatch_change(message, hooks)

    async def logged(params: types.LoggingMessageNotificationParams) -> None:
        hooks.log(params.level, params.logger or plan.name, params.data)

    async def asked(context: ClientRequestContext, params: types.ElicitRequestParams) -> Any:
        return await _asked(hooks, plan.name, "elicitation/create", params, types.ElicitResult)

    async def sampled(context: ClientRequestContext, params: types.CreateMessageRequestParams) -> Any:
        return await _asked(hooks, plan.name, "sampling/createMessage", params, types.CreateMessageResult)

    http = make_client(transport, dict(plan.headers), auth) if transport is not None else None
    if process is not None:
        streams: Any = process.streams()
    else:
        streams = streamable_http_client(plan.url or "", http_client=http, max_sse_event_size=limits.upstream_answer)
    client = Client(
        streams,
        mode="legacy" if legacy else "auto",
        cache=None,
        client_info=types.Implementation(name="tabhub", title="Tabhub", version=__version__),
        message_handler=handle_message,
        logging_callback=logged,
        log_level="info",
        elicitation_callback=asked,
        sampling_callback=sampled,
    )
    try:
        async with client:
            session = SdkSession(plan.name, client, limits, transport, hooks)
            watch = asyncio.ensure_future(_watch(process, hooks)) if process is not None else None
            try:
                yield session
            finally:
                if watch is not None:
                    watch.cancel()
    except Exception as error:
        cause = first_cause(error)
        if not isinstance(cause, MCPError):
            raise
        raise _no_connection(plan, cause, process, transport) from None
    finally:
        if http is not None:
            await http.aclose()


async def _watch(process: Process, hooks: Hooks) -> None:
    await process.ended.wait()
    hooks.lost()


async def _asked(hooks: Hooks, server: str, method: str, params: Any, answer: type[Any]) -> Any:
    try:
        marked = with_server_name(server, method, params.model_dump(by_alias=True, mode="json", exclude_none=True))
        given = await hooks.ask(method, marked)
        return answer.model_validate(given, by_name=False)
    except ValidationError:
        return types.ErrorData(code=types.INTERNAL_ERROR, message="The answer of the agent's client cannot be used.")
    except UpstreamError as error:
        return types.ErrorData(code=types.INVALID_REQUEST, message=error.text())


def _no_connection(
    plan: ConnectionPlan, error: MCPError, process: Process | None, transport: GuardedTransport | None
) -> UpstreamOffline:
    """The error that says what the server did instead of opening a session."""
    if process is not None:
        if process.ended.is_set():
            return UpstreamOffline(f"{plan.name} does not start. {process.exit_reason()}")
        written = f" It wrote: {tail}" if (tail := process.stderr_tail()) else ""
        return UpstreamOffline(f"{plan.name} started and does not speak MCP: {error.message[:300]}.{written}")
    refusal = transport.last_refusal if transport is not None else None
    if error.code == NOT_SENT or refusal is None or refusal.status == 0:
        return UpstreamOffline(f"{plan.name} cannot be reached: {error.message[:500]}")
    if refusal.status in (401, 403):
        return UpstreamOffline(
            f"{plan.name} refuses the hub with status {refusal.status}.",
            hint="Check the required headers, or log in: tabhub mcp refresh " + plan.name,
        )
    what = f"status {refusal.status}" + (f" and {refusal.content_type}" if refusal.content_type else "")
    if 300 <= refusal.status < 400:
        return UpstreamOffline(f"{plan.name} redirects elsewhere, which is not followed: {error.message[:300]}")
    return UpstreamOffline(
        f"{plan.name} does not speak Streamable HTTP: it answered a POST of JSON-RPC 2.0 with {what}.",
        hint="Check the URL; it often ends in /mcp. The old SSE transport alone is not supported.",
    )
