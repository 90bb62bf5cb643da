"""browser_wait_for, browser_wait_for_element, browser_wait_for_response.

A wait survives navigation: the condition may hold on the next page. It polls from the hub because timers of a
background page may be throttled, with backoff, and reports progress every ten seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

from tabhub.browser.driver.cdp_values import parse_object
from tabhub.browser.driver.frames import Frame, list_frames, main_frame
from tabhub.browser.driver.page import Page
from tabhub.browser.elements.element import TARGET, names_element, poll_pause, target_of
from tabhub.browser.record.recorder import url_matcher
from tabhub.browser.tool_spec import Call, data_result, tool
from tabhub.core.tools import ToolResult
from tabhub.errors import CommandFailed, InvalidArguments, PageNavigated, TabFailed

_URL = {"type": "string", "minLength": 1, "description": "part, or pattern with *"}
_READY_STATES = {"domcontentloaded": ("interactive", "complete"), "load": ("complete",)}
_OUTPUT: dict[str, Any] = {"did": "string"}
_TIMEOUT: dict[str, Any] = {"type": "integer", "minimum": 0, "description": "ms"}
_FIRST_PROGRESS, _PROGRESS_INTERVAL = 2.0, 10.0
"""Seconds until a wait is first reported, and between reports."""
_ANSWER_GRACE = 1.5
"""Seconds for the last answer."""
T = TypeVar("T")


class WaitBudget:
    """The time that one call may wait."""

    def __init__(self, call: Call, what: str) -> None:
        limits = call.box.browsers.limits
        given = call.args.get("timeout")
        self.total = limits.wait_default if given is None else given / 1000
        if self.total > limits.call_timeout_max - 5:
            most = round((limits.call_timeout_max - 5) * 1000)
            raise InvalidArguments(
                f"timeout is too long: {given} ms. The maximum is {most} ms.",
                hint="Wait in several calls.",
            )
        self._call = call
        self._what = what
        self._loop = asyncio.get_running_loop()
        self._begun = self._loop.time()
        self._next_report = self._begun + _FIRST_PROGRESS
        self._attempt = 0

    @property
    def elapsed(self) -> float:
        return self._loop.time() - self._begun

    @property
    def remaining(self) -> float:
        """Seconds left; negative once the time is over."""
        return self.total - self.elapsed

    def report_progress(self) -> None:
        """Report it if it is due; that also extends the call's deadline."""
        if self._loop.time() >= self._next_report:
            self._next_report += _PROGRESS_INTERVAL
            self._call.ctx.progress(round(self.elapsed, 1), self.total, f"Still waiting for {self._what}")

    async def pause(self, seen: str) -> None:
        """Back off before the next look; on timeout, the error reports what was `seen` last."""
        if self.remaining <= 0:
            raise CommandFailed(
                f"Timed out after {self.total:g} s waiting for {self._what}: {seen}.",
                hint="Look at the page (browser_snapshot), or give a longer `timeout`.",
            )
        self.report_progress()
        pause = poll_pause(self._attempt)
        self._attempt += 1
        await asyncio.sleep(min(pause, self.remaining))

    async def pass_time(self) -> None:
        """Wait for the whole time."""
        while self.remaining > 0:
            self.report_progress()
            await asyncio.sleep(min(self.remaining, _FIRST_PROGRESS))

    async def await_page(self, work: Coroutine[Any, Any, T]) -> T:
        """The page's answer; a busy page is not waited for beyond the budget."""
        replying = asyncio.ensure_future(work)
        try:
            while not replying.done():
                if self.remaining <= -_ANSWER_GRACE:
                    raise CommandFailed(
                        f"Timed out after {self.total:g} s waiting for {self._what}: the page or a frame does "
                        "not respond.",
                        hint="A script keeps it busy. Wait longer, or close the tab (browser_close_tab).",
                    )
                self.report_progress()
                left = max(0.0, self.remaining + _ANSWER_GRACE)
                await asyncio.wait((replying,), timeout=min(max(0.0, self._next_report - self._loop.time()), left))
            return replying.result()
        finally:
            replying.cancel()

    def reset_backoff(self) -> None:
        """Start again with short pauses, because something has just happened."""
        self._attempt = 0


