"""The assistant in the panel: conversations between the person and a model, while the hub runs.

Owns the panel's `agent.*` methods and the running conversations. It is an agent like any other: it uses the hub's
`/mcp` with its own session and token, and the same permissions apply. Every open panel receives what happens as
`agent.event`. Other agents cannot reach these methods.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from tabhub.core.sessions import Sessions
from tabhub.errors import Busy, SetupError, TabhubError
from tabhub.links.extension import ExtensionLink, Handler
from tabhub.server.panel.open_panels import OpenPanels
from tabhub.server.settings import Settings
from tabhub.store.conversations import Conversation, ConversationStore, Summary
from tabhub.trust.tokens import PANEL
from tabhub.wire.panel import AgentMessage, NoParams, OneConversation

if TYPE_CHECKING:
    from tabhub.agent.loop import Event, Loop
    from tabhub.server.panel.chat import Chat

log = logging.getLogger("tabhub.agent")

_OPEN_CHATS = 8
"""Conversations that keep their session with the hub."""


@dataclass(slots=True, eq=False)
class PanelAgent:
    """The panel's conversations."""

    store: ConversationStore
    port: int
    settings: Settings
    token: str
    """The token of this agent."""
    sessions: Sessions
    panels: OpenPanels
    chats: dict[str, Chat] = field(default_factory=dict)
    _tasks: set[asyncio.Task[Any]] = field(default_factory=set)

    def methods(self) -> dict[str, Handler]:
        return {
            "agent.send": self._send,
            "agent.stop": self._stop,
            "agent.list": self._list,
            "agent.resume": self._resume,
            "agent.remove": self._remove,
        }

    def closing(self) -> None:
        for chat in self.chats.values():
            if chat.loop is not None:
                chat.loop.stop()

    async def stop(self) -> None:
        """Stop, and wait until all conversations are saved."""
        self.closing()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _send(self, link: ExtensionLink, message: AgentMessage) -> dict[str, Any]:
        from tabhub.agent.loop import Loop  # here and below: loaded when the assistant is used
        from tabhub.agent.providers import model_of

        text = message.text
        config = self.settings.current
        model = model_of(config.agent, config.limits, os.environ)
        chat = await self._chat(message.conversation)
        if chat.loop is not None:
            raise Busy("The assistant is still working on this conversation.", hint="Wait for it, or stop it first.")

        def publish(event: Event) -> None:
            self._publish(link, chat, chat.add(event, time.monotonic()))

        loop = Loop(model, chat.tools, chat.conversation, config, publish)
        chat.conversation.changed = time.time()
        self._publish(link, chat, chat.begin(loop, text, time.monotonic()))
        self._start_task(self._run(chat, loop, text, publish))
        return {"conversation": chat.conversation.id}

    async def _run(self, chat: Chat, loop: Loop, text: str, publish: Callable[[Event], None]) -> None:
        from tabhub.agent.loop import Ended

        try:
            if not chat.opened:
                await chat.tools.client.open()
                chat.opened = True
            await loop.run(text)
        except TabhubError as error:
            publish(Ended("failed", error.text()))
        finally:
            chat.end()
            chat.conversation.changed = time.time()
            await asyncio.to_thread(self.store.save, chat.conversation)

    async def _chat(self, ident: str | None) -> Chat:
        from tabhub.agent.hub_tools import HubTools
        from tabhub.mcp.client import McpClient
        from tabhub.server.panel.chat import Chat

        if ident in self.chats:
            return await self._current(self.chats[ident])
        now = time.time()
        if ident is None:
            conversation = Conversation(secrets.token_hex(6), now, now)
        else:
            conversation = await asyncio.to_thread(self.store.load, ident)
        client = McpClient(f"127.0.0.1:{self.port}", lambda: self.token, PANEL)
        chat = Chat(conversation, HubTools(client))
        opened = self.chats.setdefault(conversation.id, chat)  # two messages at once belong to one conversation
        idle = [each for each in self.chats.values() if each.loop is None and each is not opened]
        for old in idle[: max(len(self.chats) - _OPEN_CHATS, 0)]:
            self._drop(old)
        return opened

    async def _current(self, chat: Chat) -> Chat:
        """The chat with its newest conversation, which may have continued in a terminal."""
        if chat.loop is None:
            with suppress(SetupError):  # it was never saved
                saved = await asyncio.to_thread(self.store.load, chat.conversation.id)
                if saved.changed > chat.conversation.changed and chat.loop is None:
                    chat.conversation = saved
        return chat

    def _drop(self, chat: Chat) -> None:
        del self.chats[chat.conversation.id]
        if chat.opened:
            self._start_task(chat.tools.client.close())

    def _stop(self, _link: ExtensionLink, wanted: OneConversation) -> dict[str, Any]:
        chat = self.chats.get(wanted.conversation)
        if chat is None or chat.loop is None:
            return {"stopped": False}
        chat.loop.stop()
        return {"stopped": True}

    async def _list(self, _link: ExtensionLink, _params: NoParams) -> dict[str, Any]:
        listed = {each.id: each for each in await asyncio.to_thread(self.store.all)}
        for chat in self.chats.values():  # a running one may not be saved yet
            here, saved = chat.conversation, listed.get(chat.conversation.id)
            if saved is None or saved.changed < here.changed:
                listed[here.id] = Summary(here.id, here.started, here.changed, here.title)
        running = {ident for ident, chat in self.chats.items() if chat.loop is not None}
        newest = sorted(listed.values(), key=lambda each: -each.changed)
        return {"conversations": [{**msgspec.to_builtins(each), "running": each.id in running} for each in newest]}

    async def _resume(self, _link: ExtensionLink, wanted: OneConversation) -> dict[str, Any]:
        chat = await self._chat(wanted.conversation)
        return chat.snapshot(self._session(chat), time.monotonic())

    async def _remove(self, _link: ExtensionLink, wanted: OneConversation) -> dict[str, Any]:
        ident = wanted.conversation
        chat = self.chats.get(ident)
        if chat is not None and chat.loop is not None:
            raise Busy("The assistant is working on this conversation.", hint="Stop it first.")
        if chat is not None:
            self._drop(chat)
        await asyncio.to_thread(self.store.remove, ident)
        return {"ok": True}

    def _session(self, chat: Chat) -> str | None:
        """The short id of the session, as approvals show it."""
        ident = chat.tools.client.session
        session = self.sessions.get(ident) if ident else None
        return session.short if session is not None else None

    def _publish(self, link: ExtensionLink, chat: Chat, facts: dict[str, Any]) -> None:
        about = {"conversation": chat.conversation.id, "session": self._session(chat)}
        self.panels.notify("agent.event", {**about, **facts}, also=link)

    def _start_task(self, work: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._task_done)

    def _task_done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, TabhubError):
            log.error("a conversation of the assistant failed", exc_info=error)
