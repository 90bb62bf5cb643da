"""The extension's link: JSON-RPC over one WebSocket, without the WebSocket.

Owns the matching of replies to requests, the fate of every pending command, and what the other side may send. It is
given a way to send and a way to close; it knows no socket and no tab picture. Each frame goes through `feed`.

Small frames are parsed once, strictly. A large frame is cut into its envelope first, and its result is parsed only if
the caller wants a value: images and long texts pass through as bytes.
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

from tabhub.errors import LinkLost, MethodNotFound, ParseError, TabhubError, TooLarge
from tabhub.limits import DEFAULTS, Limits
from tabhub.links.failures import failure, unusable
from tabhub.links.link import COMMANDS
from tabhub.wire import strict_json as strict

log = logging.getLogger("tabhub.link")
LARGE = 256 * 1024
REPLACED, WRONG_SECRET, PROTOCOL_ERROR, TOO_SLOW, SHUTTING_DOWN, TOO_BIG, SILENT = (
    4000,
    4001,
    4002,
    4003,
    4004,
    1009,
    1011,
)
"""Why the hub closes a link, as WebSocket close codes."""
_GIVEN_UP = 1000
_OPENING = 100
_ANSWERS = re.compile(rb'\s*\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*([0-9]{1,15})\s*,\s*"(?:result|error)"')
_PONG = b'{"jsonrpc":"2.0","method":"pong","params":{}}'

Handler = Callable[["ExtensionLink", dict[str, Any]], Any]
"""Takes a notification's or request's params; what it returns is the request's result."""


class Envelope(msgspec.Struct):
    """The outside of a message, its result still as bytes."""

    jsonrpc: str = ""
    id: Any = None
    method: str | None = None
    result: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    error: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


_ENVELOPE = msgspec.json.Decoder(Envelope)


@dataclass(slots=True)
class Counts:
    """What came in and was not used, or was refused."""

    late: int = 0
    """Replies to a request that has its answer, or failed, before."""
    unknown: int = 0
    """Replies to a request never made here."""
    malformed: int = 0
    refused: int = 0
    """Requests and notifications that are not on the list."""

    @property
    def total(self) -> int:
        """All replies that reached nobody."""
        return self.late + self.unknown


