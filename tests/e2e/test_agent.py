"""`tabhub agent` end to end: a scripted model, a real hub, Chromium with a shop, and an external server."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tabhub.cli.demo.shop import packaged_shop, serve_shop
from tests.agent.scripted import KEY, Scripted, Turn, scripted
from tests.e2e.agent_hub import ASKED, give_model
from tests.e2e.live import LiveHub
from tests.e2e.restartable_hub import RestartableHub
from tests.harness.waiting import wait_for

SEARCH, BUY, ADD = "_search_products", "_add_to_cart", "mcp__sums__add"


@pytest.fixture(scope="module")
def hub(agent_hub: RestartableHub) -> LiveHub:
    """A hub that requires approval for scripts, allows the rest, and has one external server."""
    hub = agent_hub.running
    wait_for(lambda: lists(hub, ADD))
    return hub


def lists(hub: LiveHub, *endings: str) -> bool:
    """Whether the hub lists tools whose names end with these."""
    tools = httpx2.get(f"{hub.url}/tools", headers=hub.bearer, timeout=30, verify=False).json()
    return all(any(tool["name"].endswith(ending) for tool in tools) for ending in endings)


@pytest.fixture(scope="module")
def shop() -> Iterator[str]:
    with serve_shop(packaged_shop()) as url:
        yield f"{url}?cache=off"


class Buyer:
    """A model with a plan: it opens the shop, waits for its tools, and uses tools of all kinds."""

    def __init__(self, hub: LiveHub, shop: str, *, xml: bool) -> None:
        self._hub = hub
        self._shop = shop
        self._xml = xml
        self._plan = self._steps()
        self._asked: dict[str, Any] = {}

    def __call__(self, asked: dict[str, Any]) -> Turn:
        self._asked = asked
        return next(self._plan)

    def _names(self) -> list[str]:
        tools = self._asked.get("tools", [])
        output = json.dumps(self._asked.get("system") or self._asked["messages"][0])
        return re.findall(r"### (\w+)", output) if self._xml else [(t.get("function") or t)["name"] for t in tools]

    def _tool(self, ending: str) -> str:
        return next((name for name in self._names() if name.endswith(ending)), "")

    def _call(self, name: str, text: str = "", **arguments: Any) -> Turn:
        if not self._xml:
            return Turn(text, ((name, arguments),))
        values = "".join(
            f'<parameter name="{key}">{value if isinstance(value, str) else json.dumps(value)}</parameter>\n'
            for key, value in arguments.items()
        )
        return Turn(f'{text}<tool_calls>\n<invoke name="{name}">\n{values}</invoke>\n</tool_calls>')

    def _steps(self) -> Iterator[Turn]:
        yield self._call("browser_open_tab", "I open the shop.", url=self._shop, active=True)
        # The number of steps is limited, so it waits without steps while the page has not yet offered its tools.
        wait_for(lambda: lists(self._hub, SEARCH, BUY))
        while not all(map(self._tool, (SEARCH, BUY, ADD))):
            yield self._call("browser_list_tabs")
        yield self._call(self._tool(SEARCH), query="light", maxPrice=50)
        yield self._call(self._tool(BUY), productId="storm-lantern", quantity=2)
        yield self._wrong()
        yield self._call(ASKED, code="return document.cookie")
        yield self._call(self._tool(ADD), a=20, b=22)
        yield self._call(self._tool("_get_cart"))
        yield Turn("Two lanterns are in the cart, and the sum is 42.")

    def _wrong(self) -> Turn:
        name = self._tool(BUY)
        if self._xml:
            return Turn(f'<invoke name="{name}"><parameter name="quantity">many</parameter></invoke>')
        return Turn("", ((name, '{"productId": "storm-'),))


def environment(hub: LiveHub) -> dict[str, str]:
    return {**hub.env, "MODEL_KEY": KEY, "TERM": "dumb"}


class Terminal:
    """The command with a person in front of it."""

    def __init__(self, hub: LiveHub, *argv: str) -> None:
        self._master, slave = pty.openpty()
        command = [sys.executable, "-m", "tabhub", "agent", *argv]
        self.process = subprocess.Popen(command, env=environment(hub), stdin=slave, stdout=slave, stderr=slave)
        os.close(slave)
        self.seen = ""

    def until(self, text: str, within: float = 60) -> None:
        """Read until this text appears."""
        while text not in self.seen:
            assert select.select([self._master], [], [], within)[0], f"no {text!r} in:\n{self.seen}"
            try:
                self.seen += os.read(self._master, 65_536).decode("utf-8", "replace")
            except OSError:
                raise AssertionError(f"it ended without {text!r}:\n{self.seen}") from None

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def end(self) -> int:
        """Read the rest, and return the exit code."""
        while select.select([self._master], [], [], 60)[0]:
            try:
                self.seen += os.read(self._master, 65_536).decode("utf-8", "replace")
            except OSError:
                break
        return self.process.wait(20)

    def close(self) -> None:
        """End it in any case."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._master)


@pytest.fixture
def open_terminal(hub: LiveHub) -> Iterator[Callable[..., Terminal]]:
    """Starts the command; one that a failed test leaves running is ended."""
    with contextlib.ExitStack() as stack:

        def opened(*argv: str) -> Terminal:
            terminal = Terminal(hub, *argv)
            stack.callback(terminal.close)
            return terminal

        yield opened


