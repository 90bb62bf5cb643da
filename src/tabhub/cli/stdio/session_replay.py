"""What a client has told its hub of itself, and what another hub that does not know it is told again on its behalf.

It does no I/O.
"""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


class Introduction:
    """One client's, as it stands."""

    def __init__(self, hello: bytes | None = None) -> None:
        self.hello = hello
        """The params of its initialize; without these there is nothing to tell."""
        self.ready = False
        self._level: bytes | None = None
        self._followed: dict[str, bytes] = {}
        """The resources it has subscribed to, and how it said so."""

    def agreed(self, method: str, params: bytes) -> None:
        """The hub accepted a request of the client."""
        if method == "logging/setLevel":
            self._level = params
        elif method == "resources/subscribe":
            self._followed[json.loads(params)["uri"]] = params
        elif method == "resources/unsubscribe":
            self._followed.pop(json.loads(params).get("uri"), None)

    def requests(self) -> Iterator[tuple[str, bytes]]:
        """The requests to repeat after the handshake."""
        if self._level is not None:
            yield "logging/setLevel", self._level
        for params in self._followed.values():
            yield "resources/subscribe", params
