"""`tabhub demo`: a tour. It opens an example shop and uses it as an agent would, step by step.

Owns the steps and their output. `demo.shop` serves the shop; `hub.temporary_hub` decides which hub is used.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import re
import sys
import time
from argparse import Namespace
from functools import partial
from pathlib import Path
from typing import Any

from tabhub.cli.command import Command, option, seconds
from tabhub.cli.demo.shop import packaged_shop, serve_shop
from tabhub.cli.hub.client import Hub, bearer
from tabhub.cli.hub.temporary_hub import borrow_hub
from tabhub.cli.question import read_line
from tabhub.cli.terminal import cut, paint, safe, show_warning
from tabhub.cli.tool import save_content
from tabhub.client_errors import CliError, UsageError
from tabhub.errors import TabhubError
from tabhub.mcp.client import McpClient

TOOLS = ("search_products", "add_to_cart", "apply_coupon", "get_cart", "checkout")
_PAGE_TOOL = re.compile(r"website_tool_.+_tab\d+_(.+?)(?:_h[0-9a-f]{10,})?")
_APPEAR = 10.0
"""Seconds in which the shop's tools must be listed."""
_POLL = 0.1
_MAX_SHOWN = 300
_STEPS = 7
_VERSIONS = "CLI and hub may be of different versions."


def demo(args: Namespace) -> None:
    shop = packaged_shop()
    output = _output(args.output)
    with borrow_hub(headless=args.headless) as (hub, temporary), serve_shop(shop) as url:
        print(f"The example shop: {paint(url, 'cyan')}\n")
        # The person's own hub must not cache the tools of a shop that ends with the tour.
        page = url if temporary else f"{url}?cache=off"
        asyncio.run(_run_tour(hub, page, output, pause=args.pause, confirm=args.yes))
    print(f"\nYour own agent can use the same tools: {paint('tabhub setup --help', 'bold')}")


async def _run_tour(hub: Hub, url: str, output: Path | None, *, pause: float, confirm: bool) -> None:
    answer = partial(_answer, confirm=confirm)
    client = McpClient(hub.address, lambda: bearer(hub, "/mcp"), "tabhub-demo", answer, "all,structured")
    try:
        await client.open()
        await _Tour(client, pause).run(url, output)
    finally:
        await client.close()


