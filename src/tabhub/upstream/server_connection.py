"""The connection to one external server: connected, checked, subscribed, and retried with backoff when it fails.

Owns its state and the one task that opens and closes the connection, so that a server that hangs, crashes or sends
garbage affects no other. Listings are reported to its owner; calls use the session directly.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Literal

from tabhub.core.backoff import Backoff
from tabhub.core.resources import KINDS
from tabhub.errors import LoginRequired, TabhubError, UpstreamOffline
from tabhub.limits import Limits
from tabhub.store.upstream_servers import Server
from tabhub.upstream.active_calls import ServerCalls
from tabhub.upstream.resources import METHODS, ResourceLists
from tabhub.upstream.subscriptions import ServerSubscriptions
from tabhub.upstream.tools import ToolListing, read_listing

if TYPE_CHECKING:
    from tabhub.upstream.sdk_session import SdkSession

log = logging.getLogger("tabhub.upstream")

State = Literal["off", "connecting", "ready", "waiting", "login"]
_STEADY = 30.0
"""Seconds a connection has to last for the backoff to be reset."""
_CANCELS = 5
_CANCEL = 2.0
"""Seconds a connection has to end before it is cancelled once more."""


class _SessionExpired(Exception):
    """The server no longer knows the session."""


class ServerConnection:
    """One external server."""

    def __init__(
        self,
        server: Server,
        open_session: Callable[[ServerConnection], AbstractAsyncContextManager[SdkSession]],
        limits: Limits,
        listed: Callable[[ServerConnection, ToolListing], Awaitable[None]],
        changed: Callable[[ServerConnection], None],
        resources_changed: Callable[[ServerConnection], None] = lambda _connection: None,
        updated: Callable[[ServerConnection, str], None] = lambda _connection, _uri: None,
    ) -> None:
        self.server = server
        self.state: State = "off"
        self.error: str | None = None
        self.problems: tuple[str, ...] = ()
        self.login_url: str | None = None
        """Where the person logs in, while the server waits for that."""
        self._login_until = 0.0
        self.session: SdkSession | None = None
        self.resources = ResourceLists(server.name, limits, lambda: resources_changed(self))
        self.subscriptions = ServerSubscriptions(server.name)
        """The resources agents are subscribed to."""
        self._updated = updated
        self.calls = ServerCalls()
        self.legacy = False
        self._backoff = Backoff(
            limits.upstream_backoff,
            limits.upstream_backoff_max,
            jitter=lambda: random.uniform(0.8, 1.2),  # noqa: S311 - spreads retries, guards nothing
        )
        self.retry_at = 0.0
        self.connects = 0
        """How often it has been connected."""
        self._open_session = open_session
        self._limits = limits
        self._listed = listed
        self._changed = changed
        self._task: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._pending: set[str] = set()
        self._settled = asyncio.Event()
        """Set, and replaced, when an attempt to connect or to list has ended."""
        self._limit: asyncio.Timeout | None = None

    # for the pool and calls

    def start(self, *, login: bool = False) -> None:
        """Connect; with `login`, a person asked for it and may be sent to log in."""
        self._allow_login(login)
        if self._task is None or self._task.done():
            self._set("connecting")
            self._task = asyncio.ensure_future(self._run())

    def replace_record(self, server: Server) -> None:
        """The server's record has changed in nothing that the connection depends on."""
        self.server = server

    async def stop(self) -> None:
        """Close the connection and do not reconnect."""
        task, self._task = self._task, None
        if task is not None:
            await self._cancel(task)
        self.session = None
        self._set("off")
        self._settle()

    async def _cancel(self, task: asyncio.Task[None]) -> None:
        """Cancel repeatedly: a task group may swallow a cancellation that coincides with one of its own."""
        for _ in range(_CANCELS):
            task.cancel()
            await asyncio.wait((task,), timeout=_CANCEL)
            if task.done():
                if not task.cancelled() and (error := task.exception()) is not None:
                    log.warning("closing the connection to %s failed: %r", self.server.name, error)
                return
        log.error("the connection to %s does not close, and is abandoned", self.server.name)

    async def refresh(self, *, login: bool) -> None:
        """List again, or connect now; returns when that has succeeded, failed, or waits for a login."""
        if login:
            self._allow_login(True)
        if self._task is None or self.login_url is not None:
            return
        self._wake_for("tools")
        for kind in KINDS:
            self.resources.refresh(kind)
        await self._settled.wait()

    async def settled(self) -> None:
        """Wait until the current attempt to connect has succeeded or failed."""
        if self.state == "connecting":
            await self._settled.wait()

    async def ready(self) -> SdkSession:
        """The session; waits while it is being opened, and raises UpstreamOffline if there is none."""
        if self.session is None and self.state == "connecting":
            await self.settled()
        if self.session is not None:
            return self.session
        raise self.offline()

    def offline(self) -> UpstreamOffline:
        """The error for a call that cannot be sent."""
        name = self.server.name
        if self.state == "off":
            return UpstreamOffline(f"The server {name} is disabled.", hint=f"Enable it: tabhub mcp enable {name}")
        if self.state == "login":
            return LoginRequired(
                f"The server {name} requires the person to log in.",
                hint=f"They log in with `tabhub mcp refresh {name}`, or in the panel.",
            )
        wait = max(0, round(self.retry_at - asyncio.get_running_loop().time()))
        return UpstreamOffline(
            f"The server {name} is not connected: {self.error or 'no attempt has succeeded yet'}",
            hint=f"The next attempt is in {wait} s; `tabhub mcp refresh {name}` retries at once.",
        )

    def login_started(self, url: str) -> None:
        """The person has to visit a URL; the connect timeout is extended for it."""
        self.login_url = url
        self._set("login")
        if self._limit is not None:
            self._limit.reschedule(asyncio.get_running_loop().time() + self._limits.upstream_login)
        self._settle()

    def login_answered(self) -> None:
        self._allow_login(False)
        self.login_url = None
        self._set("connecting" if self.session is None else "ready")

    @property
    def can_prompt_login(self) -> bool:
        """Whether a person asked for this connection recently, and may be sent to log in."""
        return asyncio.get_running_loop().time() < self._login_until

    def _allow_login(self, allowed: bool) -> None:
        self._login_until = asyncio.get_running_loop().time() + self._limits.upstream_login if allowed else 0.0

    # for the session

    def list_changed(self, kind: str) -> None:
        """A list has changed: tools, resources or prompts."""
        if kind == "tools":
            self._wake_for(kind)
        else:
            self.resources.refresh(kind)

    def resource_updated(self, uri: str) -> None:
        self._updated(self, uri)

    def lost(self) -> None:
        session = self.session
        if session is not None and session.session_expired:
            self._set("connecting")
        elif session is not None and self.server.url is not None and len(self.calls) > 1:
            return  # one request found no connection, others are being answered
        self.session = None
        self.error = "The connection was lost."
        self._wake_for("lost")

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            self._set("connecting")
            began = loop.time()
            try:
                await self._run_connection()
            except Exception as error:  # noqa: BLE001 - whatever a server does, it is this server's alone
                cause = first_cause(error)
                if (task := asyncio.current_task()) is not None and task.cancelling():
                    # Closing the connection failed, and it is closed nevertheless.
                    raise asyncio.CancelledError from None
                if isinstance(cause, _SessionExpired):
                    continue  # the server is reachable and needs a new handshake
                if isinstance(cause, LoginRequired) or self.state == "login":
                    self.error = cause.message if isinstance(cause, LoginRequired) else "The login was not completed."
                    self._disconnected("login")
                    self._allow_login(False)
                    self._wake.clear()
                    await self._wake.wait()
                    continue
                self._failed(cause)
                if self.connects and loop.time() - began >= _STEADY:
                    self._backoff.reset()
                pause = self._backoff.next_delay()
                self.retry_at = loop.time() + pause
                self._disconnected("waiting")
            self._wake.clear()
            try:
                async with asyncio.timeout(pause):
                    await self._wake.wait()
            except TimeoutError:
                continue
            self._backoff.reset()

    def _disconnected(self, state: State) -> None:
        self.session = None
        self.login_url = None
        self._set(state)
        self._settle()

    def _failed(self, cause: BaseException) -> None:
        reason = cause.text() if isinstance(cause, TabhubError) else f"{type(cause).__name__}: {str(cause)[:300]}"
        if isinstance(cause, TimeoutError):
            reason = f"It did not connect and list its tools within {self._limits.upstream_connect:g} s."
        if self.session is None:
            self.legacy = not self.legacy  # some servers exit on a method they do not know
        if reason != self.error:
            log.warning("external server %s: %s", self.server.name, reason)
        self.error = reason

    async def _run_connection(self) -> None:
        self._wake.clear()
        self._pending.clear()
        async with asyncio.timeout(self._limits.upstream_connect) as limit:
            self._limit = limit
            async with self._open_session(self) as session:
                await self._list(session)
                limit.reschedule(None)
                self._limit = None
                self.session = session
                self.login_url = None
                self.error = None
                self.connects += 1
                self._set("ready")
                self._settle()
                log.info("external server %s is connected (%s)", self.server.name, session.version)
                background_tasks = [
                    asyncio.ensure_future(work)
                    for work in (self.subscriptions.run(session), self.resources.run(session))
                ]
                try:
                    await self._monitor(session)
                finally:
                    for task in background_tasks:
                        task.cancel()
                    self.session = None

    async def _monitor(self, session: SdkSession) -> None:
        """Handle changes and check now and then that the server still answers; raises when it does not."""
        while True:
            try:
                async with asyncio.timeout(self._limits.upstream_check):
                    await self._wake.wait()
            except TimeoutError:
                if not self.calls:  # a server at work may be too busy to answer
                    await self._list(session)
                    for kind in KINDS:
                        if not session.announces_changes(kind):
                            self.resources.refresh(kind)
                continue
            self._wake.clear()
            pending, self._pending = self._pending, set()
            if "lost" in pending:
                if session.session_expired:
                    raise _SessionExpired
                raise UpstreamOffline("The connection was lost.")
            if "tools" in pending:
                try:
                    await self._list(session)
                except TabhubError:
                    if session.session_expired:
                        raise _SessionExpired from None
                    raise
            self._settle()

    async def _list(self, session: SdkSession) -> None:
        tools = await session.list_tools()
        listed = await asyncio.to_thread(read_listing, tools, self._limits.upstream_tools)
        self.problems = listed.problems
        await self._listed(self, listed)

    def _wake_for(self, what: str) -> None:
        self._pending.add(what)
        self._wake.set()

    def _set(self, state: State) -> None:
        if state != self.state:
            self.state = state
            self._changed(self)

    def _settle(self) -> None:
        self._settled.set()
        self._settled = asyncio.Event()


def first_cause(error: BaseException) -> BaseException:
    """The first exception that is not a cancellation in the exception groups that the SDK raises."""
    while isinstance(error, BaseExceptionGroup):
        failures = [each for each in error.exceptions if not isinstance(each, asyncio.CancelledError)]
        error = (failures or list(error.exceptions))[0]
    return error


def describe_connection(connection: ServerConnection) -> dict[str, Any]:
    """The state of a server, for health, panel and command line."""
    description: dict[str, Any] = {"state": connection.state}
    if connection.error and connection.state in ("waiting", "login", "connecting"):
        description["error"] = connection.error
    if connection.login_url is not None:
        description["loginUrl"] = connection.login_url
    if problems := (*connection.problems, *connection.resources.problems):
        description["problems"] = list(problems)
    for listing_name in METHODS:
        if count := len(connection.resources.current.items(listing_name)):
            description[f"{listing_name.removesuffix('s')}Count"] = count
    if connection.session is not None:
        description["protocol"] = connection.session.version
        description["server"] = connection.session.info
    return description
