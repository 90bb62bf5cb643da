"""`tabhub demo`: the tour. An example shop is opened and used as an agent would use it, step by step.

Owns the steps and how they are shown. The shop is served by `tabhub.cli.demo.shop`; whose hub is used is
`tabhub.cli.hub.temporary_hub`'s; talking to it is `tabhub.cli.hub.mcp_client`'s.
"""

from __future__ import annotations

import base64
import contextlib
import json
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tabhub.cli.command import Command
from tabhub.cli.demo.shop import packaged_shop, serve_shop
from tabhub.cli.hub.mcp_client import McpClient
from tabhub.cli.terminal import cut, paint, safe, show_warning
from tabhub.errors import CliError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

TOOLS = ("search_products", "add_to_cart", "apply_coupon", "get_cart", "checkout")
"""What the shop offers, by the names it gives them."""
_PAGE_TOOL = re.compile(r"website_tool_.+_tab\d+_(.+?)(?:_h[0-9a-f]{10,})?")
_APPEAR = 10.0
_POLL = 0.1
_SHOWN = 300
_STEPS = 7


def demo(args: Namespace) -> int:
    """Take the tour."""
    from tabhub.cli.hub.temporary_hub import borrow_hub

    shop = packaged_shop()
    output = _output(args.output)
    with borrow_hub(headless=args.headless) as borrowed, serve_shop(shop) as url:
        print(f"{borrowed.words}\nThe example shop: {paint(url, 'cyan')}\n")
        client = McpClient(borrowed.hub, "tabhub-demo", _answer_yes if args.yes else _ask_person)
        try:
            client.open()
            # A hub that goes on is not to remember a shop that does not.
            _Tour(client, args.pause).take(url if borrowed.own else f"{url}?cache=off", output)
        finally:
            client.close()
    print(f"\nThe same tools are there for your own agent: {paint('tabhub setup --help', 'bold')}")
    return 0


