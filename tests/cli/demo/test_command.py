"""`tabhub demo`: its calls step by step, its output, and that it cleans up."""

from __future__ import annotations

import base64
import itertools
import json
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from tabhub.cli import main
from tabhub.cli.demo.command import TOOLS
from tabhub.cli.hub.client import alive
from tests.cli.conftest import Run
from tests.cli.fake_http_hub import FakeHub, ReceivedRequest, Reply
from tests.harness.waiting import wait_for

PREFIX = "website_tool_127_0_0_1_8080_tab1_"
PICTURE = b"\x89PNG\r\n\x1a\n and so on"
CONNECTED = {
    "version": "0.1.0",
    "legs": {"browsers": [{"connected": True, "extension": {"saidHello": True, "sentTabs": True}}]},
}


def tool_result(text: str, **facts: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "structuredContent": facts}


class FakeShop:
    """A hub with a browser in which the shop's tools appear shortly after its tab was opened."""

    def __init__(self, hub: FakeHub) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.answers: dict[str, Any] = {
            "browser_open_tab": tool_result("opened", tabId=7),
            "search_products": tool_result("1 found: Storm lantern", products=[{"productId": "storm-lantern"}]),
            "browser_screenshot_tab": {
                "content": [{"type": "image", "data": base64.b64encode(PICTURE).decode(), "mimeType": "image/png"}]
            },
        }
        self.offered = [PREFIX + tool for tool in TOOLS]
        self.confirmed: list[Any] = []
        self.ended = threading.Event()
        self.page = b""
        self._lists = itertools.count()
        self._hub = hub
        hub.answer("GET /health", CONNECTED)
        hub.on("POST /mcp", self._post)
        hub.on("DELETE /mcp", self._delete)

    def _delete(self, request: ReceivedRequest, reply: Reply) -> None:
        assert request.headers["mcp-session-id"] == "s1"
        self.ended.set()
        reply.raw(b"HTTP/1.1 204 X\r\n\r\n")

    def _post(self, request: ReceivedRequest, reply: Reply) -> None:
        message = request.json
        if "method" not in message:  # the answer to a question of ours
            with self._hub.changed:
                self.confirmed.append(message["result"])
                self._hub.changed.notify_all()
        if "id" not in message or "method" not in message:
            reply.raw(b"HTTP/1.1 202 X\r\ncontent-length: 0\r\n\r\n")
            return
        handler: Callable[[dict[str, Any], Reply], Any] = {
            "initialize": lambda _params, _reply: {"protocolVersion": "2025-11-25"},
            "tools/list": self._list,
            "tools/call": self._call,
        }[message["method"]]
        result = handler(message["params"], reply)
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        if message["method"] == "tools/call" and message["params"]["name"] == PREFIX + "checkout":
            reply.event(answer)
        else:
            reply.json(answer, mcp_session_id="s1")

    def _list(self, params: dict[str, Any], reply: Reply) -> dict[str, Any]:
        early = next(self._lists) < 2 or not self.calls
        if params.get("cursor") == "more":
            return {"tools": [{"name": name} for name in self.offered if not early]}
        return {"tools": [{"name": "browser_open_tab"}], "nextCursor": "more"}

    def _call(self, params: dict[str, Any], reply: Reply) -> dict[str, Any]:
        tool = params["name"].removeprefix(PREFIX)
        self.calls.append((tool, params["arguments"]))
        if tool == "browser_open_tab":
            with urlopen(params["arguments"]["url"]) as page:
                self.page = page.read()
        if tool == "checkout":
            schema = {"type": "object", "properties": {"confirm": {"type": "boolean"}}}
            question = {"message": "Order 2 items?", "requestedSchema": schema}
            reply.events(mcp_session_id="s1")
            reply.raw(b": still here\n\n")
            reply.event({"jsonrpc": "2.0", "id": "q1", "method": "elicitation/create", "params": question})
            self._hub.wait_for(lambda: bool(self.confirmed))
        answer: dict[str, Any] = self.answers.get(tool, tool_result(f"{tool} done"))
        return answer


@pytest.fixture
def shop(hub: FakeHub) -> FakeShop:
    return FakeShop(hub)


def test_demo_runs_every_step_with_arguments_answer_and_duration(shop: FakeShop, tabhub: Run, tmp_path: Path) -> None:
    done = tabhub("demo", "--yes", "--output", "shop.png")
    assert (done.returncode, done.stderr) == (0, "")
    assert shop.calls == [
        ("browser_open_tab", {"url": shop.calls[0][1]["url"], "active": True}),
        ("search_products", {"query": "light", "maxPrice": 50}),
        ("add_to_cart", {"productId": "storm-lantern", "quantity": 2}),
        ("apply_coupon", {"code": "LANTERN10"}),
        ("get_cart", {}),
        ("checkout", {}),
        ("browser_screenshot_tab", {"tabId": 7, "fullPage": True}),
        ("browser_close_tab", {"tabId": 7}),
    ]
    assert shop.calls[0][1]["url"].endswith("/?cache=off")  # the hub keeps running, the shop does not
    assert b"Larch &amp; Lantern" in shop.page
    assert f'  call    {PREFIX}search_products {{"query": "light", "maxPrice": 50}}\n' in done.stdout
    assert "  answer  1 found: Storm lantern\n" in done.stdout
    assert len(re.findall(r"^  took    \d+ ms$", done.stdout, re.MULTILINE)) == 7
    assert "The page asks: Order 2 items?" in done.stdout
    assert shop.confirmed == [{"action": "accept", "content": {"confirm": True}}]
    assert f"Screenshot: {tmp_path / 'shop.png'}\n" in done.stdout
    assert (tmp_path / "shop.png").read_bytes() == PICTURE
    assert shop.ended.is_set()


