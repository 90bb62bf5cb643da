"""What the nodes of a relay send one another, as bytes: one message a struct.

Owns their form. They travel between processes of one operator, but are read as strictly as anything else.
"""

from __future__ import annotations

import msgspec

from tabhub.errors import ParseError


class Open(msgspec.Struct, tag="open", gc=False, frozen=True):
    """An agent of the sender's wants a connection to a browser of the receiver's."""

    connection: str
    user: str
    extension_id: str


class Opened(msgspec.Struct, tag="opened", gc=False, frozen=True):
    """It has it."""

    connection: str
    name: str


class Refused(msgspec.Struct, tag="refused", gc=False, frozen=True):
    """There is no such browser for that user."""

    connection: str


class ToBrowser(msgspec.Struct, tag="down", gc=False, frozen=True):
    """A frame of the agent's, mapped, for the browser."""

    connection: str
    frame: bytes


class ToAgent(msgspec.Struct, tag="up", gc=False, frozen=True):
    """A frame of the browser's for the agent."""

    connection: str
    frame: bytes


class Ended(msgspec.Struct, tag="ended", gc=False, frozen=True):
    """The sender's side of a connection has gone."""

    connection: str
    reason: str


class Replaced(msgspec.Struct, tag="replaced", gc=False, frozen=True):
    """A browser the receiver has is now connected to the sender."""

    user: str
    extension_id: str


class Reset(msgspec.Struct, tag="reset", gc=False, frozen=True):
    """The sender was cut off and has given up every connection it had with the receiver."""


NodeMessage = Open | Opened | Refused | ToBrowser | ToAgent | Ended | Replaced | Reset

_DECODER: msgspec.msgpack.Decoder[NodeMessage] = msgspec.msgpack.Decoder(NodeMessage)
_ENCODER = msgspec.msgpack.Encoder()


def encode(message: NodeMessage) -> bytes:
    """A message as bytes."""
    return _ENCODER.encode(message)


def decode(data: bytes) -> NodeMessage:
    """Bytes as a message, or ParseError."""
    try:
        return _DECODER.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ParseError(f"Not a message of a relay node: {error}.") from None
