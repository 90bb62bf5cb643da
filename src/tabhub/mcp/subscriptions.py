"""Telling agents that a resource of an external server has changed: those who follow it, at a bearable pace.

Owns the followers and their pace. What a resource is called, and by whom, is in the book; how a server is asked to tell
of changes is the upstream's.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tabhub.core.resource_subscriptions import Subscription, Subscriptions
from tabhub.errors import InvalidParams
from tabhub.limits import Limits
from tabhub.mcp.notifications import Pace, gap


class ResourceSubscriber:
    """One agent that follows resources, for as long as its session or stream lasts."""

    def __init__(self, following: ResourceSubscribers, tell: Callable[[str], None]) -> None:
        self._following = following
        self._tell = tell
        self._paces: dict[str, Pace] = {}
        self.closed = False

    @property
    def uris(self) -> list[str]:
        """What it follows, in its own words."""
        return list(self._paces)

    def add(self, followed: Subscription) -> None:
        """Tell it of changes of a resource from now on."""
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
        """Tell it no more of a resource; one it does not follow is none the worse."""
        gone = self._following.book.remove(self, uri)
        if gone is not None:
            self._paces.pop(uri).stop()
            self._following.changed(gone.server)

    def poke(self, uri: str) -> None:
        """The resource has changed."""
        self._paces[uri].poke()

    def close(self) -> None:
        """It is gone."""
        self.closed = True
        for pace in self._paces.values():
            pace.stop()
        self._paces.clear()
        for server in {followed.server for followed in self._following.book.drop(self)}:
            self._following.changed(server)


class ResourceSubscribers:
    """All that is followed at one hub."""

    def __init__(self, limits: Limits, changed: Callable[[str], None]) -> None:
        """`changed` is called with a server when other resources of it are subscribed to than before."""
        self.limits = limits
        self.book: Subscriptions[ResourceSubscriber] = Subscriptions()
        self.changed = changed

    def follower(self, tell: Callable[[str], None]) -> ResourceSubscriber:
        """Somebody new, who follows nothing yet; `tell` gets the URI in that agent's words."""
        return ResourceSubscriber(self, tell)

    def updated(self, server: str, uri: str) -> None:
        """A server says that a resource has changed."""
        for follower, asked in list(self.book.subscribers(server, uri)):
            follower.poke(asked)
