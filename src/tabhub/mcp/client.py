"""The MCP client of Tabhub's own programs (`tabhub agent`, `tabhub demo`, the panel's chat): MCP 2025-11-25 over HTTP.

Owns one session with the hub and the elicitations the hub sends on the way. A cancelled call is cancelled at the hub
too; an elicitation that was answered elsewhere is withdrawn. It prints nothing and knows no tool.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

from tabhub import __version__
from tabhub.client_errors import HttpError
from tabhub.errors import BadInput, HubError, HubUnreachable, SetupError, TabhubError
from tabhub.net.async_http import Bounds, Response, request
from tabhub.wire.sse import EventReader

_VERSION = "2025-11-25"
_METHOD_NOT_FOUND = -32601
_NOT_FOUND = 404
_BOUNDS = Bounds(silence=600.0, max_body=64 * 1024 * 1024)

Ask = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]
"""Shows an elicitation (its params) to the person and returns its result."""


class _SessionEnded(TabhubError):
    """The hub no longer knows the session."""


class McpClient:
    """One MCP session with the hub; calls may run concurrently."""

    def __init__(
        self, address: str, token: Callable[[], str | None], name: str, ask: Ask | None = None, tools: str = "all"
    ) -> None:
        """`address` is host and port, `tools` the selection of tools that is listed."""
        self._url = f"http://{address}/mcp?tools={tools}"
        self._address = address
        self._token = token
        self._name = name
        self._ask = ask
        self._asking = asyncio.Lock()
        self._ids = itertools.count(1)
        self.session: str | None = None
        """The id of the session, while there is one."""

    async def open(self) -> None:
        self.session = None
        params = {
            "protocolVersion": _VERSION,
            "capabilities": {"elicitation": {"form": {}}} if self._ask else {},
            "clientInfo": {"name": self._name, "version": __version__},
        }
        await self._request("initialize", params)
        await self._post({"jsonrpc": "2.0", "method": "notifications/initialized"})

    async def close(self) -> None:
        """End the session. A hub that is no longer there is not an error."""
        if self.session is not None:
            with contextlib.suppress(TabhubError):
                async with self._exchange("DELETE", None):
                    self.session = None

    async def list_tools(self) -> list[dict[str, Any]]:
        tools: list[dict[str, Any]] = []
        cursor: str | None = None
        while True:
            page = await self._request("tools/list", {"cursor": cursor} if cursor else {})
            tools += [tool for tool in page.get("tools", []) if isinstance(tool, dict)]
            cursor = page.get("nextCursor")
            if not isinstance(cursor, str):
                return tools

    async def call_tool(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The result of a tool, also one with `isError`."""
        return await self._request("tools/call", {"name": name, "arguments": dict(arguments)})

    async def _request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        try:
            return await self._request_once(method, params)
        except _SessionEnded:  # it was idle for too long, or the hub restarted: the request did not run
            await self.open()
            return await self._request_once(method, params)

    async def _request_once(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        request_id = next(self._ids)
        message = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
        questions: list[asyncio.Task[None]] = []
        try:
            async with self._exchange("POST", message) as response:
                self.session = response.headers.get("mcp-session-id") or self.session
                async for received in _messages(response):
                    if received.get("id") == request_id and "method" not in received:
                        return _result(received)
                    if "method" in received and "id" in received:  # notifications need no answer
                        questions.append(asyncio.create_task(self._answer_request(received)))
        except asyncio.CancelledError:
            await asyncio.shield(asyncio.ensure_future(self._cancel(request_id)))
            raise
        finally:
            for question in questions:
                question.cancel()
            await asyncio.gather(*questions, return_exceptions=True)
        raise SetupError(f"The hub did not answer {method}.", hint="Look at `tabhub status` and `tabhub logs`.")

    async def _cancel(self, request_id: int) -> None:
        params = {"requestId": request_id, "reason": "cancelled by the person"}
        with contextlib.suppress(TabhubError):  # without a hub, nothing runs there either
            await self._post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})

    async def _answer_request(self, message: dict[str, Any]) -> None:
        """Answer a request that the hub sent while it works on one of ours."""
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        params = message.get("params")
        if message["method"] == "elicitation/create" and self._ask and isinstance(params, dict):
            async with self._asking:  # one question at a time
                answer["result"] = await self._ask(params)
        else:
            answer["error"] = {"code": _METHOD_NOT_FOUND, "message": f"Method not found: {message['method']}"}
        await self._post(answer)

    async def _post(self, message: dict[str, Any]) -> None:
        async with self._exchange("POST", message):
            return

    @contextlib.asynccontextmanager
    async def _exchange(self, method: str, message: dict[str, Any] | None) -> AsyncIterator[Response]:
        headers = {
            "Authorization": f"Bearer {self._token()}",
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
            "MCP-Protocol-Version": _VERSION,
        }
        if self.session is not None:
            headers["Mcp-Session-Id"] = self.session
        body = None if message is None else json.dumps(message).encode()
        try:
            async with request(method, self._url, headers, body, _BOUNDS) as response:
                if response.status == _NOT_FOUND and self.session is not None:
                    raise _SessionEnded("The session has ended.")
                if response.status >= 300:
                    raise _refused(response.status, await response.body())
                yield response
        except HttpError as error:
            raise HubUnreachable(
                f"The hub on {self._address} does not answer: {error}.",
                hint="Start it with: tabhub start --background",
            ) from None


async def _messages(response: Response) -> AsyncIterator[dict[str, Any]]:
    """The messages of a response: its one body, or the events of its stream as they arrive."""
    if not response.headers.get("content-type", "").startswith("text/event-stream"):
        yield _message(await response.body())
        return
    reader = EventReader(_BOUNDS.max_body)
    async for chunk in response.chunks(_BOUNDS.max_body):
        try:
            events = reader.feed(chunk)
        except BadInput as error:
            raise HttpError(error.message.rstrip(".")) from None
        for event in events:
            if event.data.strip():
                yield _message(event.data)


def _message(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise SetupError(
            "The server on this port is not a Tabhub hub.", hint="`tabhub doctor` shows which program uses the port."
        )
    return value


def _result(message: dict[str, Any]) -> dict[str, Any]:
    result, error = message.get("result"), message.get("error")
    if isinstance(result, dict):
        return result
    error = error if isinstance(error, dict) else {}
    data = error.get("data")
    hint = data.get("hint") if isinstance(data, dict) else None
    text = str(error.get("message") or "The hub answered with an error and no explanation.")
    raise HubError(text, hint=str(hint) if hint and str(hint) not in text else None)


def _refused(status: int, body: bytes) -> TabhubError:
    try:
        error = json.loads(body).get("error")
        text = str(error.get("message")) if isinstance(error, dict) else str(error)
    except (ValueError, AttributeError):
        text = "no explanation"
    return HubError(f"The hub answered {status}: {text}", hint="Run `tabhub doctor` to check the setup.")
