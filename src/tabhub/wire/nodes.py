"""The messages between the nodes of a relay, one struct each.

Owns their form. They travel between processes of one operator, but are decoded as strictly as any other.
"""

from __future__ import annotations

import msgspec

from tabhub.errors import ParseError


class Open(msgspec.Struct, tag="open", gc=False, frozen=True):
    """An agent at the sender asks for a connection to a browser at the receiver."""

    connection: str
    user: str
    extension_id: str


class Opened(msgspec.Struct, tag="opened", gc=False, frozen=True):
    """The connection was made."""

    connection: str
    name: str


class Refused(msgspec.Struct, tag="refused", gc=False, frozen=True):
    """The user has no such browser."""

    connection: str


class ToBrowser(msgspec.Struct, tag="down", gc=False, frozen=True):
    """A frame of the agent, with its id mapped, for the browser."""

    connection: str
    frame: bytes


class ToAgent(msgspec.Struct, tag="up", gc=False, frozen=True):
    """A frame of the browser for the agent."""

    connection: str
    frame: bytes


class Ended(msgspec.Struct, tag="ended", gc=False, frozen=True):
    """The sender's side of a connection was closed."""

    connection: str
    reason: str


class Replaced(msgspec.Struct, tag="replaced", gc=False, frozen=True):
    """A browser of the receiver is now connected to the sender."""

    user: str
    extension_id: str


class Reset(msgspec.Struct, tag="reset", gc=False, frozen=True):
    """The sender was disconnected from the bus and dropped every connection it had with the receiver."""


MESSAGES = (Open, Opened, Refused, ToBrowser, ToAgent, Ended, Replaced, Reset)
NodeMessage = Open | Opened | Refused | ToBrowser | ToAgent | Ended | Replaced | Reset

_DECODER: msgspec.msgpack.Decoder[NodeMessage] = msgspec.msgpack.Decoder(NodeMessage)
_ENCODER = msgspec.msgpack.Encoder()


def encode(message: NodeMessage) -> bytes:
    return _ENCODER.encode(message)


def decode(data: bytes) -> NodeMessage:
    """A message, or ParseError."""
    try:
        return _DECODER.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ParseError(f"Not a message of a relay node: {error}.") from None
