"""Which agents want to hear of changes of which resources of external servers.

Owns whose wish it is, in the agent's words and in the server's. Pure: it tells nobody and asks no server.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

Agent = TypeVar("Agent")


@dataclass(frozen=True, slots=True)
class Subscription:
    """One resource as an agent and its server call it."""

    server: str
    own: str
    asked: str


class Subscriptions(Generic[Agent]):
    """Everything that is followed."""

    def __init__(self) -> None:
        self._by_agent: dict[Agent, dict[str, Subscription]] = {}

    def add(self, agent: Agent, followed: Subscription) -> None:
        """An agent wants to hear of a resource."""
        self._by_agent.setdefault(agent, {})[followed.asked] = followed

    def remove(self, agent: Agent, asked: str) -> Subscription | None:
        """It does not any more; None if it never did."""
        own = self._by_agent.get(agent, {})
        gone = own.pop(asked, None)
        if not own:
            self._by_agent.pop(agent, None)
        return gone

    def drop(self, agent: Agent) -> list[Subscription]:
        """An agent is gone; gives what it had followed."""
        return list(self._by_agent.pop(agent, {}).values())

    def uris(self, server: str) -> frozenset[str]:
        """The resources of a server that somebody follows, in its own words."""
        return frozenset(each.own for own in self._by_agent.values() for each in own.values() if each.server == server)

    def subscribers(self, server: str, uri: str) -> Iterator[tuple[Agent, str]]:
        """Whom a change concerns, and what each calls it; servers may name a part of what is followed."""
        for agent, own in self._by_agent.items():
            for each in own.values():
                if each.server == server and (uri == each.own or uri.startswith(each.own.rstrip("/") + "/")):
                    yield agent, each.asked
