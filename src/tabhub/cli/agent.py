"""`tabhub agent`: give a model a task, and watch it work with the hub's tools.

Owns the conversation with the person at the terminal. What the model says goes to standard output, each step to
standard error. Ctrl+C stops the work, not the program, while it works. Calls go to the running hub as any agent's do,
and are allowed or refused by the same permissions; questions come to this terminal, where there is one.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import sys
import time
from typing import TYPE_CHECKING

import msgspec

from tabhub.cli.command import Command, option, positive
from tabhub.cli.hub.client import bearer, find_hub
from tabhub.cli.terminal import cut, paint, print_json, safe, width
from tabhub.client_errors import CliError, HubDownError
from tabhub.errors import HubUnreachable

if TYPE_CHECKING:
    from argparse import Namespace

    from tabhub.agent.loop import Ended, Event, Loop
    from tabhub.agent.turns import Model
    from tabhub.config.settings import Config
    from tabhub.store.conversations import Conversation, ConversationStore

_CODES = {"done": 0, "stopped": 130, "steps": 1, "tokens": 1, "failed": 1}
_SHOWN = 200
_HELP = "Type a task. /new starts a new conversation, /quit exits, Ctrl+C stops the current task."


def agent(args: Namespace) -> int:
    from tabhub.agent.providers import model_of
    from tabhub.store.config_file import load
    from tabhub.store.conversations import ConversationStore
    from tabhub.store.home import Home

    home = Home.find()
    config = _with(load(home, os.environ), args)
    store = ConversationStore(home.root / "conversations", config.limits.agent_conversations)
    if args.list:
        return _list(store, as_json=args.json)
    conversation = store.load(args.resume) if args.resume else _new()
    task = " ".join(args.task)
    if not task and not sys.stdin.isatty():
        task = sys.stdin.read().strip()
        if not task:
            raise CliError("No task was given.", 'Write for example: tabhub agent "find …"', exit_code=2)
    model = model_of(config.agent, config.limits, os.environ)
    with asyncio.Runner() as runner:
        work = _Work(config, store, model, conversation, as_json=args.json)
        try:
            if task:
                return _CODES[runner.run(work.do(task)).why]
            return _talk(runner, work)
        finally:
            runner.run(work.close())


class _Work:
    """A conversation, the model it is with, and the hub it works on."""

    def __init__(
        self,
        config: Config,
        store: ConversationStore,
        model: Model,
        conversation: Conversation,
        *,
        as_json: bool,
    ) -> None:
        from tabhub.agent.hub_tools import HubTools
        from tabhub.cli.question import ask_person

        self._config = config
        self._store = store
        self._model = model
        self._hub = hub = find_hub()
        ask = ask_person if sys.stdin.isatty() else None
        self._tools = HubTools(hub.address, lambda: bearer(hub, "/mcp"), "tabhub-agent", ask)
        self._open = False
        self.conversation = conversation
        self._screen = _show_json if as_json else _Screen().show

    async def do(self, task: str) -> Ended:
        """Work on one task until it is done, stopped, or a limit is reached; the conversation is saved."""
        from tabhub.agent.loop import Ended

        loop = self._loop()
        events = asyncio.get_running_loop()
        begun = asyncio.ensure_future(self._begin())

        def stop() -> None:
            begun.cancel()
            loop.stop()

        events.add_signal_handler(signal.SIGINT, stop)
        try:
            await asyncio.wait([begun])
            if begun.cancelled():
                return Ended("stopped", "Stopped.")
            begun.result()
            return await loop.run(task)
        finally:
            events.remove_signal_handler(signal.SIGINT)
            if self.conversation.messages:
                self.conversation.changed = time.time()
                self._store.save(self.conversation)

    async def _begin(self) -> None:
        if not self._open:
            try:
                await self._tools.open()
            except HubUnreachable:
                raise HubDownError(self._hub.address) from None
            self._open = True

    async def close(self) -> None:
        if self._open:
            await self._tools.close()

    def _loop(self) -> Loop:
        from tabhub.agent.loop import Bounds, Loop
        from tabhub.browser.families import CORE

        settings = self._config.agent
        bounds = Bounds(settings.steps, settings.tokens, self._config.limits.agent_prompt)
        return Loop(
            self._model,
            self._tools,
            self.conversation,
            form=settings.format,
            bounds=bounds,
            first=frozenset(CORE),
            tell=self._screen,
        )


def _talk(runner: asyncio.Runner, work: _Work) -> int:
    _say(paint(_HELP, "dim", sys.stderr))
    while True:
        try:
            task = input("> ").strip()
        except EOFError:
            print()
            return 0
        if task in ("/quit", "/exit"):
            return 0
        if task == "/new":
            work.conversation = _new()
            _say("A new conversation.")
        elif task.startswith("/"):
            _say(_HELP)
        elif task:
            runner.run(work.do(task))


class _Screen:
    """What happens, for a person."""

    def __init__(self) -> None:
        self._open = False
        """Whether the last line of the model's text has not ended."""

    def show(self, event: Event) -> None:
        from tabhub.agent.loop import Finished, Spoke, Started

        if isinstance(event, Spoke):
            print(safe(event.text), end="", flush=True)
            self._open = not event.text.endswith("\n")
            return
        if self._open:
            print(flush=True)
            self._open = False
        if isinstance(event, Started):
            given = json.dumps(event.call.arguments, ensure_ascii=False)
            name = safe(event.call.name or "?", sys.stderr)
            _say(f"{paint('→', 'cyan', sys.stderr)} {paint(name, 'bold', sys.stderr)} {_line(given)}")
        elif isinstance(event, Finished):
            mark = paint("✗", "red", sys.stderr) if event.result.failed else paint("✓", "green", sys.stderr)
            seen = f" [{len(event.result.pictures)} picture(s)]" if event.result.pictures else ""
            _say(f"{mark} {_line(event.result.text)}{seen} {paint(f'({event.seconds:.1f} s)', 'dim', sys.stderr)}")
        elif event.words:
            _say(paint(safe(event.words, sys.stderr), "yellow", sys.stderr))


