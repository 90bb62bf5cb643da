"""Conversations of the agent on disk: one file each, readable by this user only.

Owns the form of a conversation (messages, calls and their results, in no provider's format) and its files. Pictures are
not stored. Knows nothing of models or of how a conversation continues.
"""

from __future__ import annotations

import contextlib
import logging
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from tabhub.errors import SetupError
from tabhub.platform.files import make_private_folder, write_atomic

log = logging.getLogger("tabhub.agent")

_ID = re.compile(r"[0-9a-f]{12}")
_LARGEST = 64 * 1024 * 1024
_TITLE = 80
_REMOVED = "[a picture was here; pictures are not stored]"


class Picture(msgspec.Struct, frozen=True):
    """A picture of a tool's result."""

    mime: str
    data: str
    """In base64."""


class Call(msgspec.Struct, frozen=True):
    """A tool call the model made."""

    id: str
    name: str
    arguments: dict[str, Any] = {}
    problem: str = ""
    """Why it cannot be run, if the model's call is invalid."""


class Result(msgspec.Struct, frozen=True):
    """The result of a call."""

    call: str
    name: str
    text: str
    failed: bool = False
    pictures: list[Picture] = []
    denied: bool = False
    """Whether it failed because a permission, or the person, denied it."""
    seconds: float = 0.0
    """How long the call took."""


class Message(msgspec.Struct, frozen=True):
    """One message: the person's, the model's with its calls, or the results of these."""

    role: Literal["user", "assistant", "tool"]
    text: str = ""
    calls: list[Call] = []
    results: list[Result] = []
    raw: str = ""
    """The model's text as it wrote it, when calls were part of the text."""


class Conversation(msgspec.Struct):
    """All messages, oldest first; times are in seconds since 1970."""

    id: str
    started: float
    changed: float
    title: str = ""
    tokens: int = 0
    """Tokens spent on it so far."""
    messages: list[Message] = []
    why: str = ""
    """How the last run ended, as a keyword."""
    explanation: str = ""
    """The same as a message, where one is needed."""

    def add(self, message: Message) -> None:
        self.messages = [*self.messages, message]
        if not self.title and message.role == "user":
            text = " ".join(message.text.split())
            self.title = text if len(text) <= _TITLE else f"{text[: _TITLE - 1]}…"


class Summary(msgspec.Struct, frozen=True):
    """A conversation in a list."""

    id: str
    started: float
    changed: float
    title: str = ""


@dataclass(frozen=True, slots=True)
class ConversationStore:
    """The folder of conversations."""

    folder: Path
    most: int

    def save(self, conversation: Conversation) -> None:
        """Write a conversation; beyond the maximum the least recently changed are removed."""
        path = self._path(conversation.id)
        make_private_folder(self.folder)
        stored = msgspec.structs.replace(conversation, messages=[_without_pictures(m) for m in conversation.messages])
        write_atomic(path, msgspec.json.encode(stored))
        for old in self._files()[self.most :]:
            with contextlib.suppress(FileNotFoundError):
                old.unlink()

    def load(self, ident: str) -> Conversation:
        """A conversation by its id, by a prefix of it, or the newest one by `last`."""
        files = self._files()
        found = files[:1] if ident == "last" else [path for path in files if path.stem.startswith(ident)]
        if not found:
            if ident == "last":
                raise SetupError("No saved conversations.", hint='Begin one: tabhub agent "…"')
            raise SetupError(f"There is no conversation {ident!r}.", hint="`tabhub agent --list` shows them.")
        if len(found) > 1:
            names = ", ".join(path.stem for path in found[:5])
            raise SetupError(
                f"Several conversations begin with {ident!r}: {names}.", hint="Use more characters of the id."
            )
        try:
            if found[0].stat().st_size > _LARGEST:
                raise SetupError(f"{found[0]} is larger than {_LARGEST} bytes.", hint="Start a new conversation.")
            return msgspec.json.decode(found[0].read_bytes(), type=Conversation)
        except (OSError, ValueError) as error:  # msgspec's errors are ValueErrors
            raise SetupError(
                f"The conversation in {found[0]} cannot be read: {error}.",
                hint="Remove the file, or start a new conversation.",
            ) from None

    def remove(self, ident: str) -> None:
        self._path(ident).unlink(missing_ok=True)

    def all(self) -> list[Summary]:
        """Every conversation, newest first; unreadable ones are logged and skipped."""
        listed = []
        for path in self._files():
            try:
                listed.append(msgspec.json.decode(path.read_bytes(), type=Summary))
            except (OSError, ValueError) as error:
                log.warning("the conversation in %s cannot be read: %s", path, error)
        return listed

    def _path(self, ident: str) -> Path:
        if not _ID.fullmatch(ident):
            raise SetupError(f"{ident!r} is not the id of a conversation.", hint="`tabhub agent --list` shows them.")
        return self.folder / f"{ident}.json"

    def _files(self) -> list[Path]:
        found = []
        for path in self.folder.glob("*.json"):
            if _ID.fullmatch(path.stem):
                with contextlib.suppress(FileNotFoundError):  # another process just removed it
                    found.append((-path.stat().st_mtime_ns, path))
        return [path for _, path in sorted(found)]


def _without_pictures(message: Message) -> Message:
    if not any(result.pictures for result in message.results):
        return message
    results = [
        msgspec.structs.replace(r, pictures=[], text=f"{r.text}\n{_REMOVED}".strip()) if r.pictures else r
        for r in message.results
    ]
    return msgspec.structs.replace(message, results=results)
