"""The messages of the bus between a relay's nodes: heartbeats, which browsers are where, and fragments of messages.

Owns their form. They travel between processes of one operator, but are decoded as strictly as any other.
"""

from __future__ import annotations

from typing import Annotated, TypeVar

import msgspec

from tabhub.errors import ParseError

WHOLE, FIRST, NEXT, LAST, MARK, GIVEN_UP = range(6)
"""Kinds of pieces: a message; parts of a large one; a bare number; and notice that the sender dropped its connections
with the receiver."""

NodeId = Annotated[str, msgspec.Meta(pattern="^[A-Za-z0-9_-]{1,80}$")]
Browsers = Annotated[tuple[tuple[str, str], ...], msgspec.Meta(max_length=10_000)]
"""Ids and names of the browsers of one user on one node."""
Nodes = Annotated[tuple[NodeId, ...], msgspec.Meta(max_length=10_000)]


class Piece(msgspec.Struct, array_like=True, gc=False, frozen=True):
    """One publication to a node. Pieces of one node for another are numbered without gaps; 0 starts again."""

    node: NodeId
    number: int
    kind: int
    body: bytes


class Beat(msgspec.Struct, tag="beat", array_like=True, frozen=True):
    """A node is alive."""

    node: NodeId


class Bye(msgspec.Struct, tag="bye", array_like=True, frozen=True):
    """A node shuts down."""

    node: NodeId


class Revoked(msgspec.Struct, tag="revoked", array_like=True, frozen=True):
    """Tokens are no longer valid."""

    node: NodeId
    entries: tuple[str, ...]


class Asking(msgspec.Struct, tag="asking", array_like=True, frozen=True):
    """A node has connections of a user, these browsers among them, and asks the other nodes for theirs."""

    node: NodeId
    version: int
    browsers: Browsers


class Here(msgspec.Struct, tag="here", array_like=True, frozen=True):
    """The reply of a node with connections of the user: its browsers, and the other nodes it knows."""

    node: NodeId
    version: int
    browsers: Browsers
    others: Nodes


class Has(msgspec.Struct, tag="has", array_like=True, frozen=True):
    """The browsers of the user on a node are now these."""

    node: NodeId
    version: int
    browsers: Browsers


class Left(msgspec.Struct, tag="left", array_like=True, frozen=True):
    """A node no longer has connections of the user."""

    node: NodeId
    version: int


class Took(msgspec.Struct, tag="took", array_like=True, frozen=True):
    """How many messages of the user a node has accepted."""

    node: NodeId
    count: Annotated[int, msgspec.Meta(ge=0)]


ToAll = Beat | Bye | Revoked
ToUser = Asking | Has | Left | Took

MESSAGES = (Piece, Beat, Bye, Revoked, Asking, Here, Has, Left, Took)

T = TypeVar("T")
_ENCODER = msgspec.msgpack.Encoder()
PIECE: msgspec.msgpack.Decoder[Piece] = msgspec.msgpack.Decoder(Piece)
TO_ALL: msgspec.msgpack.Decoder[ToAll] = msgspec.msgpack.Decoder(ToAll)
TO_USER: msgspec.msgpack.Decoder[ToUser] = msgspec.msgpack.Decoder(ToUser)
HERE: msgspec.msgpack.Decoder[Here] = msgspec.msgpack.Decoder(Here)


def encode(message: Piece | ToAll | ToUser | Here) -> bytes:
    return _ENCODER.encode(message)


def decode(form: msgspec.msgpack.Decoder[T], data: bytes) -> T:
    """A message of that form, or ParseError."""
    try:
        return form.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ParseError(f"Not a message of a relay's bus: {error}.") from None