@tool(
    "browser_wait_for",
    "Wait",
    "Waits until an element is visible (or `gone`), the URL matches, the page has loaded, the network is idle; "
    "or for the whole `timeout`.",
    params={
        **TARGET,
        "gone?": "boolean",
        "url?": _URL,
        "loadState?": {"enum": list(_READY_STATES)},
        "networkIdle?": "boolean",
        "timeout?": _TIMEOUT,
    },
    output=_OUTPUT,
    read_only=True,
)
async def wait_for(call: Call) -> ToolResult:
    args = call.args
    if args.get("gone") and not names_element(args):
        raise InvalidArguments("gone needs an element.", hint="Give a selector, ref, text, role or label.")
    condition = _describe(args)
    if not condition and "timeout" not in args:
        raise InvalidArguments(
            "No condition is given.",
            hint="Give a selector, ref, text, role, label, url, loadState or networkIdle, or only a timeout.",
        )
    page = await call.page()
    budget = WaitBudget(call, condition or "the time to pass")
    found = ""
    with call.box.awake.awake(page):
        if not condition:
            await budget.pass_time()
        if "url" in args:
            await _wait_for_url(call, page, args["url"], budget)
        if "loadState" in args:
            await _wait_for_load(call, page, args["loadState"], budget)
        if names_element(args):
            state = "gone" if args.get("gone") else "shown"
            found = await _wait_for_element(page, args, state, budget)
        if args.get("networkIdle"):
            await _wait_for_idle_network(call, page, budget)
    return _result(call, page, budget, condition, found)


@tool(
    "browser_wait_for_element",
    "Wait for an element",
    "Waits until an element exists and, unless `visible` is false, is visible.",
    params={**TARGET, "visible?": "boolean", "timeout?": _TIMEOUT},
    output=_OUTPUT,
    read_only=True,
)
async def wait_for_element(call: Call) -> ToolResult:
    if not names_element(call.args):
        raise InvalidArguments("No element is given.", hint="Give a selector, ref, text, role or label.")
    page, condition = await call.page(), _describe(call.args)
    budget = WaitBudget(call, condition)
    wanted = "shown" if call.args.get("visible", True) else "there"
    with call.box.awake.awake(page):
        found = await _wait_for_element(page, call.args, wanted, budget)
    return _result(call, page, budget, condition, found)


@tool(
    "browser_wait_for_response",
    "Wait for a response",
    "Waits for a response with a matching URL; one received since the last action counts.",
    params={"urlPattern": _URL, "timeout?": _TIMEOUT},
    output={**_OUTPUT, "url": "string", "status": "integer", "method?": "string", "mimeType?": "string"},
    read_only=True,
    repeats_page=True,
)
async def wait_for_response(call: Call) -> ToolResult:
    page, pattern = await call.page(), str(call.args["urlPattern"])
    wanted = url_matcher(pattern)
    budget = WaitBudget(call, f"a response from {pattern!r}")
    page.ensure_watching()
    while True:
        page.require_visible()
        requests = call.box.activity.requests(page)
        responses = [response for response in requests.responses() if not call.view.hides(response.url)]
        for response in responses:
            if wanted(response.url):
                return data_result(
                    {
                        "tabId": page.tab_id,
                        "did": f"{response.method} {response.url} returned {response.status}",
                        "url": response.url,
                        "status": response.status,
                        "method": response.method,
                        "mimeType": response.mime,
                    }
                )
        last = f"the last response came from {responses[-1].url[:200]}" if responses else "no response came"
        if call.box.browsers.book.get(page.tab_id) is None:
            raise TabFailed(f"Tab {page.tab_id} was closed while waiting for {pattern!r}.")
        if budget.remaining > 0:
            budget.report_progress()
            await requests.wait_for_event(min(1.0, budget.remaining))
        else:
            await budget.pause(last)


async def _wait_for_url(call: Call, page: Page, pattern: str, budget: WaitBudget) -> None:
    wanted = url_matcher(pattern)
    while (tab := call.box.browsers.book.get(page.tab_id)) is not None:
        page.require_visible()
        if wanted(tab.url):
            return
        await budget.pause(f"the tab is at {tab.url[:300]}")
    raise TabFailed(f"Tab {page.tab_id} was closed while waiting.", hint="browser_list_tabs shows what is open.")


