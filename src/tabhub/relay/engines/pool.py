"""All agents over HTTP of one node: an engine for each token, found again by the session it serves.

Owns how many there may be, when one ends, and that no user reaches another's.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from pathlib import Path

from tabhub.errors import Busy, SessionNotFound
from tabhub.http.write_batch import WriteBatch
from tabhub.relay.engines.engine import RelayEngine, engine_limits
from tabhub.relay.node import Node
from tabhub.store.audit import AuditLog
from tabhub.trust.jwt import Claims

log = logging.getLogger("tabhub.relay")

_TICK = 1.0


class RelayEngines:
    """The engines of one node."""

    def __init__(
        self,
        node: Node,
        batch: WriteBatch,
        *,
        audit_file: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._node = node
        self._limits = node.limits
        self._each = engine_limits(node.limits)
        self._audit = AuditLog(audit_file, node.limits, clock=wall, batch=batch)
        self._clock = clock
        self._wall = wall
        self._of_user: dict[str, dict[str, RelayEngine]] = {}
        """By user, then by token."""
        self._going: set[RelayEngine] = set()
        self._keeper: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return sum(len(engines) for engines in self._of_user.values())

    def of(self, user: str) -> list[RelayEngine]:
        """A user's engines."""
        return list(self._of_user.get(user, {}).values())

    def find(self, claims: Claims, session_id: str | None) -> RelayEngine:
        """The engine that serves this session, else that of the token, created if needed."""
        own = self._of_user.get(claims.user, {})
        if session_id is None:
            found = own.get(claims.token_id)
            return found if found is not None else self._make(claims)
        for token_id, engine in own.items():
            if engine.knows(session_id):
                if token_id != claims.token_id and (engine.road.paused or claims.expires > engine.road.claims.expires):
                    self._renew(token_id, engine, claims)
                return engine
        raise SessionNotFound("This session has ended or never was.", hint="Begin again with `initialize`.")

    def _renew(self, known_as: str, engine: RelayEngine, claims: Claims) -> None:
        """A client with a newer token continues its session."""
        own = self._of_user[claims.user]
        if claims.token_id not in own:
            del own[known_as]
            own[claims.token_id] = engine
        engine.road.renew(claims)

    def _make(self, claims: Claims) -> RelayEngine:
        self._make_room(claims.user)
        engine = RelayEngine(
            self._node, claims, limits=self._each, audit=self._audit, clock=self._clock, wall=self._wall
        )
        self._of_user.setdefault(claims.user, {})[claims.token_id] = engine
        self._node.engines = len(self)
        running = self._node.spawn(engine.run())
        running.add_done_callback(lambda _: self._forget(engine))
        engine.running = running
        if self._keeper is None or self._keeper.done():
            self._keeper = self._node.spawn(self._keep())
        return engine

    def _make_room(self, user: str) -> None:
        own = self.of(user)
        if len(own) >= self._limits.relay_user_engines:
            unused = [engine for engine in own if not engine.open]
            if not unused:
                raise Busy(
                    f"{self._limits.relay_user_engines} tokens of this user are in use at once, which is the limit.",
                    hint="End agents that are not needed, or use one token for several.",
                )
            self._end(min(unused, key=lambda engine: engine.used), "another agent of its user needed the place")
        if len(self) + len(self._going) >= self._limits.relay_engines:
            raise Busy("This relay node serves as many agents over HTTP as it can.", hint="Try again in a minute.")

    def _end(self, engine: RelayEngine, reason: str) -> None:
        """Remove an engine; it is not found from now on."""
        self._forget(engine)
        self._going.add(engine)
        self._node.spawn(self._leave(engine, reason))

    async def _leave(self, engine: RelayEngine, reason: str) -> None:
        try:
            await engine.leave(reason)
        finally:
            self._going.discard(engine)
            if engine.running is not None:
                engine.running.cancel()

    def _forget(self, engine: RelayEngine) -> None:
        own = self._of_user.get(engine.user, {})
        for token_id in [token_id for token_id, known in own.items() if known is engine]:
            del own[token_id]
        if not own:
            self._of_user.pop(engine.user, None)
        self._node.engines = len(self)

    async def _keep(self) -> None:
        """Maintain the engines while there are any."""
        while self._of_user:
            await asyncio.sleep(_TICK)
            for engine in [engine for own in self._of_user.values() for engine in own.values()]:
                try:
                    self._look_at(engine)
                except Exception:
                    log.exception("an engine could not be looked after, and is ended")
                    self._end(engine, "it failed inside; the relay's log says why")
            self._audit.flush()

    def _look_at(self, engine: RelayEngine) -> None:
        engine.keep()
        unused = not engine.open and (engine.road.paused or not engine.sessions.all())
        if unused and self._clock() - engine.used >= self._limits.relay_engine_idle:
            self._end(engine, "it was idle")
