"""The two products, each with its own headless Chromium and its default settings."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from bench.miniwob.products.base import Product
from bench.miniwob.products.mcp import Client
from bench.miniwob.products.playwright import Playwright
from bench.miniwob.products.tabhub import Tabhub
from bench.processes import ROOT, Child, answers, free_port, listens
from bench.servers import agent_token
from tabhub.links.launch.installed_browsers import find_browsers

_SERVER = ROOT / "bench" / "peers" / "node_modules" / "@playwright" / "mcp" / "cli.js"


@asynccontextmanager
async def tabhub(folder: Path) -> AsyncIterator[Product]:
    """A hub with its managed browser, as `tabhub start --launch --headless` gives it."""
    home, port = folder / "home", free_port()
    command = [sys.executable, "-m", "tabhub", "start", "--launch", "--headless", "--port", str(port)]
    with Child(command, log=folder / "tabhub.log", env={"TABHUB_HOME": str(home)}) as child:
        child.wait_until(lambda: answers(port, "/health"), "the hub")
        token = agent_token(home)
        async with Client(f"http://127.0.0.1:{port}/mcp", {"Authorization": f"Bearer {token}"}) as client:
            yield Tabhub(client)


@asynccontextmanager
async def playwright(folder: Path) -> AsyncIterator[Product]:
    """Playwright MCP with the same browser; `vision` adds the mouse at coordinates, which some tasks need."""
    if not _SERVER.exists():
        raise SystemExit("error: Playwright MCP is not installed\nhint: scripts/setup bench")
    browser, port = find_browsers(os.environ)[0].path, free_port()
    options = ["--headless", "--isolated", "--caps", "vision", "--executable-path", str(browser), "--port", str(port)]
    if os.name == "posix" and os.geteuid() == 0:
        options.append("--no-sandbox")
    node = ROOT / ".venv" / "bin" / "node"
    command = [str(node) if node.exists() else "node", str(_SERVER), *options]
    with Child(command, log=folder / "playwright.log") as child:
        child.wait_until(lambda: listens(port), "Playwright MCP")
        async with Client(f"http://localhost:{port}/mcp", {}) as client:
            yield Playwright(client)


@asynccontextmanager
async def products(names: list[str]) -> AsyncIterator[list[Product]]:
    """Start the products of these names, and end them."""
    known = {"tabhub": tabhub, "playwright": playwright}
    async with AsyncExitStack() as stack:
        where = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tabhub-miniwob-")))
        yield [await stack.enter_async_context(known[name](where)) for name in names]
