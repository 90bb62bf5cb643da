"""Which agents are subscribed to which resources of external servers, and their notifications, rate-limited.

Owns the subscriptions, with the URI each agent used and the server's own. Subscribing at the server is upstream/'s.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from tabhub.errors import InvalidParams
from tabhub.limits import Limits
from tabhub.mcp.notifications import Pace, gap


@dataclass(frozen=True, slots=True)
class Subscription:
    """One resource, by the server's URI (`own`) and the one the agent used (`asked`)."""

    server: str
    own: str
    asked: str

    def covers(self, server: str, uri: str) -> bool:
        """Whether a changed resource is this one; servers may report a part of it."""
        return server == self.server and (uri == self.own or uri.startswith(self.own.rstrip("/") + "/"))


class ResourceSubscriber:
    """One agent with subscriptions, for as long as its session or stream lasts."""

    def __init__(self, subscribers: ResourceSubscribers, notify: Callable[[str], None]) -> None:
        """`notify` gets the URI as the agent named it."""
        self._subscribers = subscribers
        self._notify = notify
        self._held: dict[str, tuple[Subscription, Pace]] = {}

    @property
    def subscriptions(self) -> list[Subscription]:
        return [subscription for subscription, _ in self._held.values()]

    def add(self, subscription: Subscription) -> None:
        asked, limits = subscription.asked, self._subscribers.limits
        if asked in self._held:
            pace = self._held[asked][1]
        elif len(self._held) >= limits.followed_resources:
            raise InvalidParams(
                f"This client has {len(self._held)} resource subscriptions already, which is the limit.",
                hint="Unsubscribe from some, or raise limits.followed_resources.",
            )
        else:
            pace = Pace(partial(self._notify, asked), gap(limits))
        self._held[asked] = subscription, pace
        self._subscribers.open.add(self)
        self._subscribers.changed(subscription.server)

    def remove(self, uri: str) -> None:
        """Unsubscribe; a resource it has not subscribed to is ignored."""
        removed = self._held.pop(uri, None)
        if removed is not None:
            subscription, pace = removed
            pace.stop()
            self._subscribers.changed(subscription.server)

    def updated(self, server: str, uri: str) -> None:
        for subscription, pace in list(self._held.values()):
            if subscription.covers(server, uri):
                pace.poke()

    def close(self) -> None:
        self._subscribers.open.discard(self)
        held, self._held = self._held, {}
        for _, pace in held.values():
            pace.stop()
        for server in {subscription.server for subscription, _ in held.values()}:
            self._subscribers.changed(server)


@dataclass(eq=False)
class ResourceSubscribers:
    """All subscriptions of one hub."""

    limits: Limits
    changed: Callable[[str], None]
    """Called with a server when other resources of it are subscribed to than before."""
    open: set[ResourceSubscriber] = field(default_factory=set)

    def uris(self, server: str) -> frozenset[str]:
        """The server's own URIs of the resources with subscribers."""
        held = (each for subscriber in self.open for each in subscriber.subscriptions)
        return frozenset(each.own for each in held if each.server == server)

    def updated(self, server: str, uri: str) -> None:
        for subscriber in list(self.open):
            subscriber.updated(server, uri)