class Pending(asyncio.Future[Any]):
    """A command under way. Cancelling it tells the browser; overriding `cancel` costs the usual case nothing."""

    __slots__ = ("link", "method", "number", "raw", "tab")

    def __init__(self, link: ExtensionLink, number: int, method: str, tab: int | None, raw: bool) -> None:
        super().__init__(loop=link.loop)
        self.link = link
        self.number = number
        self.method = method
        self.tab = tab
        self.raw = raw

    def cancel(self, msg: Any | None = None) -> bool:
        """Give the command up; the browser is told to stop it."""
        cancelled = super().cancel(msg)
        if cancelled:
            self.link.forget(self.number)
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
        self.name = "browser"
        self.local = True
        """Whether the browser is on this machine, and so the person's own panel."""
        self.loop = loop or asyncio.get_running_loop()
        self.limits = limits
        self.handlers: dict[str, Handler] = {}
        self.counts = Counts()
        self.connected_at = self.last_seen = self.loop.time()
        self.closed: str | None = None
        """Why the link ended, once it has."""
        self._send = send
        self._close = close
        self._last = 0
        self._pending: dict[int, Pending] = {}
        self._given_up: set[int] = set()

    @property
    def dropped(self) -> int:
        """Replies that were late, doubled or nobody's."""
        return self.counts.total

    @property
    def upcoming(self) -> str:
        """What names the next request in what the browser tells of it."""
        return str(self._last + 1)

    @property
    def pending(self) -> int:
        """Commands without an answer yet."""
        return len(self._pending)

    def request(
        self, method: str, params: dict[str, Any], *, raw: bool = False, encoded: bytes | None = None
    ) -> asyncio.Future[Any]:
        """Send one command; the future resolves with its result (its JSON as bytes if `raw`).

        Where the parameters are there as JSON already, `encoded` is sent, and `params` says only which tab is meant.
        """
        if method not in COMMANDS:
            raise MethodNotFound(f"{method} is not a command of the browser link.")
        return self.issue(method, params, raw, encoded)

    def issue(self, method: str, params: dict[str, Any], raw: bool = False, encoded: bytes | None = None) -> Pending:
        """Send one request, whatever its method."""
        if self.closed is not None:
            raise LinkLost(
                f"The connection to browser {self.browser_id} has ended: {self.closed}.",
                sent=False,
                hint="It reconnects by itself when the browser runs; try again shortly.",
            )
        number = self._last + 1
        if encoded is None:
            data = orjson.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        else:
            data = b'{"jsonrpc":"2.0","id":%d,"method":"%b","params":%b}' % (number, method.encode(), encoded)
        if len(data) > self.limits.max_frame:
            raise TooLarge(f"The command {method} is {len(data)} bytes; a browser takes {self.limits.max_frame}.")
        self._last = number
        future = Pending(self, number, method, params.get("tabId"), raw)
        self._pending[number] = future
        self._send(data)
        return future

    def notify(self, method: str, params: dict[str, Any]) -> None:
        """Send one notification; after the end of the link there is nobody to tell."""
        if self.closed is None:
            self._send(orjson.dumps({"jsonrpc": "2.0", "method": method, "params": params}))

    def close(self, code: int, reason: str) -> None:
        """End the link; what is pending fails."""
        if self.closed is None:
            self._close(code, reason)
            self.lost(reason)

    def lost(self, reason: str) -> None:
        """The connection is gone: every pending command fails at once, its outcome unknown."""
        if self.closed is not None:
            return
        self.closed = reason
        pending, self._pending = self._pending, {}
        for future in pending.values():
            if not future.done():
                future.set_exception(
                    LinkLost(
                        f"The connection to browser {self.browser_id} ended under the call: {reason}.",
                        sent=True,
                        hint="Whether it took effect is not known; look at the tab before repeating it.",
                    )
                )

    def forget(self, number: int) -> None:
        """A command was cancelled here: a reply is no longer wanted, and the browser should stop."""
        if self._pending.pop(number, None) is not None and self.closed is None:
            if len(self._given_up) >= _GIVEN_UP:
                self._given_up.clear()
            self._given_up.add(number)
            self.notify("cancel", {"id": number})

    def busy(self, chrome_id: int) -> bool:
        """Whether a command is pending on a tab."""
        return any(future.tab == chrome_id for future in self._pending.values())

    def fail_tab(
        self, chrome_id: int, error: Callable[[], TabhubError], *, only: str | None = None, spare: str | None = None
    ) -> int:
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
        return len(failed)

    def feed(self, text: str | bytes) -> None:
        """Take one frame."""
        self.last_seen = self.loop.time()
        if self.closed is not None:
            return
        if len(text) > LARGE:
            self._feed_large(text)
            return
        try:
            message = strict.decode(text, self.limits)
        except ParseError as error:
            self._feed_bad(text, error)
            return
        if type(message) is not dict:
            self._refuse(None, -32600, "A message is one JSON object.")
        elif "method" in message:
            self._incoming(message)
        else:
            self._reply(message)

    def _reply(self, message: dict[str, Any]) -> None:
        future = self._take(message.get("id"))
        if future is None:
            return
        has_result = "result" in message
        if has_result == ("error" in message) or message.get("jsonrpc") != "2.0":
            future.set_exception(unusable(future.method, "it needs `jsonrpc` 2.0 and either a result or an error"))
        elif not has_result:
            future.set_exception(self.refusal(future.method, message["error"]))
        else:
            result = message["result"]
            future.set_result(orjson.dumps(result) if future.raw else result)

    def refusal(self, method: str, error: Any) -> TabhubError:
        """The typed error for what a command was answered with."""
        return failure(method, error)

    def _take(self, number: Any) -> Pending | None:
        """The command a reply belongs to; only an exact whole number names one."""
        if type(number) is int:
            future = self._pending.pop(number, None)
            if future is not None:
                return None if future.done() else future
            if number in self._given_up:
                # The answer every cancelled command still gets.
                self._given_up.discard(number)
                return None
            if 0 < number <= self._last:
                self.counts.late += 1
                return None
        self.counts.unknown += 1
        if self.counts.unknown <= 10:  # who sends many must not fill the log
            log.warning("browser %s answered a command it was never sent: %.100r", self.browser_id, number)
        return None

    def _feed_large(self, text: str | bytes) -> None:
        if len(text) > self.limits.max_frame:
            self.counts.malformed += 1
            self.close(TOO_BIG, f"a message is larger than {self.limits.max_frame} bytes")
            return
        try:
            # A result passes through as bytes, so nothing later would see that it is not text.
            envelope = _ENVELOPE.decode(text.decode() if isinstance(text, bytes) else text)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            self._unreadable(text, f"Not valid JSON: {error}")
            return
        if envelope.method is not None or envelope.result is msgspec.UNSET or envelope.error is not msgspec.UNSET:
            try:
                message = strict.decode(text, self.limits)
            except ParseError as error:
                self._feed_bad(text, error)
                return
            (self._incoming if "method" in message else self._reply)(message)
            return
        future = self._take(envelope.id)
        if future is None:
            return
        if envelope.jsonrpc != "2.0":
            future.set_exception(unusable(future.method, "it needs `jsonrpc` 2.0"))
        elif future.raw:
            future.set_result(bytes(envelope.result))
        else:
            try:
                future.set_result(strict.decode(bytes(envelope.result), self.limits))
            except ParseError as error:
                future.set_exception(unusable(future.method, error.message))

    def _feed_bad(self, text: str | bytes, error: ParseError) -> None:
        """Not what we accept; if it still tells which command it answers, that one fails now."""
        try:
            envelope = _ENVELOPE.decode(text)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            self._unreadable(text, error.message)
            return
        self._spoilt(envelope.id if envelope.method is None else None, error.message)

    def _unreadable(self, text: str | bytes, why: str) -> None:
        """Not JSON at all; the call it was to answer need not wait for its deadline if the beginning names it."""
        start = text[:_OPENING].encode("utf-8", "replace") if isinstance(text, str) else text[:_OPENING]
        found = _ANSWERS.match(start)
        self._spoilt(int(found[1]) if found else None, why)

    def _spoilt(self, number: Any, why: str) -> None:
        """An answer that cannot be used fails its command; what is nobody's answer is refused."""
        future = self._pending.pop(number, None) if type(number) is int else None
        if future is None:
            self._refuse(None, -32700, why)
            return
        self.counts.malformed += 1
        if not future.done():
            future.set_exception(unusable(future.method, why))

    def _incoming(self, message: dict[str, Any]) -> None:
        """A request or notification of the extension."""
        number, method, params = message.get("id"), message["method"], message.get("params", {})
        asks = "id" in message
        if asks and type(number) not in (int, str):
            self._refuse(None, -32600, "An id is a text or a whole number.")
            return
        if message.get("jsonrpc") != "2.0" or type(method) is not str or "result" in message or "error" in message:
            self._refuse(number, -32600, "A request has `jsonrpc` 2.0, a `method`, and neither result nor error.")
            return
        if type(params) is not dict:
            self._refuse(number, -32602, f"{method[:100]}: `params` is an object.")
            return
        if method == "ping":
            self._send(_PONG)
            return
        if method == "pong":
            return
        handler = self.handlers.get(method)
        if handler is None:
            self.counts.refused += 1
            if asks:
                self._answer(number, error={"code": -32601, "message": f"Method not found: {method[:100]}"})
            return
        try:
            result = handler(self, params)
        except TabhubError as error:
            self.counts.refused += 1
            if asks:
                self._answer(number, error=_told(error))
            return
        if asks and isinstance(result, asyncio.Future):
            result.add_done_callback(lambda done: self._answer_later(number, done))
        elif asks:
            self._answer(number, result={} if result is None else result)

    def _answer_later(self, number: Any, done: asyncio.Future[Any]) -> None:
        if done.cancelled():
            self._answer(number, error={"code": -32010, "message": "cancelled"})
        elif (error := done.exception()) is None:
            self._answer(number, result=done.result())
        elif isinstance(error, TabhubError):
            self._answer(number, error=_told(error))
        else:
            self._answer(number, error={"code": -32603, "message": "The hub failed to answer; its log says why."})

    def _refuse(self, number: Any, code: int, message: str) -> None:
        self.counts.malformed += 1
        self._answer(number, error={"code": code, "message": message})

    def _answer(self, number: Any, **outcome: Any) -> None:
        if self.closed is None:
            self._send(orjson.dumps({"jsonrpc": "2.0", "id": number, **outcome}))


def _told(error: TabhubError) -> dict[str, Any]:
    """A refusal as the extension reads it; `data` names the fields that are wrong, where it is about fields."""
    return {"code": error.code, "message": error.text(), **({"data": error.data} if error.data else {})}
