"""The extension link: JSON-RPC over one WebSocket, without the WebSocket.

Owns the matching of replies to requests, the outcome of every pending command, and what the other side may send. It is
given a way to send and a way to close; it knows no socket and no tabs. Each frame goes through `feed`.

Small frames are parsed once, strictly. Of a large frame only the envelope is parsed first, and its result only if the
caller wants a value: images and long texts pass through as bytes.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import orjson

from tabhub.errors import InvalidParams, LinkLost, MethodNotFound, ParseError, TabhubError, TooLarge
from tabhub.limits import DEFAULTS, Limits
from tabhub.links.failures import failure, unusable
from tabhub.wire import strict_json as strict
from tabhub.wire.browser_commands import COMMANDS, RESULTS
from tabhub.wire.extension_link import ENVELOPE, READERS
from tabhub.wire.messages import convert

log = logging.getLogger("tabhub.link")
LARGE = 256 * 1024
# Why the hub closes a link, as WebSocket close codes.
REPLACED = 4000
WRONG_KEY = 4001
PROTOCOL_ERROR = 4002
TOO_SLOW = 4003
SHUTTING_DOWN = 4004
RECONNECT = 4006
"""The browser connects again at once."""
TOO_BIG = 1009
SILENT = 1011
_MAX_CANCELLED = 1000
_MAX_LOGGED_REPLIES = 10
_MAX_LOGGED_REFUSALS = 20
_BEGINNING = 100
_REPLY_BEGINNING = re.compile(
    rb'\s*\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*([0-9]{1,15})\s*,\s*"(?:result|error)"'
)
_PONG = b'{"jsonrpc":"2.0","method":"pong","params":{}}'

Handler = Callable[["ExtensionLink", Any], Any]
"""Called with the params of a notification or request, decoded where wire.extension_link knows the method; what it
returns, now or as a coroutine or future, is the request's result."""


@dataclass(slots=True)
class Counts:
    """Messages that were dropped or refused."""

    late: int = 0
    """Replies to a request that already has its reply, or has failed."""
    unknown: int = 0
    """Replies to a request that was never sent."""
    malformed: int = 0
    refused: int = 0
    """Requests and notifications that are unknown or invalid."""


class Pending(asyncio.Future[Any]):
    """A command under way. Cancelling it also cancels it in the browser."""

    __slots__ = ("link", "method", "number", "raw", "tab")

    def __init__(self, link: ExtensionLink, number: int, method: str, tab: int | None, raw: bool) -> None:
        super().__init__(loop=link.loop)
        self.link = link
        self.number = number
        self.method = method
        self.tab = tab
        self.raw = raw

    def cancel(self, msg: Any | None = None) -> bool:
        cancelled = super().cancel(msg)
        if cancelled:
            self.link.cancel_request(self.number)
        return cancelled


