"""What tools cost: memory of each, and how long listing, searching and registering hold the event loop.

`python -m bench.tool_cost [TOOLS]` registers the tools of pages, 50 of a site, with a hub in a process of its own, and
prints the figures as JSON. The definitions are those of the tests of search. Row L9 of the matrix needs at most 6 KB.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.held_loop import BEAT
from bench.rows import Hub, Outcome, running
from tests.core.listing.corpus import page_tools
from tests.harness.agent import Agent
from tests.harness.fake_extension import FakeExtension, tab
from tests.harness.hub import Address
from tests.harness.pages import page
from tests.harness.waiting import until_outside

OF_A_SITE = 50
PAUSE = 0.02
"""Seconds between two pages: lists of tools are accepted at a limited rate."""


def offers(count: int) -> list[dict[str, Any]]:
    """Registrations of pages with so many tools, each with a definition of its own."""
    real = page_tools()
    made = []
    for site in range(count // OF_A_SITE):
        tools = []
        for at in range(OF_A_SITE):
            listing = real[(site * OF_A_SITE + at) % len(real)].listing()
            name = f"{listing['name'].rpartition('_tab1_')[2]}_{at}"
            schema = {**listing["inputSchema"], "description": f"Of {name} at site {site}."}
            text = f"{listing['description'].partition('says: ')[2]} ({site}, {at})"
            tools.append({"name": name, "description": text, "inputSchema": schema, "via": "webmcp"})
        made.append(page(100 + site, *tools, origin=f"https://s{site}.example"))
    return made


class Held:
    """The longest time that the hub's loop was held, as bench.held_loop writes it."""

    def __init__(self, hub: Hub, out: Path) -> None:
        self._hub, self._out = hub, out

    def begin(self) -> None:
        self._out.unlink(missing_ok=True)
        self._hub.child.process.send_signal(signal.SIGUSR1)

    async def end(self) -> float:
        await asyncio.sleep(2 * BEAT)
        self._hub.child.process.send_signal(signal.SIGUSR2)
        await until_outside(self._out.exists)
        return float(self._out.read_text())


async def measure(count: int) -> dict[str, float]:
    """Register the tools, list and search them, and register some of them again."""
    facts: dict[str, float] = {"tools": count}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "held"
        with running("-m", "bench.held_loop", str(out)) as hub:
            await _measure(hub, Held(hub, out), count, facts)
    return facts


async def _measure(hub: Hub, held: Held, count: int, facts: dict[str, float]) -> None:
    address = Address(port=hub.port, token=hub.token, extension_key=hub.extension_key)
    pages = offers(count)
    tabs = [tab(each["tabId"], f"{each['origin']}/p") for each in pages]
    async with FakeExtension(address, tabs=tabs) as browser, Agent(address, "/mcp") as agent:
        await browser.settle()
        await _steady(hub)
        before = hub.child.rss_mb()
        held.begin()
        for each in pages:
            await browser.notify("browser/registerTools", each)
            await browser.settle()
            await asyncio.sleep(PAUSE)
        facts["register_held_ms"] = await held.end()
        await _steady(hub)
        facts["kb_registered"] = (hub.child.rss_mb() - before) * 1024 / count
        for name, step in {
            "default_list": agent.request("tools/list"),
            "search": agent.call("tabhub_list_tools", {"query": "write an e-mail to my landlord"}),
            "search_again": agent.call("tabhub_list_tools", {"query": "put two of these into my basket"}),
            "reregister": _change(browser, pages[0]),
            "list_after_change": agent.request("tools/list"),
            "search_after_change": agent.call("tabhub_list_tools", {"query": "cancel my appointment"}),
        }.items():
            held.begin()
            began = time.perf_counter()
            await step
            facts[f"{name}_ms"] = (time.perf_counter() - began) * 1000
            facts[f"{name}_held_ms"] = await held.end()
        await _steady(hub)
        facts["kb_indexed"] = (hub.child.rss_mb() - before) * 1024 / count
        async with Agent(address, "/mcp?tools=all") as every:
            held.begin()
            await every.request("tools/list")
            facts["all_first_page_held_ms"] = await held.end()


async def _change(browser: FakeExtension, offer: dict[str, Any]) -> None:
    changed = [{**tool, "description": f"{tool['description']} Changed."} for tool in offer["tools"]]
    await browser.notify("browser/registerTools", {**offer, "tools": changed})
    await browser.settle()


async def _steady(hub: Hub) -> None:
    """Wait until the hub's memory no longer changes."""
    last = -1.0
    while (now := hub.child.rss_mb()) != last:
        last = now
        await asyncio.sleep(1.2)


async def l9(count: int = 5000) -> Outcome:
    """First list, first search and re-registration with thousands of tools, and their memory."""
    facts = await measure(count)
    held = tuple(
        (f"ms the loop was held, {name.removesuffix('_held_ms').replace('_', ' ')}", value, 5)
        for name, value in facts.items()
        if name.endswith("_held_ms") and name != "register_held_ms"
    )
    memory = ("KB of memory a tool, searched", round(facts["kb_indexed"], 1), 6)
    return Outcome("L9", f"{count} tools of pages, listed, searched and registered again", (), (*held, memory))


def main() -> None:
    """Measure and print."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    print(json.dumps({name: round(value, 2) for name, value in asyncio.run(measure(count)).items()}, indent=1))


if __name__ == "__main__":
    main()
