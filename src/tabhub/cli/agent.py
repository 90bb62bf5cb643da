"""`tabhub agent`: give a model a task, and watch it work with the hub's tools.

Owns the conversation with the person at the terminal. The model's text goes to standard output, each step to standard
error. While a task runs, Ctrl+C stops the task and not the program. Calls go to the running hub as any agent's do, and
are allowed or denied by the same permissions; approvals are requested in this terminal, if it is one.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import sys
import time
from argparse import Namespace
from dataclasses import replace

import msgspec

from tabhub.agent.hub_tools import HubTools
from tabhub.agent.loop import Ended, Event, Finished, Loop, Started, Text
from tabhub.agent.providers import model_of
from tabhub.agent.turns import Model
from tabhub.cli.command import Command, option, positive
from tabhub.cli.hub.client import bearer, find_hub
from tabhub.cli.hub.settings import home_and_config
from tabhub.cli.question import ask_person
from tabhub.cli.terminal import cut, paint, print_json, safe, width
from tabhub.client_errors import HubDownError, UsageError
from tabhub.config.settings import Config
from tabhub.errors import HubUnreachable
from tabhub.mcp.client import McpClient
from tabhub.store.conversations import Conversation, ConversationStore

_EXIT_CODES = {"done": 0, "stopped": 130, "steps": 1, "tokens": 1, "failed": 1}
_MAX_SHOWN = 200
_HELP = "Type a task. /new starts a new conversation, /quit exits, Ctrl+C stops the current task."


def agent(args: Namespace) -> int:
    home, config = home_and_config()
    given = {name: getattr(args, name) for name in ("steps", "tokens", "model", "format")}
    overrides = {name: value for name, value in given.items() if value is not None}
    config = replace(config, agent=replace(config.agent, **overrides))
    store = ConversationStore(home.root / "conversations", config.limits.agent_conversations)
    if args.list:
        _list(store, as_json=args.json)
        return 0
    conversation = store.load(args.resume) if args.resume else _new()
    task = " ".join(args.task)
    if not task and not sys.stdin.isatty():
        task = sys.stdin.read().strip()
        if not task:
            raise UsageError("No task was given.", 'Write for example: tabhub agent "find …"')
    model = model_of(config.agent, config.limits, os.environ)
    with asyncio.Runner() as runner:
        work = _Work(config, store, model, conversation, as_json=args.json)
        try:
            if task:
                return _EXIT_CODES[runner.run(work.do(task)).why]
            _talk(runner, work)
            return 0
        finally:
            runner.run(work.tools.client.close())


class _Work:
    """A conversation, its model, and the hub it uses."""

    def __init__(
        self, config: Config, store: ConversationStore, model: Model, conversation: Conversation, *, as_json: bool
    ) -> None:
        self._config = config
        self._store = store
        self._model = model
        self._hub = hub = find_hub()
        ask = ask_person if sys.stdin.isatty() else None
        self.tools = HubTools(McpClient(hub.address, lambda: bearer(hub, "/mcp"), "tabhub-agent", ask))
        self.conversation = conversation
        self._show = _show_json if as_json else _Screen().show

    async def do(self, task: str) -> Ended:
        """Work on one task until it is done, stopped, or a limit is reached; the conversation is saved."""
        loop = Loop(self._model, self.tools, self.conversation, self._config, self._show)
        opening = asyncio.ensure_future(self._open_session())

        def stop() -> None:
            opening.cancel()
            loop.stop()

        events = asyncio.get_running_loop()
        events.add_signal_handler(signal.SIGINT, stop)
        try:
            await asyncio.wait([opening])
            if opening.cancelled():
                return Ended("stopped", "Stopped.")
            opening.result()
            return await loop.run(task)
        finally:
            events.remove_signal_handler(signal.SIGINT)
            if self.conversation.messages:
                self.conversation.changed = time.time()
                self._store.save(self.conversation)

    async def _open_session(self) -> None:
        if self.tools.client.session is None:
            try:
                await self.tools.client.open()
            except HubUnreachable:
                raise HubDownError(self._hub.address) from None


def _talk(runner: asyncio.Runner, work: _Work) -> None:
    _say(paint(_HELP, "dim", sys.stderr))
    while True:
        try:
            task = input("> ").strip()
        except EOFError:
            return print()
        if task in ("/quit", "/exit"):
            return
        if task == "/new":
            work.conversation = _new()
            _say("A new conversation.")
        elif task.startswith("/"):
            _say(_HELP)
        elif task:
            runner.run(work.do(task))


class _Screen:
    """Shows events to a person."""

    def __init__(self) -> None:
        self._in_line = False
        """Whether the last line of the model's text has not ended."""

    def show(self, event: Event) -> None:
        if isinstance(event, Text):
            print(safe(event.text), end="", flush=True)
            self._in_line = not event.text.endswith("\n")
            return
        if self._in_line:
            print(flush=True)
            self._in_line = False
        if isinstance(event, Started):
            arguments = json.dumps(event.call.arguments, ensure_ascii=False)
            name = safe(event.call.name or "?", sys.stderr)
            _say(f"{paint('→', 'cyan', sys.stderr)} {paint(name, 'bold', sys.stderr)} {_line(arguments)}")
        elif isinstance(event, Finished):
            mark = paint("✗", "red", sys.stderr) if event.result.failed else paint("✓", "green", sys.stderr)
            pictures = f" [{len(event.result.pictures)} picture(s)]" if event.result.pictures else ""
            seconds = paint(f"({event.seconds:.1f} s)", "dim", sys.stderr)
            _say(f"{mark} {_line(event.result.text)}{pictures} {seconds}")
        elif event.explanation:
            _say(paint(safe(event.explanation, sys.stderr), "yellow", sys.stderr))