def result(server: Scripted) -> str:
    """All results that the model received."""
    return json.dumps(server.requests[-1]["messages"], ensure_ascii=False)


@pytest.mark.parametrize(("provider", "form"), [("openai", "native"), ("anthropic", "native"), ("openai", "xml")])
def test_the_agent_uses_browser_page_and_external_tools_despite_malformed_and_denied_calls(
    hub: LiveHub, shop: str, open_terminal: Callable[..., Terminal], provider: str, form: str
) -> None:
    buyer = Buyer(hub, shop, xml=form == "xml")
    with scripted(*[buyer] * 150) as server:
        give_model(hub, server, provider=provider, form=form)
        terminal = open_terminal("Put two lanterns into the cart")
        terminal.until("[3] Deny: ")
        assert "wants to run JavaScript in the page" in terminal.seen
        terminal.type("3\n")
        terminal.until("Reason")
        terminal.type("Not my cookies\n")
        assert terminal.end() == 0, terminal.seen
    assert "Two lanterns are in the cart, and the sum is 42." in terminal.seen
    assert "→ browser_open_tab" in terminal.seen
    answers = result(server)
    assert "Storm lantern" in answers
    assert "Not my cookies" in answers
    assert "The sum is 42." in answers
    assert "In the cart: 2 items" in answers
    assert "The call could not be read and was not run." in answers
    assert KEY not in terminal.seen
    assert KEY not in (hub.home / "config.json").read_text()
    assert not [path for path in (hub.home / "conversations").iterdir() if KEY in path.read_text()]


def test_a_stopped_conversation_can_be_continued(
    hub: LiveHub, shop: str, open_terminal: Callable[..., Terminal]
) -> None:
    hold = threading.Event()
    wait = ("browser_wait_for_element", {"selector": "#never", "timeout": 290_000})
    turns = (
        Turn("I open it.", (("browser_open_tab", {"url": shop, "active": True}),)),
        Turn("I wait.", (wait, ("browser_list_tabs", {})), hold=hold),
    )
    with scripted(*turns, Turn("I stopped, and go on.")) as server:
        give_model(hub, server)
        terminal = open_terminal("Wait for it")
        terminal.until("→ browser_wait_for_element")
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.end() == 130, terminal.seen
        hold.set()
        assert "Stopped." in terminal.seen
        more = open_terminal("--resume", "--", "Go on")
        assert more.end() == 0, more.seen
        assert "I stopped, and go on." in more.seen
    assert "It is unknown whether the call took effect." in server.results(2)[1]
    assert [m["content"] for m in server.requests[2]["messages"] if m["role"] == "user"] == ["Wait for it", "Go on"]
    listed = hub.tabhub("agent", "--list")
    assert "Wait for it" in listed.stdout


def test_typed_tasks_share_one_conversation_and_a_large_result_is_read_through_its_handle(
    hub: LiveHub, open_terminal: Callable[..., Terminal], tmp_path: Path
) -> None:
    handles: list[str] = []

    def read_on(asked: dict[str, Any]) -> Turn:
        (found,) = re.findall(r'tabhub_read_result {"handle": "([^"]+)"}', asked["messages"][-1]["content"])
        handles.append(found)
        return Turn("", (("tabhub_read_result", {"handle": found, "offset": 0, "limit": 1000}),))

    (tmp_path / "large.html").write_text("<title>Large</title>" + "".join(f"<p>Row {n} of it" for n in range(5_000)))
    look = Turn("", (("browser_snapshot", {}),))
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(serve_shop(tmp_path))
        opening = Turn("", (("browser_open_tab", {"url": f"{url}large.html", "active": True}),))
        server = stack.enter_context(scripted(opening, look, read_on, Turn("It is large."), Turn("Good bye.")))
        give_model(hub, server)
        terminal = open_terminal()
        terminal.until("> ")
        terminal.type("How large is it?\n")
        terminal.until("It is large.")
        terminal.type("Thanks\n")
        terminal.until("Good bye.")
        terminal.type("/quit\n")
        assert terminal.end() == 0, terminal.seen
    assert handles
    shown, rest = (set(re.findall(r"Row \d+ of it", text)) for text in server.results(3)[1:])
    assert "Row 0 of it" in shown
    assert rest
    assert not shown & rest
    assert [m["content"] for m in server.requests[4]["messages"] if m["role"] == "user"] == [
        "How large is it?",
        "Thanks",
    ]


def test_in_script_mode_every_event_is_one_json_line_and_there_are_no_prompts(hub: LiveHub) -> None:
    turns = (Turn("Let me see.", (("browser_list_tabs", {}),)), Turn("", (("browser_list_tabs", {}),)))
    with scripted(*turns) as server:
        give_model(hub, server)
        done = subprocess.run(
            [sys.executable, "-m", "tabhub", "agent", "--json", "--steps", "2"],
            env=environment(hub),
            input="Which tabs are open?",
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 1, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert {each["event"] for each in events} == {"text", "started", "finished", "ended"}
    assert "".join(each["text"] for each in events if each["event"] == "text") == "Let me see."
    assert events[-1]["why"] == "steps"
    assert events[-1]["tokens"] == 222
