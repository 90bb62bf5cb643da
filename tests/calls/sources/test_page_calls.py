"""Calls of page tools without a browser: which tab they go to, which pages are opened for them, and what is retried."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest

from tabhub.calls.engine import Context
from tabhub.calls.sources.page_tools import PageTools
from tabhub.calls.tab_binding import TabBinding
from tabhub.config.settings import PageSettings
from tabhub.core.leases import Leases
from tabhub.core.registry import Registry
from tabhub.core.sessions import Session, Sessions
from tabhub.errors import LinkLost, NotConnected, PageToolGone, TabhubError, TabLeased, TabNotFound
from tabhub.limits import Limits
from tabhub.links.browsers import Browsers
from tabhub.store.audit import AuditLog
from tabhub.store.page_tools import PageToolStore
from tests.harness.memory_tabs import MemoryTabs

SHOP = "https://shop.example"
LOOK: dict[str, Any] = {"annotations": {"readOnlyHint": True, "cache": True}}
GOOD = {"success": True, "payload": {"content": []}}


class Caller:
    """The caller of a running call."""

    def __init__(self) -> None:
        self.session = Session("caller", "mcp", "caller", 0, 0)
        self.extra: dict[str, Any] = {}
        self.structured = True
        self.sent = False
        self.tab: int | None = None
        self.origin: str | None = None
        self.steps: list[float] = []

    def visit(self, tab: int | None, site: str | None) -> None:
        self.tab, self.origin = tab, site

    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        self.steps.append(progress)

    def blocks(self, url: str) -> bool:
        return False

    def can(self, capability: str) -> bool:
        return False


class Shop:
    """Page tools over tabs in memory."""

    def __init__(self, folder: Path, **limits: Any) -> None:
        self.tabs = MemoryTabs()
        self.registry = Registry()
        bounds = Limits(**{"retry_delay": 0.01, "page_appear": 0.05, **limits})
        self.audit = AuditLog(folder / "audit.log")
        self.sessions = Sessions(bounds)
        self.leases = Leases(self.sessions, bounds)
        self.binding = TabBinding(self.sessions, self.leases, Browsers(), clock=lambda: 0.0, runs_calls=lambda _: False)
        self.pages = PageTools(
            self.tabs,
            self.registry,
            self.tabs.book,
            self.tabs,
            PageToolStore(folder / "tools.json"),
            limits=bounds,
            settings=PageSettings(),
            audit=self.audit,
            clock=lambda: 0.0,
            wall=lambda: 1000.0,
            leases=self.binding,
        )

    def offer(self, tab_id: int, *names: str, document: str = "d", **more: Any) -> None:
        """Register tools for a tab, whose answer is its own number."""
        if self.tabs.book.get(tab_id) is None:
            self.tabs.add(tab_id, f"{SHOP}/p")
        self.tabs.answer.setdefault(tab_id, lambda params: GOOD)
        tools = [{"name": name, "inputSchema": {"type": "object"}, "via": "mcpb", **more} for name in names]
        facts = {"frameId": 0, "documentId": document, "origin": SHOP, "url": f"{SHOP}/p", "title": "", "tools": tools}
        self.tabs.say(tab_id, "browser/registerTools", **facts)

    async def call(self, name: str, caller: Caller | None = None) -> int | None:
        """Make a call; returns the tab that answered."""
        found = self.registry.by_name.get(name)
        assert found is not None, list(self.registry.by_name)
        caller = caller or Caller()
        await found.run(cast("Context", caller), {})
        return caller.tab


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


async def outcome(shop: Shop, name: str) -> TabhubError:
    with pytest.raises(TabhubError) as failed:
        await shop.call(name)
    return failed.value


def tries(shop: Shop) -> list[int]:
    return [sent.tab_id for sent in shop.tabs.sent]


@pytest.mark.req("S000-spec-architecture-02", "S000-principles-05", "S000-spec-testing-01", "S000-spec-architecture-07")
async def test_routing_needs_no_browser(shop: Shop) -> None:
    shop.offer(1, "add")
    shop.offer(2, "add")
    assert await shop.call("website_tool_shop_example_tab1_add") == 1
    assert await shop.call("website_tool_shop_example_tab2_add") == 2
    shop.pages.tabs_changed(shop.tabs.report(2, "activated").changed)
    assert await shop.call("website_tool_shop_example_add") == 2


@pytest.mark.req("S000-spec-routing-13")
async def test_a_call_that_never_reached_the_page_is_retried_a_few_times(shop: Shop) -> None:
    shop.offer(1, "add")
    shop.tabs.answer[1] = lambda params: TabNotFound("frame gone", data={"sent": False})
    error = await outcome(shop, "website_tool_shop_example_tab1_add")
    assert error.outcome == "not_sent"
    assert tries(shop) == [1] * 4
    replies: list[Any] = [LinkLost("x", sent=False), GOOD]
    shop.tabs.answer[1] = lambda params: replies.pop(0)
    assert await shop.call("website_tool_shop_example_add") == 1


@pytest.mark.req("S000-spec-routing-14", "F9")
@pytest.mark.parametrize("error", [LinkLost("x", sent=True), TabNotFound("gone", data={"sent": True})])
async def test_a_call_that_may_have_taken_effect_is_retried_only_if_repeatable(shop: Shop, error: Exception) -> None:
    shop.offer(1, "add")
    shop.offer(1, "add", "look", document="e", **LOOK)
    shop.offer(2, "look", **LOOK)
    shop.tabs.report(1, "activated")
    shop.tabs.answer[1] = lambda params: error
    assert await shop.call("website_tool_shop_example_look") == 2
    assert tries(shop) == [1, 2]
    shop.offer(3, "buy")
    shop.offer(4, "buy")
    shop.tabs.answer[3] = shop.tabs.answer[4] = lambda params: error
    failed = await outcome(shop, "website_tool_shop_example_buy")
    assert failed.outcome == "unknown"
    assert len(tries(shop)) == 3


async def test_a_named_tab_is_waited_for_while_it_reloads(shop: Shop) -> None:
    shop.offer(1, "add")

    def reloading(params: dict[str, Any]) -> Exception:
        shop.tabs.say(1, "browser/disconnected", frameId=0, documentId="d")
        shop.tabs.answer[1] = lambda params: GOOD
        asyncio.get_running_loop().call_later(0.02, shop.offer, 1, "add")
        return TabNotFound("frame gone", data={"sent": False})

    shop.tabs.answer[1] = reloading
    assert await shop.call("website_tool_shop_example_tab1_add") == 1
    shop.tabs.answer[1] = lambda params: (
        shop.tabs.say(1, "browser/disconnected", frameId=0, documentId="d") or TabNotFound("x", data={"sent": False})
    )
    assert isinstance(await outcome(shop, "website_tool_shop_example_tab1_add"), PageToolGone)


async def test_a_call_of_a_named_tab_never_moves_to_the_tab_that_gets_its_number(shop: Shop) -> None:
    shop.offer(1, "add")

    def closing(params: dict[str, Any]) -> Exception:
        def replace() -> None:
            shop.tabs.close(1)
            shop.offer(2, "add")

        shop.tabs.say(1, "browser/disconnected", frameId=0, documentId="d")
        asyncio.get_running_loop().call_later(0.02, replace)
        return TabNotFound("frame gone", data={"sent": False})

    shop.tabs.answer[1] = closing
    failed = await outcome(shop, "website_tool_shop_example_tab1_add")
    assert isinstance(failed, PageToolGone)
    assert await shop.call("website_tool_shop_example_tab1_add") == 2  # the name means the new tab now
    assert tries(shop) == [1, 2]


def closed(shop: Shop) -> None:
    shop.offer(1, "look", **LOOK)
    shop.tabs.close(1)


@pytest.mark.req("S000-spec-routing-16", "S000-spec-routing-17")
async def test_a_site_is_opened_once_for_all_calls_that_wait_for_it(shop: Shop) -> None:
    closed(shop)
    shop.tabs.on_open = lambda tab_id, url: cast(
        "None", asyncio.get_running_loop().call_later(0.01, lambda: shop.offer(tab_id, "look", **LOOK))
    )
    calls = [shop.call("website_tool_shop_example_look") for _ in range(5)]
    assert set(await asyncio.gather(*calls)) == {101}
    assert shop.tabs.opened == [f"{SHOP}/p"]


@pytest.mark.req("S000-spec-routing-13")
async def test_a_page_without_the_tool_is_reloaded_three_times_in_the_same_tab(shop: Shop) -> None:
    closed(shop)
    caller = Caller()
    with pytest.raises(PageToolGone) as failed:
        await shop.call("website_tool_shop_example_look", caller)
    assert failed.value.outcome == "not_sent"
    assert (len(shop.tabs.opened), len(shop.tabs.revisited)) == (1, 3)
    assert caller.steps == [0, 1, 2, 3]
    assert (Limits().retries, Limits().retry_delay) == (3, 1)
    # the tab is reused by the next call, unless the person has taken it
    shop.tabs.on_open = lambda tab_id, url: shop.offer(tab_id, "look", **LOOK)
    assert await shop.call("website_tool_shop_example_look") == 101
    shop.tabs.close(101)
    assert await shop.call("website_tool_shop_example_look") == 102


async def test_without_a_browser_a_call_fails_at_once(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    closed(shop)

    async def nothing(url: str) -> int:
        raise NotConnected("No browser is connected.")

    monkeypatch.setattr(shop.tabs, "open", nothing)
    assert isinstance(await outcome(shop, "website_tool_shop_example_look"), NotConnected)


async def test_a_question_outside_of_a_call_is_declined(shop: Shop) -> None:
    shop.offer(1, "add")
    where = {"frameId": 0, "documentId": "d", "toolName": "add", "message": "?"}
    answer = shop.tabs.say(1, "browser/elicitConfirmation", **where)
    assert answer["confirmed"] is False

    async def asking(params: dict[str, Any]) -> Any:
        answer = await shop.tabs.say(1, "browser/elicitConfirmation", **where)
        return {"success": False, "payload": answer["reason"]}

    shop.tabs.answer[1] = asking
    result = await shop.registry.by_name.get("website_tool_shop_example_tab1_add").run(cast("Context", Caller()), {})  # type: ignore[union-attr]
    assert b"nobody could confirm" in result.payload


@pytest.mark.req("S000-spec-registration-08")
async def test_cached_tools_are_saved_when_they_changed(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    await shop.pages.keep()
    assert not (tmp_path / "tools.json").exists()
    shop.offer(1, "look", **LOOK)
    await shop.pages.keep()
    assert b'"look"' in (tmp_path / "tools.json").read_bytes()
    assert list(Shop(tmp_path).registry.by_name) == ["website_tool_shop_example_look"]


async def run(shop: Shop, name: str, session: Session) -> int | None:
    """The tab that a session's call went to."""
    caller = Caller()
    caller.session = session
    entry = shop.registry.by_name.get(name)
    assert entry is not None
    await entry.run(cast("Context", caller), {})
    return caller.tab


