"""Commands and groups of commands: choosing one, its help, and usage errors that name the nearest right word.

Owns the shape of the command line; it knows nothing of what the commands do.
"""

from __future__ import annotations

import argparse
import importlib
import math
import re
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence

from tabhub.cli.terminal import nearest, paint, show_error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

Option = Callable[[argparse.ArgumentParser], object]
Run = Callable[[Namespace], int | None]
"""Runs a command; returns the exit code, None for success."""
Examples = tuple[tuple[str, str], ...]
LONGEST_WAIT = 86400.0
_CHOICE = re.compile(r".+?: invalid choice: '(?P<word>.*)' \(choose from (?P<known>.*)\)", re.DOTALL)


class Command:
    """One command: its options and how to run it."""

    def __init__(
        self, run: Run, *options: Option, summary: str = "", details: str = "", examples: Examples = ()
    ) -> None:
        self.run = run
        self.options = options
        self.summary = summary
        """Empty for a command in its own module, whose LazyCommand has the summary."""
        self.details = details
        self.examples = examples


class LazyCommand:
    """A command or group whose module is imported when it is used; the module calls it COMMAND, or `name`."""

    def __init__(self, summary: str, module: str, name: str = "COMMAND") -> None:
        self.summary = summary
        self.module = module
        self.name = name

    def load(self) -> Command | Group:
        command: Command | Group = getattr(importlib.import_module(self.module), self.name)
        command.summary = command.summary or self.summary
        return command


class Group:
    """Commands under one name."""

    def __init__(
        self, commands: Mapping[str, Command | Group | LazyCommand], *, summary: str = "", examples: Examples = ()
    ) -> None:
        self.commands = commands
        self.summary = summary
        self.examples = examples
        """Without any, the help shows the first example of each command."""


class Parser(argparse.ArgumentParser):
    """argparse with error, hint and usage; the hint suggests the nearest known word."""

    def error(self, message: str) -> NoReturn:
        message, near = message.removeprefix("argument "), None
        if message.startswith("unrecognized arguments: "):
            word = message.removeprefix("unrecognized arguments: ").split(" ")[0]
            message = f"unexpected argument '{word}'"
            near = nearest(word.split("=")[0], list(self._option_string_actions)) if word.startswith("-") else None
        elif wrong := _CHOICE.fullmatch(message):
            known = re.findall(r"'([^']*)'", wrong["known"]) or wrong["known"].split(", ")
            message = f"'{wrong['word']}' is not one of {', '.join(known)}"
            near = nearest(wrong["word"], known)
        show_error(message, f"did you mean '{near}'?" if near else None)
        usage = self.format_usage().strip()
        print(f"\n{usage}\n\nFor more information, try '{self.prog} --help'.", file=sys.stderr)
        sys.exit(2)

    def format_usage(self) -> str:
        return super().format_usage().replace("usage:", "Usage:", 1)

    def format_help(self) -> str:
        text = super().format_help().replace("usage:", "Usage:", 1)
        return text.replace("\npositional arguments:", "\nArguments:").replace("\noptions:", "\nOptions:")


def seconds(text: str) -> float:
    """The type of an option for a number of seconds."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= LONGEST_WAIT:  # also refuses nan
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of seconds above 0, up to {LONGEST_WAIT:.0f}")
    return value


def whole(text: str) -> int:
    """The type of an option for an id or a number that may be 0."""
    if not (text.isascii() and text.isdigit() and len(text) < 17):
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number")
    return int(text)


def positive(text: str) -> int:
    """The type of an option for a number of things."""
    value = whole(text)
    if value == 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number above 0")
    return value


def port(text: str) -> int:
    """The type of an option for a port to listen on."""
    if not (text.isascii() and text.isdigit() and int(text) < 65536):
        raise argparse.ArgumentTypeError(f"'{text}' is not a port: a number from 1 to 65535, or 0 for any free one")
    return int(text)


def option(*names: str, **settings: Any) -> Option:
    """An option or argument of a command, as `ArgumentParser.add_argument` takes it."""
    return lambda parser: parser.add_argument(*names, **settings)


JSON = option("--json", action="store_true", help="print JSON")


def run_command(command: Command | Group | LazyCommand, name: str, words: Sequence[str]) -> int:
    if isinstance(command, LazyCommand):
        command = command.load()
    if isinstance(command, Command):
        parser = Parser(
            prog=name,
            description=f"{command.summary}.\n\n{command.details}".strip(),
            epilog=_examples(command.examples),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        for add in command.options:
            add(parser)
        try:
            arguments = parser.parse_args(words)
        except SystemExit as done:  # argparse raises it after --help and after errors
            return done.code if isinstance(done.code, int) else 2
        return command.run(arguments) or 0
    if not words:
        print(_group_help(command, name))
        return 2
    word, rest = words[0], words[1:]
    if word in ("-h", "--help"):
        print(_group_help(command, name))
        return 0
    if word in command.commands:
        return run_command(command.commands[word], f"{name} {word}", rest)
    if word.startswith("-"):
        near = nearest(word, ["--help", "--version"] if name == "tabhub" else ["--help"])
        show_error(f"unknown option '{word}'", f"did you mean '{name} {near}'?" if near else None)
    else:
        near = nearest(word, list(command.commands))
        known = f"the commands are {', '.join(command.commands)}"
        show_error(f"unknown command '{word}'", f"did you mean '{name} {near}'?" if near else known)
    print(f"\nUsage: {name} COMMAND [OPTIONS]\n\nFor more information, try '{name} --help'.", file=sys.stderr)
    return 2


def _examples(examples: Sequence[tuple[str, str]]) -> str:
    room = max((len(call) for call, _ in examples), default=0)
    rows = [f"  {call.ljust(room)}  {what}".rstrip() for call, what in examples]
    return "\n".join(["Examples:", *rows]) if rows else ""


def _group_help(group: Group, name: str) -> str:
    room = max(len(word) for word in group.commands)
    parts = [f"{group.summary}.", "", f"Usage: {name} COMMAND [OPTIONS]", "", "Commands:"]
    for word, command in group.commands.items():
        parts.append(f"  {paint(word, 'bold')}{' ' * (room - len(word))}  {command.summary}")
    parts += ["", "Options:", "  -h, --help     Show this help; use COMMAND --help for one command"]
    if name == "tabhub":
        parts.append("  -V, --version  Show the version")
    commands = [command for command in group.commands.values() if isinstance(command, Command)]
    examples = group.examples or [command.examples[0] for command in commands if command.examples]
    return "\n".join([*parts, "", _examples(examples)]).rstrip()