def _show_json(event: Event) -> None:
    print(json.dumps({"event": type(event).__name__.lower(), **msgspec.to_builtins(event)}), flush=True)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _line(text: str) -> str:
    columns = width()
    return safe(cut(" ".join(text.split()), min(columns - 20, _SHOWN) if columns else _SHOWN), sys.stderr)


def _new() -> Conversation:
    from tabhub.store.conversations import Conversation

    now = time.time()
    return Conversation(secrets.token_hex(6), now, now)


def _list(store: ConversationStore, *, as_json: bool) -> int:
    found = store.all()
    if as_json:
        return print_json(msgspec.to_builtins(found))
    for each in found:
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(each.changed))
        print(f"{paint(each.id, 'bold')}  {when}  {safe(each.title)}")
    if not found:
        print("No saved conversations.")
    return 0


def _with(config: Config, args: Namespace) -> Config:
    """The settings, overridden by command-line options."""
    from dataclasses import replace

    given = {
        "steps": args.steps,
        "tokens": args.tokens,
        "model": args.model,
        "format": args.format,
    }
    return replace(config, agent=replace(config.agent, **{k: v for k, v in given.items() if v is not None}))


COMMAND = Command(
    "Give a task to a model that uses the hub's tools",
    agent,
    option("task", metavar="TASK", nargs="*", help="what to do; without it, tasks are typed one by one"),
    option("--resume", metavar="ID", nargs="?", const="last", help="continue a conversation (default: the last one)"),
    option("--list", action="store_true", help="list saved conversations"),
    option("--steps", metavar="N", type=positive, help="maximum number of steps (setting: agent.steps)"),
    option("--tokens", metavar="N", type=positive, help="maximum number of tokens (setting: agent.tokens)"),
    option("--model", metavar="NAME", help="model to use (setting: agent.model)"),
    option("--format", choices=("native", "xml"), help="how the model calls tools (setting: agent.format)"),
    option("--json", action="store_true", help="print events as one JSON object per line"),
    details=(
        "Needs a running hub and a model: `tabhub config set agent.baseUrl URL`, agent.model, and agent.key if there\n"
        "is one. Calls that need approval ask here and in the panel. Write `--` before a task after --resume."
    ),
    examples=(
        ('tabhub agent "Which of my open tabs are about trains?"', ""),
        ("tabhub agent", "type tasks one by one"),
        ('tabhub agent --resume -- "And which are cheaper?"', "go on where it ended"),
        ('tabhub agent --steps 5 --json "…"', "bounded, for scripts"),
    ),
)
