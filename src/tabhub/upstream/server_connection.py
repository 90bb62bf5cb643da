"""The life of one external server: connected, kept warm, followed, and tried again with growing pauses when it fails.

Owns its state and the one task that opens and closes its connection, so that a server that hangs, crashes or talks
nonsense costs nobody else anything. What it lists is told to whoever holds it; calls use the connection directly.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Literal, Protocol

from tabhub.core.backoff import Backoff
from tabhub.core.resources import KINDS
from tabhub.errors import LoginRequired, TabhubError, UpstreamOffline
from tabhub.limits import Limits
from tabhub.store.upstream_servers import Server
from tabhub.upstream.active_calls import ServerCalls
from tabhub.upstream.failures import first_cause
from tabhub.upstream.resources import METHODS, ResourceLists
from tabhub.upstream.subscriptions import ServerSubscriptions
from tabhub.upstream.tools import ToolListing, read_listing

if TYPE_CHECKING:
    from tabhub.upstream.sdk_session import Hooks, SdkSession

log = logging.getLogger("tabhub.upstream")

State = Literal["off", "connecting", "ready", "waiting", "login"]
_STEADY = 30.0
"""Seconds a connection has to last for the pauses to begin anew."""
_CANCELS = 5
_CANCEL = 2.0
"""Seconds a connection has to end before it is cancelled once more."""


class _SessionGone(Exception):
    """The server knows the session no more."""


class Opener(Protocol):
    """What opens connections (pool.Pool)."""

    def open(self, life: ServerConnection, hooks_of: Callable[[], Hooks]) -> AbstractAsyncContextManager[SdkSession]:
        """Connect to the server as its record says."""
        ...


class ServerConnection:
    """One external server."""

    def __init__(
        self,
        server: Server,
        opener: Opener,
        limits: Limits,
        listed: Callable[[ServerConnection, ToolListing], Awaitable[None]],
        changed: Callable[[ServerConnection], None],
        offered: Callable[[ServerConnection], None] = lambda _life: None,
        updated: Callable[[ServerConnection, str], None] = lambda _life, _uri: None,
    ) -> None:
        self.server = server
        self.state: State = "off"
        self.error: str | None = None
        self.problems: tuple[str, ...] = ()
        self.login_url: str | None = None
        """Where the person logs in, while the server waits for that."""
        self._login_until = 0.0
        self.link: SdkSession | None = None
        self.offers = ResourceLists(server.name, limits, lambda: offered(self))
        """What it has beside tools."""
        self.follows = ServerSubscriptions(server.name)
        """Whose changes are to be told."""
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
        self._opener = opener
        self._limits = limits
        self._listed = listed
        self._changed = changed
        self._task: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._news: set[str] = set()
        self._settled: list[asyncio.Future[None]] = []
        self._limit: asyncio.Timeout | None = None

    # from outside

    def start(self) -> None:
        """Begin to connect."""
        if self._task is None or self._task.done():
            self._set("connecting")
            self._task = asyncio.ensure_future(self._live())

    async def stop(self) -> None:
        """End the connection and do not come back."""
        task, self._task = self._task, None
        if task is not None:
            await self._cancelled(task)
        self.link = None
        self._set("off")
        self._settle()

    async def _cancelled(self, task: asyncio.Task[None]) -> None:
        """Cancel, and again where that was missed: task groups take a cancel that meets one of their own for theirs."""
        for _ in range(_CANCELS):
            task.cancel()
            await asyncio.wait((task,), timeout=_CANCEL)
            if task.done():
                if not task.cancelled() and (error := task.exception()) is not None:
                    log.warning("the connection to %s ended badly: %r", self.server.name, error)
                return
        log.error("the connection to %s does not end, and is left behind", self.server.name)

    async def refresh(self, *, login: bool) -> None:
        """List anew, or connect now; returns when that has succeeded, failed, or waits for the person."""
        self.may_ask_login = self.may_ask_login or login
        if self._task is None or self.login_url is not None:
            return
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._settled.append(done)
        self._news.add("tools")
        self._wake.set()
        for kind in KINDS:
            self.offers.said(kind)
        await done

    async def settled(self) -> None:
        """Wait until a first attempt has ended, either way."""
        if self.state == "connecting":
            done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._settled.append(done)
            await done

    async def ready(self) -> SdkSession:
        """The connection, or why there is none; one that is just being made is waited for."""
        if self.link is None and self.state == "connecting":
            await self.settled()
        if self.link is not None:
            return self.link
        raise self.offline()

    def offline(self) -> UpstreamOffline:
        """Why no call can be sent."""
        name = self.server.name
        if self.state == "off":
            return UpstreamOffline(f"The server {name} is disabled.", hint=f"Enable it: tabhub mcp enable {name}")
        if self.state == "login":
            return LoginRequired(
                f"The server {name} wants the person to log in.",
                hint=f"They log in with `tabhub mcp refresh {name}`, or in the panel.",
            )
        wait = max(0, round(self.retry_at - asyncio.get_running_loop().time()))
        return UpstreamOffline(
            f"The server {name} is not connected: {self.error or 'no attempt has succeeded yet'}",
            hint=f"It is tried again in {wait} s; `tabhub mcp refresh {name}` tries at once.",
        )

    def wants_login(self, url: str) -> None:
        """The person has to go to an address; the time for it is theirs."""
        self.login_url = url
        self._set("login")
        if self._limit is not None:
            self._limit.reschedule(asyncio.get_running_loop().time() + self._limits.upstream_login)
        self._settle()

    def has_answered_login(self) -> None:
        """The person's browser came back; a connection that stands goes on."""
        self.may_ask_login = False
        self.login_url = None
        self._set("connecting" if self.link is None else "ready")

    @property
    def may_ask_login(self) -> bool:
        """Whether a person is there who asked for this connection, and may be sent to log in."""
        return asyncio.get_running_loop().time() < self._login_until

    @may_ask_login.setter
    def may_ask_login(self, there: bool) -> None:
        self._login_until = asyncio.get_running_loop().time() + self._limits.upstream_login if there else 0.0

    # its one task

    async def _live(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            self._set("connecting")
            began = loop.time()
            try:
                await self._connected()
            except Exception as error:  # noqa: BLE001 - whatever a server does, it is this server's alone
                cause = first_cause(error)
                if (task := asyncio.current_task()) is not None and task.cancelling():
                    # The connection was being closed, and something in it took offence: closed it is all the same.
                    raise asyncio.CancelledError from None
                if isinstance(cause, _SessionGone):
                    continue  # it is there and wants to be greeted anew
                if isinstance(cause, LoginRequired) or self.state == "login":
                    self.error = cause.message if isinstance(cause, LoginRequired) else "Nobody has logged in."
                    self._end("login")
                    self.may_ask_login = False
                    self._wake.clear()
                    await self._wake.wait()
                    continue
                self._failed(cause)
                if self.connects and loop.time() - began >= _STEADY:
                    self._backoff.reset()
                pause = self._backoff.next_delay()
                self.retry_at = loop.time() + pause
                self._end("waiting")
            self._wake.clear()
            try:
                async with asyncio.timeout(pause):
                    await self._wake.wait()
            except TimeoutError:
                continue
            self._backoff.reset()

    def _end(self, state: State) -> None:
        self.link = None
        self.login_url = None
        self._set(state)
        self._settle()

    def _failed(self, cause: BaseException) -> None:
        words = cause.text() if isinstance(cause, TabhubError) else f"{type(cause).__name__}: {str(cause)[:300]}"
        if isinstance(cause, TimeoutError):
            words = f"It did not connect and list its tools within {self._limits.upstream_connect:g} s."
        if self.link is None:
            self.legacy = not self.legacy  # some servers end when asked in words they do not know
        if words != self.error:
            log.warning("external server %s: %s", self.server.name, words)
        self.error = words

    async def _connected(self) -> None:
        """One connection, from its beginning to its end."""
        self._wake.clear()
        self._news.clear()
        async with asyncio.timeout(self._limits.upstream_connect) as limit:
            self._limit = limit
            async with self._opener.open(self, self._hooks) as link:
                await self._list(link)
                limit.reschedule(None)
                self._limit = None
                self.link = link
                self.login_url = None
                self.error = None
                self.connects += 1
                self._set("ready")
                self._settle()
                log.info("external server %s is connected (%s)", self.server.name, link.version)
                beside = [asyncio.ensure_future(work) for work in (self.follows.keep(link), self.offers.keep(link))]
                try:
                    await self._keep(link)
                finally:
                    for task in beside:
                        task.cancel()
                    self.link = None

    async def _keep(self, link: SdkSession) -> None:
        """Follow changes and look now and then whether it is still there; raises when it is not."""
        while True:
            try:
                async with asyncio.timeout(self._limits.upstream_check):
                    await self._wake.wait()
            except TimeoutError:
                if not self.calls:  # one that is at work may be too busy to answer
                    await self._list(link)
                    self._look_again(link)
                continue
            self._wake.clear()
            news, self._news = self._news, set()
            if "lost" in news:
                if link.session_gone:
                    raise _SessionGone
                raise UpstreamOffline("The connection was lost.")
            if "tools" in news:
                try:
                    await self._list(link)
                except TabhubError:
                    if link.session_gone:
                        raise _SessionGone from None
                    raise
            self._settle()

    async def _list(self, link: SdkSession) -> None:
        tools = await link.list_tools()
        listed = await asyncio.to_thread(read_listing, tools, self._limits.upstream_tools)
        self.problems = listed.problems
        await self._listed(self, listed)

    def _hooks(self) -> Hooks:
        from tabhub.upstream.sdk_session import Hooks  # loaded by now

        return Hooks(self._heard, lambda uri: self._updated(self, uri), self.calls.log, self.calls.ask, self._lost)

    def _heard(self, kind: str) -> None:
        """The server has said that a list is another now."""
        if kind == "tools":
            self._said(kind)
        else:
            self.offers.said(kind)

    def _look_again(self, link: SdkSession) -> None:
        """Ask for the lists whose changes the server does not tell."""
        for kind in KINDS:
            if not link.announces(kind):
                self.offers.said(kind)

    def _said(self, what: str) -> None:
        self._news.add(what)
        self._wake.set()

    def _lost(self) -> None:
        link = self.link
        if link is not None and link.session_gone:
            self._set("connecting")
        elif link is not None and self.server.url is not None and len(self.calls) > 1:
            return  # one request found no connection, others are being answered
        self.link = None
        self.error = "The connection was lost."
        self._said("lost")

    def _set(self, state: State) -> None:
        if state != self.state:
            self.state = state
            self._changed(self)

    def _settle(self) -> None:
        settled, self._settled = self._settled, []
        for each in settled:
            if not each.done():
                each.set_result(None)


def facts_of(life: ServerConnection) -> dict[str, Any]:
    """The state of a server, as health, panel and command line show it."""
    facts: dict[str, Any] = {"state": life.state}
    if life.error and life.state in ("waiting", "login", "connecting"):
        facts["error"] = life.error
    if life.login_url is not None:
        facts["loginUrl"] = life.login_url
    if problems := (*life.problems, *life.offers.problems):
        facts["problems"] = list(problems)
    for shelf in METHODS:
        if count := len(life.offers.current.shelf(shelf)):
            facts[f"{shelf.removesuffix('s')}Count"] = count
    if life.link is not None:
        facts["protocol"] = life.link.version
        facts["server"] = life.link.info
    return facts
