"""The tab tools: what they send, what they return, and how they fail."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tabhub.errors import CommandFailed, InvalidArguments, LinkLost, NotConnected, TabFailed, TabNotFound
from tests.browser.conftest import GROUP, Bench
from tests.browser.fake_browser import Failure, FakeBrowser, settle, tab


def arrival(**more: Any) -> dict[str, Any]:
    return {"tabId": 1, "url": "https://new.example/", "title": "New", "status": "complete", "ok": True, **more}


async def test_tabs_are_listed_from_memory_without_a_round_trip(bench: Bench) -> None:
    FakeBrowser("b2").join(bench.browsers, tab(1))
    listed = (await bench.call("browser_list_tabs"))["tabs"]
    assert [(found["tabId"], found["browserId"]) for found in listed][:2] == [(1, "b1"), (2, "b1")]
    assert listed[2]["tabId"] > 2**31
    assert listed[0]["active"] is True
    assert not bench.browser.sent


async def test_listing_without_a_browser_has_a_hint(bench: Bench) -> None:
    bench.browsers.detach(bench.browser.link)
    with pytest.raises(NotConnected, match="Browser extension not connected"):
        await bench.call("browser_list_tabs")


async def test_a_tab_is_described_with_its_origin_and_debugger(bench: Bench) -> None:
    bench.browser.notify("debugger.changed", attached=[2])
    info = await bench.call("browser_get_tab_info", tabId=2)
    assert (info["origin"], info["debuggerAttached"]) == ("https://site2.example", True)
    assert (bench.context.tab, bench.context.origin) == (2, "https://site2.example")


async def test_an_unknown_tab_lists_the_open_ones(bench: Bench) -> None:
    with pytest.raises(TabNotFound, match="There is no tab 77") as caught:
        await bench.call("browser_get_tab_info", tabId=77)
    assert "1 (Site 1)" in (caught.value.hint or "")
    assert caught.value.outcome == "not_sent"


async def test_open_new_tab_opens_in_the_background_and_waits_for_the_page(bench: Bench) -> None:
    bench.browser.answers["createTab"] = lambda _: tab(3, url="about:blank", title="")
    bench.browser.answers["browser_navigate"] = lambda _: arrival(tabId=3)
    opened = await bench.call("browser_open_tab", url="https://new.example/")
    assert opened == {"tabId": 3, "url": "https://new.example/", "title": "New", "status": "complete", "ok": True}
    assert bench.browser.commands("createTab")[0]["params"] == {"active": False, "group": GROUP}
    assert bench.context.sent
    assert (bench.context.tab, bench.context.origin) == (3, "https://new.example")
    assert bench.browsers.tab(3).tab.title == "New"


async def test_an_unreachable_page_is_reported_and_the_tab_stays_open(bench: Bench) -> None:
    def unreachable(_: Any) -> None:
        raise Failure(-32000, "net::ERR_NAME_NOT_RESOLVED at https://nowhere.invalid/")

    bench.browser.answers["createTab"] = lambda _: tab(3, url="about:blank")
    bench.browser.answers["browser_navigate"] = unreachable
    with pytest.raises(CommandFailed, match="ERR_NAME_NOT_RESOLVED") as caught:
        await bench.call("browser_open_tab", url="https://nowhere.invalid/")
    assert caught.value.hint == "Tab 3 stays open. Unknown host; check the spelling."
    assert caught.value.details()["tabId"] == 3


async def test_an_http_authentication_prompt_is_left_to_the_person(bench: Bench) -> None:
    def locked(_: Any) -> None:
        raise Failure(-32000, "net::ERR_INVALID_AUTH_CREDENTIALS at https://locked.example/")

    bench.browser.answers["createTab"] = lambda _: tab(3, url="about:blank")
    bench.browser.answers["browser_navigate"] = locked
    with pytest.raises(CommandFailed) as caught:
        await bench.call("browser_open_tab", url="https://locked.example/")
    assert "browser_focus_tab shows the tab" in (caught.value.hint or "")


async def test_opening_in_a_named_browser(bench: Bench) -> None:
    other = FakeBrowser("b2").join(bench.browsers)
    other.answers["createTab"] = lambda _: tab(1, url="about:blank")
    opened = await bench.call("browser_open_tab", url="about:blank", browserId="b2", active=True)
    assert opened["tabId"] > 2**31
    assert other.commands("createTab")[0]["params"] == {"active": True, "group": GROUP}
    with pytest.raises(NotConnected, match="Browser b9 is not connected"):
        await bench.call("browser_open_tab", url="about:blank", browserId="b9")
    assert not bench.browser.sent


async def test_navigation_reports_the_final_url_and_updates_the_tab(bench: Bench) -> None:
    bench.browser.answers["browser_navigate"] = lambda _: arrival(httpStatus=404)
    went = await bench.call("browser_navigate_tab", tabId=1, url="https://new.example/x", waitUntil="commit")
    assert (went["ok"], went["httpStatus"]) == (False, 404)
    (asked,) = bench.browser.commands("browser_navigate")
    assert asked["params"] == {"tabId": 1, "url": "https://new.example/x", "waitUntil": "commit"}
    assert bench.browsers.tab(1).tab.url == "https://new.example/"


async def test_the_http_status_is_read_only_if_the_debugger_is_attached(bench: Bench) -> None:
    bench.browser.answers["browser_navigate"] = lambda _: arrival()
    bench.evaluates(503)
    assert "httpStatus" not in await bench.call("browser_navigate_tab", tabId=1, url="https://new.example/")
    bench.browser.notify("debugger.changed", attached=[1])
    went = await bench.call("browser_navigate_tab", tabId=1, url="https://new.example/")
    assert (went["ok"], went["httpStatus"]) == (False, 503)


async def test_a_reply_does_not_override_newer_tab_events(bench: Bench) -> None:
    def then_report(answer: dict[str, Any]) -> dict[str, Any]:
        """Both arrive before the caller runs again."""
        done = tab(answer["tabId"], url="https://new.example/", title="Done", status="complete")
        report = {"tabId": answer["tabId"], "change": "updated", "tab": done}
        asyncio.get_running_loop().call_soon(lambda: bench.browser.notify("tab.stateChanged", **report))
        return answer

    early = {"url": "https://new.example/", "title": "", "status": "loading"}
    bench.browser.answers["browser_navigate"] = lambda _: then_report(arrival(**early))
    await bench.call("browser_navigate_tab", tabId=1, url="https://new.example/", waitUntil="commit")
    assert (bench.browsers.tab(1).tab.status, bench.browsers.tab(1).tab.title) == ("complete", "Done")
    bench.browser.answers["createTab"] = lambda _: then_report(tab(3, **early))
    await bench.call("browser_open_tab", url="about:blank")
    assert bench.browsers.tab(3).tab.status == "complete"
    bench.browser.answers["activateTab"] = lambda _: then_report(tab(2, **early))
    assert (await bench.call("browser_focus_tab", tabId=2))["status"] == "complete"


async def test_a_load_timeout_is_reported(bench: Bench) -> None:
    bench.browser.answers["browser_navigate"] = lambda _: arrival(ok=False, status="loading", error="not loaded yet")
    went = await bench.call("browser_navigate_tab", tabId=1, url="https://new.example/")
    assert (went["ok"], went["status"], went["note"]) == (False, "loading", "not loaded yet")


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "JAVASCRIPT:x",
        "chrome://settings",
        "view-source:https://x",
        "example.com",
        "about:config",
        "file:///etc/hostname",
        "FILE:///etc/hostname",
    ],
)
async def test_forbidden_urls_are_refused_before_anything_is_sent(bench: Bench, url: str) -> None:
    for name, where in (("browser_navigate_tab", {"tabId": 1}), ("browser_open_tab", {})):
        with pytest.raises(InvalidArguments, match="url"):
            await bench.call(name, url=url, **where)
    assert not bench.browser.sent
    assert not bench.context.sent


async def test_close_tab_closes_exactly_that_tab_and_forgets_it(bench: Bench) -> None:
    bench.browser.answers["closeTab"] = lambda _: {"closed": True}
    assert await bench.call("browser_close_tab", tabId=2) == {"tabId": 2, "closed": True}
    assert [found.tab_id for found in bench.browsers.book] == [1]
    assert bench.context.sent


async def test_closing_is_retried_after_dismissing_a_dialog_that_stopped_it(bench: Bench) -> None:
    tried: list[str] = []

    def dialog(what: str, **params: Any) -> None:
        event = {"tabId": 2, "method": f"Page.javascriptDialog{what}", "params": params}
        bench.browser.text(method="cdp.event", params=event)

    def close(_: Any) -> dict[str, Any]:
        tried.append("close")
        if len(tried) == 1:
            raise Failure(-32000, "Tab 2 is still open: its page asks the person first.")
        return {"closed": True}

    def answered(_: Any) -> dict[str, Any]:
        dialog("Closed", result=False)
        return {}

    bench.browser.answers["closeTab"] = close
    bench.browser.answers["Page.handleJavaScriptDialog"] = answered
    dialog("Opening", type="beforeunload", message="")
    await settle()
    assert (await bench.call("browser_close_tab", tabId=2))["closed"] is True
    assert len(tried) == 2


async def test_a_tab_kept_open_by_its_page_has_a_hint(bench: Bench) -> None:
    def blocked(_: Any) -> None:
        raise Failure(-32000, "Tab 2 is still open: its page asks the person first.")

    bench.browser.answers["closeTab"] = blocked
    with pytest.raises(CommandFailed, match="still open") as caught:
        await bench.call("browser_close_tab", tabId=2)
    assert "Call again" in (caught.value.hint or "")
    assert len(bench.browser.commands("closeTab")) == 1


async def test_the_hubs_own_ids_are_translated_on_the_way_to_the_browser(bench: Bench) -> None:
    other = FakeBrowser("b2").join(bench.browsers, tab(1))
    other.answers["closeTab"] = lambda _: {"closed": True}
    found = bench.browsers.book.find("b2", 1)
    assert found is not None
    assert (await bench.call("browser_close_tab", tabId=found.tab_id))["tabId"] == found.tab_id
    assert other.commands("closeTab")[0]["params"] == {"tabId": 1}
    assert not bench.browser.sent


async def test_without_a_tab_id_the_sessions_tab_is_used(bench: Bench) -> None:
    bench.browser.answers["createTab"] = lambda _: tab(8, url="about:blank")
    bench.browser.answers["browser_navigate"] = lambda _: arrival(tabId=8)
    assert (await bench.call("browser_navigate_tab", url="https://new.example/"))["tabId"] == 8


@pytest.mark.req("F9")
async def test_a_tab_unknown_to_the_browser_is_forgotten_with_outcome_unknown(bench: Bench) -> None:
    def gone(_: Any) -> None:
        raise Failure(-32001, "No tab with id 2. It was closed.")

    bench.browser.answers["browser_navigate"] = gone
    with pytest.raises(TabFailed, match="Tab 2 is gone") as caught:
        await bench.call("browser_navigate_tab", tabId=2, url="https://new.example/")
    assert caught.value.outcome == "unknown"
    assert caught.value.hint == "Open tabs: 1 (Site 1)."
    assert bench.browsers.book.get(2) is None


@pytest.mark.req("F1")
async def test_a_browser_killed_during_a_call_gives_outcome_unknown(bench: Bench) -> None:
    task = asyncio.ensure_future(bench.call("browser_navigate_tab", tabId=1, url="https://new.example/"))
    await settle()
    bench.browsers.detach(bench.browser.link)
    with pytest.raises(LinkLost) as caught:
        await task
    assert caught.value.outcome == "unknown"
    assert bench.context.sent


async def test_a_cancelled_call_cancels_its_command_in_the_browser(bench: Bench) -> None:
    task = asyncio.ensure_future(bench.call("browser_navigate_tab", tabId=1, url="https://new.example/"))
    await settle()
    task.cancel()
    await settle()
    assert bench.browser.sent[-1]["method"] == "cancel"
    assert bench.browser.sent[-1]["params"] == {"id": bench.browser.commands("browser_navigate")[0]["id"]}
    assert bench.browser.link.pending == 0


async def test_connection_status_probes_the_extension(bench: Bench) -> None:
    bench.browser.answers["getState"] = lambda _: {"tabs": 2, "lastError": "something"}
    status = await bench.call("browser_get_connection_status")
    assert status["connected"] is True
    assert status["hub"] == {"version": "0.1.0"}
    assert status["browsers"][0]["extension"]["answers"] is True
    assert status["browsers"][0]["extension"]["lastError"] == "something"


async def test_connection_status_without_a_browser_is_not_an_error(bench: Bench) -> None:
    bench.browsers.detach(bench.browser.link, "killed")
    status = await bench.call("browser_get_connection_status")
    assert status["connected"] is False
    assert status["browsers"][0]["reason"] == "killed"
    assert "tabhub doctor" in status["hint"]


async def test_connection_status_distinguishes_an_open_socket_from_a_failing_extension(bench: Bench) -> None:
    def broken(_: Any) -> None:
        raise Failure(-32000, "storage is broken")

    bench.browser.answers["getState"] = broken
    status = await bench.call("browser_get_connection_status")
    assert status["connected"] is False
    assert status["browsers"][0]["connected"] is True
    assert status["browsers"][0]["extension"]["problem"] == "storage is broken"