def _show_json(event: Event) -> None:
    print(json.dumps({"event": type(event).__name__.lower(), **msgspec.to_builtins(event)}), flush=True)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _line(text: str) -> str:
    columns = width()
    return safe(cut(" ".join(text.split()), min(columns - 20, _MAX_SHOWN) if columns else _MAX_SHOWN), sys.stderr)


def _new() -> Conversation:
    now = time.time()
    return Conversation(secrets.token_hex(6), now, now)


def _list(store: ConversationStore, *, as_json: bool) -> None:
    conversations = store.all()
    if as_json:
        return print_json(msgspec.to_builtins(conversations))
    for conversation in conversations:
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(conversation.changed))
        print(f"{paint(conversation.id, 'bold')}  {when}  {safe(conversation.title)}")
    if not conversations:
        print("No saved conversations.")


COMMAND = Command(
    agent,
    option("task", metavar="TASK", nargs="*", help="the task; without it, type tasks one by one"),
    option("--resume", metavar="ID", nargs="?", const="last", help="continue a conversation (default: the last one)"),
    option("--list", action="store_true", help="list saved conversations"),
    option("--steps", metavar="N", type=positive, help="maximum number of steps (setting: agent.steps)"),
    option("--tokens", metavar="N", type=positive, help="maximum number of tokens (setting: agent.tokens)"),
    option("--model", metavar="NAME", help="model to use (setting: agent.model)"),
    option("--format", choices=("native", "xml"), help="how the model calls tools (setting: agent.format)"),
    option("--json", action="store_true", help="print events as one JSON object per line"),
    details=(
        "Needs a running hub and a model: `tabhub config set agent.baseUrl URL`, agent.model, and agent.key if the\n"
        "model needs one. Approvals are requested here and in the panel. Write `--` before a task after --resume."
    ),
    examples=(
        ('tabhub agent "Which of my open tabs are about trains?"', ""),
        ("tabhub agent", "type tasks one by one"),
        ('tabhub agent --resume -- "And which are cheaper?"', "continue the last conversation"),
        ('tabhub agent --steps 5 --json "…"', "with a limit, for scripts"),
    ),
)
