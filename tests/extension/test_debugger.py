"""The DevTools protocol through the extension: commands, events, child frames, cancelling, detaching."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import pytest

from tests.extension.conftest import Site
from tests.extension.fakehub import Refused, Wire


async def value(wire: Wire, tab: int, expression: str, session: str | None = None) -> Any:
    """The value of an expression in the page."""
    answer = await wire.cdp(tab, "Runtime.evaluate", session, expression=expression, returnByValue=True)
    return answer["result"].get("value")


@pytest.mark.req("S004-architecture-06")
async def test_a_script_runs_also_where_the_page_forbids_scripts(wire: Wire, tab: int, site: Site) -> None:
    await wire.ask("browser_navigate", tabId=tab, url=f"{site.url}/strict")
    assert await value(wire, tab, "document.title + 1") == "Strict1"


async def test_a_background_tab_can_be_captured(wire: Wire, tab: int, site: Site) -> None:
    await wire.ask("browser_navigate", tabId=tab, url=f"{site.url}/red")
    assert not (await wire.ask("selectTab", tabId=tab))["active"]
    shot = await wire.cdp(tab, "Page.captureScreenshot", format="png")
    image = base64.b64decode(shot["data"])
    assert image.startswith(b"\x89PNG")
    assert len(image) > 200
    assert not (await wire.ask("selectTab", tabId=tab))["active"]


async def test_a_frame_of_another_site_has_its_own_session(wire: Wire, tab: int, site: Site) -> None:
    await wire.ask("browser_navigate", tabId=tab, url=f"{site.url}/framed")
    before = len(wire.seen)
    await wire.ask("subscribeCDPEvents", tabId=tab, events=["Target.attachedToTarget"])
    child = await wire.notified("cdp.event", after=before, tabId=tab, method="Target.attachedToTarget")
    assert child["params"]["targetInfo"]["type"] == "iframe"
    session = child["params"]["sessionId"]
    assert await value(wire, tab, "location.hostname", session) == "localhost"
    assert await value(wire, tab, "location.hostname") == "127.0.0.1"
    await wire.ask("subscribeCDPEvents", tabId=tab, events=[])
    before = len(wire.seen)
    await wire.ask("subscribeCDPEvents", tabId=tab, events=["Target."])
    again = await wire.notified("cdp.event", after=before, tabId=tab, method="Target.attachedToTarget")
    assert again["params"]["sessionId"] == session
    await wire.ask("subscribeCDPEvents", tabId=tab, events=["Runtime.consoleAPICalled"])
    await wire.cdp(tab, "Runtime.enable", session)
    await value(wire, tab, "console.log('hi')", session)
    event = await wire.notified("cdp.event", after=before, tabId=tab, method="Runtime.consoleAPICalled")
    assert event["sessionId"] == session


@pytest.mark.parametrize(("path", "status"), [("/framed", 200), ("/gone", 404), ("/moved", 200)])
async def test_the_http_status_of_a_watched_page_is_that_of_its_last_response(
    wire: Wire, tab: int, site: Site, path: str, status: int
) -> None:
    await wire.ask("subscribeCDPEvents", tabId=tab, events=["Network.responseReceived", "Page.frameNavigated"])
    for domain in ("Network", "Page"):
        await wire.cdp(tab, f"{domain}.enable")
    arrived = await wire.ask("browser_navigate", tabId=tab, url=f"{site.url}{path}")
    assert arrived["httpStatus"] == status
    within = await wire.ask("browser_navigate", tabId=tab, url=f"{arrived['url']}#part")
    assert within["httpStatus"] == status


async def test_only_subscribed_events_are_sent(wire: Wire, tab: int, site: Site) -> None:
    before = len(wire.seen)
    await wire.ask("subscribeCDPEvents", tabId=tab, events=["Network.responseReceived"])
    await wire.cdp(tab, "Network.enable")
    await wire.cdp(tab, "Page.enable")
    await wire.ask("browser_navigate", tabId=tab, url=f"{site.url}/")
    await wire.notified("cdp.event", after=before, tabId=tab, method="Network.responseReceived")
    reported = {m["params"]["method"] for m in wire.seen[before:] if m.get("method") == "cdp.event"}
    assert reported == {"Network.responseReceived"}


async def test_commands_ahead_run_in_order_before_the_command(wire: Wire, tab: int) -> None:
    def logs(what: str) -> dict[str, Any]:
        return {"method": "Runtime.evaluate", "params": {"expression": f"(window.order ??= []).push({what})"}}

    nothing: dict[str, Any] = {"method": "Tabhub.isNoDomain"}
    answer = await wire.ask(
        "forwardCDPCommand",
        tabId=tab,
        method="Runtime.evaluate",
        params={"expression": "window.order.join()"},
        ahead=[logs("1"), nothing, logs("2")],
    )
    assert answer["result"]["value"] == "1,2"
    wrongs: list[Any] = ["Page.enable", [1], [{}], [nothing] * 2001]
    for wrong in wrongs:
        with pytest.raises(Refused, match=r"ahead|method"):
            await wire.ask("forwardCDPCommand", tabId=tab, method="Runtime.evaluate", ahead=wrong)


def script(expression: str) -> dict[str, Any]:
    """A script as it is sent together with another one."""
    return {"method": "Runtime.evaluate", "params": {"expression": expression, "returnByValue": True}}


async def test_chained_commands_are_sent_when_the_script_says_so(wire: Wire, tab: int) -> None:
    follow = [script("order.push(2)"), script("order.push(3), order.join()")]
    lead = {"expression": "window.order = [1], ({ go: true })", "returnByValue": True}
    answer = await wire.ask("forwardCDPCommand", tabId=tab, method="Runtime.evaluate", params=lead, follow=follow)
    assert answer["result"]["value"] == {"go": True}
    assert answer["followed"]["result"]["result"]["value"] == "1,2,3"
    for held_back in ("({ go: false })", "({ go: 1 })", "'go'", "null", "undefined", "(() => { throw 1; })()"):
        lead = {"expression": f"window.order = [1], {held_back}", "returnByValue": True}
        answer = await wire.ask("forwardCDPCommand", tabId=tab, method="Runtime.evaluate", params=lead, follow=follow)
        assert "followed" not in answer
        assert await value(wire, tab, "order.join()") == "1"


async def test_results_of_scripts_ahead_come_with_the_answer_and_may_ask_for_what_follows(wire: Wire, tab: int) -> None:
    follow = [script("order.push(3), order.join()")]
    for go, followed in (("true", "1,2,3"), ("false", None)):
        answer = await wire.ask(
            "forwardCDPCommand",
            tabId=tab,
            method="Runtime.evaluate",
            params={"expression": "order.push(2), 'mine'", "returnByValue": True},
            ahead=[{"method": "Tabhub.isNoDomain"}, script(f"window.order = [1], ({{ go: {go} }})"), script("throw 1")],
            follow=follow,
        )
        assert answer["result"]["value"] == "mine"
        first, second = answer["ahead"]
        assert first["result"]["value"] == {"go": go == "true"}
        assert "exceptionDetails" in second
        assert answer.get("followed", {}).get("result", {}).get("result", {}).get("value") == followed


async def test_a_dialog_comes_after_what_scripts_ahead_of_its_script_have_answered(wire: Wire, tab: int) -> None:
    before = len(wire.seen)
    await wire.ask("subscribeCDPEvents", tabId=tab, events=["Page.javascriptDialogOpening"])
    await wire.cdp(tab, "Page.enable")
    later = "new Promise((done) => setTimeout(done, 300)).then(() => alert('Wait'))"  # what is ahead has been answered
    script_params = {"expression": later, "awaitPromise": True}
    params: dict[str, Any] = {"tabId": tab, "method": "Runtime.evaluate", "params": script_params}
    asked = asyncio.ensure_future(wire.ask("forwardCDPCommand", **params, ahead=[script("'read before'")]))
    await wire.notified("cdp.event", after=before, tabId=tab, method="Page.javascriptDialogOpening")
    events = [each["params"] for each in wire.seen[before:] if each.get("method") == "cdp.event"]
    assert [each["method"] for each in events] == ["Tabhub.ahead", "Page.javascriptDialogOpening"]
    assert events[0]["params"]["ahead"][0]["result"]["value"] == "read before"
    await wire.cdp(tab, "Page.handleJavaScriptDialog", accept=True)
    assert (await asked)["ahead"] == events[0]["params"]["ahead"]
    await wire.ask("subscribeCDPEvents", tabId=tab, events=[])


async def test_an_error_of_a_chained_command_is_reported_with_the_scripts_result(wire: Wire, tab: int) -> None:
    lead = {"expression": "({ go: true, found: 7 })", "returnByValue": True}
    follow = [{"method": "Tabhub.isNoDomain"}, script("1")]
    answer = await wire.ask("forwardCDPCommand", tabId=tab, method="Runtime.evaluate", params=lead, follow=follow)
    assert answer["result"]["value"]["found"] == 7
    assert "wasn't found" in answer["followed"]["error"]
    wrongs: list[Any] = ["Page.enable", [1], [{}], [script("1")] * 2001]
    for wrong in wrongs:
        with pytest.raises(Refused, match=r"follow|method"):
            await wire.ask("forwardCDPCommand", tabId=tab, method="Runtime.evaluate", params=lead, follow=wrong)


async def test_chained_commands_are_not_sent_after_a_dialog_or_cancellation(wire: Wire, tab: int) -> None:
    before = len(wire.seen)
    await wire.ask("subscribeCDPEvents", tabId=tab, events=["Page.javascriptDialogOpening"])
    await wire.cdp(tab, "Page.enable")
    lead = {"expression": "alert('Wait'), ({ go: true })", "returnByValue": True}
    follow = [script("window.came = 1")]
    params: dict[str, Any] = {"tabId": tab, "method": "Runtime.evaluate", "params": lead, "follow": follow}
    asked = asyncio.ensure_future(wire.ask("forwardCDPCommand", **params))
    await wire.notified("cdp.event", after=before, tabId=tab, method="Page.javascriptDialogOpening")
    await wire.cdp(tab, "Page.handleJavaScriptDialog", accept=True)
    assert "followed" not in await asked
    assert await value(wire, tab, "window.came") is None
    held_up = {"expression": "new Promise((done) => (window.free = () => done({ go: true })))", "awaitPromise": True}
    number, reply = await wire.start("forwardCDPCommand", **{**params, "params": {**held_up, "returnByValue": True}})
    assert await value(wire, tab, "1") == 1
    await wire.notify("cancel", id=number)
    assert (await asyncio.wait_for(reply, 30))["error"]["code"] == -32010
    await value(wire, tab, "free()")
    assert await value(wire, tab, "window.came") is None
    await wire.ask("subscribeCDPEvents", tabId=tab, events=[])


async def test_the_debugger_detaches_when_idle_and_reports_it(wire: Wire, tab: int) -> None:
    before = len(wire.seen)
    await value(wire, tab, "1")
    assert tab in (await wire.notified("debugger.changed", after=before))["attached"]
    assert tab in (await wire.ask("getState"))["debugger"]["attached"]
    await wire.notified("cdp.detached", after=before, tabId=tab, reason="idle")
    assert tab not in (await wire.ask("getState"))["debugger"]["attached"]
    assert await value(wire, tab, "2") == 2


async def test_a_subscription_keeps_the_debugger(wire: Wire, tab: int) -> None:
    other = (await wire.ask("createTab"))["tabId"]
    before = len(wire.seen)
    await wire.ask("subscribeCDPEvents", tabId=tab, events=["Network."])
    await value(wire, other, "1")
    await wire.notified("cdp.detached", after=before, tabId=other, reason="idle")
    assert tab in (await wire.ask("getState"))["debugger"]["attached"]
    await wire.ask("subscribeCDPEvents", tabId=tab, events=[])
    await wire.notified("cdp.detached", after=before, tabId=tab, reason="idle")
    await wire.ask("closeTab", tabId=other)


async def test_a_command_that_runs_keeps_the_debugger(wire: Wire, tab: int) -> None:
    script = "new Promise(end => setTimeout(() => end(1), 3200))"
    answer = await wire.cdp(tab, "Runtime.evaluate", expression=script, awaitPromise=True)
    assert answer["result"]["value"] == 1


async def test_cancelling_ends_a_script_that_runs_forever(wire: Wire, tab: int) -> None:
    forever = {"expression": "debugger; for(;;);"}
    number, loop = await wire.start(
        "forwardCDPCommand", tabId=tab, method="Runtime.evaluate", params=forever, interruptible=True
    )
    await wire.notify("cancel", id=number)
    assert (await asyncio.wait_for(loop, 30))["error"] == {"code": -32010, "message": "cancelled"}
    assert await asyncio.wait_for(value(wire, tab, "3"), 30) == 3
    assert sum(m.get("id") == number and "method" not in m for m in wire.seen) == 1


async def test_a_script_that_runs_forever_ends_by_its_time_limit(wire: Wire, tab: int) -> None:
    with pytest.raises(Refused, match="terminated"):
        await wire.cdp(tab, "Runtime.evaluate", expression="for(;;);", timeout=300)
    number, loop = await wire.start(
        "forwardCDPCommand", tabId=tab, method="Runtime.evaluate", params={"expression": "for(;;);", "timeout": 900}
    )
    await wire.notify("cancel", id=number)
    assert (await asyncio.wait_for(loop, 30))["error"]["code"] == -32010
    assert await asyncio.wait_for(value(wire, tab, "3"), 30) == 3


async def test_cancelling_a_script_that_waits_leaves_the_page_alone(wire: Wire, tab: int) -> None:
    waiting = {"expression": "new Promise(() => setTimeout(() => window.lived = 1, 300))", "awaitPromise": True}
    number, reply = await wire.start("forwardCDPCommand", tabId=tab, method="Runtime.evaluate", params=waiting)
    assert await value(wire, tab, "1") == 1
    await wire.notify("cancel", id=number)
    assert (await asyncio.wait_for(reply, 30))["error"]["code"] == -32010
    lived = "new Promise(end => setTimeout(() => end(window.lived), 400))"
    answer = await wire.cdp(tab, "Runtime.evaluate", expression=lived, awaitPromise=True)
    assert answer["result"]["value"] == 1


@pytest.mark.req("F9")
async def test_closing_a_tab_ends_its_commands_at_once(wire: Wire, tab: int) -> None:
    await value(wire, tab, "1")
    waiting = {"expression": "new Promise(() => {})", "awaitPromise": True}
    _, reply = await wire.start("forwardCDPCommand", tabId=tab, method="Runtime.evaluate", params=waiting)
    await wire.ask("closeTab", tabId=tab)
    assert (await asyncio.wait_for(reply, 30))["error"]["code"] == -32001


@pytest.mark.req("F9")
async def test_leaving_a_page_ends_its_scripts_at_once(wire: Wire, tab: int, site: Site) -> None:
    await wire.ask("browser_navigate", tabId=tab, url=f"{site.url}/")
    waiting = {"expression": "new Promise(() => {})", "awaitPromise": True}
    _, reply = await wire.start("forwardCDPCommand", tabId=tab, method="Runtime.evaluate", params=waiting)
    await value(wire, tab, "1")
    await wire.ask("browser_navigate", tabId=tab, url=f"http://localhost:{site.port}/other")
    assert (await asyncio.wait_for(reply, 30))["error"]["code"] == -32000


@pytest.mark.req("F9")
async def test_a_crashed_tab_says_so_and_works_again_after_a_reload(wire: Wire, tab: int, site: Site) -> None:
    await wire.ask("browser_navigate", tabId=tab, url=f"{site.url}/")
    await value(wire, tab, "1")
    waiting = {"expression": "new Promise(() => {})", "awaitPromise": True}
    _, reply = await wire.start("forwardCDPCommand", tabId=tab, method="Runtime.evaluate", params=waiting)
    await wire.start("forwardCDPCommand", tabId=tab, method="Page.crash", params={})
    assert "crashed" in (await asyncio.wait_for(reply, 30))["error"]["message"]
    with pytest.raises(Refused, match="crashed"):
        await value(wire, tab, "1")
    await wire.ask("reloadTab", tabId=tab)
    assert await value(wire, tab, "document.title") == "Home"


async def test_protocol_errors_have_their_message(wire: Wire, tab: int) -> None:
    with pytest.raises(Refused, match=r"^-32000: 'No.suchThing' wasn't found"):
        await wire.cdp(tab, "No.suchThing")
    with pytest.raises(Refused, match="-32000: Invalid parameters"):
        await wire.cdp(tab, "Runtime.evaluate", expression=5)
    with pytest.raises(Refused, match="-32000: "):
        await wire.cdp(tab, "Runtime.evaluate", "no-such-session", expression="1")


async def test_a_page_of_the_browser_itself_cannot_be_debugged(wire: Wire, tab: int) -> None:
    # The extension navigates no tab to such a URL; the protocol does, and is then detached from the tab.
    with pytest.raises(Refused, match="-32000: The debugger was detached"):
        await wire.cdp(tab, "Page.navigate", url="chrome://version/")
    with pytest.raises(Refused, match="-32000: Cannot access a chrome:// URL"):
        await value(wire, tab, "1")
