"""One open session with an external server, over the official SDK's client.

Owns opening a session in either era of the protocol, requests whose answers are returned unchanged, and dispatching
what the server sends on its own. Which agent a question of the server belongs to is decided by active_calls.py. This
module imports the SDK; others import it late, in a thread.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import mcp_types as types
from mcp import Client
from mcp.client.session import ClientRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter, ValidationError

from tabhub import __version__
from tabhub.errors import LoginRequired, UpstreamError, UpstreamLost, UpstreamOffline
from tabhub.limits import Limits
from tabhub.upstream.active_calls import with_server_name
from tabhub.upstream.launch_plan import ConnectionPlan
from tabhub.upstream.notifications import dispatch_change, subscribe_to_changes
from tabhub.upstream.oauth import Login
from tabhub.upstream.server_connection import ServerConnection, first_cause
from tabhub.upstream.transport.address_guard import AddressGuard
from tabhub.upstream.transport.stdio import Process
from tabhub.upstream.transport.streamable_http import StreamableHttp

log = logging.getLogger("tabhub.upstream")
for _noisy in ("mcp", "client"):  # failures are logged here in one line; the SDK would add its tracebacks
    logging.getLogger(_noisy).setLevel(logging.CRITICAL)

Progress = Callable[[float, float | None, str | None], Awaitable[None]]
_RAW: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any])
_PAGES = 200
_Request = types.Request[dict[str, Any], str]


@dataclass(slots=True, eq=False)
class SdkSession:
    """An open session."""

    connection: ServerConnection
    client: Client
    transport: Process | StreamableHttp
    limits: Limits

    @property
    def session_expired(self) -> bool:
        """Whether the server no longer knows the session."""
        return isinstance(self.transport, StreamableHttp) and self.transport.session_expired

    @property
    def version(self) -> str:
        return self.client.protocol_version

    @property
    def modern(self) -> bool:
        """Whether it speaks the stateless era."""
        return self.version in MODERN_PROTOCOL_VERSIONS

    @property
    def info(self) -> dict[str, Any]:
        info = self.client.server_info
        return {} if info is None else {"name": info.name[:200], "version": info.version[:100]}

    def announces_changes(self, kind: str) -> bool:
        capability = getattr(self.client.server_capabilities, kind)
        return capability is not None and bool(capability.list_changed)

    @property
    def supports_subscriptions(self) -> bool:
        has = self.client.server_capabilities.resources
        return has is not None and bool(has.subscribe)

    @property
    def supports_completions(self) -> bool:
        return self.client.server_capabilities.completions is not None

    async def request(
        self, method: str, params: Mapping[str, Any], progress: Progress | None = None, *, background: bool = False
    ) -> dict[str, Any]:
        """Send a request and return its answer unchanged; failures are UpstreamErrors.

        A failed `background` request does not mark the connection as lost: the next call will find out.
        """
        try:
            built = _Request(method=method, params=dict(params))
            session: Any = self.client.session  # typed for the SDK's models; the answer is wanted as it came
            answer: dict[str, Any] = await session.send_request(built, _RAW, progress_callback=progress)
            return answer
        except MCPError as error:
            raise self._failure(method, error, background=background) from None
        except ValidationError as error:
            raise _invalid_answer(self.connection.server.name, error) from None

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
        if getattr(self.client.server_capabilities, method.partition("/")[0]) is None:
            return None

        def page(cursor: str | None) -> Awaitable[dict[str, Any]]:
            return self.request(method, {"cursor": cursor} if cursor else {}, background=True)

        try:
            return await _all_pages(page, key, self.limits.upstream_offers)
        except UpstreamError as error:
            if (error.data or {}).get("upstream", {}).get("code") != types.METHOD_NOT_FOUND:
                raise
            return []  # many servers have resources and no templates

    async def list_tools(self) -> list[Any]:
        """All tools, page by page, through the SDK's own method, which remembers what calls need."""
        if self.client.server_capabilities.tools is None:
            return []
        return await _all_pages(self._tools_page, "tools", 10 * self.limits.upstream_tools)

    async def _tools_page(self, cursor: str | None) -> dict[str, Any]:
        try:
            async with asyncio.timeout(self.limits.upstream_connect):
                listed = await self.client.session.list_tools(params=types.PaginatedRequestParams(cursor=cursor))
        except MCPError as error:
            raise self._failure("tools/list", error) from None
        except TimeoutError:
            raise UpstreamOffline(f"{self.connection.server.name} did not list its tools in time.") from None
        except ValidationError as error:
            raise _invalid_answer(self.connection.server.name, error) from None
        return listed.model_dump(by_alias=True, mode="json", exclude_none=True)

    def _failure(self, method: str, error: MCPError, *, background: bool = False) -> UpstreamError:
        lost, name = False, self.connection.server.name
        if isinstance(error.data, UpstreamError):  # made by the transport
            failure: UpstreamError = error.data
        else:
            data = {"upstream": {"server": name, "code": error.code}}
            if lost := self.transport.ended and error.code == types.CONNECTION_CLOSED:
                failure = UpstreamLost(f"{name} ended the connection before it answered.", data=data)
            else:
                failure = UpstreamError(f"{name} answered {method} with an error: {error.message[:2000]}", data=data)
        if background:
            return failure
        if lost or (isinstance(failure, UpstreamOffline) and not isinstance(failure, LoginRequired)):
            self.connection.lost()
        elif isinstance(failure, UpstreamLost):
            self.connection.list_changed("tools")  # listing again shows whether the server is still there
        return failure

    async def subscribe(self) -> None:
        """Receive changes in the stateless era. Returns when the server refuses."""
        await subscribe_to_changes(self.client, self.connection)


