"""Requests that are paused until an agent decides on them, or until a timeout.

Owns which requests are paused in which tab, and continuing each one after the timeout. Which requests to pause is up
to browser_intercept_requests.
"""

from __future__ import annotations

from asyncio import TimerHandle
from dataclasses import dataclass, field
from typing import Any

from tabhub.browser.driver.cdp_values import parse_headers, parse_object, parse_text, parse_url
from tabhub.browser.driver.frames import list_frames
from tabhub.browser.driver.page import Page, send_cdp_nowait
from tabhub.browser.driver.tab_watch import EventSubscription, TabWatch
from tabhub.browser.record.headers import redact_headers
from tabhub.browser.record.recorder import Recorder
from tabhub.browser.tab_overrides import Override, TabOverrides
from tabhub.core.origins import origin_of
from tabhub.errors import CommandFailed
from tabhub.links.browsers import Browsers, TabKey
from tabhub.trust.redact import redact

NAME = "interception"
CONTINUE = "Fetch.continueRequest"
_MAX_PAUSED, _MAX_BODY = 200, 2_000
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
    frame_id: str
    headers: dict[str, str]
    body: str
    since: float
    timer: TimerHandle

    def summary(self) -> dict[str, Any]:
        url = redact(self.url)
        return {"id": self.id, "method": self.method, "url": url, "type": self.kind, "paused": self.id}

    def details(self, now: float) -> dict[str, Any]:
        """The summary with headers and body, secrets redacted."""
        facts = self.summary() | {"headers": redact_headers(self.headers), "waitingSeconds": round(now - self.since, 1)}
        if self.body:
            facts["requestBody"] = redact(self.body)
        return facts


@dataclass(slots=True)
class _Interception:
    """Interception in one tab."""

    session: Any
    patterns: tuple[str, ...]
    asked: float
    """When an agent last listed the paused requests, or decided on one."""
    paused: dict[str, PausedRequest] = field(default_factory=dict)
    timeouts: int = 0
    """Requests that timed out since the last report to an agent."""

    def drop(self, paused: PausedRequest) -> None:
        self.paused.pop(paused.id, None)
        paused.timer.cancel()


