"""The running hub as the agent's toolbox: MCP (2025-11-25) over HTTP, many calls at once.

Owns the agent's session with the hub and the questions the hub puts to the person on the way. A call that is given up
is cancelled at the hub; a question that was answered elsewhere is taken back. It prints nothing and knows no model.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any

from tabhub import __version__
from tabhub.agent.http import Answer, Patience, exchange
from tabhub.agent.prompt import EXTERNAL, offer
from tabhub.agent.turns import Offer
from tabhub.core.tools import BROWSER, Source, Tool
from tabhub.errors import HttpFailed, HubError, HubUnreachable, SetupError, TabhubError

_VERSION = "2025-11-25"
_NO_SUCH_METHOD = -32601
_GONE = 404
_PATIENCE = Patience(silence=600.0, most=64 * 1024 * 1024)

Ask = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]
"""Put the params of an elicitation to the person; gives its result."""


class HubTools:
    """One MCP session with the hub."""

    def __init__(self, address: str, token: Callable[[], str | None], name: str, ask: Ask | None = None) -> None:
        self._address = address
        """Host and port."""
        self._token = token
        self._name = name
        self._ask = ask
        self._asking = asyncio.Lock()
        self._ids = itertools.count(1)
        self._session: str | None = None
        self._tools: dict[str, tuple[dict[str, Any], Tool]] = {}

    @property
    def session(self) -> str | None:
        """The id of the session, while there is one."""
        return self._session

    async def open(self) -> None:
        """Shake hands; with someone to ask, the hub learns that."""
        self._session = None
        params = {
            "protocolVersion": _VERSION,
            "capabilities": {"elicitation": {"form": {}}} if self._ask else {},
            "clientInfo": {"name": self._name, "version": __version__},
        }
        await self._request("initialize", params)
        await self._post({"jsonrpc": "2.0", "method": "notifications/initialized"})

    async def close(self) -> None:
        """End the session; that the hub has gone already is no matter."""
        if self._session is not None:
            with contextlib.suppress(TabhubError):
                async with self._exchange("DELETE", None):
                    self._session = None

    async def offers(self) -> Sequence[Offer]:
        """All tools there are now."""
        offers: list[Offer] = []
        kept: dict[str, tuple[dict[str, Any], Tool]] = {}
        cursor: str | None = None
        while True:
            page = await self._request("tools/list", {"cursor": cursor} if cursor else {})
            for listing in page.get("tools", []):
                known = self._tools.get(str(listing.get("name")))
                tool = known[1] if known and known[0] == listing else _tool(listing)
                kept[tool.name] = (listing, tool)
                offers.append(offer(tool))
            cursor = page.get("nextCursor")
            if not isinstance(cursor, str):
                self._tools = kept
                return offers

    async def call(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Run a tool and give its result, also one that says `isError`."""
        return await self._request("tools/call", {"name": name, "arguments": dict(arguments)})

    async def _request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        try:
            return await self._once(method, params)
        except _SessionGone:  # it was idle for long, or the hub was started anew: nothing was run
            await self.open()
            return await self._once(method, params)

    async def _once(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        ident = next(self._ids)
        message = {"jsonrpc": "2.0", "id": ident, "method": method, "params": params}
        questions: list[asyncio.Task[None]] = []
        try:
            async with self._exchange("POST", message) as answer:
                self._session = answer.headers.get("mcp-session-id") or self._session
                async for said in _messages(answer):
                    if said.get("id") == ident and "method" not in said:
                        return _result(said)
                    if "method" in said and "id" in said:  # notifications need nothing
                        questions.append(asyncio.create_task(self._asked(said)))
        except asyncio.CancelledError:
            await asyncio.shield(asyncio.ensure_future(self._cancel(ident)))
            raise
        finally:
            for question in questions:
                question.cancel()
            await asyncio.gather(*questions, return_exceptions=True)
        raise SetupError(f"The hub gave no answer to {method}.", hint="Look at `tabhub status` and `tabhub logs`.")

    async def _cancel(self, ident: int) -> None:
        params = {"requestId": ident, "reason": "the person stopped the agent"}
        with contextlib.suppress(TabhubError):  # the hub has gone: then nothing runs there either
            await self._post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})

    async def _asked(self, message: dict[str, Any]) -> None:
        """The hub asks something while it works on a call."""
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        params = message.get("params")
        if message["method"] == "elicitation/create" and self._ask and isinstance(params, dict):
            async with self._asking:  # one question at a time
                answer["result"] = await self._ask(params)
        else:
            answer["error"] = {"code": _NO_SUCH_METHOD, "message": f"Method not found: {message['method']}"}
        await self._post(answer)

    async def _post(self, message: dict[str, Any]) -> None:
        async with self._exchange("POST", message):
            return

    @contextlib.asynccontextmanager
    async def _exchange(self, method: str, message: dict[str, Any] | None) -> AsyncIterator[Answer]:
        headers = {
            "Authorization": f"Bearer {self._token()}",
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
            "MCP-Protocol-Version": _VERSION,
        }
        if self._session is not None:
            headers["Mcp-Session-Id"] = self._session
        body = None if message is None else json.dumps(message).encode()
        try:
            async with exchange(method, f"http://{self._address}/mcp", headers, body, _PATIENCE) as answer:
                if answer.status == _GONE and self._session is not None:
                    raise _SessionGone("The session has ended.")
                if answer.status >= 300:
                    raise _refused(answer.status, await answer.body())
                yield answer
        except HttpFailed as error:
            raise HubUnreachable(
                f"The hub on {self._address} does not answer: {error}.",
                hint="Start it with: tabhub start --background",
            ) from None


class _SessionGone(TabhubError):
    """The hub does not know the session any more."""


async def _messages(answer: Answer) -> AsyncIterator[dict[str, Any]]:
    """The messages of an answer: its one body, or the events of its stream as they come."""
    if not answer.headers.get("content-type", "").startswith("text/event-stream"):
        yield _message(await answer.body())
        return
    async for event in answer.events():
        if event.strip():
            yield _message(event)


def _message(data: bytes | str) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise SetupError("What answers is not a Tabhub hub.", hint="`tabhub doctor` names who holds the port.")
    return value


def _result(message: dict[str, Any]) -> dict[str, Any]:
    result, error = message.get("result"), message.get("error")
    if isinstance(result, dict):
        return result
    said = error if isinstance(error, dict) else {}
    data = said.get("data")
    hint = data.get("hint") if isinstance(data, dict) else None
    words = str(said.get("message") or "The hub answered with an error it does not explain.")
    raise HubError(words, hint=str(hint) if hint and str(hint) not in words else None)


def _refused(status: int, body: bytes) -> TabhubError:
    try:
        error = json.loads(body).get("error")
        words = str(error.get("message")) if isinstance(error, dict) else str(error)
    except (ValueError, AttributeError):
        words = "it does not say why"
    return HubError(f"The hub answered {status}: {words}", hint="`tabhub doctor` checks the set-up.")


def _tool(listing: dict[str, Any]) -> Tool:
    name, schema = str(listing.get("name")), listing.get("inputSchema")
    source = Source("upstream", name.split("__")[1]) if name.startswith(EXTERNAL) and name.count("__") > 1 else BROWSER
    return Tool(
        name,
        source,
        str(listing.get("description") or ""),
        schema if isinstance(schema, dict) else {"type": "object"},
        title=listing.get("title"),
        annotations=listing.get("annotations") or {},
    )