async def test_a_tab_that_another_session_holds_is_read_but_not_acted_in(shop: Shop) -> None:
    shop.offer(1, "add")
    shop.offer(1, "add", "look", annotations={"readOnlyHint": False})
    shop.offer(2, "see", annotations={"readOnlyHint": True})
    holder, other = (shop.sessions.open(name, "mcp", f"client {name}", 0) for name in ("one", "two"))
    shop.leases.bind(holder, 1, 0, acting=True)
    shop.leases.bind(holder, 2, 0, acting=True)
    for name in ("website_tool_shop_example_tab1_add", "website_tool_shop_example_add"):
        with pytest.raises(TabLeased, match="held by another session: client one"):
            await run(shop, name, other)
        assert await run(shop, name, holder) == 1
    assert await run(shop, "website_tool_shop_example_tab2_see", other) == 2
    shop.binding.reading = False
    with pytest.raises(TabLeased):
        await run(shop, "website_tool_shop_example_tab2_see", other)
    assert shop.tabs.opened == []


async def test_a_call_without_a_tab_prefers_the_sessions_tab_and_then_a_free_one(shop: Shop) -> None:
    for tab_id in (1, 2, 3):
        shop.offer(tab_id, "add")
    one, two, three = (shop.sessions.open(name, "mcp", name, 0) for name in ("one", "two", "three"))
    shop.leases.bind(one, 1, 0, acting=True)
    shop.leases.bind(two, 2, 0, acting=True)
    name = "website_tool_shop_example_add"
    assert [await run(shop, name, who) for who in (one, two, three)] == [1, 2, 3]
