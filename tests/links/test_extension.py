"""The extension link: its replies to messages, and the outcome of commands."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from tabhub.errors import CallCancelled, CommandFailed, LinkLost, MethodNotFound, TabNotFound, TooLarge
from tabhub.limits import Limits
from tabhub.links.extension import LARGE
from tabhub.wire.extension_link import TabStateChanged
from tests.browser.fake_browser import FakeBrowser, settle


async def test_a_command_is_sent_as_json_rpc_and_returns_its_result() -> None:
    browser = FakeBrowser()
    future = browser.link.request("closeTab", {"tabId": 5})
    assert browser.sent == [{"jsonrpc": "2.0", "id": 1, "method": "closeTab", "params": {"tabId": 5}}]
    browser.reply(1, {"closed": True})
    assert await future == {"closed": True}
    assert browser.link.pending == 0


@pytest.mark.parametrize("size", [0, LARGE])
async def test_a_result_that_is_not_of_the_declared_form_fails_its_command(size: int) -> None:
    browser = FakeBrowser()
    future = browser.link.request("closeTab", {"tabId": 5})
    browser.reply(1, {"closed": "yes", "text": "x" * size})
    with pytest.raises(CommandFailed, match="closeTab cannot be used: result: Expected `bool`, got `str`"):
        await future


@pytest.mark.req("F5")
async def test_replies_in_any_order_reach_their_commands() -> None:
    browser = FakeBrowser()
    futures = [browser.link.request("getTabs", {}) for _ in range(50)]
    for number in reversed(range(1, 51)):
        browser.reply(number, {"tabs": [number]})
    assert [await future for future in futures] == [{"tabs": [number]} for number in range(1, 51)]


@pytest.mark.req("F6")
async def test_a_duplicate_or_late_reply_is_dropped_and_counted() -> None:
    browser = FakeBrowser()
    future = browser.link.request("getTabs", {})
    browser.reply(1, {"tabs": ["first"]})
    browser.reply(1, {"tabs": ["second"]})
    assert await future == {"tabs": ["first"]}
    assert (browser.link.dropped, browser.link.counts.late) == (1, 1)


@pytest.mark.req("F7")
@pytest.mark.parametrize("number", [7, 0, -1, "1", 1.0, True, None, [1], {"id": 1}])
async def test_a_reply_to_an_unknown_id_is_dropped_and_never_routed(number: Any) -> None:
    browser = FakeBrowser()
    future = browser.link.request("getTabs", {})
    browser.reply(number, "foreign")
    assert not future.done()
    assert browser.link.counts.unknown == 1
    browser.reply(1, {"tabs": ["own"]})
    assert await future == {"tabs": ["own"]}


@pytest.mark.req("F7")
async def test_a_reply_on_one_connection_does_not_reach_another() -> None:
    one, other = FakeBrowser("one"), FakeBrowser("other")
    future = one.link.request("getTabs", {})
    other.reply(1, "foreign")
    assert not future.done()
    assert other.link.dropped == 1
    future.cancel()


@pytest.mark.req("B2")
@pytest.mark.parametrize(
    "reply",
    [
        {"jsonrpc": "2.0", "id": 1, "result": 1, "error": {"code": 1, "message": "x"}},
        {"jsonrpc": "2.0", "id": 1},
        {"id": 1, "result": 1},
        {"jsonrpc": "1.0", "id": 1, "result": 1},
        {"jsonrpc": "2.0", "id": 1, "error": "text"},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": "1", "message": "x"}},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": True, "message": "x"}},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": 1}},
        {"jsonrpc": "2.0", "id": 1, "error": None},
    ],
)
async def test_an_invalid_reply_fails_its_command_as_invalid_response(reply: dict[str, Any]) -> None:
    browser = FakeBrowser()
    future = browser.link.request("getTabs", {})
    browser.link.feed(orjson.dumps(reply).decode())
    with pytest.raises(CommandFailed, match="invalid response"):
        await future


async def test_a_reply_nested_too_deep_fails_its_command_at_once() -> None:
    browser = FakeBrowser()
    future = browser.link.request("getTabs", {})
    browser.link.feed('{"jsonrpc":"2.0","id":1,"result":' + "[" * 70 + "]" * 70 + "}")
    with pytest.raises(CommandFailed, match=r"invalid response.*nested deeper"):
        await future


@pytest.mark.req("B1")
@pytest.mark.parametrize(
    "text", ["", "{", "\ufeff{}", "nonsense", '{"id":1,', '{"a":NaN}', '"\ud800"', '{"a":1,"a":2}']
)
async def test_broken_json_is_answered_and_the_link_stays_usable(text: str) -> None:
    browser = FakeBrowser()
    browser.link.feed(text)
    (answer,) = browser.sent
    assert answer["id"] is None
    assert answer["error"]["code"] == -32700
    assert browser.link.counts.malformed == 1
    future = browser.link.request("getTabs", {})
    browser.reply(1, {"tabs": []})
    assert await future == {"tabs": []}


@pytest.mark.req("B2")
@pytest.mark.parametrize(
    "message",
    [
        [],
        [{"jsonrpc": "2.0", "method": "ping"}],
        5,
        {"method": "ping", "id": "ext:1"},
        {"jsonrpc": "2.0", "method": 5, "id": "ext:1"},
        {"jsonrpc": "2.0", "method": "ping", "id": True},
        {"jsonrpc": "2.0", "method": "ping", "id": 1.5},
        {"jsonrpc": "2.0", "method": "ping", "id": {}},
        {"jsonrpc": "2.0", "method": "ping", "id": None},
        {"jsonrpc": "2.0", "method": "ping", "id": "ext:1", "result": 1},
    ],
)
async def test_an_invalid_request_is_answered_as_invalid(message: Any) -> None:
    browser = FakeBrowser()
    browser.link.feed(orjson.dumps(message).decode())
    (answer,) = browser.sent
    assert answer["error"]["code"] == -32600
    assert browser.link.counts.malformed == 1


async def test_a_request_of_the_extension_is_answered_with_its_own_id() -> None:
    browser = FakeBrowser()
    seen: list[TabStateChanged] = []
    browser.link.handlers = {"tab.stateChanged": lambda _, params: seen.append(params)}
    browser.text(id="ext:4", method="tab.stateChanged", params={"tabId": 1, "change": "removed"})
    browser.text(id="ext:5", method="__proto__", params={})
    browser.text(id="ext:6", method="tab.stateChanged", params=[1])
    browser.notify("no.such.notification")
    assert seen == [TabStateChanged(1, "removed")]
    assert browser.sent[0] == {"jsonrpc": "2.0", "id": "ext:4", "result": {}}
    assert [(answer["id"], answer["error"]["code"]) for answer in browser.sent[1:]] == [
        ("ext:5", -32601),
        ("ext:6", -32602),
    ]
    assert browser.link.counts.refused == 2


@pytest.mark.req("S002-ws-server-10")
async def test_a_ping_is_answered_with_a_pong_and_a_pong_with_nothing() -> None:
    browser = FakeBrowser()
    browser.notify("ping")
    browser.notify("pong")
    assert browser.sent == [{"jsonrpc": "2.0", "method": "pong", "params": {}}]


async def test_cancelling_a_command_cancels_it_in_the_browser() -> None:
    browser = FakeBrowser()
    task = asyncio.ensure_future(_wait(browser.link.request("getTabs", {})))
    await settle()
    task.cancel()
    await settle()
    assert task.cancelled()
    assert browser.sent[-1] == {"jsonrpc": "2.0", "method": "cancel", "params": {"id": 1}}
    assert browser.link.pending == 0
    browser.refuse(1, -32010, "cancelled")
    assert browser.link.dropped == 0
    browser.reply(1, "once more")
    assert browser.link.dropped == 1


async def _wait(future: asyncio.Future[Any]) -> Any:
    return await future


@pytest.mark.req("F1")
async def test_a_lost_connection_fails_pending_commands_with_unknown_outcome() -> None:
    browser = FakeBrowser()
    futures = [browser.link.request("getTabs", {}) for _ in range(3)]
    browser.link.connection_lost("the browser ended")
    browser.link.connection_lost("reported twice")
    for future in futures:
        with pytest.raises(LinkLost, match="the browser ended") as caught:
            await future
        assert caught.value.outcome == "unknown"
    with pytest.raises(LinkLost) as refused:
        browser.link.request("getTabs", {})
    assert refused.value.outcome == "not_sent"
    browser.reply(1, "after the end")
    assert browser.link.pending == 0


async def test_a_link_is_closed_once_with_its_reason() -> None:
    browser = FakeBrowser()
    future = browser.link.request("getTabs", {})
    browser.link.close(4000, "replaced")
    browser.link.close(4004, "again")
    browser.link.notify("ping", {})
    assert browser.closed == [(4000, "replaced")]
    assert len(browser.sent) == 1
    with pytest.raises(LinkLost, match="replaced"):
        await future


@pytest.mark.req("F9")
async def test_failing_a_tab_fails_only_its_commands() -> None:
    browser = FakeBrowser()
    failed, spared, other = (
        browser.link.request("forwardCDPCommand", {"tabId": 1, "method": "Page.enable"}),
        browser.link.request("closeTab", {"tabId": 1}),
        browser.link.request("forwardCDPCommand", {"tabId": 2, "method": "Page.enable"}),
    )
    browser.link.fail_tab(1, lambda: CommandFailed("failed"), spare="closeTab")
    with pytest.raises(CommandFailed, match="failed"):
        await failed
    assert not spared.done()
    assert not other.done()
    browser.reply(1, "late")
    assert browser.link.dropped == 1
    assert browser.link.busy(1)
    assert browser.link.busy(2)
    for future in (spared, other):
        future.cancel()


@pytest.mark.parametrize(
    ("code", "kind"), [(-32001, TabNotFound), (-32010, CallCancelled), (-32000, CommandFailed), (-32601, CommandFailed)]
)
async def test_the_browsers_errors_become_typed_errors(code: int, kind: type[Exception]) -> None:
    browser = FakeBrowser()
    future = browser.link.request("getTabs", {})
    browser.refuse(1, code, "because")
    with pytest.raises(kind):
        await future


async def test_a_large_result_passes_as_bytes_on_request() -> None:
    browser = FakeBrowser()
    big = "x" * (LARGE + 1)
    futures = [browser.link.request("getTabs", {}, raw=raw) for raw in (True, False, True)]
    browser.reply(1, {"data": big})
    browser.reply(2, {"tabs": [big]})
    browser.reply(3, {"data": "small"})
    assert await futures[0] == b'{"data":"' + big.encode() + b'"}'
    assert await futures[1] == {"tabs": [big]}
    assert await futures[2] == b'{"data":"small"}'


@pytest.mark.req("B2")
async def test_large_frames_obey_the_same_rules() -> None:
    browser = FakeBrowser()
    pad = "x" * LARGE
    futures = [browser.link.request("getTabs", {}) for _ in range(4)]
    browser.text(id=1, result=pad, error={"code": 1, "message": "x"})
    browser.text(id=2, error={"code": -32000, "message": pad})
    browser.link.feed('{"jsonrpc":"2.0","id":3,"result":["' + pad + '",' + "[" * 70 + "]" * 70 + "]}")
    browser.link.feed('{"id":4,"result":"' + pad + '"}')
    browser.text(id=99, result=pad)
    browser.link.feed('{"id":4,"result":"' + pad)
    for future, words in zip(futures, ["invalid response", "xxx", "nested deeper", "invalid response"], strict=True):
        with pytest.raises(CommandFailed, match=words) as caught:
            await future
        assert len(caught.value.message) < 3000
    assert browser.link.counts.unknown == 1
    assert browser.sent[-1]["error"]["code"] == -32700


async def test_a_frame_over_the_limit_closes_the_link() -> None:
    browser = FakeBrowser(limits=Limits(max_frame=LARGE + 10))
    browser.link.feed('"' + "x" * (LARGE + 20) + '"')
    assert browser.closed[0][0] == 1009


async def test_a_too_large_or_unknown_command_is_not_sent() -> None:
    browser = FakeBrowser(limits=Limits(max_frame=1000))
    with pytest.raises(TooLarge):
        browser.link.request("createTab", {"url": "x" * 2000})
    with pytest.raises(MethodNotFound):
        browser.link.request("eval", {})
    assert browser.sent == []
    assert browser.link.pending == 0
