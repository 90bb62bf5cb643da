"""Notifying agents that a resource of an external server has changed: those that subscribed to it, rate-limited.

Owns the subscribers and their rate. Names of resources are in the book; subscribing at the server is upstream/'s.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tabhub.core.resource_subscriptions import Subscription, Subscriptions
from tabhub.errors import InvalidParams
from tabhub.limits import Limits
from tabhub.mcp.notifications import Pace, gap


class ResourceSubscriber:
    """One agent with subscriptions, for as long as its session or stream lasts."""

    def __init__(self, subscribers: ResourceSubscribers, notify: Callable[[str], None]) -> None:
        self._subscribers = subscribers
        self._notify = notify
        self._paces: dict[str, Pace] = {}
        self.closed = False

    @property
    def uris(self) -> list[str]:
        """The URIs it subscribed to, as it named them."""
        return list(self._paces)

    def add(self, subscription: Subscription) -> None:
        subscribers = self._subscribers
        if subscription.asked not in self._paces:
            if len(self._paces) >= subscribers.limits.followed_resources:
                raise InvalidParams(
                    f"This client has {len(self._paces)} resource subscriptions already, which is the limit.",
                    hint="Unsubscribe from some, or raise limits.followed_resources.",
                )
            self._paces[subscription.asked] = Pace(partial(self._notify, subscription.asked), gap(subscribers.limits))
        subscribers.book.add(self, subscription)
        subscribers.changed(subscription.server)

    def remove(self, uri: str) -> None:
        """Unsubscribe; a resource it has not subscribed to is ignored."""
        removed = self._subscribers.book.remove(self, uri)
        if removed is not None:
            self._paces.pop(uri).stop()
            self._subscribers.changed(removed.server)

    def poke(self, uri: str) -> None:
        self._paces[uri].poke()

    def close(self) -> None:
        self.closed = True
        for pace in self._paces.values():
            pace.stop()
        self._paces.clear()
        for server in {subscription.server for subscription in self._subscribers.book.drop(self)}:
            self._subscribers.changed(server)


@dataclass(eq=False)
class ResourceSubscribers:
    """All subscriptions of one hub."""

    limits: Limits
    changed: Callable[[str], None]
    """Called with a server when other resources of it are subscribed to than before."""

    def __post_init__(self) -> None:
        self.book: Subscriptions[ResourceSubscriber] = Subscriptions()

    def subscriber(self, notify: Callable[[str], None]) -> ResourceSubscriber:
        """A new subscriber; `notify` gets the URI as that agent named it."""
        return ResourceSubscriber(self, notify)

    def updated(self, server: str, uri: str) -> None:
        for subscriber, asked in list(self.book.subscribers(server, uri)):
            subscriber.poke(asked)
