"""browser_execute_script: one round trip, the agent's own line numbers, pages that block or navigate."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from tabhub.browser.driver.page import Page
from tabhub.browser.driver.tab_watch import TabWatch
from tabhub.browser.tools.reading.script import describe_exception, expression
from tabhub.errors import CommandFailed, DialogOpen, TabFailed
from tabhub.limits import Limits
from tabhub.links.browsers import Browsers
from tests.browser.conftest import Bench
from tests.browser.fake_browser import Failure, FakeBrowser, settle, tab


def written(value: str) -> str:
    return f'{{"tabhub":1,"value":{value}}}'


async def test_a_script_takes_one_round_trip_once_the_tab_is_watched(bench: Bench) -> None:
    bench.evaluates(written('{"z":1,"a":2}'))
    assert await bench.call("browser_execute_script", tabId=1, code="return x") == {"value": {"z": 1, "a": 2}}
    first = len(bench.browser.sent)
    await bench.call("browser_execute_script", tabId=1, code="return x")
    assert len(bench.browser.sent) == first + 1
    assert bench.context.sent
    params = bench.browser.commands("Runtime.evaluate")[-1]["params"]["params"]
    assert (params["awaitPromise"], params["returnByValue"], params["timeout"]) == (True, True, 27000)


async def test_key_order_is_kept(bench: Bench) -> None:
    bench.evaluates('{"tabhub":1,"value":{"z":1,"a":"é"},"note":"n"}')
    body = orjson.loads((await bench.result("browser_execute_script", tabId=1, code="return x")).payload)
    assert orjson.dumps(body["structuredContent"]).decode() == '{"value":{"z":1,"a":"é"},"note":"n"}'


@pytest.mark.parametrize("value", [1, "text", None, {"tabhub": 1}, ["a"]])
async def test_an_unmarked_value_is_returned_unchanged(bench: Bench, value: Any) -> None:
    bench.evaluates(value)
    assert await bench.call("browser_execute_script", tabId=1, code="return x") == {"value": value}


@pytest.mark.parametrize("value", ['{"tabhub":1,', '{"tabhub":1,"value":}', '{"tabhub":1,"note":"x"}'])
async def test_a_forged_result_is_an_error_and_the_answer_stays_valid(bench: Bench, value: str) -> None:
    bench.evaluates(value)
    with pytest.raises(CommandFailed, match="invalid response"):
        await bench.call("browser_execute_script", tabId=1, code="return x")


def test_arguments_are_parsed_in_the_page_and_never_become_code() -> None:
    text = orjson.loads(expression("return args", {"__proto__": {"x": 1}, "k": '"); alert(1) //\u2028'}))
    assert 'await tabhubScript(JSON.parse("{\\"__proto__\\":{\\"x\\":1}' in text
    assert text.split("\n")[1] == "return args"
    assert "await tabhubScript({})" in orjson.loads(expression("return args", None))


async def test_a_thrown_error_shows_the_scripts_line(bench: Bench) -> None:
    details = {
        "text": "Uncaught (in promise)",
        "exception": {
            "description": "ReferenceError: nope is not defined\n    at inner (tabhub-script.js:3:5)\n"
            "    at tabhubScript (tabhub-script.js:5:1)\n    at tabhub-script.js:99:1\n    at https://page.example/a.js:1:1"
        },
    }
    bench.browser.answers["Runtime.evaluate"] = lambda _: {"result": {"type": "object"}, "exceptionDetails": details}
    result = await bench.result("browser_execute_script", tabId=1, code="function inner() {\n  nope;\n}\ninner();")
    assert result.is_error
    assert orjson.loads(result.payload)["content"][0]["text"].split("\n") == [
        "The script threw ReferenceError: nope is not defined",
        "  at line 2, column 5 in inner: nope;",
        "  at line 4, column 1",
    ]


@pytest.mark.parametrize(
    ("details", "expected"),
    [
        ({"exception": {"value": "plain"}}, 'The script threw "plain".'),
        ({"exception": {"description": "SyntaxError: bad"}, "lineNumber": 1, "columnNumber": 8}, "line 1, column 9"),
        ({"exception": {"description": "SyntaxError: bad"}, "lineNumber": 40}, "function body"),
        ({"text": "Uncaught"}, "The script threw Uncaught."),
        (None, "The script threw"),
    ],
)
def test_any_thrown_value_is_described(details: Any, expected: str) -> None:
    assert expected in describe_exception(details, "let y = ;")


@pytest.mark.parametrize(
    ("output", "kind", "expected"),
    [
        ("Inspected target navigated or closed", TabFailed, "went to another page"),
        ("Execution was terminated", CommandFailed, r"ran for 27 s without yielding"),
        ("Cannot access a chrome:// URL", CommandFailed, "chrome://"),
    ],
)
async def test_browser_refusals_are_explained(bench: Bench, output: str, kind: type[Exception], expected: str) -> None:
    def refuse(_: Any) -> None:
        raise Failure(-32000, output)

    bench.browser.answers["Runtime.evaluate"] = refuse
    with pytest.raises(kind, match=expected):
        await bench.call("browser_execute_script", tabId=1, code="return 1")


async def test_a_blocking_dialog_is_reported_immediately_until_it_is_closed(bench: Bench) -> None:
    task = asyncio.ensure_future(bench.call("browser_execute_script", tabId=1, code="alert('hi')"))
    await settle()
    event = {"tabId": 1, "method": "Page.javascriptDialogOpening", "params": {"type": "alert", "message": "hi"}}
    bench.browser.text(method="cdp.event", params=event)
    with pytest.raises(DialogOpen, match=r"alert: 'hi'") as caught:
        await task
    assert caught.value.outcome == "unknown"
    with pytest.raises(DialogOpen) as again:
        await bench.call("browser_execute_script", tabId=1, code="return 1")
    assert again.value.outcome == "not_sent"
    assert (await bench.call("browser_get_tab_info", tabId=1))["dialog"] == {"type": "alert", "message": "hi"}
    bench.evaluates(written("1"))
    bench.browser.text(method="cdp.event", params={"tabId": 1, "method": "Page.javascriptDialogClosed"})
    assert await bench.call("browser_execute_script", tabId=1, code="return 1") == {"value": 1}


async def test_a_tab_is_watched_again_after_a_debugger_detach(bench: Bench) -> None:
    bench.evaluates(written("1"))
    await bench.call("browser_execute_script", tabId=1, code="return 1")
    bench.browser.notify("debugger.changed", attached=[1])
    bench.browser.notify("debugger.changed", attached=[])
    await bench.call("browser_execute_script", tabId=1, code="return 1")
    assert len(bench.browser.commands("subscribeCDPEvents")) == 2


async def test_an_idle_tab_is_unwatched_so_the_debugger_can_detach() -> None:
    browsers = Browsers(Limits(debugger_idle=0.02))
    browser = FakeBrowser().join(browsers, tab(1))
    ended = asyncio.Event()

    def subscribed(params: dict[str, Any]) -> dict[str, Any]:
        if params["events"] == []:
            ended.set()
        return {}

    browser.answers["subscribeCDPEvents"] = subscribed
    Page(browsers, TabWatch(browsers), browsers.tab(1)).ensure_watching()
    async with asyncio.timeout(30):
        await ended.wait()


async def test_answer_says_that_the_script_left_the_tab_on_another_site(bench: Bench) -> None:
    def evaluate(_: dict[str, Any]) -> dict[str, Any]:
        frame = {"frame": {"id": "F", "url": "https://elsewhere.example/"}}
        bench.browser.notify("cdp.event", tabId=1, method="Page.frameNavigated", params=frame)
        return {"result": {"type": "number", "value": 1}}

    bench.browser.answers["Runtime.evaluate"] = evaluate
    answer = await bench.call("browser_execute_script", tabId=1, code="location = '...'; return 1")
    assert answer["value"] == 1
    assert answer["note"].startswith("The tab shows another site now, https://elsewhere.example:")
