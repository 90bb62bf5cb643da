"""What the catalogues cost in an agent's context: tokens of the answer to tools/list, as o200k_base counts them.

Owns which catalogues there are. `catalogues` yields their answers, for whatever compares or writes them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from tabhub.browser.families import CORE, FAMILIES, SPECS
from tabhub.calls.results import TOOL as READ_RESULT
from tabhub.core.listing.catalogue import Catalogues
from tabhub.core.listing.finder import CALL, LIST
from tabhub.core.listing.pages import encode_page
from tabhub.core.listing.profiles import Profiles
from tabhub.core.registry import Entry, Registry
from tabhub.core.tools import BROWSER, HUB, CallContext, ToolResult
from tabhub.limits import DEFAULTS
from tests.harness.tokens import o200k

SELECTIONS = {"default": "", "core": "core", "all": "all", "all, for programs": "all,structured"}
"""The URL's `tools` of each catalogue of `/mcp`."""


async def _never(_context: CallContext, _arguments: dict[str, Any]) -> ToolResult:
    raise AssertionError("nothing is run here")


def catalogues() -> Iterator[tuple[str, bytes]]:
    """The name of each catalogue and its answer to tools/list, without pages, plugins and servers."""
    registry = Registry()
    registry.replace(BROWSER, [Entry(spec.tool, _never) for spec in SPECS])
    registry.replace(HUB, [Entry(READ_RESULT, _never)])
    listings = Catalogues(registry, DEFAULTS, lambda _: False, mark=False)
    profiles = Profiles(FAMILIES, CORE)
    for name, text in SELECTIONS.items():
        yield name, listings.of(profiles.select(text)).page(None, stateless=False)
    yield "gateway", encode_page("tools", (LIST.wire, CALL.wire), None, stateless=False)


def tokens() -> dict[str, int]:
    """The tokens of each catalogue."""
    return {name: o200k(page.decode()) for name, page in catalogues()}


if __name__ == "__main__":
    for name, page in catalogues():
        print(f"{name}: {len(orjson.loads(page)['tools'])} tools, {len(page):,} bytes, {o200k(page.decode()):,} tokens")