@pytest.mark.parametrize(
    ("typed", "action", "warned"),
    [("y\n", "accept", False), ("n\n", "decline", False), ("\n", "decline", False), ("", "decline", True)],
)
def test_user_confirms_or_declines_in_the_terminal(
    shop: FakeShop, tabhub: Run, tmp_path: Path, typed: str, action: str, warned: bool
) -> None:
    done = tabhub("demo", "--output", str(tmp_path / "a.png"), input=typed)
    assert done.returncode == 0
    assert [answer["action"] for answer in shop.confirmed] == [action]
    assert "Confirm? [y/N] " in done.stdout
    assert ("the order is not confirmed" in done.stderr) is warned


def test_screenshot_goes_to_a_temporary_file_by_default(shop: FakeShop, tabhub: Run, tmp_path: Path) -> None:
    done = tabhub("demo", "--yes", TMPDIR=str(tmp_path))
    found = re.search(r"^Screenshot: (.+)$", done.stdout, re.MULTILINE)
    assert found is not None
    assert Path(found[1]).read_bytes() == PICTURE


def test_failed_step_ends_the_demo_and_closes_the_tab(shop: FakeShop, tabhub: Run) -> None:
    shop.answers["add_to_cart"] = {"content": [{"type": "text", "text": "Sold out."}], "isError": True}
    done = tabhub("demo", "--yes")
    assert done.returncode == 1
    assert f"Step 3 of the tour failed: {PREFIX}add_to_cart answered: Sold out." in done.stderr
    assert shop.calls[-1] == ("browser_close_tab", {"tabId": 7})
    assert shop.ended.is_set()


def test_result_without_an_image_is_an_error(shop: FakeShop, tabhub: Run) -> None:
    shop.answers["browser_screenshot_tab"] = tool_result("no picture")
    done = tabhub("demo", "--yes")
    assert done.returncode == 1
    assert "contains no image" in done.stderr
    assert shop.calls[-1] == ("browser_close_tab", {"tabId": 7})


def test_missing_tools_are_named(
    shop: FakeShop, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TABHUB_HOME", str(home))
    monkeypatch.delenv("TABHUB_PORT", raising=False)
    monkeypatch.setattr("tabhub.cli.demo.command._APPEAR", 0.3)
    shop.offered = [PREFIX + tool for tool in TOOLS if tool != "apply_coupon"]
    assert main(["demo", "--yes"]) == 1
    shown = capsys.readouterr().err
    assert "did not appear in the hub within 0.3 s; missing: apply_coupon." in shown
    assert "pages.allowedOrigins" in shown
    assert shop.calls[-1] == ("browser_close_tab", {"tabId": 7})


def test_unusable_output_path_is_rejected_before_start(shop: FakeShop, tabhub: Run, tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "nowhere" / "a.png"):
        done = tabhub("demo", "--output", str(place))
        assert done.returncode == 2
        assert "cannot be written" in done.stderr
    assert shop.calls == []
    assert "not a number of seconds" in tabhub("demo", "--pause", "soon").stderr
    assert "Usage: tabhub demo" in tabhub("demo", "--help").stdout


def test_missing_browser_is_reported_and_everything_cleaned_up(
    env: dict[str, str], tabhub: Run, tmp_path: Path
) -> None:
    place = tmp_path / "tmp"
    place.mkdir()
    done = tabhub("demo", "--yes", "--headless", TABHUB_BROWSER=str(tmp_path / "none"), TMPDIR=str(place))
    assert done.returncode == 1
    assert "The hub did not start" in done.stderr
    assert "TABHUB_BROWSER" in done.stderr
    assert list(place.iterdir()) == []


def test_browser_that_exits_at_once_is_reported_with_its_output(tabhub: Run, tmp_path: Path) -> None:
    place = tmp_path / "tmp"
    place.mkdir()
    browser = tmp_path / "browser"
    browser.write_text("#!/bin/sh\nhead -c 1 <&3 >/dev/null\necho out of luck >&2\nexit 3\n")
    browser.chmod(0o755)
    done = tabhub("demo", "--yes", "--headless", TABHUB_BROWSER=str(browser), TMPDIR=str(place))
    assert done.returncode == 1
    assert "The hub's browser cannot be used: " in done.stderr
    assert "out of luck" in done.stderr
    assert list(place.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_sigterm_stops_the_temporary_hub_and_removes_its_home(
    env: dict[str, str], tmp_path: Path, number: signal.Signals
) -> None:
    place = tmp_path / "tmp"
    place.mkdir()
    browser = tmp_path / "browser"
    browser.write_text("#!/bin/sh\nexec cat <&3\n")  # it never connects, and ends with the pipe
    browser.chmod(0o755)
    environment = {**env, "TABHUB_BROWSER": str(browser), "TMPDIR": str(place)}
    words = [sys.executable, "-m", "tabhub", "demo", "--yes", "--headless"]
    with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"Starting a hub")
        wait_for(lambda: process.poll() is not None or any(place.glob("tabhub-demo-*/hub.json")))
        assert process.poll() is None, process.communicate()
        (found,) = place.glob("tabhub-demo-*/hub.json")
        pid = json.loads(found.read_text())["pid"]
        process.send_signal(number)
        _, said_at_end = process.communicate(timeout=40)
    assert process.returncode == 130, said_at_end
    assert not alive(pid)
    assert list(place.iterdir()) == []
