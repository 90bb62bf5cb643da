"""The browsers of a relay node: authentication, replies and notifications.

Owns which messages a browser may send and when, and its extension id. Forwarding belongs to connections.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from hashlib import sha256
from uuid import UUID

import orjson

from tabhub.errors import BadFrame, InvalidParams, InvalidRequest, InvalidToken, MethodNotFound, TabhubError
from tabhub.relay.bus.interface import Presence
from tabhub.relay.connections import Connections
from tabhub.relay.records import Announce, Browser, Close, Log, Send, Tables, ToNode, User
from tabhub.relay.users import Users
from tabhub.trust.jwt import Claims
from tabhub.trust.leaky_bucket import LeakyBucket
from tabhub.trust.redact import clean
from tabhub.wire import nodes
from tabhub.wire import relay as wire
from tabhub.wire.jsonrpc import Id, encode_failure
from tabhub.wire.relay import UNSET, Frame
from tabhub.wire.strict_json import Parsed

_MAX_NAME = 200
"""Characters, and bytes."""


def extension_id(user: str, instance: str) -> str:
    """The id of a user's browser: stable across connections, and unique to the user."""
    return f"ext-{UUID(bytes=sha256(orjson.dumps([user, instance])).digest()[:16])}"


class Browsers:
    """All browsers of one node."""

    def __init__(
        self,
        tables: Tables,
        users: Users,
        connections: Connections,
        ids: Callable[[], str],
        milliseconds: Callable[[], int],
    ) -> None:
        self._tables = tables
        self._out = tables.out
        self._users = users
        self._connections = connections
        self._ids = ids
        self._milliseconds = milliseconds

    def add(self, client: int, now: float) -> None:
        limits = self._tables.limits
        self._tables.browsers[client] = Browser(client, LeakyBucket(limits.relay_client_rate), now + limits.relay_auth)
        self._out.append(Send(client, wire.authenticate(1)))

    def receive(self, browser: Browser, data: bytes, now: float, parsed: Parsed | None) -> None:
        try:
            frame = wire.read(data, self._tables.limits, parsed)
        except BadFrame as bad:
            self._tables.counts.malformed += 1
            if bad.answer and bad.ident == f"proxy:{browser.auth_number}" and browser.awaiting_token:
                self._refuse(browser, InvalidToken("malformed reply"))
            elif bad.answer and self._connections.malformed_reply(browser, bad, data):
                return  # the agent has been sent an error
            elif self._users.check_rate(browser, now) is None:
                self._send(browser, encode_failure(None if bad.answer else bad.ident, bad.error))
            return
        if frame.method is UNSET:
            if type(frame.id) is str and frame.id.startswith("proxy:"):
                self._receive_token(browser, frame)
            else:
                self._connections.forward_reply(browser, frame, data)
        elif self._users.check_rate(browser, now) is not None:
            self._tables.counts.rate_limited += 1
        elif frame.id is not UNSET:
            self._refuse_request(browser, frame.id, str(frame.method))
        elif frame.method == "ping":
            self._send(browser, wire.PONG)
        elif browser.user is None or frame.method in wire.RELAY_ONLY or frame.method in wire.CONTROL:
            self._tables.counts.foreign += 1
        else:
            self._connections.forward_notification(browser, frame)

    def _refuse_request(self, browser: Browser, ident: Id, method: str) -> None:
        if str(ident).startswith(("proxy:", "conn-")):
            self._tables.counts.malformed += 1
            error: TabhubError = InvalidRequest("The prefixes proxy: and conn- are reserved for the relay.")
        else:
            error = MethodNotFound(f"Method not found: browsers send no requests to the relay, got {method[:60]!r}.")
        self._send(browser, encode_failure(ident, error))

    def _receive_token(self, browser: Browser, frame: Frame) -> None:
        """Handle the reply to `authenticate`."""
        if frame.id != f"proxy:{browser.auth_number}" or not browser.awaiting_token or browser.verifying:
            self._tables.counts.late += 1
            return
        browser.awaiting_token = False
        if frame.result is UNSET:
            self._refuse(browser, InvalidToken("the browser replied with an error"))
            return
        try:
            login = wire.login_of(frame)
        except InvalidParams as error:
            self._refuse(browser, error)
            return
        if browser.user is None:
            instance = login.instance_id
            browser.name = clean(login.name, _MAX_NAME).encode()[:_MAX_NAME].decode("utf-8", "ignore")
            browser.instance = instance if type(instance) is str and 0 < len(instance) <= _MAX_NAME else None
        self._users.verify_token(browser, login.token)

    def token_verified(self, browser: Browser, verdict: Claims | InvalidToken, now: float, remaining: float) -> None:
        try:
            claims = self._users.accept_token(browser, verdict, "browser", now, remaining)
            if browser.user is None:
                self._users.check_joins(claims.user, now)
                self._admit(browser, claims.user)
        except TabhubError as error:
            self._refuse(browser, error)
            return
        browser.request_token_at = now + max(remaining - self._tables.limits.relay_refresh, remaining / 2)

    def _admit(self, browser: Browser, name: str) -> None:
        ident = extension_id(name, browser.instance) if browser.instance is not None else f"ext-{self._ids()}"
        known = self._tables.users.get(name)
        old = known.browsers.get(ident) if known is not None else None
        if old is not None:
            self.replace(old)
        user = self._users.admit(name)
        browser.user, browser.ident, browser.admitted = user, ident, self._milliseconds()
        user.browsers[ident] = browser
        self._tables.counts.authenticated += 1
        self._send(browser, wire.notification(wire.Admitted(name, ident)))
        self._out.append(Announce(self._presence(browser, user), here=True))
        self._out.append(Log("browser_authenticated", {"user": name, "extension": ident, "name": browser.name}))
        for agent in user.agents.values():
            self._connections.send_agent_status(agent)

    def _presence(self, browser: Browser, user: User) -> Presence:
        return Presence(user.name, browser.ident, browser.name, self._tables.node, browser.admitted)

    def drop_older(self, user: User, elsewhere: Iterable[Presence]) -> None:
        """Close connections of browsers that have since connected to another node, which keeps its own."""
        for other in elsewhere:
            own = user.browsers.get(other.extension_id)
            if own is not None and other.age > self._presence(own, user).age:
                self.replace(own)

    def replace(self, browser: Browser) -> None:
        """Close a connection whose browser has connected again, here or on another node."""
        self._tables.counts.replaced += 1
        self.remove(browser, "The browser reconnected")
        self._out.append(Close(browser.client, wire.REPLACED, "the same browser connected again"))

    def _refuse(self, browser: Browser, error: TabhubError) -> None:
        code = self._users.refused("browser", error)
        self.remove(browser, "refused")
        reason = error.message if isinstance(error, InvalidToken) else f"Authentication failed: {error.message}"
        self._out.append(Close(browser.client, code, reason))

    def request_tokens(self, now: float) -> None:
        """Ask browsers whose token expires soon for a new one."""
        for browser in self._tables.browsers.values():
            if browser.request_token_at <= now and not browser.verifying:
                browser.request_token_at = now + max((browser.deadline - now) / 2, 1.0)
                browser.auth_number += 1
                browser.awaiting_token = True
                self._send(browser, wire.authenticate(browser.auth_number))

    def open_requested(self, node: str, message: nodes.Open) -> None:
        """An agent on another node requests a connection to a browser on this one."""
        user = self._tables.users.get(message.user)
        browser = user.browsers.get(message.extension_id) if user is not None else None
        known = message.connection in self._tables.connections
        if user is None or browser is None or known or self._tables.draining:
            self._out.append(ToNode(node, nodes.Refused(message.connection)))
            return
        connection = self._connections.open(message.connection, user, browser.ident, None, browser, node)
        self._out.append(ToNode(node, nodes.Opened(message.connection, browser.name)))
        self._connections.send_status(connection)

    def remove(self, browser: Browser, reason: str) -> None:
        """Forget a browser whose WebSocket has closed or is about to be closed."""
        if self._tables.browsers.pop(browser.client, None) is None:
            return
        user = browser.user
        if user is None:
            return
        if user.browsers.get(browser.ident) is browser:
            del user.browsers[browser.ident]
        others = [agent for agent in user.agents.values() if agent.connection not in browser.connections.values()]
        for connection in list(browser.connections.values()):
            self._connections.end(connection, reason)
        for agent in others:
            self._connections.send_agent_status(agent)
        self._out.append(Announce(self._presence(browser, user), here=False))
        self._out.append(Log("browser_disconnected", {"user": user.name, "extension": browser.ident, "reason": reason}))
        self._users.release(user)

    def _send(self, browser: Browser, data: bytes) -> None:
        self._out.append(Send(browser.client, data))
