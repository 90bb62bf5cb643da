"""The parts of the hub that decide who may do what, put together: tokens, permissions, approvals, pins, the panel."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from tabhub.calls.approvals.inbox import ApprovalInbox
from tabhub.calls.approvals.memory import ApprovalMemory
from tabhub.calls.approvals.panel import PanelChannel
from tabhub.calls.approvals.permission_check import PermissionCheck
from tabhub.core.page_tools import PageTool
from tabhub.core.tools import Tool
from tabhub.errors import Unauthorized
from tabhub.server.approval_routes import ApproverKey
from tabhub.server.panel.panel import Panel
from tabhub.store.audit import AuditLog
from tabhub.store.config_file import set_at
from tabhub.store.pins import PinStore
from tabhub.store.tokens import TokenStore

if TYPE_CHECKING:
    from tabhub.server.hub import Hub


class Trust:
    """Who may do what, in one hub."""

    def __init__(self, hub: Hub, audit: AuditLog, *, clock: Callable[[], float], wall: Callable[[], float]) -> None:
        self._hub = hub
        self.tokens = TokenStore(hub.home)
        self.pins = PinStore(hub.home.root / "pins.json")
        self.key = ApproverKey(hub.home)
        self.memory = ApprovalMemory(self.pins, self._save_setting)
        self.approvals = ApprovalInbox(
            hub.config,
            limits=hub.limits,
            sessions=hub.sessions,
            book=hub.browsers.book,
            audit=audit,
            clock=clock,
            wall=wall,
            panel=PanelChannel(hub.browsers),
            memory=self.memory,
        )
        self.permission = PermissionCheck(
            hub.config,
            inbox=self.approvals,
            memory=self.memory,
            browsers=hub.browsers,
            audit=audit,
            declared=self._declared,
            require_free=hub.binding.require_free,
        )
        hub.binding.on_session_end(lambda session: self.memory.forget_session(session.id))
        self.panel = Panel(hub, self.approvals, self.permission, self.memory)
        hub.browsers.on_panel(self.panel.methods)

    def apply_settings(self) -> None:
        config = self._hub.config
        self.approvals.apply_settings(config)
        self.permission.apply_settings(config)
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

    def _declared(self, tool: Tool) -> PageTool | None:
        return self._hub.pages.declared(tool)

    async def _save_setting(self, path: tuple[str, ...]) -> None:
        await asyncio.to_thread(set_at, self._hub.home, path, "auto")
        self._hub.reloading.read_config()
