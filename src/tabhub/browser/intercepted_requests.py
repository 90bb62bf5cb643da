"""Requests that are paused until an agent decides on them, or until a timeout.

Owns which requests are paused in which tab, and continuing each one after the timeout. Which requests to pause is up
to browser_intercept_requests.
"""

from __future__ import annotations

from asyncio import TimerHandle
from dataclasses import dataclass
from typing import Any

from tabhub.browser.driver.cdp_values import parse_headers, parse_text, parse_url
from tabhub.browser.driver.page import Page, send_cdp_nowait
from tabhub.browser.driver.tab_watch import EventSubscription, TabWatch
from tabhub.browser.record.headers import redact_headers
from tabhub.browser.record.recorder import Recorder
from tabhub.browser.tab_overrides import Override, TabOverrides
from tabhub.errors import CommandFailed
from tabhub.links.browsers import Browsers, TabKey
from tabhub.trust.redact import redact

NAME = "interception"
_MOST, _BODY = 200, 2_000
_NOT_PAUSED = "Invalid InterceptionId"


@dataclass(slots=True, eq=False)
class PausedRequest:
    """One paused request."""

    id: str
    child: str | None
    fetch_id: str
    network_id: str
    method: str
    url: str
    kind: str
    headers: dict[str, str]
    body: str
    since: float
    timer: TimerHandle | None = None

    def summary(self) -> dict[str, Any]:
        facts = {"id": self.id, "method": self.method, "url": redact(self.url), "type": self.kind}
        return {**facts, "paused": self.id}

    def details(self, now: float) -> dict[str, Any]:
        """The summary with headers and body, secrets redacted."""
        facts = self.summary() | {"headers": redact_headers(self.headers), "waitingSeconds": round(now - self.since, 1)}
        if self.body:
            facts["requestBody"] = redact(self.body)
        return facts