class _Tour:
    """The steps, one after the other; one that fails ends the tour."""

    def __init__(self, client: McpClient, pause: float) -> None:
        self._client = client
        self._pause = pause
        self._number = 0

    def take(self, url: str, output: Path | None) -> None:
        before = set(self._client.tools())
        opened = _facts(self._step("Open the shop in a tab.", "browser_open_tab", {"url": url, "active": True}))
        tab_id = opened.get("tabId")
        with self._closing(tab_id):
            names, waited = self._page_tools(before)
            print(paint(f"  The page declared {len(names)} tools; the hub listed them {_ms(waited)} later.\n", "dim"))
            self._use(names)
            words = "Take a picture of what the shop looks like now."
            shot = self._step(words, "browser_screenshot_tab", {"tabId": tab_id, "fullPage": True})
            print(f"Screenshot: {paint(str(_save(shot, output)), 'bold')}")

    def _use(self, names: dict[str, str]) -> None:
        search = {"query": "light", "maxPrice": 50}
        found = _facts(self._step("Look for something that gives light.", names["search_products"], search))
        products = found.get("products")
        first = products[0].get("productId") if isinstance(products, list) and products else None
        if not isinstance(first, str):
            raise CliError("The shop's search found nothing to buy.", "Is examples/shop as it was shipped?")
        self._step("Put two of the first into the cart.", names["add_to_cart"], {"productId": first, "quantity": 2})
        self._step("Use a coupon: this tool is a form of the page.", names["apply_coupon"], {"code": "LANTERN10"})
        self._step("Look into the cart.", names["get_cart"], {})
        self._step("Check out. The shop wants a person to confirm that.", names["checkout"], {})

    def _step(self, words: str, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Make one call and show it: name, arguments, answer, duration."""
        self._number += 1
        print(paint(f"{self._number}/{_STEPS}  {words}", "bold"))
        print(f"  call    {paint(tool, 'cyan')} {json.dumps(arguments, ensure_ascii=False)}", flush=True)
        began = time.monotonic()
        result = self._client.call(tool, arguments)
        took = time.monotonic() - began
        answer = _words(result)
        if result.get("isError") is True:
            raise CliError(
                f"Step {self._number} of the tour failed: {tool} answered: {answer}",
                "`tabhub doctor` checks the road from agent to tab.",
            )
        print(f"  answer  {safe(answer)}\n  took    {_ms(took)}\n", flush=True)
        if self._pause:
            time.sleep(self._pause)
        return result

    def _page_tools(self, before: set[str]) -> tuple[dict[str, str], float]:
        """The full names of the shop's tools, once the hub has all of them."""
        began = time.monotonic()
        while True:
            names = {}
            for name in self._client.tools():
                match = _PAGE_TOOL.fullmatch(name)
                if match and name not in before:
                    names[match[1]] = name
            waited = time.monotonic() - began
            missing = [tool for tool in TOOLS if tool not in names]
            if not missing:
                return names, waited
            if waited > _APPEAR:
                raise CliError(
                    f"The shop's tools did not appear in the hub within {_APPEAR:g} s; missing: {', '.join(missing)}.",
                    "Are page tools allowed? `tabhub config show` tells `pages.allowedOrigins` and "
                    "`pages.modelContext`. A browser with an older extension needs it loaded anew.",
                )
            time.sleep(_POLL)

    @contextlib.contextmanager
    def _closing(self, tab_id: object) -> Iterator[None]:
        """Close the tour's tab at the end, however it ends."""
        if type(tab_id) is not int:
            raise CliError("The hub did not say which tab it opened.", "Are CLI and hub of the same version?")
        try:
            yield
        finally:
            with contextlib.suppress(CliError):  # what ended the tour is what the person should read
                self._client.call("browser_close_tab", {"tabId": tab_id})


def _ask_person(question: str) -> bool:
    """Put the page's question to the person at the terminal; nobody there means no."""
    print(f"  {paint('The page asks:', 'yellow')} {safe(question)}")
    print("  Confirm? [y/N] ", end="", flush=True)
    answer = sys.stdin.readline()
    if not answer.endswith("\n"):
        print()
        show_warning("Nobody is there to confirm, so the answer is no. `tabhub demo --yes` confirms by itself.")
        return False
    if not sys.stdin.isatty():
        print(answer.strip())
    return answer.strip().lower() in ("y", "yes")


def _answer_yes(question: str) -> bool:
    print(f"  {paint('The page asks:', 'yellow')} {safe(question)}\n  Confirm? yes (--yes)", flush=True)
    return True


def _facts(result: dict[str, Any]) -> dict[str, Any]:
    facts = result.get("structuredContent")
    return facts if isinstance(facts, dict) else {}


def _words(result: dict[str, Any]) -> str:
    """A result on one line."""
    content = result.get("content")
    blocks = [b for b in content if isinstance(b, dict)] if isinstance(content, list) else []
    parts = [str(b.get("text", "")) if b.get("type") == "text" else f"[{b.get('mimeType', 'data')}]" for b in blocks]
    return cut(" ".join(" ".join(parts).split()), _SHOWN) or "(nothing)"


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 10 else f"{seconds:.0f} s"


def _output(named: str | None) -> Path | None:
    """Where the picture goes; a place that cannot be is found before anything is started."""
    if named is None:
        return None
    path = Path(named).expanduser().absolute()
    if path.is_dir() or not path.parent.is_dir():
        raise CliError(f"{path} cannot be written: it is a folder, or in none.", "Name a file.", exit_code=2)
    return path


def _save(result: dict[str, Any], output: Path | None) -> Path:
    """Write the picture of a result to the file named, or to a new temporary one."""
    content = result.get("content")
    blocks = [b for b in content if isinstance(b, dict)] if isinstance(content, list) else []
    data = next((b.get("data") for b in blocks if b.get("type") == "image"), None)
    try:
        picture = base64.b64decode(data if isinstance(data, str) else "", validate=True)
    except ValueError:
        picture = b""
    if not picture:
        raise CliError("The hub's answer holds no picture.", "Are CLI and hub of the same version?")
    if output is None:
        with tempfile.NamedTemporaryFile(prefix="tabhub-demo-", suffix=".png", delete=False) as file:
            file.write(picture)
        return Path(file.name)
    try:
        output.write_bytes(picture)
    except OSError as error:
        raise CliError(f"{output} cannot be written: {error.strerror}.", "Name another file: --output FILE") from None
    return output


def _seconds(text: str) -> float:
    from argparse import ArgumentTypeError

    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= 60:
        raise ArgumentTypeError(f"'{text}' is not a number of seconds from 0 to 60")
    return seconds


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--yes", action="store_true", help="confirm the order without asking")
    parser.add_argument("--headless", action="store_true", help="without a window")
    parser.add_argument("--pause", metavar="SECONDS", type=_seconds, default=0.0, help="wait after each step, to watch")
    parser.add_argument("--output", metavar="FILE", help="where the screenshot goes (default: a temporary file)")


COMMAND = Command(
    "Take the tour: an agent's work in an example shop, step by step",
    demo,
    arguments=_arguments,
    details=(
        "Uses the running hub if a browser is connected to it; else starts a hub and a browser of its own, and ends\n"
        "both when the tour is over. Nothing is bought, and no page is loaded from elsewhere."
    ),
    examples=(
        ("tabhub demo", ""),
        ("tabhub demo --pause 2", "slowly, to watch it in the browser's window"),
        ("tabhub demo --headless --yes --output shop.png", "without a window and without questions"),
    ),
)
