"""One conversation of the assistant in the panel: whether it is running, and what a panel shows of it.

Owns the shape of `agent.event` and of an opened conversation. The events of a run are kept until it ends, so that a
panel that is opened later shows the same. It sends nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from tabhub.agent.hub_tools import HubTools
from tabhub.agent.loop import Ended, Event, Loop, Text
from tabhub.store.conversations import Conversation, Message

_SHOWN = 4_000
"""Characters of an argument or a result."""
_TEXT = 100_000
"""Characters of a message."""
_MESSAGES = 400
"""Messages of a conversation, the newest."""


@dataclass(slots=True, eq=False)
class Chat:
    """A conversation that is running, or was running lately."""

    conversation: Conversation
    tools: HubTools
    opened: bool = False
    """Whether it has a session with the hub."""
    loop: Loop | None = None
    """While it runs."""
    _messages_before: int = 0
    _events: list[tuple[float, dict[str, Any]]] = field(default_factory=list)

    def begin(self, loop: Loop, text: str, now: float) -> dict[str, Any]:
        """Begin the run on a message of the person. Returns the event for panels."""
        self.loop = loop
        self._messages_before = len(self.conversation.messages)
        self._events = [(now, {"event": "message", "text": text})]
        return self._events[0][1]

    def add(self, event: Event, now: float) -> dict[str, Any]:
        """Add an event of the run. Returns it as panels receive it."""
        facts: dict[str, Any] = {"event": type(event).__name__.lower(), **msgspec.to_builtins(event)}
        if isinstance(event, Text):
            self._add_text(facts, now)
            return facts
        if isinstance(event, Ended):
            self.conversation.why, self.conversation.explanation = event.why, event.explanation
        facts = _bounded(facts)
        self._events.append((now, facts))
        return facts

    def _add_text(self, facts: dict[str, Any], now: float) -> None:
        last = self._events[-1][1] if self._events else {}
        if last.get("event") != "text":
            self._events.append((now, dict(facts)))
        elif len(last["text"]) < _TEXT:
            last["text"] += facts["text"]

    def end(self) -> None:
        self.loop = None
        self._events = []

    def snapshot(self, session: str | None, now: float) -> dict[str, Any]:
        """The conversation as a panel shows it: its messages, and the events of the current run."""
        saved, running = self.conversation, self.loop is not None
        settled = saved.messages[: self._messages_before] if running else saved.messages
        return {
            "conversation": saved.id,
            "title": saved.title,
            "session": session,
            "running": running,
            "earlier": max(len(settled) - _MESSAGES, 0),
            "messages": [_shown(message) for message in settled[-_MESSAGES:]],
            "events": [{**facts, "secondsAgo": round(now - then, 3)} for then, facts in self._events],
            **({} if running else {"why": saved.why, "explanation": saved.explanation}),
        }


def _shown(message: Message) -> dict[str, Any]:
    """A message as the panel shows it: no pictures, and long results cut."""
    facts: dict[str, Any] = {"role": message.role, "text": message.text[:_TEXT]}
    if message.calls:
        facts["calls"] = _bounded(msgspec.to_builtins(message.calls))
    if message.results:
        facts["results"] = _bounded(msgspec.to_builtins(message.results))
    return facts


def _bounded(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…"
    if isinstance(value, list):
        return [_bounded(each) for each in value]
    if isinstance(value, dict):
        return {key: _bounded(each) for key, each in value.items() if key != "pictures"}
    return value
