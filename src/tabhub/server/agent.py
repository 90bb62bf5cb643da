"""The agent in the panel: conversations the person has with a model there, while the hub runs.

Owns the panel's `agent.*` methods and the conversations at work. Such an agent is an agent like any other: it comes to
the hub's own `/mcp` with a session of its own, and what it wants to do is allowed or refused as for all; questions come
to the panel. What happens is told to the panel that sent the message, as `agent.event`. Agents have no way here.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from tabhub.agent.hub_tools import HubTools
from tabhub.agent.loop import Bounds, Event, Loop, Spoke
from tabhub.agent.providers import model_of
from tabhub.browser.families import CORE
from tabhub.errors import Busy, InvalidParams, TabhubError
from tabhub.links.extension import ExtensionLink, Handler
from tabhub.store import secret as secrets_store
from tabhub.store.conversations import Conversation, ConversationStore, Message

if TYPE_CHECKING:
    from tabhub.server.hub import Hub

log = logging.getLogger("tabhub.agent")

_LONGEST = 20_000
_SHOWN = 4_000
_AT_ONCE = 8
"""Conversations that keep their session with the hub."""


@dataclass(slots=True, eq=False)
class _Chat:
    """A conversation that is, or just was, at work."""

    conversation: Conversation
    tools: HubTools
    opened: bool = False
    loop: Loop | None = None
    """While it works."""


def agent_parts(hub: Hub) -> AgentChat:
    """The agent of a hub, known to its panel."""
    chat = AgentChat(hub)
    hub.trust.panel.add(chat.methods())
    return chat


class AgentChat:
    """The panel's conversations."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._store = ConversationStore(hub.home.root / "conversations", hub.config.limits.agent_conversations)
        self._chats: dict[str, _Chat] = {}
        self._tasks: set[asyncio.Task[Any]] = set()

    def methods(self) -> dict[str, Handler]:
        """The methods by name, for links of the person's own extension."""
        return {
            "agent.send": self._later(self._send),
            "agent.stop": self._stop,
            "agent.list": self._later(self._list),
            "agent.resume": self._later(self._resume),
        }

    def closing(self) -> None:
        """The hub is going: the work stops."""
        for chat in self._chats.values():
            if chat.loop is not None:
                chat.loop.stop()

    async def stop(self) -> None:
        """Wait until what was said is kept."""
        self.closing()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _send(self, link: ExtensionLink, params: dict[str, Any]) -> dict[str, Any]:
        text, ident = params.get("text"), params.get("conversation")
        if not isinstance(text, str) or not text.strip() or len(text) > _LONGEST:
            raise InvalidParams(f"`text` must be a text of 1 to {_LONGEST} characters.")
        config = self._hub.config
        model = model_of(config.agent, config.limits, os.environ)
        chat = await self._chat(None if ident is None else _ident(params))
        if chat.loop is not None:
            raise Busy("The agent is still at work in this conversation.", hint="Wait for it, or stop it first.")
        chat.loop = Loop(
            model,
            chat.tools,
            chat.conversation,
            form=config.agent.format,
            bounds=Bounds(config.agent.steps, config.agent.tokens, config.limits.agent_prompt),
            first=frozenset(CORE),
            tell=lambda event: _tell(link, chat, event),
        )
        self._begin(self._work(link, chat, chat.loop, text))
        return {"conversation": chat.conversation.id}

    async def _work(self, link: ExtensionLink, chat: _Chat, loop: Loop, text: str) -> None:
        try:
            if not chat.opened:
                await chat.tools.open()
                chat.opened = True
            await loop.run(text)
        except TabhubError as error:
            said = {"event": "ended", "why": "failed", "words": error.text(), "steps": 0, "tokens": 0}
            link.notify("agent.event", {"conversation": chat.conversation.id, **said})
        finally:
            chat.loop = None
            chat.conversation.changed = time.time()
            await asyncio.to_thread(self._store.save, chat.conversation)

    async def _chat(self, ident: str | None) -> _Chat:
        if ident in self._chats:
            return self._chats[ident]
        now = time.time()
        if ident is None:
            conversation = Conversation(secrets.token_hex(6), now, now)
        else:
            conversation = await asyncio.to_thread(self._store.load, ident)
        address, home = f"127.0.0.1:{self._hub.port}", self._hub.home
        chat = _Chat(conversation, HubTools(address, lambda: secrets_store.read(home), "tabhub-panel"))
        known = self._chats.setdefault(conversation.id, chat)  # two messages at once are of one conversation
        idle = [each for each in self._chats.values() if each.loop is None and each is not known]
        for old in idle[: max(len(self._chats) - _AT_ONCE, 0)]:
            del self._chats[old.conversation.id]
            if old.opened:
                self._begin(old.tools.close())
        return known

    def _stop(self, _link: ExtensionLink, params: dict[str, Any]) -> dict[str, Any]:
        chat = self._chats.get(_ident(params))
        if chat is None or chat.loop is None:
            return {"stopped": False}
        chat.loop.stop()
        return {"stopped": True}

    async def _list(self, _link: ExtensionLink, _params: dict[str, Any]) -> dict[str, Any]:
        running = {ident for ident, chat in self._chats.items() if chat.loop is not None}
        kept = await asyncio.to_thread(self._store.all)
        return {"conversations": [{**msgspec.to_builtins(each), "running": each.id in running} for each in kept]}

    async def _resume(self, _link: ExtensionLink, params: dict[str, Any]) -> dict[str, Any]:
        chat = await self._chat(_ident(params))
        shown = chat.conversation
        return {
            "conversation": shown.id,
            "title": shown.title,
            "running": chat.loop is not None,
            "messages": [_shown(message) for message in shown.messages],
        }

    def _later(self, work: Callable[[ExtensionLink, dict[str, Any]], Coroutine[Any, Any, Any]]) -> Handler:
        return lambda link, params: self._begin(work(link, params))

    def _begin(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, TabhubError):
            log.error("the agent's work failed inside", exc_info=error)


def _tell(link: ExtensionLink, chat: _Chat, event: Event) -> None:
    if link.closed is not None:
        return  # the panel's browser has gone; the work goes on, and is kept
    facts: dict[str, Any] = {"event": type(event).__name__.lower(), **msgspec.to_builtins(event)}
    if not isinstance(event, Spoke):
        facts = _bounded(facts)
    link.notify("agent.event", {"conversation": chat.conversation.id, **facts})


def _shown(message: Message) -> dict[str, Any]:
    """A message as the panel shows it: no pictures, and long results cut."""
    facts = {"role": message.role, "text": message.text}
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


def _ident(params: dict[str, Any]) -> str:
    ident = params.get("conversation")
    if not isinstance(ident, str) or len(ident) != 12:
        raise InvalidParams("`conversation` must be the id of a conversation.", hint="agent.list gives them.")
    return ident
