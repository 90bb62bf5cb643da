"""The messages between the nodes of a relay, in MessagePack: those of the bus itself, and those it carries.

Owns their form. They travel between processes of one operator, but are decoded as strictly as any other.
"""

from __future__ import annotations

from typing import Annotated, TypeVar

import msgspec
from msgspec.msgpack import Decoder, Encoder

from tabhub.errors import ParseError

NodeId = Annotated[str, msgspec.Meta(pattern="^[A-Za-z0-9_-]{1,80}$")]
ExtensionId = Annotated[str, msgspec.Meta(max_length=80)]
BrowserName = Annotated[str, msgspec.Meta(max_length=200)]
Browsers = Annotated[tuple[tuple[ExtensionId, BrowserName, int], ...], msgspec.Meta(max_length=10_000)]
"""Browsers of one user on one node: their ids, names, and when they were admitted."""
Nodes = Annotated[tuple[NodeId, ...], msgspec.Meta(max_length=10_000)]


class BusMessage(msgspec.Struct, array_like=True, gc=False, tag=str.lower):
    """A message of the bus, from one node."""

    node: NodeId


# to all nodes


class Beat(BusMessage):
    """A node is alive. The digest is of its revoked tokens that are listed beyond this minute."""

    minute: int = 0
    revoked: int = 0
    digest: int = 0


class Bye(BusMessage):
    """A node shuts down."""


class Revoked(BusMessage):
    """Tokens are no longer valid."""

    entries: tuple[str, ...]


class RevokedRequest(BusMessage, tag="revoked?"):
    """A node asks for the list of revoked tokens."""


class RevokedList(BusMessage, tag="revoked!"):
    """A part of that list."""

    entries: tuple[str, ...]
    last: bool


# to the nodes that have joined a user


class Query(BusMessage, tag="asking"):
    """A node has joined the user, with these browsers, and asks the others for theirs."""

    version: int
    browsers: Browsers


class QueryReply(BusMessage, tag="here"):
    """The browsers of a node that has joined the user, and the other nodes it knows."""

    version: int
    browsers: Browsers
    others: Nodes


class BrowsersChanged(BusMessage, tag="changed"):
    """Browsers of the user connected to a node or disconnected from it, since the version it announced before."""

    since: int
    version: int
    joined: Browsers
    left: tuple[ExtensionId, ...]


class Left(BusMessage):
    """A node no longer has clients of the user."""

    version: int


class Usage(BusMessage, tag="took"):
    """How many messages of the user a node has accepted since its last report."""

    count: Annotated[int, msgspec.Meta(ge=0)]


# to one node


class ListRequest(BusMessage, tag="list"):
    """A node has missed a change and asks for all browsers of the user."""


class Piece(msgspec.Struct, array_like=True, gc=False, frozen=True):
    """One publication to a node. Pieces of one node for another are numbered without gaps; 0 starts again."""

    node: NodeId
    number: int
    kind: int
    body: bytes


WHOLE, FIRST, NEXT, LAST, MARK, GIVEN_UP = range(6)
"""Kinds of pieces: a message; parts of a large one; a bare number; and notice that the sender dropped its connections
with the receiver."""


class Carried(msgspec.Struct, gc=False, tag=str.lower):
    """A message from node to node, which the bus carries in pieces."""


class Open(Carried):
    """An agent at the sender asks for a connection to a browser at the receiver."""

    connection: str
    user: str
    extension_id: str


class Opened(Carried):
    """The connection was made."""

    connection: str
    name: str


class Refused(Carried):
    """The user has no such browser."""

    connection: str


class ToBrowser(Carried, tag="down"):
    """A frame of the agent, with its id mapped, for the browser."""

    connection: str
    frame: bytes


class ToAgent(Carried, tag="up"):
    """A frame of the browser for the agent."""

    connection: str
    frame: bytes


class Ended(Carried):
    """The sender's side of a connection was closed."""

    connection: str
    reason: str


class Drain(Carried):
    """The sender is about to end: the connection should end once it is quiet."""

    connection: str


class HttpRequest(Carried, tag="http?"):
    """A request whose session is on the receiver."""

    number: int
    method: str
    query: bytes
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes


class HttpAnswer(Carried, tag="http!"):
    """The answer to it, or a part of one that is streamed."""

    number: int
    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes
    last: bool


class HttpCancel(Carried, tag="http-"):
    """The sender no longer waits for the answer to its request; or, with `answer`, it cannot finish the answer."""

    number: int
    answer: bool = False


class Reset(Carried):
    """The sender was disconnected from the bus and dropped every connection it had with the receiver."""


ToAll = Beat | Bye | Revoked
ToRevoked = RevokedRequest | RevokedList
ToUser = Query | BrowsersChanged | Left | Usage
ToReplies = QueryReply | ListRequest
HttpMessage = HttpRequest | HttpAnswer | HttpCancel
NodeMessage = (
    Open | Opened | Refused | ToBrowser | ToAgent | Ended | Drain | HttpRequest | HttpAnswer | HttpCancel | Reset
)

T = TypeVar("T")
PIECE = Decoder(Piece)
TO_ALL: Decoder[ToAll] = Decoder(ToAll)
TO_REVOKED: Decoder[ToRevoked] = Decoder(ToRevoked)
TO_USER: Decoder[ToUser] = Decoder(ToUser)
REPLY: Decoder[ToReplies] = Decoder(ToReplies)
NODE_MESSAGE: Decoder[NodeMessage] = Decoder(NodeMessage)

encode = Encoder().encode


def decode(form: Decoder[T], data: bytes) -> T:
    """A message of that form, or ParseError."""
    try:
        return form.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ParseError(f"Invalid message between relay nodes: {error}.") from None
