"""The built-in tools in a real Chromium, in multiples of a bare echo through its extension; and the size of snapshots.

The hub runs in this process, so that the echo hub -> extension -> hub can be measured alone. The load generator makes
the calls over one connection. Each tool alternates with echoes, so that slow periods of the machine affect both.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from statistics import median
from typing import Any

import orjson
import uvloop

from bench import load, report
from bench.load import NUMBER, Load, Request
from bench.pages import browser, echoes
from bench.pages import site as serve
from bench.sites import PAGES
from tabhub.browser.elements import pointer
from tabhub.errors import TabhubError
from tabhub.links.extension import ExtensionLink
from tests.e2e import axtree
from tests.harness.agent import Agent
from tests.harness.hub import RunningHub, running_hub

_WARM_UP = 0.3
_TARGET = (
    "<button id=go onclick='this.dataset.n = 1 + +(this.dataset.n ?? 0)'>Go</button><input id=field aria-label=Field>"
)
_EMPTY = "((field) => { field.value = ''; field.focus(); })(document.getElementById('field'))"
_BYTES_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Case:
    """One tool, and the arguments it is called with repeatedly."""

    name: str
    tool: str
    arguments: dict[str, Any]
    marker: str
    wanted: float | None
    """Maximum, in echoes."""
    page: str = "target"


CASES = (
    Case("list tabs", "browser_list_tabs", {}, "tabs", 4),
    Case("execute script", "browser_execute_script", {"code": "return document.title"}, "Target", 6),
    Case("click", "browser_click_element", {"selector": "#go"}, "tabId", 20),
    Case("type a letter", "browser_type_text", {"selector": "#field", "text": "h", "clear": True}, "tabId", 20),
    Case("type five letters", "browser_type_text", {"selector": "#field", "text": "hello", "clear": True}, "tabId", 20),
    Case("navigate", "browser_navigate_tab", {"url": "SITE/target"}, "Target", None),
    Case("snapshot of a page with 1,500 elements", "browser_snapshot", {}, "Shop", 40, "shop"),
)


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a page's snapshot, and of the whole accessibility tree in the same notation."""

    page: str
    elements: int
    snapshot: int
    whole: int
    lost: int
    """Actionable elements that are in the tree but not in the snapshot."""


@dataclass(slots=True)
class Figures:
    """All measurements."""

    browser: str
    echoes: dict[str, list[float]] = field(default_factory=dict)
    """The median of the echoes before each run, by case."""
    calls: dict[str, list[Load]] = field(default_factory=dict)
    keys: dict[str, list[float]] = field(default_factory=dict)
    """By case, the time the browser alone needs to type a text, in echoes: a script that clears the field, and the key
    events."""
    sizes: list[Size] = field(default_factory=list)


