"""Traces: one at a time in a tab, ended with their session, and what is reported when one is lost."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from tabhub.core.sessions import Session
from tabhub.errors import CommandFailed, TabhubError
from tests.browser.conftest import Bench
from tests.browser.fake_browser import NO_ANSWER, Failure, settle
from tests.harness.waiting import until

TRACE = orjson.dumps({"traceEvents": []}).decode()


@pytest.fixture
def tracing(bench: Bench) -> Bench:
    pieces = iter([{"data": TRACE[:5], "eof": False}, {"data": TRACE[5:], "eof": True}])
    bench.browser.answers |= {
        "Tracing.start": lambda _: {},
        "Tracing.end": lambda _: {},
        "Runtime.evaluate": lambda _: {},
        "IO.read": lambda _: next(pieces),
        "IO.close": lambda _: {},
    }
    return bench


def complete(bench: Bench, **more: Any) -> None:
    params = {"stream": "7", "dataLossOccurred": False, **more}
    bench.browser.notify("cdp.event", tabId=1, method="Tracing.tracingComplete", params=params)


async def test_a_trace_is_read_in_chunks_and_written(tracing: Bench) -> None:
    await tracing.call("browser_performance_trace", tabId=1, action="start")
    stop = asyncio.ensure_future(tracing.call("browser_performance_trace", tabId=1, action="stop"))
    await settle()
    complete(tracing, dataLossOccurred=True)
    result = await stop
    assert (tracing.files / "site1.example-trace.json").read_text() == TRACE
    assert result["bytes"] == len(TRACE)
    assert "full before its end" in result["note"]
    assert tracing.browser.commands("IO.close")


async def test_a_trace_is_stopped_and_read_by_its_own_agent_only(tracing: Bench) -> None:
    own, again, other = (
        Session(f"s{number}", "handle", "c", 0.0, 0.0, token=token) for number, token in enumerate("aab")
    )
    tracing.context.session = own
    await tracing.call("browser_performance_trace", tabId=1, action="start")
    tracing.context.session = other
    with pytest.raises(CommandFailed, match="belongs to another agent"):
        await tracing.call("browser_performance_trace", tabId=1, action="stop")
    assert not tracing.browser.commands("Tracing.end")
    tracing.context.session = again
    stop = asyncio.ensure_future(tracing.call("browser_performance_trace", tabId=1, action="stop"))
    await until(lambda: bool(tracing.browser.commands("Tracing.end")))
    complete(tracing)
    assert (await stop)["bytes"] == len(TRACE)


async def test_a_trace_ends_after_the_current_task_of_the_page(tracing: Bench) -> None:
    tracing.browser.answers["Runtime.evaluate"] = lambda _: NO_ANSWER
    await tracing.call("browser_performance_trace", tabId=1, action="start")
    stop = asyncio.ensure_future(tracing.call("browser_performance_trace", tabId=1, action="stop"))
    await settle()
    [task] = tracing.browser.commands("Runtime.evaluate")
    assert not tracing.browser.commands("Tracing.end")
    tracing.browser.reply(task["id"], {})
    await settle()
    assert tracing.browser.commands("Tracing.end")
    complete(tracing)
    await stop


async def test_a_page_that_does_not_respond_does_not_block_the_end_of_its_trace(tracing: Bench) -> None:
    tracing.browser.answers["Runtime.evaluate"] = lambda _: NO_ANSWER
    await tracing.call("browser_performance_trace", tabId=1, action="start")
    stop = asyncio.ensure_future(tracing.call("browser_performance_trace", tabId=1, action="stop"))
    await until(lambda: bool(tracing.browser.commands("Tracing.end")))
    complete(tracing)
    assert (await stop)["bytes"] == len(TRACE)


async def test_an_existing_file_does_not_lose_the_trace(tracing: Bench) -> None:
    tracing.files.mkdir()
    (tracing.files / "old.json").write_text("old")
    await tracing.call("browser_performance_trace", tabId=1, action="start")
    with pytest.raises(CommandFailed, match="exists already"):
        await tracing.call("browser_performance_trace", tabId=1, action="stop", filePath="old.json")
    assert not tracing.browser.commands("Tracing.end")
    stop = asyncio.ensure_future(
        tracing.call("browser_performance_trace", tabId=1, action="stop", filePath="old.json", overwrite=True)
    )
    await settle()
    complete(tracing)
    assert (await stop)["bytes"] == len(TRACE)
    assert (tracing.files / "old.json").read_text() == TRACE


async def test_a_trace_ends_with_its_session_and_its_stream_is_closed(tracing: Bench) -> None:
    tracing.context.session = session = object()
    await tracing.call("browser_performance_trace", tabId=1, action="start")
    tracing.end(object())
    assert not tracing.browser.commands("Tracing.end")
    tracing.end(session)
    assert tracing.browser.commands("Tracing.end")
    complete(tracing)
    assert [message["params"]["params"] for message in tracing.browser.commands("IO.close")] == [{"handle": "7"}]
    with pytest.raises(CommandFailed, match="No trace runs in tab 1"):
        await tracing.call("browser_performance_trace", tabId=1, action="stop")


async def test_a_trace_lost_with_the_debugger_is_reported(tracing: Bench) -> None:
    await tracing.call("browser_performance_trace", tabId=1, action="start")
    tracing.browser.notify("cdp.detached", tabId=1, reason="replaced_with_devtools")
    with pytest.raises(CommandFailed, match="was lost when the debugger was detached"):
        await tracing.call("browser_performance_trace", tabId=1, action="stop")


async def test_a_link_lost_while_a_trace_ends_fails_the_call(tracing: Bench) -> None:
    await tracing.call("browser_performance_trace", tabId=1, action="start")
    stop = asyncio.ensure_future(tracing.call("browser_performance_trace", tabId=1, action="stop"))
    await settle()
    with pytest.raises(CommandFailed, match="No trace runs"):
        await tracing.call("browser_performance_trace", tabId=1, action="stop")
    tracing.browsers.detach(tracing.browser.link)
    with pytest.raises(TabhubError, match="lost"):
        await stop


async def test_a_trace_of_another_tab_is_an_error(tracing: Bench) -> None:
    def already_started(_: Any) -> None:
        raise Failure(-32000, "Tracing has already been started (possibly in another tab).")

    tracing.browser.answers["Tracing.start"] = already_started
    with pytest.raises(CommandFailed, match="one trace at a time"):
        await tracing.call("browser_performance_trace", tabId=1, action="start")


@pytest.mark.parametrize("piece", [{}, {"data": 5}, {"data": "%%", "base64Encoded": True}, {"data": "", "eof": False}])
async def test_an_invalid_stream_is_an_error_and_writes_nothing(tracing: Bench, piece: Any) -> None:
    tracing.browser.answers["IO.read"] = lambda _: piece
    await tracing.call("browser_performance_trace", tabId=1, action="start")
    stop = asyncio.ensure_future(tracing.call("browser_performance_trace", tabId=1, action="stop"))
    await settle()
    complete(tracing)
    with pytest.raises(CommandFailed, match="invalid response"):
        await stop
    assert not tracing.files.exists()
