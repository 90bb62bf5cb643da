"""The engines of one node: one for each token of an agent over HTTP, found again by the session it serves.

Owns their maximum number, when one ends, and that no user reaches the engine of another.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from functools import partial
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
        new_id: Callable[[], str],
        audit_file: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._node = node
        self._audit = AuditLog(audit_file, node.limits, clock=wall, batch=batch)
        self._clock = clock
        self._make_engine = partial(RelayEngine, node, audit=self._audit, new_id=new_id, clock=clock, wall=wall)
        self._by_user: dict[str, dict[str, RelayEngine]] = {}
        """By user, then by token."""
        self._closing: set[RelayEngine] = set()
        self._ticker: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return sum(len(engines) for engines in self._by_user.values())

    def of(self, user: str) -> list[RelayEngine]:
        return list(self._by_user.get(user, {}).values())

    def find(self, claims: Claims, session_id: str | None) -> RelayEngine:
        """The engine that serves this session, else that of the token, created if needed.

        A client may continue its session with a newer token.
        """
        own = self._by_user.get(claims.user, {})
        if session_id is None:
            return own.get(claims.token_id) or self._create(claims)
        for token_id, engine in own.items():
            if engine.has_session(session_id):
                links = engine.links
                if token_id != claims.token_id and (links.paused or claims.expires > links.claims.expires):
                    if claims.token_id not in own:
                        own[claims.token_id] = own.pop(token_id)
                    links.renew(claims)
                return engine
        raise SessionNotFound("This session has ended or never existed.", hint="Start again with `initialize`.")

    def end_idle(self) -> bool:
        """End the engines in which no call runs, because the node is about to end; returns whether none is left."""
        for engine in [engine for own in self._by_user.values() for engine in own.values()]:
            if not engine.busy:
                self._end(engine, "the relay restarts")
        return not self._by_user and not self._closing

    def _create(self, claims: Claims) -> RelayEngine:
        self._make_room(claims.user)
        engine = self._make_engine(claims, limits=engine_limits(self._node.limits))
        self._by_user.setdefault(claims.user, {})[claims.token_id] = engine
        engine.task.add_done_callback(lambda _: self._remove(engine))
        if self._ticker is None or self._ticker.done():
            self._ticker = self._node.spawn(self._run_ticks())
        return engine

    def _make_room(self, user: str) -> None:
        own = self.of(user)
        if len(own) >= self._node.limits.relay_user_engines:
            unused = [engine for engine in own if not engine.open]
            if not unused:
                raise Busy(
                    f"{self._node.limits.relay_user_engines} tokens of this user are in use, the maximum.",
                    hint="End agents that are not needed, or use one token for several.",
                )
            self._end(min(unused, key=lambda engine: engine.last_used), "another agent of its user replaced it")
        if len(self) + len(self._closing) >= self._node.limits.relay_engines:
            raise Busy("This relay node serves as many agents over HTTP as it can.", hint="Try again in a minute.")

    def _end(self, engine: RelayEngine, reason: str) -> None:
        self._remove(engine)
        self._closing.add(engine)
        self._node.spawn(engine.close(reason)).add_done_callback(lambda _: self._closing.discard(engine))

    def _remove(self, engine: RelayEngine) -> None:
        own = self._by_user.get(engine.user, {})
        for token_id in [token_id for token_id, known in own.items() if known is engine]:
            del own[token_id]
        if not own:
            self._by_user.pop(engine.user, None)

    async def _run_ticks(self) -> None:
        """While there are engines, remove unused ones and expired data."""
        while self._by_user:
            await asyncio.sleep(_TICK)
            for engine in [engine for own in self._by_user.values() for engine in own.values()]:
                try:
                    self._tick(engine)
                except Exception:
                    log.exception("error in an engine, which is ended")
                    self._end(engine, "internal error; the relay's log has details")
            self._audit.flush()

    def _tick(self, engine: RelayEngine) -> None:
        engine.tick()
        unused = not engine.open and (engine.links.paused or not engine.sessions.all())
        if unused and self._clock() - engine.last_used >= self._node.limits.relay_engine_idle:
            self._end(engine, "it was idle")
