"""One request on the straight road: known by its head, there as a whole, and served without ASGI's messages.

Owns what uvicorn's request object owns, as far as a quick call needs it, and still is one: a stream, a client that
leaves, an answer that has to wait are handled by uvicorn's own code. Knows no routes.
"""

from __future__ import annotations

import asyncio
import logging
from functools import cached_property
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

if TYPE_CHECKING:
    from tabhub.http.protocol import ArrivingHttp


_SCOPE: Any = {"type": "http", "method": "POST", "http_version": "1.1"}
_NO_HEADERS: Any = []


class Visit(RequestResponseCycle):
    """A POST that has arrived."""

    # What uvicorn sets anew for each request, and a quick call leaves as it is.
    scope = _SCOPE
    access_log = False
    default_headers = _NO_HEADERS
    disconnected = False
    keep_alive = True
    waiting_for_100_continue = False
    body: Any = b""
    more_body = False
    response_started = False
    response_complete = False
    chunked_encoding = None
    expected_content_length = 0

    def __init__(self, protocol: ArrivingHttp) -> None:
        self.protocol = protocol
        self.transport = protocol.transport
        self.flow = protocol.flow

    @cached_property
    def message_event(self) -> asyncio.Event:  # type: ignore[override]
        """Set when the client has left or has its answer; made only for those who wait for that."""
        event = asyncio.Event()
        if self.disconnected or self.response_complete:
            event.set()
        return event

    @property
    def logger(self) -> logging.Logger:  # type: ignore[override]
        """Where uvicorn's code writes what went wrong."""
        return self.protocol.logger

    def on_response(self) -> None:
        """The answer is complete: the connection is free for the next request."""
        self.protocol.on_response_complete()

    def written(self) -> None:
        """The last byte of the answer is on its way."""
        if "message_event" in self.__dict__:
            self.message_event.set()
        if not self.keep_alive:
            self.transport.close()
        self.protocol.on_response_complete()

    def ended(self, task: asyncio.Task[None]) -> None:
        """The route has returned. It has answered, unless something is wrong in it: then the client is told so."""
        self.protocol.tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is None and (self.response_complete or self.disconnected):
            return
        self.logger.error("A route failed, or gave no answer", exc_info=error)
        if self.response_started:
            self.transport.close()
        else:
            apology = self.protocol.loop.create_task(self.send_500_response())
            self.protocol.tasks.add(apology)
            apology.add_done_callback(self.protocol.tasks.discard)
