"""Traces: one at a time in a tab, ended with their session, and what is told of one that was lost."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

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
    bench.browser.tell("cdp.event", tabId=1, method="Tracing.tracingComplete", params=params)


async def test_a_trace_is_read_in_pieces_and_written(tracing: Bench) -> None:
    await tracing.call("browser_performance_trace", tabId=1, action="start")
    stop = asyncio.ensure_future(tracing.call("browser_performance_trace", tabId=1, action="stop"))
    await settle()
    complete(tracing, dataLossOccurred=True)
    told = await stop
    assert (tracing.files / "site1.example-trace.json").read_text() == TRACE
    assert told["bytes"] == len(TRACE)
    assert "full before its end" in told["note"]
    assert tracing.browser.commands("IO.close")


async def test_a_trace_is_ended_after_the_page_has_ended_its_current_task(tracing: Bench) -> None:
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


async def test_a_page_that_hangs_does_not_keep_its_trace_from_ending(tracing: Bench) -> None:
    tracing.browser.answers["Runtime.evaluate"] = lambda _: NO_ANSWER
    await tracing.call("browser_performance_trace", tabId=1, action="start")
    stop = asyncio.ensure_future(tracing.call("browser_performance_trace", tabId=1, action="stop"))
    await until(lambda: bool(tracing.browser.commands("Tracing.end")))
    complete(tracing)
    assert (await stop)["bytes"] == len(TRACE)


async def test_a_file_that_is_there_already_does_not_cost_the_trace(tracing: Bench) -> None:
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


async def test_a_session_that_ends_ends_its_trace_and_what_comes_of_it_is_let_go(tracing: Bench) -> None:
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


async def test_a_trace_lost_with_the_debugger_is_told(tracing: Bench) -> None:
    await tracing.call("browser_performance_trace", tabId=1, action="start")
    tracing.browser.tell("cdp.detached", tabId=1, reason="canceled_by_user")
    with pytest.raises(CommandFailed, match="was lost when the debugger was detached"):
        await tracing.call("browser_performance_trace", tabId=1, action="stop")


async def test_a_link_that_breaks_while_a_trace_ends_fails_the_call(tracing: Bench) -> None:
    await tracing.call("browser_performance_trace", tabId=1, action="start")
    stop = asyncio.ensure_future(tracing.call("browser_performance_trace", tabId=1, action="stop"))
    await settle()
    with pytest.raises(CommandFailed, match="No trace runs"):
        await tracing.call("browser_performance_trace", tabId=1, action="stop")
    tracing.browsers.detach(tracing.browser.link)
    with pytest.raises(TabhubError, match="lost"):
        await stop


async def test_a_trace_of_another_tab_is_in_the_way(tracing: Bench) -> None:
    def taken(_: Any) -> None:
        raise Failure(-32000, "Tracing has already been started (possibly in another tab).")

    tracing.browser.answers["Tracing.start"] = taken
    with pytest.raises(CommandFailed, match="one trace at a time"):
        await tracing.call("browser_performance_trace", tabId=1, action="start")


@pytest.mark.parametrize("piece", [{}, {"data": 5}, {"data": "%%", "base64Encoded": True}, {"data": "", "eof": False}])
async def test_a_stream_that_makes_no_sense_is_an_error_and_writes_nothing(tracing: Bench, piece: Any) -> None:
    tracing.browser.answers["IO.read"] = lambda _: piece
    await tracing.call("browser_performance_trace", tabId=1, action="start")
    stop = asyncio.ensure_future(tracing.call("browser_performance_trace", tabId=1, action="stop"))
    await settle()
    complete(tracing)
    with pytest.raises(CommandFailed, match="invalid response"):
        await stop
    assert not tracing.files.exists()