class _Tour:
    """The steps, one after the other; one that fails ends the tour."""

    def __init__(self, client: McpClient, pause: float) -> None:
        self._client = client
        self._pause = pause
        self._number = 0

    async def run(self, url: str, output: Path | None) -> None:
        before = await self._tool_names()
        opened = await self._step("Open the shop in a tab.", "browser_open_tab", {"url": url, "active": True})
        tab_id = _facts(opened).get("tabId")
        if type(tab_id) is not int:
            raise CliError("The hub did not report which tab it opened.", _VERSIONS)
        try:
            names, waited = await self._page_tools(before)
            print(paint(f"  The page declared {len(names)} tools; the hub listed them {_ms(waited)} later.\n", "dim"))
            await self._use(names)
            title = "Take a screenshot of the shop."
            shot = await self._step(title, "browser_screenshot_tab", {"tabId": tab_id, "fullPage": True})
            print(f"Screenshot: {paint(_save(shot, output), 'bold')}")
        finally:
            with contextlib.suppress(TabhubError):  # the error that ended the tour is the one to show
                await self._client.call_tool("browser_close_tab", {"tabId": tab_id})

    async def _use(self, names: dict[str, str]) -> None:
        search = {"query": "light", "maxPrice": 50}
        found = _facts(await self._step("Search for a light.", names["search_products"], search))
        products = found.get("products")
        first = products[0].get("productId") if isinstance(products, list) and products else None
        if not isinstance(first, str):
            raise CliError("The shop's search found no product.", "Reinstall Tabhub if its example shop was changed.")
        cart = {"productId": first, "quantity": 2}
        await self._step("Add two of the first product to the cart.", names["add_to_cart"], cart)
        coupon = {"code": "LANTERN10"}
        await self._step("Apply a coupon: this tool is a form of the page.", names["apply_coupon"], coupon)
        await self._step("Show the cart.", names["get_cart"], {})
        await self._step("Check out. The shop asks a person to confirm that.", names["checkout"], {})

    async def _step(self, title: str, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        self._number += 1
        print(paint(f"{self._number}/{_STEPS}  {title}", "bold"))
        print(f"  call    {paint(tool, 'cyan')} {json.dumps(arguments, ensure_ascii=False)}", flush=True)
        began = time.monotonic()
        result = await self._client.call_tool(tool, arguments)
        took = time.monotonic() - began
        answer = _one_line(result)
        if result.get("isError") is True:
            raise CliError(
                f"Step {self._number} of the tour failed: {tool} answered: {answer}",
                "Run `tabhub doctor` to diagnose the setup.",
            )
        print(f"  answer  {safe(answer)}\n  took    {_ms(took)}\n", flush=True)
        if self._pause:
            await asyncio.sleep(self._pause)
        return result

    async def _tool_names(self) -> set[str]:
        return {str(tool.get("name")) for tool in await self._client.list_tools()}

    async def _page_tools(self, before: set[str]) -> tuple[dict[str, str], float]:
        """The full names of the shop's tools, once the hub lists all of them, and the seconds that took."""
        began = time.monotonic()
        while True:
            matches = [_PAGE_TOOL.fullmatch(name) for name in await self._tool_names() - before]
            names = {match[1]: match[0] for match in matches if match}
            waited = time.monotonic() - began
            missing = [tool for tool in TOOLS if tool not in names]
            if not missing:
                return names, waited
            if waited > _APPEAR:
                raise CliError(
                    f"The shop's tools did not appear in the hub within {_APPEAR:g} s; missing: {', '.join(missing)}.",
                    "Check `pages.allowedOrigins` and `pages.modelContext` in `tabhub config show`. If the browser has "
                    "an older version of the extension, reload it.",
                )
            await asyncio.sleep(_POLL)


async def _answer(params: dict[str, Any], *, confirm: bool) -> dict[str, Any]:
    """Show the page's question at the terminal; without an answer it is declined, with --yes it is confirmed."""
    print(f"  {paint('The page asks:', 'yellow')} {safe(str(params.get('message', '')))}")
    print("  Confirm? " + ("yes (--yes)\n" if confirm else "[y/N] "), end="", flush=True)
    typed = "yes\n" if confirm else await read_line()
    if not typed.endswith("\n"):
        print()
        show_warning("No answer, so the order is not confirmed. `tabhub demo --yes` confirms it without asking.")
    elif not confirm and not sys.stdin.isatty():
        print(typed.strip())
    if typed.strip().lower() not in ("y", "yes"):
        return {"action": "decline"}
    fields = params.get("requestedSchema", {}).get("properties", {})
    return {"action": "accept", "content": {name: True for name, field in fields.items() if field["type"] == "boolean"}}


def _facts(result: dict[str, Any]) -> dict[str, Any]:
    facts = result.get("structuredContent")
    return facts if isinstance(facts, dict) else {}


def _one_line(result: dict[str, Any]) -> str:
    parts = [str(b.get("text", f"[{b.get('mimeType', 'data')}]")) for b in result.get("content", [])]
    return cut(" ".join(" ".join(parts).split()), _MAX_SHOWN) or "(nothing)"


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 10 else f"{seconds:.0f} s"


def _output(named: str | None) -> Path | None:
    """The file for the screenshot, checked before anything is started."""
    if named is None:
        return None
    path = Path(named).expanduser().absolute()
    if path.is_dir() or not path.parent.is_dir():
        raise UsageError(f"{path} cannot be written: it is a folder, or its folder is missing.", "Name a file.")
    return path


def _save(result: dict[str, Any], output: Path | None) -> str:
    """Write the image of a result to the given file, or to a new temporary one; returns its path."""
    data = next((block.get("data") for block in result.get("content", []) if block.get("type") == "image"), None)
    if not data:
        raise CliError("The result contains no image.", _VERSIONS)
    if output is None:
        return save_content(data, "image/png")
    output.write_bytes(base64.b64decode(data))
    return str(output)


COMMAND = Command(
    demo,
    option("--yes", action="store_true", help="confirm the order without asking"),
    option("--headless", action="store_true", help="start the browser without a window"),
    option("--pause", metavar="SECONDS", type=seconds, default=0.0, help="wait after each step"),
    option("--output", metavar="FILE", help="file for the screenshot (default: a temporary file)"),
    details=(
        "Uses the running hub if a browser is connected to it. Otherwise it starts a temporary hub and browser and\n"
        "stops both after the tour. Nothing is bought, and nothing is loaded from the network."
    ),
    examples=(
        ("tabhub demo --pause 2", "slowly, to watch it in the browser"),
        ("tabhub demo --headless --yes --output shop.png", "without a window and without questions"),
    ),
)
