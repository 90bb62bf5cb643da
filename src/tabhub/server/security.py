"""The parts of the hub that decide who may do what, put together: tokens, permissions, approvals, pins, the panel."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

from tabhub.calls.approvals.inbox import Approvals, Question
from tabhub.calls.approvals.permission_check import PermissionCheck
from tabhub.core.page_tools import PageTool
from tabhub.core.sessions import Session
from tabhub.core.tools import Tool
from tabhub.errors import Unauthorized
from tabhub.server.approval_routes import ApproverKey
from tabhub.server.panel.panel import Panel
from tabhub.store.config_file import set_at
from tabhub.store.pins import PinStore
from tabhub.store.tokens import TokenStore

if TYPE_CHECKING:
    from tabhub.calls.context import Context
    from tabhub.server.hub import Hub


class Trust:
    """Who may do what, in one hub."""

    def __init__(self, hub: Hub) -> None:
        engine = hub.engine
        self._hub = hub
        self.tokens = TokenStore(hub.home)
        self.pins = PinStore(hub.home.root / "pins.json")
        self.key = ApproverKey(hub.home)
        self.approvals = Approvals(
            hub.config,
            limits=engine.limits,
            sessions=hub.sessions,
            book=hub.browsers.book,
            audit=engine.audit,
            clock=engine.clock,
            wall=engine.wall,
            tell=self._tell,
            remember=self._remember,
        )
        self.permits = PermissionCheck(
            hub.config,
            approvals=self.approvals,
            browsers=hub.browsers,
            pin_store=self.pins,
            audit=engine.audit,
            declared=self._declared,
            may_act=hub.binding.require_free,
        )
        engine.permit = self.permits
        engine.hand_over = self._hand_over
        engine.waits.append(self.approvals)
        hub.binding.on_session_end(self.permits.ended)
        self.panel = Panel(hub, self.approvals, self.permits)
        hub.browsers.on_panel(self.panel.methods)

    def take(self) -> None:
        """Settings changed."""
        config = self._hub.config
        self.approvals.take(config)
        self.permits.take(config)
        self._hub.guard.tokens_required = config.require_tokens

    def admit(self, token: str | None) -> str | None:
        """The name of the token a client of the daemon's socket shows; Unauthorized if it needs another."""
        if token is None:
            if self._hub.config.require_tokens:
                raise Unauthorized(
                    "Agents need a token of their own here.",
                    hint="The person makes one with `tabhub token create NAME`; give it in TABHUB_TOKEN.",
                )
            return None
        name = self.tokens.name_of(token.encode("utf-8", "replace"))
        if name is None:
            raise Unauthorized("The token is wrong or was revoked.", hint="Make a new one: tabhub token create NAME")
        return name

    def locked_out(self, token: str | None) -> bool:
        """Whether who came with a token of that name, or with the secret, would not be let in any more."""
        return self._hub.config.require_tokens if token is None else not self.tokens.holds(token)

    def _hand_over(self, ctx: Context, words: str, tab_id: int) -> Awaitable[bool] | None:
        """Ask for a tab of the person's own browser: at one of the hub's there may be nobody."""
        hub = self._hub
        tab = hub.browsers.book.get(tab_id)
        if tab is None or hub.browsers.is_managed(tab.browser_id) or hub.config.skip_permissions:
            return None
        return self._handed_over(ctx, words, tab_id)

    async def _handed_over(self, ctx: Context, words: str, tab_id: int) -> bool:
        question = Question("tab", words, lasting=False)
        return (await self.approvals.confirm(ctx.caller, ctx.call.tool, question, tab_id)).allowed

    def _declared(self, tool: Tool) -> PageTool | None:
        return self._hub.pages.declared(tool)

    def _tell(self, method: str, params: dict[str, Any]) -> None:
        for link in self._hub.browsers.links():
            if link.local:
                link.notify(method, params)

    async def _remember(self, session: Session, tool: Tool, question: Question) -> None:
        """A person allowed a tool for always: for the client whose token it is, else for all."""
        self.permits.pin(tool, question.text)  # before the setting: one without a pin takes the tool as it then is
        whose = ("clients", session.token) if session.token is not None else ()
        path = ("permissions", *whose, tool.source.setting, "tools", question.own_name)
        await asyncio.to_thread(set_at, self._hub.home, path, "auto")
        self._hub.reloading.read_config()
