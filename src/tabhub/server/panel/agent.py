"""The agent in the panel: conversations the person has with a model there, while the hub runs.

Owns the panel's `agent.*` methods and the conversations at work. It is an agent like any other: it uses the
hub's own `/mcp` with a session and a token of its own and the same permissions; approvals come to the panel. Every open
panel receives what happens as `agent.event`. Agents cannot reach these methods.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import msgspec

from tabhub.agent.hub_tools import HubTools
from tabhub.agent.loop import Bounds, Ended, Event, Loop
from tabhub.agent.providers import model_of
from tabhub.browser.families import CORE
from tabhub.core.sessions import Sessions
from tabhub.errors import Busy, SetupError, TabhubError
from tabhub.links.extension import ExtensionLink, Handler
from tabhub.server.panel.chat import Chat
from tabhub.server.panel.open_panels import OpenPanels
from tabhub.server.settings import Settings
from tabhub.store.conversations import Conversation, ConversationStore, Summary
from tabhub.store.tokens import PANEL, TokenStore
from tabhub.wire.panel import AgentMessage, NoParams, OneConversation

log = logging.getLogger("tabhub.agent")

_AT_ONCE = 8
"""Conversations that keep their session with the hub."""


class PanelAgent:
    """The panel's conversations."""

    def __init__(
        self,
        store: ConversationStore,
        port: int,
        settings: Settings,
        tokens: TokenStore,
        sessions: Sessions,
        panels: OpenPanels,
    ) -> None:
        self._store = store
        self._port = port
        self._settings = settings
        self._sessions = sessions
        self._panels = panels
        self._token = tokens.create_temporary(PANEL)
        self._chats: dict[str, Chat] = {}
        self._tasks: set[asyncio.Task[Any]] = set()

    def methods(self) -> dict[str, Handler]:
        """The methods by name, for links of the person's own extension."""
        return {
            "agent.send": self._send,
            "agent.stop": self._stop,
            "agent.list": self._list,
            "agent.resume": self._resume,
            "agent.remove": self._remove,
        }

    def closing(self) -> None:
        """Stop the work: the hub is shutting down."""
        for chat in self._chats.values():
            if chat.loop is not None:
                chat.loop.stop()

    async def stop(self) -> None:
        """Wait until all conversations are saved."""
        self.closing()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _send(self, link: ExtensionLink, message: AgentMessage) -> dict[str, Any]:
        text = message.text
        config = self._settings.current
        model = model_of(config.agent, config.limits, os.environ)
        chat = await self._chat(message.conversation)
        if chat.loop is not None:
            raise Busy("The agent is still at work in this conversation.", hint="Wait for it, or stop it first.")

        def tell(event: Event) -> None:
            self._tell(link, chat, chat.take(event, time.monotonic()))

        loop = Loop(
            model,
            chat.tools,
            chat.conversation,
            form=config.agent.format,
            bounds=Bounds(config.agent.steps, config.agent.tokens, config.limits.agent_prompt),
            first=frozenset(CORE),
            tell=tell,
        )
        chat.conversation.changed = time.time()
        self._tell(link, chat, chat.begin(loop, text, time.monotonic()))
        self._begin(self._work(chat, loop, text, tell))
        return {"conversation": chat.conversation.id}

    async def _work(self, chat: Chat, loop: Loop, text: str, tell: Callable[[Event], None]) -> None:
        try:
            if not chat.opened:
                await chat.tools.open()
                chat.opened = True
            await loop.run(text)
        except TabhubError as error:
            tell(Ended("failed", error.text()))
        finally:
            chat.end()
            chat.conversation.changed = time.time()
            await asyncio.to_thread(self._store.save, chat.conversation)

    async def _chat(self, ident: str | None) -> Chat:
        if ident in self._chats:
            return await self._current(self._chats[ident])
        now = time.time()
        if ident is None:
            conversation = Conversation(secrets.token_hex(6), now, now)
        else:
            conversation = await asyncio.to_thread(self._store.load, ident)
        chat = Chat(conversation, HubTools(f"127.0.0.1:{self._port}", lambda: self._token, PANEL))
        known = self._chats.setdefault(conversation.id, chat)  # two messages at once are of one conversation
        idle = [each for each in self._chats.values() if each.loop is None and each is not known]
        for old in idle[: max(len(self._chats) - _AT_ONCE, 0)]:
            self._drop(old)
        return known

    async def _current(self, chat: Chat) -> Chat:
        """The conversation may have continued in a terminal meanwhile."""
        if chat.loop is None:
            with suppress(SetupError):  # it was never saved: what is here counts
                kept = await asyncio.to_thread(self._store.load, chat.conversation.id)
                if kept.changed > chat.conversation.changed and chat.loop is None:
                    chat.conversation = kept
        return chat

    def _drop(self, chat: Chat) -> None:
        del self._chats[chat.conversation.id]
        if chat.opened:
            self._begin(chat.tools.close())

    def _stop(self, _link: ExtensionLink, wanted: OneConversation) -> dict[str, Any]:
        chat = self._chats.get(wanted.conversation)
        if chat is None or chat.loop is None:
            return {"stopped": False}
        chat.loop.stop()
        return {"stopped": True}

    async def _list(self, _link: ExtensionLink, _params: NoParams) -> dict[str, Any]:
        listed = {each.id: each for each in await asyncio.to_thread(self._store.all)}
        for chat in self._chats.values():  # a running one may not be saved yet
            talk, kept = chat.conversation, listed.get(chat.conversation.id)
            if kept is None or kept.changed < talk.changed:
                listed[talk.id] = Summary(talk.id, talk.started, talk.changed, talk.title)
        running = {ident for ident, chat in self._chats.items() if chat.loop is not None}
        newest = sorted(listed.values(), key=lambda each: -each.changed)
        return {"conversations": [{**msgspec.to_builtins(each), "running": each.id in running} for each in newest]}

    async def _resume(self, _link: ExtensionLink, wanted: OneConversation) -> dict[str, Any]:
        chat = await self._chat(wanted.conversation)
        return chat.picture(self._session(chat), time.monotonic())

    async def _remove(self, _link: ExtensionLink, wanted: OneConversation) -> dict[str, Any]:
        ident = wanted.conversation
        chat = self._chats.get(ident)
        if chat is not None and chat.loop is not None:
            raise Busy("The agent is at work in this conversation.", hint="Stop it first.")
        if chat is not None:
            self._drop(chat)
        await asyncio.to_thread(self._store.remove, ident)
        return {"ok": True}

    def _session(self, chat: Chat) -> str | None:
        """The session as approvals name it."""
        session = self._sessions.get(chat.tools.session) if chat.tools.session else None
        return session.short if session is not None else None

    def _tell(self, link: ExtensionLink, chat: Chat, facts: dict[str, Any]) -> None:
        about = {"conversation": chat.conversation.id, "session": self._session(chat)}
        self._panels.notify("agent.event", {**about, **facts}, also=link)

    def _begin(self, work: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, TabhubError):
            log.error("the agent's work failed inside", exc_info=error)
