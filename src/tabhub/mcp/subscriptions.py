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

    def __init__(self, following: ResourceSubscribers, tell: Callable[[str], None]) -> None:
        self._following = following
        self._tell = tell
        self._paces: dict[str, Pace] = {}
        self.closed = False

    @property
    def uris(self) -> list[str]:
        """The URIs it subscribed to, as it named them."""
        return list(self._paces)

    def add(self, followed: Subscription) -> None:
        following = self._following
        if followed.asked not in self._paces:
            if len(self._paces) >= following.limits.followed_resources:
                raise InvalidParams(
                    f"This client follows {len(self._paces)} resources already, which is the most.",
                    hint="Unsubscribe from some, or raise limits.followed_resources.",
                )
            self._paces[followed.asked] = Pace(partial(self._tell, followed.asked), gap(following.limits))
        following.book.add(self, followed)
        following.changed(followed.server)

    def remove(self, uri: str) -> None:
        """Unsubscribe; a resource it has not subscribed to is ignored."""
        gone = self._following.book.remove(self, uri)
        if gone is not None:
            self._paces.pop(uri).stop()
            self._following.changed(gone.server)

    def poke(self, uri: str) -> None:
        self._paces[uri].poke()

    def close(self) -> None:
        self.closed = True
        for pace in self._paces.values():
            pace.stop()
        self._paces.clear()
        for server in {followed.server for followed in self._following.book.drop(self)}:
            self._following.changed(server)


@dataclass(eq=False)
class ResourceSubscribers:
    """All subscriptions of one hub."""

    limits: Limits
    changed: Callable[[str], None]
    """Called with a server when other resources of it are subscribed to than before."""

    def __post_init__(self) -> None:
        self.book: Subscriptions[ResourceSubscriber] = Subscriptions()

    def follower(self, tell: Callable[[str], None]) -> ResourceSubscriber:
        """A new subscriber; `tell` gets the URI as that agent named it."""
        return ResourceSubscriber(self, tell)

    def updated(self, server: str, uri: str) -> None:
        for follower, asked in list(self.book.subscribers(server, uri)):
            follower.poke(asked)
