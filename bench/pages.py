"""Page tools in a real Chromium: the time from page to listing, and of one call, compared with the bare echo.

The hub runs in this process, so that the echo hub -> extension -> hub can be measured alone, and the hub's own share of
a registration too. The load generator makes the calls. Echoes and calls alternate, so that slow periods of the machine
affect both.
"""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from typing import Any

import orjson
import uvloop

from bench import load, report
from bench.load import NUMBER, Load, Request
from tabhub.errors import SetupError, TabhubError, TabNotFound
from tabhub.links.extension import ExtensionLink
from tabhub.links.launch.installed_browsers import find_browsers
from tabhub.server.hub import Hub
from tabhub.server.managed_browser import Managed
from tabhub.store.home import DOWNLOADS
from tabhub.wire.page_tools import PageMessage
from tests.harness.agent import Agent
from tests.harness.hub import RunningHub, running_hub
from tests.harness.waiting import until

TOOLS = 10
DEBOUNCE_MS = 500.0
MARKER = "bench-page-answer"
_ECHOES = 500
_NO_TAB = 2**31 - 1
_WARM_UP = 0.5
_SAID = re.compile(r"offered at (\d{13})")
_OWN_NAME = re.compile(r"^.*_tab\d+_")
_PAGE = """<!doctype html><title>Bench</title><script>
const offer = (names) => {
  const stamp = `offered at ${Date.now()}`;
  for (const name of names) document.modelContext.registerTool({
    name, description: stamp, inputSchema: {type: "object", properties: {text: {type: "string"}}},
    execute: async ({text}) => ({content: [{type: "text", text: `MARKER ${text}`}]}),
  });
};
addEventListener("load", async () => {
  if (location.pathname === "/later") { offer(["before"]); await fetch("/listed"); }
  offer(Array.from({length: TOOLS}, (_, number) => `tool_${number}`));
});
</script>""".replace("MARKER", MARKER).replace("TOOLS", str(TOOLS))


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured."""

    pages: int
    rounds: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Listing:
    """The time in milliseconds until the tools of one page were listed."""

    whole: float
    held: float
    """The part during which the page's changes are collected."""
    to_hub: float
    in_hub: float
    to_agent: float


@dataclass(slots=True)
class Figures:
    """All measurements."""

    browser: str
    first: list[Listing] = field(default_factory=list)
    later: list[Listing] = field(default_factory=list)
    echoes: list[list[float]] = field(default_factory=list)
    """Milliseconds of each echo, by round."""
    calls: list[Load] = field(default_factory=list)


class Taken:
    """Wraps the hub's page tools; records when each list arrived and how long the hub took for it."""

    def __init__(self, hub: Hub) -> None:
        self._receive: Callable[[int, PageMessage], Any] = hub.pages.receive
        self.came = self.busy = 0.0
        hub.tabs.transport.on_message(self)

    def __call__(self, tab_id: int, message: PageMessage) -> Any:
        came, began = time.time(), time.perf_counter()
        try:
            return self._receive(tab_id, message)
        finally:
            tools = len(getattr(message, "tools", ()))
            if tools:
                _Site.listed.set()
            if tools >= TOOLS:
                self.came, self.busy = came, time.perf_counter() - began


class _Site(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    listed = threading.Event()
    """Set when the hub has a list of the page; `/listed` is then answered."""

    def do_GET(self) -> None:
        if self.path == "/listed":
            self.listed.wait(10)
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(_PAGE)))
        self.end_headers()
        self.wfile.write(_PAGE.encode())

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name the base class gives it
        """Log nothing."""