class Interceptions:
    """The paused requests of all tabs."""

    def __init__(self, browsers: Browsers, watch: TabWatch, overrides: TabOverrides, record: Recorder) -> None:
        self._timeout = browsers.limits.intercept_wait
        self._idle = browsers.limits.intercept_idle
        self._overrides = overrides
        self._record = record
        self._tabs: dict[TabKey, _Interception] = {}
        self._last_id = 0
        self._ended: dict[tuple[str, int], bool] = {}
        """Tabs in which interception ended by itself, by browser: the link may have been replaced by then."""
        watch.subscribe(EventSubscription(("Fetch.requestPaused",)), self._on_event)
        browsers.drop_with_tab(self._tabs, self._interception_ended)
        browsers.drop_when_closed(self._ended)

    async def start(self, page: Page, session: Any, patterns: tuple[str, ...]) -> None:
        key, enable = page.key, ("Fetch.enable", {"patterns": [{"urlPattern": each} for each in patterns]})
        description = f"requests to {', '.join(patterns)} are intercepted"
        before, now = self._tabs.get(key), page.link.loop.time()
        self._tabs[key] = _Interception(session, patterns, now, before.paused if before else {})
        try:
            change = Override(session, description[:300], undo=(("Fetch.disable", {}),), frame_commands=(enable,))
            await self._overrides.apply(page, NAME, change, (enable,))
        except BaseException:
            self._forget(key)
            raise

    def patterns(self, page: Page) -> tuple[str, ...]:
        tab = self._tabs.get(page.key)
        return tab.patterns if tab is not None else ()

    async def stop(self, page: Page) -> tuple[bool, int]:
        """End interception and continue paused requests; returns whether it was active, and how many were continued."""
        paused = self._paused(page)
        self._forget(page.key)
        for each in paused:
            self._continue(page.key, each.child, each.fetch_id)
        return await self._overrides.remove(page, NAME), len(paused)

    def pop_ended(self, page: Page) -> bool:
        """Whether interception ended by itself since the last call."""
        return self._ended.pop((page.link.browser_id, page.tab.chrome_id), False)

    def end_session(self, session: Any) -> None:
        """Forget the requests of a session; the browser continues them when the override is undone."""
        for key in [key for key, tab in self._tabs.items() if tab.session is session]:
            self._forget(key)

    def pending(self, page: Page) -> list[PausedRequest]:
        """The paused requests of a tab that the agent may see, oldest first."""
        return page.view.keep(self._paused(page), lambda paused: page.view.hides(paused.url), lambda p: ("entry", p.id))

    def _paused(self, page: Page) -> list[PausedRequest]:
        """The paused requests of a tab, oldest first, without those that the page has canceled."""
        tab = self._tabs.get(page.key)
        if tab is None:
            return []
        tab.asked = page.link.loop.time()
        record = self._record.tab_record(page.key).traffic
        for paused in list(tab.paused.values()):
            request = record.by_network_id(paused.child, paused.network_id)
            if request is not None and request.error:
                tab.drop(paused)
        return list(tab.paused.values())

    def pop_timed_out_note(self, page: Page) -> str:
        """A note on the requests that timed out since the last call; empty if none did."""
        tab = self._tabs.get(page.key)
        if tab is None or not tab.timeouts:
            return ""
        count, tab.timeouts = tab.timeouts, 0
        return f"Continued after {self._timeout:g} s without a decision: {count}."

    async def decide(self, page: Page, request_id: str, method: str, params: dict[str, Any]) -> PausedRequest:
        """Fulfill, fail or continue one request; if the browser rejects the command, it stays paused."""
        paused = next((p for p in self.pending(page) if p.id == request_id), None)
        if paused is None:
            raise self._not_paused(page, f"No request {request_id[:50]!r} is paused in tab {page.tab_id}.")
        if method != CONTINUE and page.frames_matter:
            await page.require_frame(None, [await _site(page, paused)])
        try:
            await page.cdp(method, {"requestId": paused.fetch_id, **params}, paused.child)
        except CommandFailed as error:
            if _NOT_PAUSED in error.message:
                self._drop(page.key, paused)
                message = f"Request {paused.id} is no longer paused: the page canceled it."
                raise self._not_paused(page, message) from None
            if type(error) is not CommandFailed:
                raise
            raise CommandFailed(
                f"The browser rejected it: {error.message}", hint=f"Request {paused.id} is still paused: decide again."
            ) from None
        self._drop(page.key, paused)
        return paused

    def _not_paused(self, page: Page, message: str) -> CommandFailed:
        there = ", ".join(f"{p.id} ({p.method} {redact(p.url)[:80]})" for p in self.pending(page)[:8])
        none = f"No request is paused. Without a decision each is continued after {self._timeout:g} s."
        return CommandFailed(message, hint=f"Paused: {there}." if there else none)

    def _on_event(self, key: TabKey, method: str, params: dict[str, Any], child: str | None) -> None:
        tab, fetch_id = self._tabs.get(key), params.get("requestId")
        if method == "detached":
            if tab is not None:
                self._interception_ended(key)  # the browser continues the requests by itself
            return
        if type(fetch_id) is not str:
            return
        if tab is None or len(tab.paused) >= _MAX_PAUSED:
            self._continue(key, child, fetch_id)
            return
        loop, request = key[0].loop, parse_object(params.get("request"))
        self._last_id += 1
        request_id = f"p{self._last_id}"
        tab.paused[request_id] = PausedRequest(
            id=request_id,
            child=child,
            fetch_id=fetch_id,
            network_id=parse_text(params.get("networkId"), 100) or fetch_id,
            method=parse_text(request.get("method"), 20),
            url=parse_url(request.get("url")),
            kind=parse_text(params.get("resourceType"), 30).lower(),
            frame_id=parse_text(params.get("frameId"), 100),
            headers=parse_headers(request.get("headers")),
            body=parse_text(request.get("postData"), _MAX_BODY),
            since=loop.time(),
            timer=loop.call_later(self._timeout, self._timed_out, key, request_id),
        )

    def _timed_out(self, key: TabKey, request_id: str) -> None:
        tab = self._tabs.get(key)
        if tab is None or (paused := tab.paused.get(request_id)) is None:
            return
        tab.drop(paused)
        tab.timeouts += 1
        self._continue(key, paused.child, paused.fetch_id)
        if key[0].loop.time() - tab.asked >= self._idle:
            # The agent no longer uses it, and every page of the tab would be slow.
            rest = list(tab.paused.values())
            self._interception_ended(key)
            for other in rest:
                self._continue(key, other.child, other.fetch_id)
            self._overrides.revoke(key, NAME, f"no agent used the interception for {self._idle:g} s")

    def _interception_ended(self, key: TabKey) -> None:
        self._ended[key[0].browser_id, key[1]] = True
        self._forget(key)

    def _drop(self, key: TabKey, paused: PausedRequest) -> None:
        if (tab := self._tabs.get(key)) is not None:
            tab.drop(paused)

    def _forget(self, key: TabKey) -> None:
        tab = self._tabs.pop(key, None)
        if tab is not None:
            for paused in list(tab.paused.values()):
                tab.drop(paused)

    def _continue(self, key: TabKey, child: str | None, fetch_id: str) -> None:
        send_cdp_nowait(key, CONTINUE, {"requestId": fetch_id}, child)


async def _site(page: Page, paused: PausedRequest) -> str:
    """The site whose document the answer to a request becomes part of: a document's own, else the one that asked."""
    if paused.kind == "document" and (site := origin_of(paused.url)) is not None:
        return site
    frames = await list_frames(page)
    return next((frame.site for frame in frames if frame.frame_id == paused.frame_id), page.tab.site)
