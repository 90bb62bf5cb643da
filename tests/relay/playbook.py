"""The relay's state machine without sockets: facts go in, effects come out as values."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tabhub.errors import InvalidToken
from tabhub.limits import DEFAULTS
from tabhub.relay.bus.interface import Presence
from tabhub.relay.fast_forward import effect_of
from tabhub.relay.records import Close, Effect, FindBrowsers, Send, ToNode, VerifyToken
from tabhub.relay.state import Relay
from tabhub.trust.jwt import Claims
from tabhub.wire import nodes


class Play:
    """One node. A token is `<user>`, `<user>;<role>` or `<user>/<token id>`; any other text with a `!` is refused."""

    def __init__(self, node: str = "here", **limits: Any) -> None:
        numbers = itertools.count(1)
        prefix = node[:8].ljust(8, "0")
        self.relay = Relay(
            node,
            replace(DEFAULTS, **limits),
            ids=lambda: f"{prefix}-0000-4000-8000-{next(numbers):012d}",
            stamp=lambda: "2025-10-20T21:43:53.163+0200",
            milliseconds=lambda: int(self.now * 1000),
        )
        self.now = 0.0
        self.ttl = 3600.0
        self.compact = True
        """Whether messages are encoded so that they can be fast-forwarded (relay/fast_forward.py)."""
        self.sent: dict[int, list[dict[str, Any]]] = {}
        self.closed: dict[int, tuple[int, str]] = {}
        self.to_nodes: list[tuple[str, nodes.NodeMessage]] = []
        self.notes: list[Effect] = []
        self.remote_browsers: Sequence[Presence] | None = ()
        self._clients = itertools.count(1)

    def run(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Send):
                self.sent.setdefault(effect.client, []).append(json.loads(effect.data))
            elif isinstance(effect, Close):
                self.closed[effect.client] = (effect.code, effect.reason)
            elif isinstance(effect, VerifyToken):
                user, _, ident = effect.token.partition("/")
                bad = InvalidToken("test") if "!" in effect.token else None
                user, _, role = user.partition(";")
                verdict = bad or Claims(user, 0.0, ident or effect.token, role=role or None)
                self.run(self.relay.token_verified(effect.client, verdict, self.now, self.ttl))
            elif isinstance(effect, FindBrowsers):
                self.run(self.relay.browsers_found(effect.ticket, self.remote_browsers))
            elif isinstance(effect, ToNode):
                self.to_nodes.append((effect.node, effect.message))
            else:
                self.notes.append(effect)

    def agent(self, token: str | None = None) -> int:
        client = next(self._clients)
        self.run(self.relay.agent_connected(client, self.now))
        if token is not None:
            self.say(client, {"id": 0, "method": "mcp_handshake", "params": {"accessToken": token}})
        return client

    def browser(self, token: str | None = None, name: str = "Chrome 141", **more: Any) -> int:
        client = next(self._clients)
        self.run(self.relay.browser_connected(client, self.now))
        if token is not None:
            self.say(client, {"id": "proxy:1", "result": {"name": name, "accessToken": token, **more}})
        return client

    def pair(self, user: str = "ann") -> tuple[int, int, str]:
        """An agent connected to a browser, both without pending messages, and their connection."""
        browser, agent = self.browser(user), self.agent(user)
        return agent, browser, self.connect(agent, browser)

    def connect(self, agent: int, browser: int) -> str:
        ident = self.relay.tables.browsers[browser].ident
        self.say(agent, {"id": 0, "method": "connect", "params": {"extension_id": ident}})
        answers = [m for m in self.take(agent) if m.get("id") == 0 and "connection_id" in m.get("result", {})]
        self.take(browser)
        connection: str = answers[0]["result"]["connection_id"]
        return connection

    def say(self, client: int, message: dict[str, Any] | bytes | str) -> None:
        if isinstance(message, dict):
            separators = (",", ":") if self.compact else (", ", ": ")
            message = json.dumps({"jsonrpc": "2.0", **message}, separators=separators, ensure_ascii=not self.compact)
        data = message.encode() if isinstance(message, str) else message
        forwarded = self.relay.fast_forward(client, data, self.now)
        if isinstance(forwarded, tuple):
            self.run([effect_of(forwarded)])
        else:
            self.run(self.relay.message_received(client, data, self.now, forwarded))

    def take(self, client: int) -> list[dict[str, Any]]:
        """The messages sent to a client since the last call."""
        return self.sent.pop(client, [])

    def tick(self, now: float) -> None:
        self.now = now
        self.run(self.relay.tick(now))


def methods(messages: list[dict[str, Any]]) -> list[str]:
    """The names of notifications and requests, in order."""
    return [message["method"] for message in messages if "method" in message]


def codes(messages: list[dict[str, Any]]) -> list[tuple[Any, int]]:
    """The ids and codes of refusals, in order."""
    return [(message["id"], message["error"]["code"]) for message in messages if "error" in message]
