"""The state of an MCP session that has to be replayed to a new hub on the client's behalf. Does no I/O."""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


class SessionReplay:
    """The handshake, log level and resource subscriptions of one client."""

    def __init__(self, initialize_params: bytes | None = None) -> None:
        self.initialize_params = initialize_params
        """None before the handshake and in the stateless era: then there is nothing to replay."""
        self.initialized = False
        self._log_level: bytes | None = None
        self._subscriptions: dict[str, bytes] = {}
        """Params of each subscribe request, by URI."""

    def record(self, method: str, params: bytes) -> None:
        """Remember a request that the hub accepted."""
        if method == "logging/setLevel":
            self._log_level = params
        elif method == "resources/subscribe":
            self._subscriptions[json.loads(params)["uri"]] = params
        elif method == "resources/unsubscribe":
            self._subscriptions.pop(json.loads(params).get("uri"), None)

    def requests(self) -> Iterator[tuple[str, bytes]]:
        """The requests to repeat after the handshake."""
        if self._log_level is not None:
            yield "logging/setLevel", self._log_level
        for params in self._subscriptions.values():
            yield "resources/subscribe", params