class _Site(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        name = self.path.strip("/")
        body = (PAGES[name]() if name in PAGES else f"<!doctype html><title>Target</title>{_TARGET}").encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with suppress(BrokenPipeError):  # a navigation that a later one replaced
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name the base class gives it
        """Log nothing."""


async def _run(running: RunningHub, agent: Agent, case: Case, site: str, seconds: float) -> Load:
    arguments = {
        name: value.replace("SITE", site) if isinstance(value, str) else value for name, value in case.arguments.items()
    }
    params = {"name": case.tool, "arguments": arguments}
    body = orjson.dumps({"jsonrpc": "2.0", "id": int(NUMBER), "method": "tools/call", "params": params})
    raw = load.post(running.port, "/mcp", body, {**running.bearer, **agent.headers})
    request = Request(raw, case.marker, numbered=True, check_number=True)
    return await asyncio.to_thread(load.run, running.port, request, connections=1, seconds=seconds)


async def _keys(link: ExtensionLink, chrome_id: int, text: str, times: int = 60) -> float:
    """The median time in ms of a script that clears the field and the key events of a text, sent in one message."""
    typed = pointer.typing_events(text, tab_leaves=True)
    *first, (method, params) = [("Runtime.evaluate", {"expression": _EMPTY}), *typed]
    ahead = [{"method": name, "params": given} for name, given in first]
    taken = []
    for _ in range(times):
        begun = time.perf_counter()
        await link.request(
            "forwardCDPCommand", {"tabId": chrome_id, "method": method, "params": params, "ahead": ahead}
        )
        taken.append(1000 * (time.perf_counter() - begun))
    return median(taken)


async def _size(agent: Agent, link: ExtensionLink, site: str, name: str) -> Size:
    """Compare a snapshot with the browser's own tree."""
    await data(agent, "browser_navigate_tab", url=f"{site}/{name}")
    elements = (await data(agent, "browser_execute_script", code="return document.body.querySelectorAll('*').length"))[
        "value"
    ]
    tab = (await data(agent, "browser_get_tab_info"))["tabId"]
    answer = await agent.call("browser_snapshot", {"maxTokens": 1_000_000, "tabId": tab})
    cut = answer["result"].get("_meta", {}).get("tabhub/result", {})
    shown: str = answer["result"]["structuredContent"]["snapshot"]
    if cut:
        read = await data(agent, "tabhub_read_result", handle=cut["handle"], offset=0, limit=80_000)
        shown = read["text"]
    wanted = {"tabId": tab, "method": "Accessibility.getFullAXTree", "params": {}}
    tree = orjson.loads(await link.request("forwardCDPCommand", wanted, raw=True))  # larger than a tool's result may be
    documents = [tree["nodes"]]
    lost = sum(1 for name, count in axtree.names(documents).items() for _ in range(count) if name and name not in shown)
    size = int(cut.get("totalChars", 0)) or len(shown.encode())
    return Size(name, elements, size, len(axtree.rendered(documents).encode()), lost)


async def data(agent: Agent, name: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool that must succeed; returns its structured content."""
    answer = await agent.call(name, arguments)
    result: dict[str, Any] = answer["result"]
    if result.get("isError"):
        raise SystemExit(f"error: {name}: {result['content'][0]['text']}")
    found: dict[str, Any] = result["structuredContent"]
    return found


async def measure(rounds: int, seconds: float) -> Figures:
    """Start hub, browser and site, and measure everything."""
    limits = {"call_rate": 0}
    with tempfile.TemporaryDirectory(prefix="tabhub-bench-") as where, serve(_Site) as site:
        async with running_hub(Path(where), limits=limits) as running, Agent(running) as agent:
            link, name = await browser(running)
            figures = Figures(name)
            tab = (await data(agent, "browser_open_tab", url=f"{site}/target"))["tabId"]
            chrome_id = running.hub.browsers.tab(tab).tab.chrome_id
            for number in range(rounds):
                for case in CASES:
                    await data(agent, "browser_navigate_tab", url=f"{site}/{case.page}")
                    await _run(running, agent, case, site, _WARM_UP)
                    figures.echoes.setdefault(case.name, []).append(median(await echoes(link)))
                    figures.calls.setdefault(case.name, []).append(await _run(running, agent, case, site, seconds))
                    if "text" in case.arguments:
                        keys = await _keys(link, chrome_id, case.arguments["text"])
                        figures.keys.setdefault(case.name, []).append(keys / figures.echoes[case.name][-1])
                summary = ", ".join(
                    f"{case.name.split(' of ')[0]} {figures.calls[case.name][-1].p50_us / 1000:.2f} ms"
                    for case in CASES
                )
                print(f"round {number + 1}: {summary}", flush=True)
            for page in PAGES:
                figures.sizes.append(await _size(agent, link, site, page))
    return figures


def render(figures: Figures, rounds: int) -> str:
    """The tables and the verdicts."""
    rows, wanted = [], []
    echo = median(value for values in figures.echoes.values() for value in values)
    for case in CASES:
        calls = figures.calls[case.name]
        p50, p99 = median(call.p50_us for call in calls) / 1000, median(call.p99_us for call in calls) / 1000
        ratio = median(call.p50_us / 1000 / unit for call, unit in zip(calls, figures.echoes[case.name], strict=True))
        rows.append(
            (case.name, f"{p50:.2f}", f"{p99:.2f}", f"{ratio:.1f}", "" if case.wanted is None else f"{case.wanted:g}")
        )
        if case.name in figures.keys:
            rows.append(("of that: clearing and keys alone", "", "", f"{median(figures.keys[case.name]):.1f}", ""))
        if case.wanted is not None:
            wanted.append(report.verdict(f"{case.name}, p50 in echoes", ratio, case.wanted, at_least=False))
    sizes = [
        (
            one.page,
            f"{one.elements:,}",
            f"{one.snapshot:,}",
            f"{one.snapshot // _BYTES_PER_TOKEN:,}",
            f"{one.whole:,}",
            f"{one.snapshot / one.whole:.2f}",
            str(one.lost),
        )
        for one in figures.sizes
    ]
    largest = max(one.snapshot / one.whole for one in figures.sizes)
    wanted.append(report.verdict("largest snapshot to its whole tree", largest, 0.5, at_least=False))
    wanted.append(
        report.verdict("interactive elements lost", sum(one.lost for one in figures.sizes), 0, at_least=False)
    )
    note = (
        f"{figures.browser}; one connection over MCP 2025-11-25; {rounds} rounds, medians; "
        f"the bare echo took {echo:.2f} ms; tokens are estimated as bytes / {_BYTES_PER_TOKEN}; {report.machine()}."
    )
    return "\n\n".join(
        (
            note,
            report.table(("tool", "p50 ms", "p99 ms", "echoes", "required"), rows),
            report.table(("page", "elements", "snapshot", "tokens", "whole tree", "ratio", "lost"), sizes),
            "\n".join(wanted),
        )
    )


def main(*, rounds: int, seconds: float) -> None:
    """Measure, print, and write the section of docs/performance.md."""
    try:
        figures = uvloop.run(measure(rounds, seconds))
    except TabhubError as error:
        raise SystemExit(f"error: {error.text()}") from error
    text = render(figures, rounds)
    print(f"\n{text}\n")
    report.write_section("browser", text)
