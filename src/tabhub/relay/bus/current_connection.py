"""The connection to NATS of the moment: what the parts of the bus publish on.

Owns which connection is in use. Without one nothing is sent, and nothing is kept to be sent later.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from tabhub.relay.bus.nats_connection import NatsConnection
from tabhub.wire.nats import Message
from tabhub.wire.nodes import encode


class CurrentConnection:
    """The connection in use, if any."""

    def __init__(self) -> None:
        self.connection: NatsConnection | None = None

    @property
    def healthy(self) -> bool:
        return self.connection is not None and self.connection.healthy

    def publish(self, subject: str, message: msgspec.Struct, reply: str = "") -> None:
        if self.connection is not None:
            self.connection.publish(subject, encode(message), reply)

    def subscribe(self, subject: str, receive: Callable[[Message], None], queue: str = "") -> bool:
        """Returns whether there is a connection. Of the subscribers with the same queue, one gets each message."""
        if self.connection is None:
            return False
        self.connection.subscribe(subject, receive, queue)
        return True

    def unsubscribe(self, subject: str) -> None:
        if self.connection is not None:
            self.connection.unsubscribe(subject)

    def replace(self, connection: NatsConnection | None) -> NatsConnection | None:
        """Use another connection, or none; returns the one before."""
        before, self.connection = self.connection, connection
        return before
