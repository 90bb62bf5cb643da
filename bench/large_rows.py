"""Rows of the matrix with large values: thousands of tools, and results of nearly ten megabytes.

Owns what L4 and L5 do and their bounds; matrix.py runs them.
"""

from __future__ import annotations

import asyncio
import json
import signal
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any, cast

from bench.rows import Fact, Hub, Outcome, running
from tabhub.calls.sources.plugin_calls import _result
from tests.harness.agent import Agent
from tests.harness.fake_extension import FakeExtension, tab
from tests.harness.hub import Address
from tests.harness.pages import page, tool
from tests.harness.waiting import until_outside

SIZE = 9_900_000
_ROW = '{"id":1,"name":"a name","url":"https://example.com/a","tags":["a","b"],"price":1.5}'
VALUES = {
    "text": json.dumps(("word " * 19 + "end.\n") * (SIZE // 101)),
    "rows": f"[{','.join([_ROW] * (SIZE // (len(_ROW) + 1)))}]",
    "brackets": f"[{','.join(['[]'] * (SIZE // 3))}]",
}
"""As JSON, so that the browser only has to send them."""


def address(hub: Hub) -> Address:
    """The hub's address, as the test harness represents it."""
    return Address(port=hub.port, token=hub.token, extension_key=hub.extension_key)


async def l4(hub: Hub, sites: int = 500, rounds: int = 10) -> Outcome:
    """Ten more tools are registered when each of many sites already has ten."""
    took, mixed = [], 0
    tabs = [tab(number, "https://shop.example/") for number in range(sites + rounds)]
    async with FakeExtension(address(hub), tabs=tabs) as browser, Agent(address(hub)) as agent:
        for site in range(sites):
            offered = page(site, *(tool(f"t{n}") for n in range(10)), origin=f"https://s{site}.example")
            await browser.notify("browser/registerTools", offered)
        await browser.settle()
        while len(names := await _names(agent)) < sites * 10:  # noqa: ASYNC110 - lists are accepted at a limited rate
            await asyncio.sleep(0.1)
        for number in range(rounds):
            more = [tool(f"new{number}x{n}") for n in range(10)]
            began = time.perf_counter()
            await browser.notify("browser/registerTools", page(sites + number, *more))
            await browser.settle()
            took.append((time.perf_counter() - began) * 1000)
            before, names = names, await _names(agent)
            mixed += [name for name in names if name in set(before)] != before
    return Outcome(
        "L4",
        f"{len(names):,} tools in the end, {rounds} times ten more, each in {median(took):.1f} ms (median)",
        (("missing tools", (sites + rounds) * 10 - len(names), 0), ("lists in another order", mixed, 0)),
        (("ms for ten more, slowest", round(max(took), 1), 100),),
    )


async def _names(agent: Agent) -> list[str]:
    names: list[str] = []
    params: dict[str, Any] = {}
    while True:
        listed = (await agent.request("tools/list", params))["result"]
        names += [each["name"] for each in listed["tools"] if each["name"].startswith("website_tool_")]
        if "nextCursor" not in listed:
            return names
        params = {"cursor": listed["nextCursor"]}


class LargeBrowser(FakeExtension):
    """A browser whose scripts return one large value."""

    value = "1"

    async def _answer(self, message: dict[str, Any]) -> None:
        if message["method"] == "forwardCDPCommand" and message["params"]["method"] == "Runtime.evaluate":
            result = f'{{"result":{{"type":"object","value":{self.value}}}}}'
            await self.send(f'{{"jsonrpc":"2.0","id":{message["id"]},"result":{result}}}')
        else:
            await super()._answer(message)


def _take(out: Path) -> float:
    found = float(out.read_text())
    out.unlink()
    return found


async def l5(results: int = 10) -> Outcome:
    """Agents whose scripts return nearly ten megabytes at the same time; each gets a part and a handle."""
    wrong = 0
    figures: list[Fact] = []
    with tempfile.TemporaryDirectory(prefix="tabhub-rows-") as where:
        out = Path(where, "longest")
        with running("-m", "bench.held_loop", str(out)) as hub:

            async def longest() -> float:
                hub.child.process.send_signal(signal.SIGUSR2)
                await until_outside(out.exists)
                return await asyncio.to_thread(_take, out)

            async with AsyncExitStack() as stack:
                tabs = [tab(number) for number in range(1, results + 1)]
                browser = await stack.enter_async_context(LargeBrowser(address(hub), tabs=tabs))
                agents = [await stack.enter_async_context(Agent(address(hub))) for _ in tabs]
                for kind, value in (("small", "1"), *VALUES.items()):
                    browser.value = value
                    hub.child.process.send_signal(signal.SIGUSR1)
                    calls = [
                        agent.call("browser_execute_script", {"tabId": number, "code": "return large"})
                        for number, agent in enumerate(agents, 1)
                    ]
                    answers = await asyncio.gather(*calls)
                    held = await longest()
                    if kind != "small":
                        wrong += sum("tabhub/result" not in each["result"].get("_meta", {}) for each in answers)
                    figures.append((f"ms the loop was blocked, {kind}", held, 5))
    raw = b'{"output":%b}' % VALUES["brackets"].encode()
    began = time.process_time()
    _result(raw, *(cast("Any", SimpleNamespace(origin="o", tab_id=1, name="n")) for _ in range(3)))
    figures.append(("CPU ms to pass on a plugin's brackets", round((time.process_time() - began) * 1000, 1), 250))
    return Outcome(
        "L5",
        f"{results} results of {SIZE / 1e6:.1f} MB at once, of each kind; `small`: as many of one digit",
        (("without a handle", wrong, 0),),
        tuple(figures),
    )
