"""The browsers of the users that this node has joined: what it announces, and what other nodes announce.

Owns the rosters and the messages on the subjects of users. Lists travel only when a node joins a user, or when it asks
because it missed a change; otherwise nodes announce what has changed.

    PREFIX.user.<hash>           for the nodes that have joined a user: changes of their browsers, and usage
    PREFIX.reply.<node>.<hash>   lists for one node, and its requests for them
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable

from tabhub.errors import BusUnavailable
from tabhub.relay.bus.current_connection import CurrentConnection
from tabhub.relay.bus.interface import BusListener, Presence
from tabhub.relay.bus.nats_connection import read
from tabhub.relay.bus.rosters import OwnBrowser, Roster, subject_of
from tabhub.wire import nodes as wire
from tabhub.wire.nats import Message

log = logging.getLogger("tabhub.relay.bus.interface")

PREFIX = "tabhub.v2"
"""Nodes of version 0.1, which announce whole lists, use `tabhub` alone; the two do not see each other."""
QUERY_TIMEOUT = 1.0
_GRACE = 0.05
_BATCH = 2000
"""Browsers in one message, which has to fit into 1 MB; the rest of a list follows as changes."""
_MAX_LOST = 16
"""Lost nodes whose users are remembered; one that returns later is asked about all."""


class BusPresence:
    """All rosters of one node."""

    def __init__(
        self, node: str, current: CurrentConnection, clock: Callable[[], float], mark_alive: Callable[[str], None]
    ) -> None:
        self._node = node
        self._current = current
        self._clock = clock
        self._mark_alive = mark_alive
        self._rosters: dict[str, Roster] = {}
        """By the part of their subjects that stands for the user."""
        self._version = 0
        self._lost: dict[str, tuple[int, set[str]]] = {}
        """Lost nodes: the version at that time, and the users they had."""
        self._listener: BusListener

    def start(self, listener: BusListener) -> None:
        self._listener = listener

    def join(self, user: str) -> None:
        self._ensure_roster(user).joined = True

    def leave(self, user: str) -> None:
        roster = self._rosters.get(subject_of(user))
        if roster is not None:
            roster.joined = False
            self._release(roster)

    def announce(self, browser: Presence) -> None:
        roster = self._ensure_roster(browser.user)
        own = OwnBrowser(browser.name, browser.admitted)
        if roster.own.get(browser.extension_id) != own:
            roster.own[browser.extension_id] = own
            self._publish_change(roster, joined=((browser.extension_id, *own),))

    def withdraw(self, browser: Presence) -> None:
        roster = self._rosters.get(subject_of(browser.user))
        if roster is not None and roster.own.pop(browser.extension_id, None) is not None:
            self._publish_change(roster, left=(browser.extension_id,))
            self._release(roster)

    async def browsers(self, user: str) -> tuple[Presence, ...]:
        """Known at once, except just after joining the user."""
        roster = self._ensure_roster(user)
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        roster.waiting.append(done)
        try:
            if not roster.complete:
                await done
            return roster.browsers()
        finally:
            roster.waiting.remove(done)
            self._release(roster)

    def report_usage(self, user: str, count: int) -> None:
        roster = self._rosters.get(subject_of(user))
        if roster is not None and any(member.here for member in roster.members.values()):
            self._current.publish(_user_subject(roster), wire.Usage(self._node, count))

    # the connection, and other nodes

    def connected(self, return_timeout: float) -> None:
        """There is a new connection: ask about all users. Nodes known before have this long to return."""
        self._current.subscribe(f"{PREFIX}.reply.{self._node}.*", self._replied)
        for roster in list(self._rosters.values()):
            self._query(roster, return_timeout if roster.missing else QUERY_TIMEOUT)

    def disconnected(self) -> None:
        self.fail_waiting()
        self._lost.clear()
        for roster in list(self._rosters.values()):
            roster.invalidate()

    def fail_waiting(self) -> None:
        for done in (done for roster in self._rosters.values() for done in roster.waiting):
            if not done.done():
                done.set_exception(unavailable())

    def tick(self) -> None:
        for roster in list(self._rosters.values()):
            if not roster.complete:
                self._changed(roster, changed=False)

    def node_ended(self, node: str) -> None:
        """A node has shut down, and will not return under this name."""
        for roster in list(self._rosters.values()):
            self._changed(roster, roster.remove_node(node))

    def node_lost(self, node: str) -> None:
        """A node is silent; it may return."""
        users = {key for key, roster in self._rosters.items() if node in roster.members}
        while len(self._lost) >= _MAX_LOST:
            del self._lost[next(iter(self._lost))]
        self._lost[node] = self._version, users
        self.node_ended(node)

    def node_back(self, node: str) -> None:
        """Ask about the users that the node had, and about those joined since, which it may have joined, too."""
        version, users = self._lost.pop(node, (-1, set()))
        for key, roster in list(self._rosters.items()):
            if key in users or roster.created > version:
                self._query(roster, QUERY_TIMEOUT)

    # messages from NATS

    def _to_user(self, message: Message) -> None:
        roster = self._rosters.get(message.subject.rpartition(".")[2])
        body = read(wire.TO_USER, message)
        if roster is None or body is None or body.node == self._node:
            return
        self._mark_alive(body.node)
        if isinstance(body, wire.Usage):
            self._listener.usage_reported(roster.user, body.count)
            return
        if isinstance(body, wire.BrowsersChanged):
            changed = roster.change(body)
            if changed is None:
                self._ask(roster, body.node)
        elif isinstance(body, wire.Left):
            changed = roster.update(body.node, body.version, (), here=False)
        else:
            changed = roster.update(body.node, body.version, body.browsers)
            if message.reply.startswith(f"{PREFIX}.reply."):
                others = (n for n, member in roster.members.items() if member.here and n != body.node)
                self._send_list(roster, message.reply, others)
        self._changed(roster, bool(changed))

    def _replied(self, message: Message) -> None:
        roster = self._rosters.get(message.subject.rpartition(".")[2])
        if roster is None:
            return
        if message.no_responders:
            asyncio.get_running_loop().call_later(_GRACE, self._no_responders, roster)
            return
        body = read(wire.REPLY, message)
        if body is None:
            return
        self._mark_alive(body.node)
        if isinstance(body, wire.ListRequest):
            self._send_list(roster, _reply_subject(body.node, roster))
        else:
            self._changed(roster, roster.receive_reply(body, self._node))

    def _ask(self, roster: Roster, node: str) -> None:
        if roster.must_ask(node):
            self._current.publish(_reply_subject(node, roster), wire.ListRequest(self._node))

    def _send_list(self, roster: Roster, subject: str, others: Iterable[str] = ()) -> None:
        first, *rest = batched(roster.own_browsers)
        self._current.publish(subject, wire.QueryReply(self._node, roster.version, first, tuple(others)))
        for more in rest:
            self._publish_change(roster, joined=more)

    def _no_responders(self, roster: Roster) -> None:
        """No other node has joined this user, including one whose message was in flight at the query."""
        roster.no_responders()
        self._changed(roster, changed=False)

    def _changed(self, roster: Roster, changed: bool) -> None:
        """After an update of a roster: wake its waiters and notify the listener."""
        settled = roster.check_complete(self._clock())
        if settled:
            for done in roster.waiting:
                if not done.done():
                    done.set_result(None)
        again, roster.stale = settled and roster.stale, roster.stale and not settled
        if (changed or again) and roster.joined:
            self._listener.browsers_changed(roster.user)

    # messages to NATS

    def _ensure_roster(self, user: str) -> Roster:
        """The roster of a user; a new one is queried from the other nodes."""
        roster = self._rosters.get(subject_of(user))
        if roster is None:
            roster = self._rosters[subject_of(user)] = Roster(user, created=self._version + 1)
            self._query(roster, QUERY_TIMEOUT)
        return roster

    def _query(self, roster: Roster, patience: float) -> None:
        roster.begin_query(self._clock() + patience)
        if not self._current.subscribe(_user_subject(roster), self._to_user):
            return
        first, *rest = batched(roster.own_browsers)
        query = wire.Query(self._node, self._next_version(roster), first)
        self._current.publish(_user_subject(roster), query, _reply_subject(self._node, roster))
        for more in rest:
            self._publish_change(roster, joined=more)

    def _publish_change(self, roster: Roster, joined: wire.Browsers = (), left: tuple[str, ...] = ()) -> None:
        since = roster.version
        change = wire.BrowsersChanged(self._node, since, self._next_version(roster), joined, left)
        self._current.publish(_user_subject(roster), change)

    def _next_version(self, roster: Roster) -> int:
        """One count for all users, so that a user who is left and joined again has newer versions."""
        self._version += 1
        roster.version = self._version
        return self._version

    def _release(self, roster: Roster) -> None:
        """Drop the roster of a user that this node no longer needs."""
        needed = roster.joined or roster.own or roster.waiting
        if needed or self._rosters.get(subject_of(roster.user)) is not roster:
            return
        del self._rosters[subject_of(roster.user)]
        self._current.publish(_user_subject(roster), wire.Left(self._node, self._next_version(roster)))
        self._current.unsubscribe(_user_subject(roster))


def batched(browsers: wire.Browsers) -> list[wire.Browsers]:
    return [browsers[at : at + _BATCH] for at in range(0, max(1, len(browsers)), _BATCH)]


def _user_subject(roster: Roster) -> str:
    return f"{PREFIX}.user.{subject_of(roster.user)}"


def _reply_subject(node: str, roster: Roster) -> str:
    return f"{PREFIX}.reply.{node}.{subject_of(roster.user)}"


def unavailable() -> BusUnavailable:
    return BusUnavailable("The relay's bus is unavailable: browsers on other nodes cannot be reached.")