async def _all_pages(page: Callable[[str | None], Awaitable[dict[str, Any]]], key: str, enough: int) -> list[Any]:
    """The entries of all pages, or of as many as bring more than enough."""
    found: list[Any] = []
    cursor: str | None = None
    for _ in range(_PAGES):
        answer = await page(cursor)
        found += answer[key]
        cursor = answer.get("nextCursor")
        if not cursor or len(found) > enough:
            break
    return found


@asynccontextmanager
async def open_session(
    plan: ConnectionPlan, connection: ServerConnection, guard: AddressGuard, limits: Limits, login: Login | None
) -> AsyncIterator[SdkSession]:
    """Connect, negotiate, and close on leaving. Failures say what the server did instead of answering."""
    transport: Process | StreamableHttp = (
        Process(plan, limits.upstream_answer, connection.lost)
        if plan.url is None
        else StreamableHttp(plan, guard, limits.upstream_answer, login)
    )

    async def handle_message(message: Any) -> None:
        dispatch_change(message, connection)

    async def logged(params: types.LoggingMessageNotificationParams) -> None:
        connection.calls.log(params.level, params.logger or plan.name, params.data)

    async def asked(context: ClientRequestContext, params: types.ElicitRequestParams) -> Any:
        return await _asked(connection, "elicitation/create", params, types.ElicitResult)

    async def sampled(context: ClientRequestContext, params: types.CreateMessageRequestParams) -> Any:
        return await _asked(connection, "sampling/createMessage", params, types.CreateMessageResult)

    client = Client(
        transport.streams(),
        mode="legacy" if connection.legacy else "auto",
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
            yield SdkSession(connection, client, transport, limits)
    except Exception as error:
        cause = first_cause(error)
        if not isinstance(cause, MCPError):
            raise
        raise _no_session(plan.name, cause, transport) from None


async def _asked(connection: ServerConnection, method: str, params: Any, answer: type[Any]) -> Any:
    """The answer of the agent whose call a question of the server belongs to."""
    question = params.model_dump(by_alias=True, mode="json", exclude_none=True)
    try:
        given = await connection.calls.ask(method, with_server_name(connection.server.name, method, question))
        return answer.model_validate(given, by_name=False)
    except ValidationError:
        return types.ErrorData(code=types.INTERNAL_ERROR, message="The answer of the agent's client cannot be used.")
    except UpstreamError as error:
        return types.ErrorData(code=types.INVALID_REQUEST, message=error.text())


def _invalid_answer(name: str, error: ValidationError) -> UpstreamError:
    problem = error.errors(include_input=False, include_url=False)[0]
    where = ".".join(str(step) for step in problem["loc"])
    return UpstreamError(
        f"{name} sent an answer that is not valid MCP: {where[:200]}: {problem['msg'][:200]}.",
        hint="The server may have done the work; only its answer cannot be used.",
    )


def _no_session(name: str, error: MCPError, transport: Process | StreamableHttp) -> UpstreamError:
    """The error that says what the server did instead of opening a session."""
    if transport.failure is not None:
        return transport.failure
    failure = error.data
    if isinstance(failure, UpstreamError):
        return failure
    written = f" It wrote: {tail}" if isinstance(transport, Process) and (tail := transport.stderr_tail()) else ""
    return UpstreamOffline(f"{name} does not open an MCP session: {error.message[:300]}.{written}")
