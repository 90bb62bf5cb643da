"""Plugins for the extension's tests: adapters written into the loaded extension, and the hub's messages about them."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import AsyncIterator, Awaitable
from typing import Any

import pytest

from tests.extension.conftest import Chromium
from tests.extension.fakehub import Message, Refused, Wire
from tests.extension.pagetab import PageTab

ADAPTER = """
(() => {
  const box = (globalThis.__openTabs ??= {});
  const adapters = (box.adapters ??= {});
  const seen = (globalThis.seen ??= []);
  const tool = (name, handle) => ({ name, handle });
  class ToolError extends Error {
    constructor(message, code, more) { super(message); Object.assign(this, { code, ...more }); }
  }
  const log = (level, message, ...data) => window.postMessage({
    type: "opentabs:plugin-logs", plugin: NAME, nonce: globalThis.__openTabs._logNonce,
    entries: [{ level, message, data, ts: new Date().toISOString() }],
  }, "*");
  adapters[NAME] = {
    name: NAME,
    __adapterHash: HASH,
    isReady: async () => window.notReady !== true,
    onDeactivate: () => seen.push(`${VERSION} deactivated`),
    teardown: () => seen.push(`${VERSION} torn down`),
    onNavigate: (url) => seen.push(`${VERSION} at ${new URL(url).hash}`),
    onToolInvocationStart: (name) => seen.push(`${name} began`),
    onToolInvocationEnd: (name, ok) => seen.push(`${name} ended ${ok}`),
    tools: [
      tool("echo", async (input) => ({ version: VERSION, path: location.pathname, input })),
      tool("give", async ({ script }) => (0, eval)(script)),
      tool("waits", (input, { signal }) => new Promise((_, reject) => {
        seen.push("waiting");
        window.finish = () => reject(new ToolError("finished", "FINISHED"));
        signal.addEventListener("abort", () => { seen.push("aborted"); reject(new Error("aborted")); });
      })),
      tool("until", () => new Promise((end) => { seen.push("until"); window.end = () => end(VERSION); })),
      tool("steps", async ({ steps }, { reportProgress }) => {
        for (const step of steps) { reportProgress(step); await new Promise((go) => setTimeout(go, 100)); }
        return "done";
      }),
      tool("fails", async ({ words, code, more }) => { throw new ToolError(words, code, more); }),
      tool("says", async ({ lines }) => lines.forEach((line) => log(...line))),
      tool("big", async ({ size }) => "x".repeat(size)),
      tool("odd", async ({ kind }) => ({
        nothing: undefined, cycle: ((o) => (o.o = o))({}), big: 1n, date: new Date(0), deep: deep(100),
      })[kind]),
    ],
  };
  function deep(levels) { let made = {}; for (let i = 0; i < levels; i++) made = { made }; return made; }
})();
"""


class Bench:
    """The plugins of one test."""

    def __init__(self, wire: Wire, chromium: Chromium) -> None:
        self.wire = wire
        self.chromium = chromium
        self.tabs: list[int] = []
        self._ids = itertools.count(1)

    def plugin(self, name: str, *patterns: str, version: str = "1", text: str = ADAPTER, **more: Any) -> Message:
        """The hub's message about a plugin, with its adapter written like the hub does."""
        digest = hashlib.sha256(f"{name} {version}".encode()).hexdigest()
        file = f"adapters/{name}-{digest[:12]}.js"
        for word, value in (("NAME", name), ("HASH", digest), ("VERSION", version)):
            text = text.replace(word, f'"{value}"')
        (self.chromium.extension / "adapters").mkdir(exist_ok=True)
        (self.chromium.extension / file).write_text(text)
        about = {"name": name, "displayName": name, "version": version, "description": "", "tools": []}
        return {**about, "urlPatterns": list(patterns), "adapterHash": digest, "adapterFile": file, **more}

    async def sync(self, *plugins: Message) -> None:
        """Send the whole list."""
        await self.wire.notify("sync.full", plugins=list(plugins))

    async def open(self, url: str) -> PageTab:
        """A page in a new tab."""
        page = await PageTab.open(self.wire, url)
        self.tabs.append(page.tab)
        return page

    async def state(self, plugin: str, state: str, *tabs: tuple[int, bool], after: int = 0) -> None:
        """Wait until this state of a plugin was reported, for exactly these tabs."""
        wanted = [{"tabId": tab, "ready": ready} for tab, ready in sorted(tabs)]

        def is_state(message: Message) -> bool:
            given = message.get("params", {})
            if message.get("method") != "tab.stateChanged" or given.get("plugin") != plugin:
                return False
            return bool(given["state"] == state and sorted(given["tabs"], key=lambda tab: tab["tabId"]) == wanted)

        await self.wire.next(is_state, after=after)

    def params(self, plugin: str, tool: str, **more: Any) -> Message:
        """The parameters of a call."""
        return {"plugin": plugin, "tool": tool, "input": {}, "dispatchId": f"call-{next(self._ids)}", **more}

    async def call(self, plugin: str, tool: str, **more: Any) -> Any:
        """Call a tool; returns its output."""
        return (await self.wire.ask("tool.dispatch", **self.params(plugin, tool, **more)))["output"]

    async def end(self) -> None:
        """Close the tabs and remove the plugins."""
        left = {tab["tabId"] for tab in (await self.wire.ask("getTabs"))["tabs"]}
        for tab in self.tabs:
            if tab in left:
                await self.wire.ask("closeTab", tabId=tab)
        await self.sync()


@pytest.fixture
async def bench(wire: Wire, chromium: Chromium) -> AsyncIterator[Bench]:
    """The plugins of one test, removed after it."""
    made = Bench(wire, chromium)
    yield made
    await made.end()


async def refusal(answer: Awaitable[Any]) -> Refused:
    """The error that a call ends with."""
    with pytest.raises(Refused) as caught:
        await answer
    return caught.value