async def _wait_for_load(call: Call, page: Page, state: str, budget: WaitBudget) -> None:
    while True:
        page.require_visible()
        ready = await budget.await_page(_ready_state(page))
        tab = call.box.browsers.book.get(page.tab_id)
        if ready in _READY_STATES[state] and (state != "load" or tab is None or tab.status != "loading"):
            return
        await budget.pause(f"the page is {ready or 'not there yet'}")


async def _ready_state(page: Page) -> str:
    try:
        answer = await page.cdp("Runtime.evaluate", {"expression": "document.readyState", "returnByValue": True})
    except PageNavigated:
        return "being left"
    return str(answer.get("result", {}).get("value", ""))


async def _wait_for_idle_network(call: Call, page: Page, budget: WaitBudget) -> None:
    quiet = call.box.browsers.limits.network_quiet
    while True:
        page.require_visible()
        ready = await budget.await_page(_ready_state(page))
        quiet_for, pending = call.box.activity.requests(page).quiet(page.link.loop.time())
        if ready == "complete" and quiet_for >= quiet:
            return
        under_way = f"{len(pending)} requests are under way, such as {pending[0][:200]}" if pending else ""
        await budget.pause(under_way or f"the page is {ready}")


async def _wait_for_element(page: Page, args: Mapping[str, Any], state: str, budget: WaitBudget) -> str:
    """Wait until an element exists, is visible or is gone; returns its label."""
    wanted = target_of(args) | {"near": False}
    while True:
        page.require_visible()
        try:
            seen = await budget.await_page(_find_in_frames(page, wanted))
        except PageNavigated:
            seen = {}
            budget.reset_backoff()
        if seen.get("why") == "invalid":
            raise InvalidArguments(f"The selector {wanted.get('selector')!r} is not valid CSS: {seen.get('message')}")
        if state == "gone" and (not seen.get("there") or not seen.get("shown")) and seen:
            return ""
        if seen.get(state):
            return str(seen.get("label") or "")[:300]
        if seen.get("why") == "gone" and "ref" in wanted:
            raise CommandFailed(
                f"The ref {wanted['ref']} no longer names an element of tab {page.tab_id}.",
                hint="Take a new browser_snapshot, or wait by selector or text.",
            )
        await budget.pause(_progress_text(state, seen))


def _progress_text(state: str, seen: Mapping[str, Any]) -> str:
    if state == "gone":
        return f"{seen.get('label', 'it')} is still there"
    if seen.get("there"):
        return f"{seen.get('label')} exists but is not visible"
    return "no such element is on the page"


async def _find_in_frames(page: Page, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Search the main frame first, then all others."""
    first = await _find_in_frame(await main_frame(page), wanted)
    if first.get("shown") or not first.get("frames") or first.get("why") == "invalid":
        return first
    answers = await asyncio.gather(
        *(_find_in_frame(frame, wanted) for frame in (await list_frames(page))[1:]), return_exceptions=True
    )
    for answer in answers:
        if isinstance(answer, BaseException):
            # A frame that was removed has nothing to show.
            if not isinstance(answer, CommandFailed) or (
                isinstance(answer, TabFailed) and not isinstance(answer, PageNavigated)
            ):
                raise answer
        elif answer.get("shown") or (answer.get("there") and not first.get("there")):
            first = answer
    return first


async def _find_in_frame(frame: Frame, wanted: Mapping[str, Any]) -> dict[str, Any]:
    return parse_object(await frame.evaluate("in_document", {"wanted": dict(wanted)}))


def _describe(args: Mapping[str, Any]) -> str:
    parts = []
    if names_element(args):
        what = " and ".join(f"{name} {value!r}" for name, value in target_of(args).items())
        parts.append(f"{what} to {'go' if args.get('gone') else 'appear'}")
    if "url" in args:
        parts.append(f"the URL {args['url']!r}")
    if "loadState" in args:
        parts.append(f"the state {args['loadState']}")
    if args.get("networkIdle"):
        parts.append("an idle network")
    return ", ".join(parts)


def _result(call: Call, page: Page, budget: WaitBudget, condition: str, found: str) -> ToolResult:
    page.require_visible()
    tab = call.box.browsers.book.get(page.tab_id)
    what = f" for {condition}" if condition else ""
    facts = {"tabId": page.tab_id, "did": f"Waited {budget.elapsed:.1f} s{what}"}
    if found:
        facts["element"] = found
    if tab is not None:
        facts["url"] = tab.url
    return data_result(facts)
