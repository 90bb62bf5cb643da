"""Network tools in cases that are slow or rare in a real browser: expired interceptions, ended sessions, secrets."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tabhub.browser.driver.page import Page
from tabhub.browser.driver.tab_watch import TabWatch
from tabhub.browser.intercepted_requests import Interceptions
from tabhub.browser.record import headers
from tabhub.browser.record.console_messages import parse_message
from tabhub.browser.record.endpoints import endpoints
from tabhub.browser.record.recorder import Recorder
from tabhub.browser.record.traffic import Request
from tabhub.browser.tab_overrides import TabOverrides
from tabhub.errors import CommandFailed
from tabhub.limits import Limits
from tabhub.links.browsers import Browsers
from tests.browser.conftest import Bench
from tests.browser.fake_browser import Failure, FakeBrowser, settle, tab

ROW = {
    "type": "object",
    "description": "Object",
    "properties": [{"name": "a", "type": "number", "value": "1"}, {"name": "b", "type": "string", "value": "x"}],
}
TABLE = {
    "type": "object",
    "subtype": "array",
    "description": "Array(1)",
    "preview": {
        "subtype": "array",
        "properties": [{"name": "0", "type": "object", "value": "Object", "valuePreview": ROW}],
    },
}


def ready(bench: Bench, *more: str) -> None:
    for name in ("Log.enable", "Fetch.enable", "Fetch.disable", "Fetch.continueRequest", *more):
        bench.browser.answers[name] = lambda _: {}


def stopped(bench: Bench, fetch_id: str, child: str | None = None) -> None:
    request = {"url": "https://site1.example/api", "method": "GET", "headers": {}}
    params: dict[str, Any] = {"requestId": fetch_id, "request": request, "resourceType": "Fetch"}
    event = {"tabId": 1, "method": "Fetch.requestPaused", "params": params, **({"sessionId": child} if child else {})}
    bench.browser.text(method="cdp.event", params=event)


def continued(bench: Bench) -> list[str]:
    return [m["params"]["params"]["requestId"] for m in bench.browser.commands("Fetch.continueRequest")]


async def test_an_undecided_request_continues_by_itself(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    ready(bench)
    await bench.call("browser_intercept_requests", tabId=1)
    timers: list[tuple[float, Any, tuple[Any, ...]]] = []

    def call_later(delay: float, what: Any, *args: Any) -> asyncio.TimerHandle:
        timers.append((delay, what, args))
        return asyncio.get_running_loop().call_at(1e12, what, *args)

    class Loop:
        time = staticmethod(bench.browser.link.loop.time)

    Loop.call_later = staticmethod(call_later)  # type: ignore[attr-defined]
    with monkeypatch.context() as patched:
        patched.setattr(bench.browser.link, "loop", Loop)
        stopped(bench, "f1")
    ((delay, what, args),) = timers
    assert delay == Limits().intercept_wait == 30.0
    what(*args)
    await settle()
    assert continued(bench) == ["f1"]
    result = await bench.call("browser_intercept_requests", tabId=1)
    assert result["paused"] == []
    assert "without a decision: 1." in result["note"]


async def test_an_idle_interception_ends_and_continues_its_requests() -> None:
    browsers = Browsers(Limits(intercept_wait=0.02, intercept_idle=0.01))
    browser, watch = FakeBrowser().join(browsers, tab(1)), TabWatch(browsers)
    overrides = TabOverrides(browsers, watch, "network")
    paused = Interceptions(browsers, watch, overrides, Recorder(browsers, watch))
    over = asyncio.Event()
    browser.answers |= {name: lambda _: {} for name in ("Fetch.enable", "Fetch.continueRequest")}
    browser.answers["Fetch.disable"] = lambda _: over.set()
    page = Page(browsers, watch, browsers.tab(1), None)
    await paused.start(page, None, ("*/api",))
    for name in ("f1", "f2"):
        params = {"requestId": name, "request": {"url": "https://site1.example/api"}}
        browser.notify("cdp.event", tabId=1, method="Fetch.requestPaused", params=params)
    async with asyncio.timeout(30):
        await over.wait()
    sent = browser.commands("Fetch.continueRequest")
    assert [parse_message["params"]["params"]["requestId"] for parse_message in sent] == ["f1", "f2"]
    assert overrides.pop_lost_note(page) == (
        "No longer active, because no agent used the interception for 0.01 s: requests to */api are intercepted."
    )
    assert (paused.patterns(page), paused.pop_ended(page), paused.pop_ended(page)) == ((), True, False)


async def test_listing_an_expired_interception_does_not_start_another(bench: Bench) -> None:
    ready(bench)
    await bench.call("browser_intercept_requests", tabId=1, urlPatterns=["*/api"])
    bench.browser.notify("cdp.detached", tabId=1, reason="replaced_with_devtools")
    result = await bench.call("browser_intercept_requests", tabId=1)
    assert (result["urlPatterns"], result["paused"]) == ([], [])
    assert "requests to */api are intercepted" in result["note"]
    assert "call with urlPatterns to start again" in result["note"]
    assert len(bench.browser.commands("Fetch.enable")) == 1
    assert (await bench.call("browser_intercept_requests", tabId=1))["urlPatterns"] == ["*"]


async def test_a_rejected_decision_leaves_the_request_paused(bench: Bench) -> None:
    ready(bench)
    await bench.call("browser_intercept_requests", tabId=1)
    stopped(bench, "f1")

    def refuse(_: dict[str, Any]) -> dict[str, Any]:
        raise Failure(-32000, "Invalid header: Ä")

    bench.browser.answers["Fetch.fulfillRequest"] = refuse
    with pytest.raises(CommandFailed, match="rejected it: Invalid header: Ä") as caught:
        await bench.call("browser_fulfill_request", tabId=1, requestId="p1", status=200, headers={"Ä": "x"})
    assert "p1 is still paused" in str(caught.value.hint)
    assert [p["id"] for p in (await bench.call("browser_intercept_requests", tabId=1))["paused"]] == ["p1"]
    bench.browser.answers["Fetch.fulfillRequest"] = lambda _: {}
    await bench.call("browser_fulfill_request", tabId=1, requestId="p1", status=200)
    assert (await bench.call("browser_intercept_requests", tabId=1))["paused"] == []


async def test_an_aborted_request_is_no_longer_listed(bench: Bench) -> None:
    def gone(_: dict[str, Any]) -> dict[str, Any]:
        raise Failure(-32000, "Invalid InterceptionId.")

    ready(bench)
    await bench.call("browser_intercept_requests", tabId=1)
    for name in ("f1", "f2"):
        asked = {"requestId": name, "request": {"url": "https://site1.example/api"}, "type": "Fetch", "timestamp": 1.0}
        event = {"tabId": 1, "method": "Network.requestWillBeSent", "params": asked}
        bench.browser.text(method="cdp.event", params=event)
        stopped(bench, name)
    failed = {"requestId": "f1", "errorText": "net::ERR_ABORTED", "canceled": True}
    bench.browser.text(method="cdp.event", params={"tabId": 1, "method": "Network.loadingFailed", "params": failed})
    assert [p["id"] for p in (await bench.call("browser_intercept_requests", tabId=1))["paused"]] == ["p2"]
    bench.browser.answers["Fetch.fulfillRequest"] = gone
    with pytest.raises(CommandFailed, match="p2 is no longer paused: the page canceled it") as caught:
        await bench.call("browser_fulfill_request", tabId=1, requestId="p2", status=200)
    assert "No request is paused" in str(caught.value.hint)


async def test_a_request_paused_after_the_end_continues_immediately(bench: Bench) -> None:
    ready(bench)
    await bench.call("browser_intercept_requests", tabId=1)
    stopped(bench, "f1")
    assert (await bench.call("browser_stop_intercepting", tabId=1))["continued"] == 1
    stopped(bench, "f2", child="c")
    await settle()
    assert continued(bench) == ["f1", "f2"]


async def test_a_debugger_detach_ends_the_interception_and_is_reported(bench: Bench) -> None:
    ready(bench)
    await bench.call("browser_intercept_requests", tabId=1, urlPatterns=["*/api"])
    stopped(bench, "f1")
    bench.browser.notify("cdp.detached", tabId=1, reason="replaced_with_devtools")
    with pytest.raises(CommandFailed, match="No request 'p1' is paused in tab 1"):
        await bench.call("browser_fail_request", tabId=1, requestId="p1")
    result = await bench.call("browser_stop_intercepting", tabId=1)
    assert "the developer tools took the tab over" in result["note"]


async def test_ending_a_session_ends_its_overrides(bench: Bench) -> None:
    ready(bench, "Network.emulateNetworkConditions")
    session = bench.context.session = object()
    await bench.call("browser_intercept_requests", tabId=1)
    await bench.call("browser_throttle_network", tabId=1, preset="3g")
    await bench.call("browser_enable_network_capture", tabId=1, urlFilter="x")
    bench.end(session)
    await settle()
    assert len(bench.browser.commands("Fetch.disable")) == 1
    last = bench.browser.commands("Network.emulateNetworkConditions")[-1]["params"]["params"]
    assert last == {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    assert "note" not in await bench.call("browser_get_network_requests", tabId=1)


async def test_a_navigation_waits_for_recording_unless_the_tab_cannot_be_recorded(
    bench: Bench,
) -> None:
    arrival = {"tabId": 1, "url": "https://a.example/", "status": "complete"}
    bench.browser.answers["browser_navigate"] = lambda _: arrival
    await bench.call("browser_navigate_tab", tabId=1, url="https://a.example/", waitUntil="commit")
    names = [bench.browser.method_of(m) for m in bench.browser.sent if "method" in m]
    assert names.index("subscribeCDPEvents") < names.index("Network.enable") < names.index("browser_navigate")


async def test_a_navigation_failure_names_active_interception_or_throttling(bench: Bench) -> None:
    output = iter(["The page did not answer within 25000 ms", "net::ERR_INTERNET_DISCONNECTED at https://a.example/"])

    def nowhere(_: dict[str, Any]) -> dict[str, Any]:
        raise Failure(-32000, next(output))

    ready(bench, "Network.emulateNetworkConditions")
    bench.browser.answers["browser_navigate"] = nowhere
    await bench.call("browser_intercept_requests", tabId=1)
    stopped(bench, "f1")
    with pytest.raises(CommandFailed) as caught:
        await bench.call("browser_navigate_tab", tabId=1, url="https://a.example/")
    assert "1 of its requests are paused, such as p1: browser_intercept_requests" in str(caught.value.hint)
    await bench.call("browser_stop_intercepting", tabId=1)
    await bench.call("browser_throttle_network", tabId=1, preset="offline")
    with pytest.raises(CommandFailed) as caught:
        await bench.call("browser_navigate_tab", tabId=1, url="https://a.example/")
    assert "browser_clear_network_throttle ends it" in str(caught.value.hint)


async def test_a_navigation_waits_for_earlier_commands_of_its_page(bench: Bench) -> None:
    arrival = {"tabId": 1, "url": "https://a.example/", "status": "complete", "ok": True}
    bench.browser.answers["browser_navigate"] = lambda _: arrival
    # A browser drops commands that a page had not yet processed when it was left.
    del bench.browser.answers["Network.enable"]
    going = asyncio.create_task(bench.call("browser_navigate_tab", tabId=1, url="https://a.example/"))
    await settle()
    assert bench.browser.commands("browser_navigate") == []
    (asked,) = bench.browser.commands("Network.enable")
    bench.browser.reply(asked["id"], {})
    assert (await going)["ok"] is True


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("Authorization", "Bearer abc.def", "Bearer [redacted]"),
        ("authorization", "plainkey", "[redacted]"),
        ("Proxy-Authorization", "Basic dXNlcjpwYXNz", "Basic [redacted]"),
        ("Cookie", "sid=abc; theme=dark", "sid=[redacted]; theme=[redacted]"),
        ("Set-Cookie", "sid=abc; Path=/; HttpOnly\nb=c", "sid=[redacted]; Path=/; HttpOnly\nb=[redacted]"),
        ("X-Api-Key", "k", "[redacted]"),
        ("X-CSRF-Token", "k", "[redacted]"),
        ("WWW-Authenticate", "Bearer realm=x", None),
        ("Content-Type", "text/html", "text/html"),
        ("Referer", "https://x/?access_token=abc&b=1", "https://x/?access_token=[redacted]&b=1"),
    ],
)
def test_secrets_in_headers_are_redacted_and_the_rest_is_shown(name: str, value: str, shown: str | None) -> None:
    given = headers.redact_header(name, value)
    assert given == shown if shown is not None else given.startswith("Bearer")


PART = 'Content-Disposition: form-data; name="{}"\r\n\r\n{}\r\n'


@pytest.mark.parametrize(
    ("body", "mime", "shown"),
    [
        ("a=1&passwd=x", "application/x-www-form-urlencoded", "a=1&passwd=[redacted]"),
        ('{"pwd":"x y","n":1}', "application/json", '{"pwd":"[redacted]","n":1}'),
        (
            f"--b\r\n{PART.format('pwd', 'x y')}--b\r\n{PART.format('word', 'v')}--b--",
            "multipart/form-data",
            f"--b\r\n{PART.format('pwd', '[redacted]')}--b\r\n{PART.format('word', 'v')}--b--",
        ),
        ('<input type="password" value="x y"><input value=a>', "text/html", None),
        ("<input value='x' name=otp>", "text/html", '<input value="[redacted]" name=otp>'),
        ("<login><passwd>x y</passwd><user>u</user></login>", "text/xml", None),
        ("const password = ask();", "text/javascript", "const password = ask();"),
    ],
)
def test_secrets_in_bodies_are_redacted_and_code_is_not(body: str, mime: str, shown: str | None) -> None:
    given = headers.redact_body(body, mime)
    assert given == (shown if shown is not None else body.replace("x y", "[redacted]"))


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ([{"type": "string", "value": "100%"}, {"type": "number", "value": 1}], "100% 1"),
        ([{"type": "string", "value": "%s and %s"}, {"type": "string", "value": "a"}], "a and %s"),
        ([{"type": "string", "value": "%cred"}, {"type": "string", "value": "color:red"}], "red"),
        ([{"type": "number", "unserializableValue": "NaN"}], "NaN"),
        ([{"type": "object", "subtype": "null", "value": None}], "null"),
        ([{"type": "object", "description": "Object", "preview": {"overflow": True, "properties": []}}], "{…}"),
        ([TABLE], '[{a: 1, b: "x"}]'),
        ([], ""),
        ("nonsense", ""),
    ],
)
def test_logged_values_are_formatted_as_in_a_console(args: Any, text: str) -> None:
    made = parse_message("Runtime.consoleAPICalled", {"type": "log", "args": args, "timestamp": 1}, 100)
    assert made is not None
    assert made.text == text


def test_endpoints_replace_ids_and_list_parameter_names_only() -> None:
    made = [
        Request(n, (None, str(n)), 1, "GET", url, "fetch", 0.0, 0.0, {"X-Auth": "secret"}, status=200)
        for n, url in enumerate(
            (
                "https://u:p@x.example/api/users/42?page=1&key=topsecret",
                "https://x.example/api/users/43?page=2",
                "https://x.example/api/users/0b9f8a76-11aa-4c33-9d1e-abcdefabcdef",
            )
        )
    ]
    (entry,) = endpoints(made)
    assert (entry["url"], entry["count"]) == ("https://x.example/api/users/{id}", 3)
    assert entry["parameters"] == ["key", "page"]
    assert "secret" not in str(entry)