class Interceptions:
    """The paused requests of all tabs."""

    def __init__(self, browsers: Browsers, watch: TabWatch, held: TabOverrides, record: Recorder) -> None:
        self._wait = browsers.limits.intercept_wait
        self._idle = browsers.limits.intercept_idle
        self._held = held
        self._record = record
        self._waiting: dict[TabKey, dict[str, PausedRequest]] = {}
        self._patterns: dict[TabKey, tuple[str, ...]] = {}
        self._sessions: dict[TabKey, Any] = {}
        self._last = 0
        self._timeouts: dict[TabKey, int] = {}
        self._asked: dict[TabKey, float] = {}
        """When an agent last listed the paused requests, or decided on one."""
        self._over: dict[tuple[str, int], None] = {}
        """Tabs in which interception ended by itself, by browser: the link may have been replaced by then."""
        watch.subscribe(EventSubscription(("Fetch.requestPaused",)), self._on_event)
        browsers.drop_with_tab(self._patterns, self._stopped)
        browsers.drop_with_tab(self._waiting, self._stopped)
        browsers.drop_when_closed(self._over)

    async def start(self, page: Page, session: Any, patterns: tuple[str, ...]) -> None:
        """Pause the requests of a tab that match one of the patterns."""
        enable = ("Fetch.enable", {"patterns": [{"urlPattern": each} for each in patterns]})
        description = f"requests to {', '.join(patterns)} are intercepted"
        self._patterns[page.key] = patterns
        self._sessions[page.key] = session
        self._asked[page.key] = page.link.loop.time()
        try:
            change = Override(session, description[:300], undo=(("Fetch.disable", {}),), frame_commands=(enable,))
            await self._held.apply(page, NAME, change, (enable,))
        except BaseException:
            self._forget(page.key)
            raise

    def patterns(self, page: Page) -> tuple[str, ...]:
        return self._patterns.get(page.key, ())

    async def stop(self, page: Page) -> tuple[bool, int]:
        """End interception and continue paused requests; returns whether it was active, and how many were continued."""
        key, waiting = page.key, self.pending(page)
        self._forget(key)
        for paused in waiting:
            self._continue(key, paused.child, paused.fetch_id)
        return await self._held.remove(page, NAME), len(waiting)

    def pop_ended(self, page: Page) -> bool:
        """Whether interception ended by itself since the last call."""
        tab = (page.link.browser_id, page.tab.chrome_id)
        over = tab in self._over
        self._over.pop(tab, None)
        return over

    def end_session(self, session: Any) -> None:
        """Forget the requests of a session; the browser continues them when the override is undone."""
        for key in [key for key, owner in self._sessions.items() if owner is session]:
            self._forget(key)

    def pending(self, page: Page) -> list[PausedRequest]:
        """The paused requests of a tab, oldest first, without those that the page has canceled."""
        key = page.key
        if key in self._patterns:
            self._asked[key] = page.link.loop.time()
        record = self._record.tab_record(key).traffic
        for paused in list(self._waiting.get(key, {}).values()):
            request = record.by_network_id(paused.child, paused.network_id)
            if request is not None and request.error:
                self._drop(key, paused)
        return list(self._waiting.get(key, {}).values())

    def pop_timed_out_note(self, page: Page) -> str:
        """A note on the requests that timed out since the last call; empty if none did."""
        count = self._timeouts.pop(page.key, 0)
        return f"Continued after {self._wait:g} s without a decision: {count}." if count else ""

    async def decide(self, page: Page, request_id: str, method: str, params: dict[str, Any]) -> PausedRequest:
        """Fulfill, fail or continue one request; if the browser rejects the command, it stays paused."""
        key = page.key
        paused = next((p for p in self.pending(page) if p.id == request_id), None)
        if paused is None:
            raise self._not_paused(page, f"No request {request_id[:50]!r} is paused in tab {page.tab_id}.")
        try:
            await page.cdp(method, {"requestId": paused.fetch_id, **params}, paused.child)
        except CommandFailed as error:
            if _NOT_PAUSED in error.message:
                self._drop(key, paused)
                raise self._not_paused(
                    page, f"Request {paused.id} is no longer paused: the page canceled it."
                ) from None
            if type(error) is not CommandFailed:
                raise
            raise CommandFailed(
                f"The browser rejected it: {error.message}", hint=f"Request {paused.id} is still paused: decide again."
            ) from None
        self._drop(key, paused)
        return paused

    def _not_paused(self, page: Page, message: str) -> CommandFailed:
        there = ", ".join(f"{p.id} ({p.method} {redact(p.url)[:80]})" for p in self.pending(page)[:8])
        none = f"No request is paused. Without a decision each is continued after {self._wait:g} s."
        return CommandFailed(message, hint=f"Paused: {there}." if there else none)

    def _on_event(self, key: TabKey, method: str, params: dict[str, Any], child: str | None) -> None:
        if method == "detached":
            # The browser continues them by itself.
            self._stopped(key)
            return
        fetch_id = params.get("requestId")
        if type(fetch_id) is not str:
            return
        waiting = self._waiting.setdefault(key, {})
        if key not in self._patterns or len(waiting) >= _MOST:
            self._continue(key, child, fetch_id)
            return
        request = params.get("request")
        request = request if isinstance(request, dict) else {}
        self._last += 1
        paused = PausedRequest(
            id=f"p{self._last}",
            child=child,
            fetch_id=fetch_id,
            network_id=parse_text(params.get("networkId"), 100) or fetch_id,
            method=parse_text(request.get("method"), 20),
            url=parse_url(request.get("url")),
            kind=parse_text(params.get("resourceType"), 30).lower(),
            headers=parse_headers(request.get("headers")),
            body=parse_text(request.get("postData"), _BODY),
            since=key[0].loop.time(),
        )
        paused.timer = key[0].loop.call_later(self._wait, self._timed_out, key, paused)
        waiting[paused.id] = paused

    def _timed_out(self, key: TabKey, paused: PausedRequest) -> None:
        if paused.id in self._waiting.get(key, {}):
            self._drop(key, paused)
            self._timeouts[key] = self._timeouts.get(key, 0) + 1
            self._continue(key, paused.child, paused.fetch_id)
            if key[0].loop.time() - self._asked.get(key, 0.0) >= self._idle:
                # The agent no longer uses it, and every page of the tab would be slow.
                waiting = list(self._waiting.get(key, {}).values())
                self._stopped(key)
                for other in waiting:
                    self._continue(key, other.child, other.fetch_id)
                self._held.revoke(key, NAME, f"no agent used the interception for {self._idle:g} s")

    def _stopped(self, key: TabKey) -> None:
        if key in self._patterns:
            self._over[key[0].browser_id, key[1]] = None
        self._forget(key)

    def _drop(self, key: TabKey, paused: PausedRequest) -> None:
        self._waiting.get(key, {}).pop(paused.id, None)
        if paused.timer is not None:
            paused.timer.cancel()

    def _forget(self, key: TabKey) -> None:
        self._patterns.pop(key, None)
        self._sessions.pop(key, None)
        self._timeouts.pop(key, None)
        self._asked.pop(key, None)
        for paused in self._waiting.pop(key, {}).values():
            if paused.timer is not None:
                paused.timer.cancel()

    def _continue(self, key: TabKey, child: str | None, fetch_id: str) -> None:
        send_cdp_nowait(key, "Fetch.continueRequest", {"requestId": fetch_id}, child)