class ExtensionLink:
    """One connected extension."""

    def __init__(
        self,
        browser_id: str,
        send: Callable[[bytes], None],
        close: Callable[[int, str], None],
        limits: Limits = DEFAULTS,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self.browser_id = browser_id
        self.local = True
        """Whether the browser is on this machine, and so shows the person's own panel."""
        self.loop = loop or asyncio.get_running_loop()
        self.limits = limits
        self.handlers: dict[str, Handler] = {}
        self.counts = Counts()
        self.last_seen = self.loop.time()
        self.closed: str | None = None
        """Why the link ended, once it has."""
        self._send = send
        self._close = close
        self._last = 0
        self._pending: dict[int, Pending] = {}
        self._cancelled: set[int] = set()
        self._answering: set[asyncio.Future[Any]] = set()

    @property
    def dropped(self) -> int:
        """Replies that belong to no pending command."""
        return self.counts.late + self.counts.unknown

    @property
    def next_request_id(self) -> str:
        """The id by which the browser's notifications name the next request."""
        return str(self._last + 1)

    @property
    def pending(self) -> int:
        """Commands without a reply yet."""
        return len(self._pending)

    def request(
        self,
        method: str,
        params: dict[str, Any],
        *,
        raw: bool = False,
        encoded: bytes | None = None,
        any_method: bool = False,
    ) -> Pending:
        """Send one command; the future resolves with its result (its JSON as bytes if `raw`).

        If the parameters are already JSON, `encoded` is sent, and `params` only names the tab.
        """
        if method not in COMMANDS and not any_method:
            raise MethodNotFound(f"{method} is not a command of the browser link.")
        if self.closed is not None:
            raise LinkLost(
                f"The connection to browser {self.browser_id} has ended: {self.closed}.",
                sent=False,
                hint="It reconnects by itself while the browser runs; try again shortly.",
            )
        number = self._last + 1
        if encoded is None:
            data = orjson.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        else:
            data = b'{"jsonrpc":"2.0","id":%d,"method":"%b","params":%b}' % (number, method.encode(), encoded)
        if len(data) > self.limits.max_frame:
            raise TooLarge(
                f"The command {method} is {len(data)} bytes; the limit is {self.limits.max_frame} (limits.max_frame)."
            )
        self._last = number
        future = Pending(self, number, method, params.get("tabId"), raw)
        self._pending[number] = future
        self._send(data)
        return future

    def notify(self, method: str, params: dict[str, Any]) -> None:
        """Send one notification; does nothing once the link has ended."""
        if self.closed is None:
            self._send(orjson.dumps({"jsonrpc": "2.0", "method": method, "params": params}))

    def close(self, code: int, reason: str) -> None:
        """End the link; pending commands fail."""
        if self.closed is None:
            self._close(code, reason)
            self.connection_lost(reason)

    def connection_lost(self, reason: str) -> None:
        """Fail every pending command at once, with its outcome unknown."""
        if self.closed is not None:
            return
        self.closed = reason
        pending, self._pending = self._pending, {}
        for future in pending.values():
            if not future.done():
                future.set_exception(
                    LinkLost(
                        f"The connection to browser {self.browser_id} ended during the call: {reason}.",
                        sent=True,
                        hint="Whether it took effect is unknown; look at the tab before repeating it.",
                    )
                )

    def cancel_request(self, number: int) -> None:
        """Drop the reply of a command that was cancelled here, and have the browser stop it."""
        if self._pending.pop(number, None) is not None and self.closed is None:
            if len(self._cancelled) >= _MAX_CANCELLED:
                self._cancelled.clear()
            self._cancelled.add(number)
            self.notify("cancel", {"id": number})

    def busy(self, chrome_id: int) -> bool:
        """Whether a command is pending on a tab."""
        return any(future.tab == chrome_id for future in self._pending.values())

    def fail_tab(
        self, chrome_id: int, error: Callable[[], TabhubError], *, only: str | None = None, spare: str | None = None
    ) -> None:
        """Fail the commands pending on a tab: all, those of one method, or all but one method."""
        failed = [
            future
            for future in self._pending.values()
            if future.tab == chrome_id and (only is None or future.method == only) and future.method != spare
        ]
        for future in failed:
            del self._pending[future.number]
            if not future.done():
                future.set_exception(error())

    def feed(self, text: str | bytes) -> None:
        self.last_seen = self.loop.time()
        if self.closed is not None:
            return
        try:
            message = strict.decode(text, self.limits) if len(text) <= LARGE else self._parse_large(text)
        except ParseError as error:
            self._feed_invalid(text, error.message)
            return
        except TooLarge as error:
            self.counts.malformed += 1
            self.close(TOO_BIG, error.message)
            return
        if type(message) is not dict:
            self._refuse(None, -32600, "A message must be one JSON object.")
        elif "method" in message:
            self._incoming(message)
        else:
            self._reply(message)

    def _parse_large(self, text: str | bytes) -> Any:
        """Parse a large message; a result stays JSON (msgspec.Raw)."""
        if len(text) > self.limits.max_frame:
            raise TooLarge(f"a message is larger than {self.limits.max_frame} bytes")
        try:
            # A result passes through as bytes, so nothing later would notice invalid UTF-8.
            envelope = ENVELOPE.decode(text.decode() if isinstance(text, bytes) else text)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise ParseError(f"Not valid JSON: {error}") from None
        if envelope.method is None and envelope.error is msgspec.UNSET and envelope.result is not msgspec.UNSET:
            return {"jsonrpc": envelope.jsonrpc, "id": envelope.id, "result": envelope.result}
        return strict.decode(text, self.limits)

    def _reply(self, message: dict[str, Any]) -> None:
        number = message.get("id")
        # Only an exact whole number names a command.
        future = self._pending.pop(number, None) if type(number) is int else None
        if future is None:
            self._drop_reply(number)
        elif future.done():
            pass
        elif ("result" in message) == ("error" in message) or message.get("jsonrpc") != "2.0":
            future.set_exception(unusable(future.method, "it must have `jsonrpc` 2.0 and either a result or an error"))
        elif "error" in message:
            future.set_exception(self.refusal(future.method, message["error"]))
        elif future.raw:
            result = message["result"]
            future.set_result(bytes(result) if type(result) is msgspec.Raw else orjson.dumps(result))
        else:
            self._resolve(future, message["result"])

    def _resolve(self, future: Pending, result: Any) -> None:
        """Give the caller a value of the type that its command has."""
        try:
            if type(result) is msgspec.Raw:
                result = strict.decode(bytes(result), self.limits)
            if (kind := RESULTS.get(future.method)) is not None:
                convert("result", result, kind)
        except (ParseError, InvalidParams) as error:
            future.set_exception(unusable(future.method, error.message))
        else:
            future.set_result(result)

    def _drop_reply(self, number: Any) -> None:
        """Count a reply that belongs to no pending command."""
        if type(number) is int and number in self._cancelled:
            # Every cancelled command still gets a reply.
            self._cancelled.discard(number)
        elif type(number) is int and 0 < number <= self._last:
            self.counts.late += 1
        else:
            self.counts.unknown += 1
            if self.counts.unknown <= _MAX_LOGGED_REPLIES:  # a browser that sends many must not fill the log
                log.warning("browser %s replied to a command that was never sent: %.100r", self.browser_id, number)

    def _feed_invalid(self, text: str | bytes, why: str) -> None:
        """Handle invalid JSON. A command that it replies to fails now rather than at its deadline."""
        try:
            envelope = ENVELOPE.decode(text)
            number = envelope.id if envelope.method is None else None
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            start = text[:_BEGINNING].encode("utf-8", "replace") if isinstance(text, str) else text[:_BEGINNING]
            found = _REPLY_BEGINNING.match(start)
            number = int(found[1]) if found else None
        future = self._pending.pop(number, None) if type(number) is int else None
        if future is None:
            self._refuse(None, -32700, why)
            return
        self.counts.malformed += 1
        if not future.done():
            future.set_exception(unusable(future.method, why))

    def refusal(self, method: str, error: Any) -> TabhubError:
        return failure(method, error)

    def _incoming(self, message: dict[str, Any]) -> None:
        """Handle a request or notification of the extension."""
        number, method, params = message.get("id"), message["method"], message.get("params", {})
        is_request = "id" in message
        if is_request and type(number) not in (int, str):
            self._refuse(None, -32600, "`id` must be a string or a whole number.")
            return
        if message.get("jsonrpc") != "2.0" or type(method) is not str or "result" in message or "error" in message:
            self._refuse(number, -32600, "A request has `jsonrpc` 2.0, a `method`, and neither result nor error.")
            return
        if type(params) is not dict:
            self._refuse(number, -32602, f"{method[:100]}: `params` must be an object.")
            return
        if method == "ping":
            self._send(_PONG)
            return
        if method == "pong":
            return
        handler = self.handlers.get(method)
        if handler is None:
            self.counts.refused += 1
            if is_request:
                self._answer(number, error={"code": -32601, "message": f"Method not found: {method[:100]}"})
            return
        try:
            read = READERS.get(method)
            result = handler(self, params if read is None else read(params))
        except TabhubError as error:
            if isinstance(error, InvalidParams) and self.counts.refused < _MAX_LOGGED_REFUSALS:
                log.warning("browser %s: refused %s", self.browser_id, error.message)
            self.counts.refused += 1
            if is_request:
                self._answer(number, error=_error_reply(error))
            return
        if asyncio.iscoroutine(result):
            result = asyncio.ensure_future(result)
            self._answering.add(result)
            result.add_done_callback(self._answering.discard)
        if is_request and isinstance(result, asyncio.Future):
            result.add_done_callback(lambda done: self._answer_later(number, done))
        elif is_request:
            self._answer(number, result={} if result is None else result)

    def _answer_later(self, number: Any, done: asyncio.Future[Any]) -> None:
        if done.cancelled():
            self._answer(number, error={"code": -32010, "message": "cancelled"})
        elif (error := done.exception()) is None:
            self._answer(number, result=done.result())
        elif isinstance(error, TabhubError):
            self._answer(number, error=_error_reply(error))
        else:
            log.error("a request of browser %s failed", self.browser_id, exc_info=error)
            self._answer(number, error={"code": -32603, "message": "The hub failed to answer; see its log."})

    def _refuse(self, number: Any, code: int, message: str) -> None:
        self.counts.malformed += 1
        self._answer(number, error={"code": code, "message": message})

    def _answer(self, number: Any, **outcome: Any) -> None:
        if self.closed is None:
            self._send(orjson.dumps({"jsonrpc": "2.0", "id": number, **outcome}))


def _error_reply(error: TabhubError) -> dict[str, Any]:
    return {"code": error.code, "message": error.text(), **({"data": error.data} if error.data else {})}