@contextmanager
def site(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """A web site on this machine; returns its origin."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), name="site")
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


async def browser(running: RunningHub) -> tuple[ExtensionLink, str]:
    """Start the managed browser of a hub; it ends with the hub."""
    hub = running.hub
    managed = Managed(
        running.home,
        find_browsers(os.environ)[0],
        port=running.port,
        key=running.extension_key,
        downloads=running.home.files / DOWNLOADS,
        headless=True,
        only_if_needed=False,
    )
    managed.begin(connected=lambda: False, on_failure=lambda: None)
    try:
        await until(lambda: len(hub.browsers.book) > 0, 40)
    except TimeoutError:
        raise SetupError(f"The browser did not connect: {managed.status()}") from None
    link = hub.browsers.default_link()
    state = await link.request("getState", {})
    return link, f"{state['browserName']} {state['browserVersion']}, headless"


async def _listing(agent: Agent, taken: Taken, link: ExtensionLink, url: str) -> Listing:
    """Open a page in a new tab, and measure until an agent that follows list_changed has all ten of its tools."""
    async with agent.listening() as events:
        await events.next()  # the opening of the stream: changes are reported from here on
        _Site.listed.clear()
        tab = await link.request("createTab", {"url": url})
        while len(found := _said(await agent.request("tools/list"))) < TOOLS:
            await events.message()
        now = time.time() * 1000
        began = found[f"tool_{TOOLS - 1}"]
        # Measured from the offer before, which was reported a little later: the figure is too high rather than too low.
        held = max(0.0, found["before"] + DEBOUNCE_MS - began) if "before" in found else 0.0
        await link.request("closeTab", {"tabId": tab["tabId"]})
        while _said(await agent.request("tools/list")):
            await events.message()
    whole, to_hub, in_hub = now - began, taken.came * 1000 - began, taken.busy * 1000
    if to_hub < held:
        raise SystemExit(
            f"error: ten tools came after {to_hub:.0f} ms, before the debounce of {held:.0f} ms had passed"
        )
    return Listing(whole, held, to_hub - held, in_hub, whole - to_hub - in_hub)


def _said(answer: dict[str, Any]) -> dict[str, int]:
    """The page's tools in an agent's list, with the milliseconds at which the page offered them."""
    found = ((tool["name"], _SAID.search(tool["description"])) for tool in answer["result"]["tools"])
    return {_OWN_NAME.sub("", name): int(stamp[1]) for name, stamp in found if stamp is not None}


async def echoes(link: ExtensionLink) -> list[float]:
    """Milliseconds of the cheapest command: a page tool's call for a tab that the extension does not know. Its service
    worker answers from memory, without contacting the browser."""
    times = []
    for _ in range(_ECHOES):
        began = time.perf_counter()
        try:
            await link.request("browser/executeTool", {"tabId": _NO_TAB, "toolName": "echo"})
        except TabNotFound:
            times.append((time.perf_counter() - began) * 1000)
    if len(times) != _ECHOES:
        raise SystemExit("error: an echo was not answered as expected")
    return times


async def _calls(
    running: RunningHub, agent: Agent, link: ExtensionLink, url: str, figures: Figures, plan: Plan
) -> None:
    """Echoes and calls alternately, with the page's tab open."""
    tab = await link.request("createTab", {"url": url, "waitUntil": "load"})
    async with agent.listening() as events:
        while not (tools := [name for name in await _names(agent) if name.endswith("_tool_0")]):
            await events.message()
    params = {"name": tools[0], "arguments": {"text": "hello"}}
    body = orjson.dumps({"jsonrpc": "2.0", "id": int(NUMBER), "method": "tools/call", "params": params})
    raw = load.post(running.port, "/mcp", body, {**running.bearer, **agent.headers})
    request = Request(raw, MARKER, numbered=True, check_number=True)

    async def calls(seconds: float) -> Load:
        return await asyncio.to_thread(load.run, running.port, request, connections=1, seconds=seconds)

    await calls(_WARM_UP)
    for number in range(plan.rounds):
        figures.echoes.append(await echoes(link))
        figures.calls.append(await calls(plan.seconds))
        echo, call = median(figures.echoes[-1]), figures.calls[-1]
        print(f"round {number + 1}: echo {echo:.2f} ms, page tool {call.p50_us / 1000:.2f} ms", flush=True)
    await link.request("closeTab", {"tabId": tab["tabId"]})


async def _names(agent: Agent) -> list[str]:
    return [tool["name"] for tool in (await agent.request("tools/list"))["result"]["tools"]]


async def measure(plan: Plan) -> Figures:
    """Start hub, browser and site, and measure everything."""
    with tempfile.TemporaryDirectory(prefix="tabhub-bench-") as where, site(_Site) as origin:
        async with running_hub(Path(where), limits={"page_call_rate": 0}) as running, Agent(running) as agent:
            link, name = await browser(running)
            figures, taken = Figures(name), Taken(running.hub)
            await _listing(agent, taken, link, f"{origin}/first")  # the browser starts its first page process
            for _ in range(plan.pages):
                figures.first.append(await _listing(agent, taken, link, f"{origin}/first"))
                figures.later.append(await _listing(agent, taken, link, f"{origin}/later"))
            print(f"{2 * plan.pages} pages listed", flush=True)
            await _calls(running, agent, link, f"{origin}/first", figures, plan)
    return figures


def _row(name: str, times: Sequence[float], echo: float) -> tuple[str, ...]:
    return name, f"{median(times):.2f}", f"{max(times):.2f}", f"{median(times) / echo:.1f}"


def render(figures: Figures, plan: Plan) -> str:
    """The tables and the verdicts."""
    echo = median(median(times) for times in figures.echoes)
    echo_p99 = median(sorted(times)[int(len(times) * 0.99)] for times in figures.echoes)
    p50 = median(call.p50_us for call in figures.calls) / 1000
    p99 = median(call.p99_us for call in figures.calls) / 1000
    first, later = figures.first, figures.later
    listed = (
        _row("first tools of a page, to the agent's list", [one.whole for one in first], echo),
        _row("- of this, page to hub", [one.to_hub for one in first], echo),
        _row("- of this, registration in the hub", [one.in_hub for one in first], echo),
        _row("- of this, hub to the agent's list", [one.to_agent for one in first], echo),
        _row("a change right after another, to the agent's list", [one.whole for one in later], echo),
        _row("- without the debounce", [one.whole - one.held for one in later], echo),
    )
    trips = (
        ("bare echo, hub to extension and back", f"{echo:.2f}", f"{echo_p99:.2f}", "1.0"),
        ("page tool, over MCP 2025-11-25", f"{p50:.2f}", f"{p99:.2f}", f"{p50 / echo:.1f}"),
    )
    slowest = max(one.whole - one.held for one in (*first, *later))
    wanted = (
        report.verdict("10 tools from page to list, debounce aside, slowest, ms", slowest, 100, at_least=False),
        report.verdict("page tool, round trip, p99, ms", p99, 500, at_least=False),
        report.verdict("page tool to bare echo, p50", p50 / echo, 8, at_least=False),
    )
    count = sum(call.requests for call in figures.calls)
    note = (
        f"{figures.browser}; {plan.pages} pages of each kind; {count:,} calls on one connection in {plan.rounds} "
        f"rounds, {_ECHOES} echoes before each, medians of the rounds; {report.machine()}."
    )
    return "\n\n".join(
        (
            note,
            report.table((f"{TOOLS} tools", "median ms", "slowest ms", "echoes"), listed),
            report.table(("round trip", "p50 ms", "p99 ms", "echoes"), trips),
            "\n".join(wanted),
        )
    )


def main(*, pages: int, rounds: int, seconds: float) -> None:
    """Measure, print, and write the section of docs/performance.md."""
    plan = Plan(pages, rounds, seconds)
    try:
        figures = uvloop.run(measure(plan))
    except TabhubError as error:
        raise SystemExit(f"error: {error.text()}") from error
    text = render(figures, plan)
    print(f"\n{text}\n")
    report.write_section("pages", text)
