"""Which agents are subscribed to which resources of external servers.

Owns the subscriptions, with the URI each agent used and the server's own. It sends nothing to agents or servers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

Agent = TypeVar("Agent")


@dataclass(frozen=True, slots=True)
class Subscription:
    """One resource, by the server's URI (`own`) and the one the agent used (`asked`)."""

    server: str
    own: str
    asked: str


class Subscriptions(Generic[Agent]):
    """The subscriptions of all agents."""

    def __init__(self) -> None:
        self._by_agent: dict[Agent, dict[str, Subscription]] = {}

    def add(self, agent: Agent, subscription: Subscription) -> None:
        self._by_agent.setdefault(agent, {})[subscription.asked] = subscription

    def remove(self, agent: Agent, asked: str) -> Subscription | None:
        """Returns None if the agent was not subscribed."""
        own = self._by_agent.get(agent, {})
        removed = own.pop(asked, None)
        if not own:
            self._by_agent.pop(agent, None)
        return removed

    def drop(self, agent: Agent) -> list[Subscription]:
        """Remove an agent and return its subscriptions."""
        return list(self._by_agent.pop(agent, {}).values())

    def uris(self, server: str) -> frozenset[str]:
        """The server's own URIs of the resources with subscribers."""
        return frozenset(each.own for own in self._by_agent.values() for each in own.values() if each.server == server)

    def subscribers(self, server: str, uri: str) -> Iterator[tuple[Agent, str]]:
        """Who is subscribed to a changed resource, and by which URI; servers may report a part of a resource."""
        for agent, own in self._by_agent.items():
            for each in own.values():
                if each.server == server and (uri == each.own or uri.startswith(each.own.rstrip("/") + "/")):
                    yield agent, each.asked
