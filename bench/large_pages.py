"""Pages of thousands of rows in a real Chromium: the first search of a page that has just been loaded, later ones, and
what it costs to learn which elements listen for the mouse.

The hub runs in this process, so that a part of a call can be measured. Each case loads the page anew.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import parse_qs, urlsplit

import uvloop

from bench import report
from bench.browser import data
from bench.pages import browser
from bench.pages import site as serve
from tabhub.browser.driver.frames import main_frame
from tabhub.browser.driver.listeners import learn_listeners
from tabhub.browser.driver.page import Page
from tabhub.browser.driver.tab_watch import TabWatch
from tabhub.errors import TabhubError
from tests.harness.agent import Agent
from tests.harness.hub import RunningHub, running_hub

_FIRST_MS = 300.0
"""Maximum of the first search among 5,000 rows."""
_ROW = (
    "<tr><td><input type=checkbox aria-label='Select {n:05}'><td><a href='/order/{n}'>Order {n:05}</a>"
    "<td>Customer {c}<td class=sum>{n}.00<td>{state}<td><button>Ship</button> <span class=more>details</span>"
)
_STATES = ("open", "paid", "shipped", "returned")
_LISTEN = """<script>
const show = ({ target }) => (document.title = target.textContent);
for (const one of document.querySelectorAll("tr, .more")) one.addEventListener("click", show);
</script>"""
_FRAMES = """<script>
for (let n = 0; n < 12; n += 1) {
  const frame = document.createElement("iframe");
  frame.srcdoc = `<p id=p>${n}</p><x-part></x-part><script>p.addEventListener("click", () => {});
    const root = document.querySelector("x-part").attachShadow({ mode: ${n} % 2 ? "open" : "closed" });
    for (let n = 0; n < 40; n += 1) { const one = root.appendChild(document.createElement("div"));
      one.textContent = "Part " + n; one.addEventListener("mousedown", () => {}); }<\\/script>`;
  document.body.append(frame);
}
</script>"""


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """One call, on a page with this many rows."""

    name: str
    rows: int
    tool: str
    arguments: dict[str, Any]
    page: str = "plain"
    wanted: float | None = None
    """Maximum of the first call, in milliseconds."""


_LINK = {"text": "Order 04321"}
CASES = (
    Case("find a link by its text", 1250, "browser_find", {"text": "Order 01234"}),
    Case("find a link by its text", 2500, "browser_find", {"text": "Order 01234"}),
    Case("find a link by its text", 5000, "browser_find", _LINK, wanted=_FIRST_MS),
    Case("find a row", 5000, "browser_find", {**_LINK, "role": "row"}, wanted=_FIRST_MS),
    Case("find a text that every row has", 5000, "browser_find", {"text": "Ship"}, wanted=_FIRST_MS),
    Case("find nothing, with the nearest", 5000, "browser_find", {"text": "Oder 04321"}, wanted=_FIRST_MS),
    Case("find a link; rows that listen", 5000, "browser_find", _LINK, "listening", _FIRST_MS),
    Case("snapshot of the links only", 5000, "browser_snapshot", {"interactiveOnly": True}),
    Case("snapshot; rows that listen", 5000, "browser_snapshot", {"interactiveOnly": True}, "listening"),
    Case("snapshot; 12 frames with listeners", 50, "browser_snapshot", {}, "frames"),
)


@dataclass(slots=True)
class Taken:
    """Milliseconds of a case, by round."""

    first: list[float] = field(default_factory=list)
    later: list[float] = field(default_factory=list)
    listeners: list[float] = field(default_factory=list)
    """Learning the listeners of the main frame, on a page just loaded."""


def _page(rows: int, kind: str) -> str:
    body = "".join(_ROW.format(n=n, c=n % 97, state=_STATES[n % 4]) for n in range(1, rows + 1))
    more = {"listening": _LISTEN, "frames": _FRAMES}.get(kind, "")
    head = "<!doctype html><html lang=en><title>Orders</title><h1>Orders</h1><table>"
    return f"{head}<tr><th>Choose<th>Number<th>Customer<th>Sum<th>State<th>Action{body}</table>{more}</html>"


class _Site(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        asked = urlsplit(self.path)
        body = _page(int(parse_qs(asked.query).get("rows", ["0"])[0]), asked.path.strip("/")).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with suppress(BrokenPipeError):  # a navigation that a later one replaced
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name the base class gives it
        """Log nothing."""


async def _timed(work: Callable[[], Awaitable[Any]]) -> float:
    began = time.perf_counter()
    await work()
    return 1000 * (time.perf_counter() - began)


async def _run(running: RunningHub, agent: Agent, case: Case, site: str, taken: Taken) -> None:
    url = f"{site}/{case.page}?rows={case.rows}"
    tab = (await data(agent, "browser_navigate_tab", url=url))["tabId"]

    async def call() -> None:
        await data(agent, case.tool, **case.arguments)

    taken.first.append(await _timed(call))
    taken.later.append(median([await _timed(call) for _ in range(3)]))
    await data(agent, "browser_navigate_tab", url=url)
    hub = running.hub
    frame = await main_frame(Page(hub.browsers, TabWatch(hub.browsers), hub.browsers.tab(tab)))
    await frame.world()
    taken.listeners.append(await _timed(lambda: learn_listeners(frame)))


async def measure(rounds: int) -> tuple[str, dict[Case, Taken]]:
    """Start hub, browser and site, and run all cases in each round."""
    taken = {case: Taken() for case in CASES}
    with tempfile.TemporaryDirectory(prefix="tabhub-bench-") as where, serve(_Site) as site:
        async with running_hub(Path(where), limits={"call_rate": 0}) as running, Agent(running) as agent:
            _, name = await browser(running)
            await data(agent, "browser_open_tab", url=f"{site}/plain?rows=1")
            for number in range(rounds):
                for case in CASES:
                    await _run(running, agent, case, site, taken[case])
                print(f"round {number + 1} of {rounds}", flush=True)
    return name, taken


def render(name: str, taken: dict[Case, Taken], rounds: int) -> str:
    """The table and the verdicts."""
    rows = [
        (
            case.name,
            f"{case.rows:,}",
            f"{median(found.first):.0f}",
            f"{median(found.later):.0f}",
            f"{median(found.listeners):.0f}",
            "" if case.wanted is None else f"{case.wanted:g}",
        )
        for case, found in taken.items()
    ]
    verdicts = [
        report.verdict(
            f"{case.name}, {case.rows:,} rows, first call in ms", median(found.first), case.wanted, at_least=False
        )
        for case, found in taken.items()
        if case.wanted is not None
    ]
    note = f"{name}; one agent over MCP; each page just loaded; medians of {rounds} rounds; {report.machine()}."
    head = ("call", "rows", "first ms", "later ms", "of that: listeners", "required")
    return "\n\n".join((note, report.table(head, rows), "\n".join(verdicts)))


def main(*, rounds: int) -> None:
    """Measure, print, and write the section of docs/performance.md."""
    try:
        name, taken = uvloop.run(measure(rounds))
    except TabhubError as error:
        raise SystemExit(f"error: {error.text()}") from error
    text = render(name, taken, rounds)
    print(f"\n{text}\n")
    report.write_section("large_pages", text)
