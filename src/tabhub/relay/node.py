"""A running relay node: feeds facts to state.py and carries out its effects on sockets and bus.

Owns the clock, the tasks and the order of effects. It decides nothing about the protocol.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, Protocol

from tabhub.errors import BadFrame, BusUnavailable, InvalidToken, TabhubError, UnknownSigningKey
from tabhub.limits import Limits
from tabhub.relay.bus.interface import Bus, Presence
from tabhub.relay.fair_share import FairShare
from tabhub.relay.fast_forward import effect_of
from tabhub.relay.keyring import Keyring
from tabhub.relay.overload import Overload
from tabhub.relay.ping_wheel import PingWheel
from tabhub.relay.records import (
    Announce,
    Close,
    Effect,
    FindBrowsers,
    Http,
    Log,
    Membership,
    ReportUsage,
    Send,
    ToNode,
    VerifyToken,
)
from tabhub.relay.revocations import Revocations
from tabhub.relay.state import Relay
from tabhub.trust.jwt import Claims, Rules, verify
from tabhub.wire import jsonrpc, nodes
from tabhub.wire import relay as wire

log = logging.getLogger("tabhub.relay")

Role = Literal["agent", "browser"]
_TICK = 1.0


class HttpSide(Protocol):
    """What handles requests over HTTP that another node forwards, and the answers to those of this one."""

    def http_received(self, node: str, message: nodes.HttpMessage) -> None: ...

    def node_lost(self, node: str | None) -> None:
        """Another node is lost; None: all are."""
        ...


class Socket(Protocol):
    """A WebSocket as a node uses it."""

    def send_text(self, data: bytes) -> None: ...

    def send_close(self, code: int, reason: str) -> None: ...


def stamp() -> str:
    """The time for status messages."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class Node:
    """One node of a relay."""

    def __init__(
        self,
        bus: Bus,
        keyring: Keyring,
        *,
        limits: Limits,
        rules: Rules | None = None,
        revocations: Revocations | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.bus = bus
        self.keyring = keyring
        self.rules = rules if rules is not None else Rules(longest=limits.relay_token)
        self.revocations = revocations if revocations is not None else Revocations(None)
        self.state = Relay(
            bus.node, limits, ids=lambda: str(uuid.uuid4()), stamp=stamp, milliseconds=lambda: int(wall() * 1000)
        )
        self.fair_share = FairShare(limits.relay_user_queue, limits.relay_all_queue)
        self.overload = Overload(clock, self.fair_share.unauthenticated)
        self.wheel = PingWheel(limits.relay_ping)
        self.started = clock()
        self.closing = False
        self.clock = clock
        self._wall = wall
        self.sockets: dict[int, Socket] = {}
        """Open connections, including those of engines."""
        self._last = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._http: HttpSide | None = None
        self._updating: set[str] = set()
        """Users whose remote browsers are about to be read."""
        self._actions: dict[type, Callable[[Any], object]] = {
            Close: self._close,
            VerifyToken: self._verify,
            FindBrowsers: lambda effect: self.spawn(self._find(effect)),
            ToNode: self._to_node,
            Http: self._http_received,
            Announce: lambda effect: bus.announce(effect.browser) if effect.here else bus.withdraw(effect.browser),
            Membership: lambda effect: bus.join(effect.user) if effect.here else bus.leave(effect.user),
            ReportUsage: lambda effect: bus.report_usage(effect.user, effect.messages),
            Log: lambda effect: log.info(effect.event, extra={"facts": dict(effect.facts)}),
        }

    @property
    def limits(self) -> Limits:
        return self.state.tables.limits

    @property
    def draining(self) -> bool:
        """Whether it is about to end and admits no one."""
        return self.closing or self.state.tables.draining

    def change_limits(self, limits: Limits) -> None:
        """Use other limits: numbers of connections at once, rates for users and connections that are new."""
        self.state.change_limits(limits)
        self.fair_share.change_limits(limits.relay_user_queue, limits.relay_all_queue)
        self.revocations.change_limit(limits.relay_revoked)

    async def reload(self) -> None:
        """Read keys and revoked tokens again, also those that are fetched."""
        self.keyring.reload()
        self._reload_revocations()
        await self.keyring.fetch(at_once=True)

    async def start(self) -> None:
        self.revocations.reload(self._wall())
        await self.bus.start(self)
        await self.keyring.fetch()
        self.spawn(self._run_ticks())
        self.spawn(self.overload.run())
        self.spawn(self.wheel.run())

    async def stop(self) -> None:
        await self.bus.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def drain(self) -> None:
        """Admit no one, and end what is quiet; `drain_step` goes on with that."""
        log.info("draining", extra={"facts": {"clients": len(self.sockets)}})
        self.run(self.state.drain(self.clock()))

    def drain_step(self) -> bool:
        """To be called several times a second; returns whether only engines of this node are left."""
        self.run(self.state.drain_step(self.clock()))
        return self.state.drained

    def shut_down(self) -> None:
        """Ask all clients to reconnect, and close their sockets."""
        if not self.closing:
            self.closing = True
            self.run(self.state.shutting_down())

    def attach(self, role: Role, socket: Socket) -> NodeClient:
        """Register an accepted WebSocket."""
        self._last += 1
        self.sockets[self._last] = socket
        connected = self.state.agent_connected if role == "agent" else self.state.browser_connected
        self.run(connected(self._last, self.clock()))
        return NodeClient(self, self._last)

    # agents in this process, authenticated by the engine that attaches them

    def check_token(self, token: str) -> Claims | InvalidToken:
        """The verdict by the keys that are known; UnknownSigningKey may change when the keyring has fetched others."""
        try:
            claims = verify(token, self.keyring.keys, self._wall(), self.rules)
        except InvalidToken as refused:
            return refused
        return InvalidToken("revoked") if self.revocations.revokes(claims) else claims

    def token_refused(self, verdict: InvalidToken) -> None:
        self.run(self.state.auth_failed("agent", verdict))

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start a task that is cancelled when the node stops."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def run(self, effects: list[Effect]) -> None:
        sockets = self.sockets
        for effect in effects:
            if type(effect) is Send:
                socket = sockets.get(effect.client)
                if socket is not None:
                    socket.send_text(effect.data)
            else:
                self._actions[type(effect)](effect)

    # called by the bus

    def message_received(self, node: str, message: bytes) -> None:
        self.run(self.state.node_message_received(node, message, self.clock()))

    def node_lost(self, node: str) -> None:
        log.info("node_lost", extra={"facts": {"node": node}})
        self._http_lost(node)
        self.run(self.state.node_lost(node))

    def browsers_changed(self, user: str) -> None:
        if user not in self._updating:  # changes that arrive together are handled together
            self._updating.add(user)
            self.spawn(self._update_remote_browsers(user))

    def usage_reported(self, user: str, count: int) -> None:
        self.run(self.state.usage_reported(user, count, self.clock()))

    def tokens_revoked(self, entries: Sequence[str]) -> None:
        self._disconnect_revoked(self.revocations.add(entries, self._wall()))

    def revoked_entries(self) -> Sequence[str]:
        return self.revocations.entries(self._wall())

    def revoked_digest(self, minute: int) -> tuple[int, int]:
        return self.revocations.digest(minute)

    def bus_changed(self, healthy: bool) -> None:
        if not healthy:
            self._http_lost(None)
        self.run(self.state.bus_changed(healthy))

    def _close(self, effect: Close) -> None:
        socket = self.sockets.get(effect.client)
        if socket is not None:
            socket.send_close(effect.code, effect.reason)

    def on_http(self, side: HttpSide) -> None:
        """What receives forwarded requests."""
        self._http = side

    def send_to_node(self, node: str, message: nodes.NodeMessage) -> bool:
        """Send a message of the HTTP side; False: it was certainly not sent."""
        return self.bus.send(node, nodes.encode(message))

    def _http_received(self, effect: Http) -> None:
        if self._http is not None:
            self._http.http_received(effect.node, effect.message)

    def _http_lost(self, node: str | None) -> None:
        if self._http is not None:
            self._http.node_lost(node)

    def _to_node(self, effect: ToNode) -> None:
        if not self.bus.send(effect.node, nodes.encode(effect.message)):
            self.run(self.state.node_lost(effect.node))

    def _verify(self, effect: VerifyToken) -> None:
        verdict = self.check_token(effect.token)
        if isinstance(verdict, UnknownSigningKey):
            self.spawn(self._verify_with_new_keys(effect))
        else:
            self.token_verified(effect.client, verdict)

    async def _verify_with_new_keys(self, effect: VerifyToken) -> None:
        await self.keyring.fetch()
        self.token_verified(effect.client, self.check_token(effect.token))

    def token_verified(self, client: int, verdict: Claims | InvalidToken) -> None:
        remaining = verdict.expires - self._wall() if isinstance(verdict, Claims) else 0.0
        self.run(self.state.token_verified(client, verdict, self.clock(), remaining))

    async def _remote_browsers(self, user: str) -> Sequence[Presence] | None:
        """The user's browsers on other nodes; None if the bus is unavailable."""
        try:
            return await self.bus.browsers(user)
        except BusUnavailable:
            return None

    async def _find(self, effect: FindBrowsers) -> None:
        self.run(self.state.browsers_found(effect.ticket, await self._remote_browsers(effect.user)))

    async def _update_remote_browsers(self, user: str) -> None:
        self._updating.discard(user)
        browsers = await self._remote_browsers(user)
        if browsers is not None:  # otherwise the bus reports the change again once it is back
            self.run(self.state.remote_browsers_changed(user, browsers))

    async def _run_ticks(self) -> None:
        while True:
            await asyncio.sleep(_TICK)
            try:
                self._tick()
            except Exception:
                log.exception("error in the periodic tick")
            if self.keyring.expired():
                await self.keyring.fetch()

    def _tick(self) -> None:
        self.run(self.state.tick(self.clock()))
        self.keyring.reload()
        self._reload_revocations()
        self.revocations.drop_ended(self._wall())

    def _reload_revocations(self) -> None:
        """Read the list again if it has changed."""
        new = self.revocations.reload(self._wall())
        if new:
            self._disconnect_revoked(new)
            self.bus.revoke(new)

    def _disconnect_revoked(self, entries: Sequence[str]) -> None:
        if entries:
            self.run(self.state.tokens_revoked(self.revocations.revokes))


@dataclass(slots=True, eq=False)
class NodeClient:
    """One client of a node: what its transport reports (http.websocket.Receiver)."""

    node: Node
    number: int

    def receive(self, message: bytes) -> None:
        node, number = self.node, self.number
        try:
            if message == wire.PING and node.state.ping_received(number, node.clock()):
                if (socket := node.sockets.get(number)) is not None:
                    socket.send_text(wire.PONG)
                return
            forwarded = node.state.fast_forward(number, message, node.clock())
            if not isinstance(forwarded, tuple):
                node.run(node.state.message_received(number, message, node.clock(), forwarded))
            elif forwarded[0] is None:  # the effect without creating it
                socket = node.sockets.get(forwarded[1])
                if socket is not None:
                    socket.send_text(forwarded[2])
            else:
                node.run([effect_of(forwarded)])
        except Exception:
            log.exception("error while handling a message")
            node.state.tables.out.clear()
            error = TabhubError("Internal error in the relay. Its log has details.")
            # A request is answered nevertheless.
            node.run([Send(number, jsonrpc.encode_failure(_id_of(message), error))])

    def receive_binary(self) -> None:
        self.node.run(self.node.state.refuse_client(self.number, wire.PROTOCOL_ERROR, "messages must be text"))

    def overflow(self) -> None:
        self.aborted("it does not read its messages")

    def aborted(self, reason: str) -> None:
        self.node.sockets.pop(self.number, None)
        self.node.run(self.node.state.client_aborted(self.number, reason))

    def closed(self, reason: str) -> None:
        self.node.sockets.pop(self.number, None)
        self.node.run(self.node.state.client_disconnected(self.number, reason))

    def refuse(self, reason: str) -> None:
        self.node.run(self.node.state.refuse_client(self.number, wire.NOT_AUTHENTICATED, reason))

    def user(self) -> str | None:
        return self.node.state.user_of(self.number)

    def admit(self, claims: Claims) -> None:
        """Authenticate an agent whose token is verified, or replace its token by a newer one of the same user."""
        self.node.token_verified(self.number, claims)

    def check_rate(self) -> float | None:
        """Count one HTTP request of an agent; the seconds to wait if it exceeds the rate limit."""
        return self.node.state.check_rate(self.number, self.node.clock())


def _id_of(data: bytes) -> jsonrpc.Id | None:
    try:
        frame = wire.read(data)
    except BadFrame as bad:
        return bad.ident
    return frame.id if frame.id is not wire.UNSET else None
