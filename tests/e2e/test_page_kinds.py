"""The kinds of pages that offer tools, end to end: each is listed, called, updated and removed."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client
from mcp.types import CallToolResult

from tests.e2e import live
from tests.e2e.live import LiveHub
from tests.e2e.pagesite import ERAS, SHOP, WEBMCP, PageSite, PageTab, result_text

FORMS = ("search", "buy", "odd", "go")
NATIVE = "return Object.getOwnPropertyDescriptor(Document.prototype, 'modelContext')?.get.toString() ?? ''"


@dataclass(frozen=True, slots=True)
class Kind:
    """One way in which a page offers tools: its page, its actions, and the expected lists."""

    path: str
    offers: tuple[str, ...]
    via: str
    call: tuple[str, dict[str, Any]]
    answers: Callable[[CallToolResult], bool]
    grow: str
    """Adds `added` and changes the description of a tool."""
    added: str
    says: dict[str, str]
    shrink: str
    left: tuple[str, ...]
    framed: bool = field(default=False)


OFFER = "offer('more', () => 'more'); endings.add.abort(); offer('add', () => ({sum: 0}), {description: 'Adds anew.'});"
KINDS = {
    "mcp-b global": Kind(
        path="/pages/global.html",
        offers=("put_in_cart",),
        via="webmcp",
        call=("put_in_cart", {"item": "tea"}),
        answers=lambda result: result_text(result) == "put tea",
        grow="await more(); ending.abort(); window.again = new AbortController();"
        "await document.modelContext.registerTool({name: 'put_in_cart', description: 'Puts anew.', inputSchema, "
        "execute: async () => 'put'}, {signal: again.signal});",
        added="pay",
        says={"put_in_cart": "Puts anew."},
        shrink="again.abort()",
        left=("pay",),
    ),
    "mcp-b transports": Kind(
        path="/pages/transports.html",
        offers=SHOP,
        via="mcpb",
        call=("price", {"item": "tea"}),
        answers=lambda result: result_text(result) == "tea costs 7",
        grow="more(); change()",
        added="late",
        says={"price": "What an item costs today."},
        shrink="await end()",
        left=(),
    ),
    "model context": Kind(
        path="/pages/webmcp.html",
        offers=WEBMCP,
        via="webmcp",
        call=("add", {"a": 2, "b": 40}),
        answers=lambda result: result.structured_content == {"sum": 42},
        grow=OFFER,
        added="more",
        says={"add": "Adds anew."},
        shrink="endings.more.abort()",
        left=WEBMCP,
    ),
    "form": Kind(
        path="/pages/form.html",
        offers=FORMS,
        via="form",
        call=("search", {"q": "tea"}),
        answers=lambda result: (result.structured_content or {}).get("agent") is True,
        grow="document.forms[0].setAttribute('tooldescription', 'Looks.'); document.body.insertAdjacentHTML("
        "'beforeend', '<form id=new toolname=ask tooldescription=Asks. toolautosubmit "
        'onsubmit="event.preventDefault(); event.respondWith(Promise.resolve({asked: true}))"></form>\')',
        added="ask",
        says={"search": "Looks."},
        shrink="document.getElementById('new').remove()",
        left=FORMS,
    ),
    "frame": Kind(
        path="/framed",
        offers=WEBMCP,
        via="webmcp",
        call=("add", {"a": 2, "b": 40}),
        answers=lambda result: result.structured_content == {"sum": 42},
        grow=f"run(`{OFFER}`)",
        added="more",
        says={"add": "Adds anew."},
        shrink="document.querySelector('iframe').remove()",
        left=(),
        framed=True,
    ),
}


async def shows(client: Client, shop: PageSite, kind: Kind, via: str) -> None:
    """One kind of page: its tools are listed, called, updated and removed, and disappear with their tab."""
    origin = shop.elsewhere if kind.framed else shop.url
    page = await PageTab.open(client, f"{shop.url}{kind.path}", origin)
    tools = await page.lists(*kind.offers, via=via)
    name, arguments = kind.call
    facts = (tools[name].meta or {})["tabhub/page"]
    assert (facts["origin"], facts["frameId"] != 0) == (origin, kind.framed)
    assert (tools[name].description or "").startswith(f"[{origin.partition('://')[2]} · tab {facts['tab']} · ")
    result = await page.call(name, **arguments)
    assert not result.is_error, result_text(result)
    assert kind.answers(result), result
    assert (result.meta or {})["tabhub/untrusted"] == {"origin": origin}

    await page.run(kind.grow)
    await page.lists(*kind.offers, kind.added, **kind.says)
    assert not (await page.call(kind.added)).is_error
    await page.run(kind.shrink)
    await page.lists(*kind.left)
    await page.close()
    await page.lists()


@pytest.mark.req(
    "S000-overview-02",
    "S000-page-server-01",
    "S000-page-server-02",
    "S000-page-server-03",
    "S000-principles-01",
    "S000-principles-04",
    "S000-spec-architecture-01",
    "S000-spec-architecture-04",
    "S000-flows-01",
    "S000-flows-02",
    "S000-flows-03",
    "S000-spec-testing-03",
)
@pytest.mark.parametrize(("kind", "mode"), list(zip(KINDS, itertools.cycle(ERAS), strict=False)))
async def test_each_kind_of_page_is_listed_called_updated_and_removed(
    live_hub: LiveHub, shop: PageSite, kind: str, mode: str
) -> None:
    async with live_hub.mcp(mode) as client:
        await shows(client, shop, KINDS[kind], KINDS[kind].via)


@pytest.mark.req("S000-page-server-01")
async def test_the_same_pages_work_with_native_webmcp(tmp_path: Path, shop: PageSite) -> None:
    hub = live.start(tmp_path, TABHUB_BROWSER_ARGS="--enable-features=WebMCP")
    try:
        async with hub.mcp("2026-07-28") as client:
            page = await PageTab.open(client, f"{shop.url}/pages/webmcp.html")
            assert "[native code]" in await page.run(NATIVE)
            await page.close()
            for kind in ("model context", "form", "frame", "mcp-b global"):
                await shows(client, shop, KINDS[kind], "webmcp")
    finally:
        live.stop(hub)
