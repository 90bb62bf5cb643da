"""A relay node at work: carries out what state.py decides, on sockets and bus.

Owns the clock, the tasks and the order of effects. It decides nothing about the protocol.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Callable, Coroutine, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, Protocol

from tabhub.errors import BadFrame, BusUnavailable, InvalidToken, TabhubError, UnknownSigningKey
from tabhub.limits import Limits
from tabhub.relay.bus.interface import Bus, Presence
from tabhub.relay.fair_share import FairShare
from tabhub.relay.fast_forward import effect_of
from tabhub.relay.keyring import Keyring
from tabhub.relay.records import (
    Announce,
    Close,
    Effect,
    FindBrowsers,
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
_TELL_REVOKED = 30.0


class Socket(Protocol):
    """A WebSocket as a node uses it."""

    def send_text(self, data: bytes) -> None:
        """Send one message."""
        ...

    def send_close(self, code: int, reason: str) -> None:
        """End it."""
        ...


def stamp() -> str:
    """The time as status messages show it."""
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
        self.limits = limits
        self.rules = rules if rules is not None else Rules(longest=limits.relay_token)
        self.revocations = revocations if revocations is not None else Revocations(None)
        self.state = Relay(bus.node, limits, ids=lambda: str(uuid.uuid4()), stamp=stamp)
        self.fair_share = FairShare(limits.relay_user_queue)
        self.started = clock()
        self.closing = False
        self.engines = 0
        """Agents over HTTP, each with the tools it is served with."""
        self._clock = clock
        self._wall = wall
        self._sockets: dict[int, Socket] = {}
        self._last = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._told_revoked = clock()
        self._actions: dict[type, Callable[[Any], object]] = {
            Close: self._close,
            VerifyToken: self._verify,
            FindBrowsers: lambda effect: self._spawn(self._find(effect)),
            ToNode: self._to_node,
            Announce: self._announce,
            Membership: lambda effect: bus.join(effect.user) if effect.here else bus.leave(effect.user),
            ReportUsage: lambda effect: bus.report_usage(effect.user, effect.messages),
            Log: lambda effect: log.info(effect.event, extra={"facts": dict(effect.facts)}),
        }

    @property
    def clients(self) -> int:
        """Open WebSockets."""
        return len(self._sockets)

    @property
    def ready(self) -> bool:
        """Whether new clients can be served in full."""
        return not self.closing and self.bus.healthy and bool(self.keyring.keys)

    async def start(self) -> None:
        """Join the bus, fetch keys, and begin to tick."""
        self.revocations.reread(self._wall())
        await self.bus.start(self)
        await self.keyring.fetch()
        self._spawn(self._clockwork())

    async def stop(self) -> None:
        """Leave the bus and end what runs."""
        await self.bus.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def shut_down(self) -> None:
        """Tell everyone to come back, and close their sockets."""
        if not self.closing:
            self.closing = True
            self.run(self.state.shutting_down())

    def attach(self, role: Role, socket: Socket) -> int:
        """A WebSocket was accepted; gives its number."""
        self._last += 1
        client = self._last
        self._sockets[client] = socket
        opened = self.state.agent_connected if role == "agent" else self.state.browser_connected
        self.run(opened(client, self._clock()))
        return client

    def feed(self, client: int, data: bytes) -> None:
        """A text message came."""
        try:
            passed = self.state.passed(client, data, self._clock())
            if passed is None:
                self.run(self.state.said_in_full(client, data, self._clock()))
            elif passed[0] is None:
                socket = self._sockets.get(passed[1])
                if socket is not None:
                    socket.send_text(passed[2])
            else:
                self.run([effect_of(passed)])
        except Exception:
            log.exception("a message could not be handled")
            self._internal(client, data)

    def detach(self, client: int, reason: str) -> None:
        """A WebSocket has ended."""
        self._sockets.pop(client, None)
        self.run(self.state.client_disconnected(client, reason))

    def too_slow(self, client: int) -> None:
        """A client lets too much pile up: its connection is cut by whoever calls this."""
        self.abort(client, "it does not read what it is sent")

    def abort(self, client: int, why: str) -> None:
        """A client's connection is cut by whoever calls this."""
        self._sockets.pop(client, None)
        self.run(self.state.client_aborted(client, why))

    def user_of(self, client: int) -> str | None:
        """Whose client it is; None as long as it has not authenticated."""
        return self.state.user_of(client)

    def refuse(self, client: int, code: int, reason: str) -> None:
        """A client broke the rules of the transport."""
        self.run(self.state.refuse_client(client, code, reason))

    # agents of this process: what they came with was judged by whoever attaches them

    async def verify_token(self, token: str) -> Claims | InvalidToken:
        """What a token is worth; for one of an unknown key, the published keys are looked at once more."""
        verdict = self._check_token(token)
        if isinstance(verdict, UnknownSigningKey):
            await self.keyring.fetch()
            verdict = self._check_token(token)
        if isinstance(verdict, InvalidToken):
            self.run(self.state.auth_failed("agent", verdict))
        return verdict

    def admit(self, client: int, claims: Claims) -> None:
        """Let an agent in, or go on with a newer token of its user."""
        self._verified(client, claims)

    def check_rate(self, client: int) -> float | None:
        """ReportUsage one request of an agent that is no message; the seconds to wait if it is one too many."""
        return self.state.check_rate(client, self._clock())

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Have something done beside, until the node stops."""
        return self._spawn(work)

    def run(self, effects: list[Effect]) -> None:
        """Carry effects out, in order."""
        sockets = self._sockets
        for effect in effects:
            if type(effect) is Send:
                socket = sockets.get(effect.client)
                if socket is not None:
                    socket.send_text(effect.data)
            else:
                self._actions[type(effect)](effect)

    # what the bus says

    def message_received(self, node: str, message: bytes) -> None:
        """Another node sent a message."""
        self.run(self.state.node_message_received(node, message))

    def node_lost(self, node: str) -> None:
        """Another node has gone."""
        log.info("node_lost", extra={"facts": {"node": node}})
        self.run(self.state.node_lost(node))

    def browsers_changed(self, user: str) -> None:
        """A user's browser came or went elsewhere."""
        self._spawn(self._look(user))

    def usage_reported(self, user: str, count: int) -> None:
        """Messages of a user were taken elsewhere."""
        self.run(self.state.usage_reported(user, count, self._clock()))

    def tokens_revoked(self, entries: Sequence[str]) -> None:
        """Tokens were revoked elsewhere."""
        self._out_with(self.revocations.add(entries, self._wall()))

    def bus_changed(self, healthy: bool) -> None:
        """The bus has gone or is back."""
        self.run(self.state.bus_changed(healthy))

    # effects

    def _close(self, effect: Close) -> None:
        socket = self._sockets.get(effect.client)
        if socket is not None:
            socket.send_close(effect.code, effect.reason)

    def _to_node(self, effect: ToNode) -> None:
        if not self.bus.send(effect.node, nodes.encode(effect.message)):
            self.run(self.state.node_lost(effect.node))

    def _announce(self, effect: Announce) -> None:
        if effect.here:
            self.bus.announce(effect.browser)
            self._spawn(self._replace_elsewhere(effect.browser))
        else:
            self.bus.withdraw(effect.browser)

    def _verify(self, effect: VerifyToken) -> None:
        verdict = self._check_token(effect.token)
        if isinstance(verdict, UnknownSigningKey):
            self._spawn(self._verify_again(effect))
        else:
            self._verified(effect.client, verdict)

    async def _verify_again(self, effect: VerifyToken) -> None:
        """Perhaps the key was published since; if not, the verdict stands."""
        await self.keyring.fetch()
        self._verified(effect.client, self._check_token(effect.token))

    def _check_token(self, token: str) -> Claims | InvalidToken:
        try:
            claims = verify(token, self.keyring.keys, self._wall(), self.rules)
        except InvalidToken as refused:
            return refused
        return InvalidToken("revoked") if claims.token_id in self.revocations else claims

    def _verified(self, client: int, verdict: Claims | InvalidToken) -> None:
        remaining = verdict.expires - self._wall() if isinstance(verdict, Claims) else 0.0
        self.run(self.state.token_verified(client, verdict, self._clock(), remaining))

    async def _find(self, effect: FindBrowsers) -> None:
        try:
            browsers: Sequence[Presence] | None = await self.bus.browsers(effect.user)
        except BusUnavailable:
            browsers = None
        self.run(self.state.browsers_found(effect.ticket, browsers))

    async def _look(self, user: str) -> None:
        try:
            browsers = await self.bus.browsers(user)
        except BusUnavailable:
            return  # it is told again when the bus is back
        self.run(self.state.remote_browsers_changed(user, browsers))

    async def _replace_elsewhere(self, browser: Presence) -> None:
        """The same browser may still seem connected to a node it has left."""
        try:
            others = await self.bus.browsers(browser.user)
        except BusUnavailable:
            return  # whoever is cut off cannot be told; its socket will be found dead
        for other in others:
            if other.extension_id == browser.extension_id:
                self._to_node(ToNode(other.node, nodes.Replaced(browser.user, browser.extension_id)))

    # time

    async def _clockwork(self) -> None:
        while True:
            await asyncio.sleep(_TICK)
            try:
                self._tick()
            except Exception:
                log.exception("the tick failed")
            if self.keyring.old():
                await self.keyring.fetch()

    def _tick(self) -> None:
        self.run(self.state.tick(self._clock()))
        self.keyring.reread()
        new = self.revocations.reread(self._wall())
        if new:
            self._out_with(new)
            self.bus.revoke(new)
        elif self._clock() - self._told_revoked >= _TELL_REVOKED:  # for nodes that were not there at the time
            self._told_revoked = self._clock()
            entries = self.revocations.entries(self._wall())
            if entries:
                self.bus.revoke(entries)

    def _out_with(self, entries: Sequence[str]) -> None:
        if entries:
            self.run(self.state.tokens_revoked({entry.partition(" ")[0] for entry in entries}))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _internal(self, client: int, data: bytes) -> None:
        """A slip of ours: whoever asked gets an answer all the same."""
        self.state.tables.out.clear()
        socket = self._sockets.get(client)
        if socket is not None:
            ident = _id_of(data)
            socket.send_text(wire.failure(ident, TabhubError("The relay failed to handle this; its log says why.")))


def _id_of(data: bytes) -> jsonrpc.Id | None:
    try:
        frame = wire.read(data)
    except BadFrame as bad:
        return bad.ident
    return frame.id if frame.id is not wire.UNSET else None
