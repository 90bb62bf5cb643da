"""Permission for engines that decide nothing themselves: at a relay, the hub or extension at the browser decides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tabhub.calls.held_calls import HeldCalls
from tabhub.calls.protocols import Caller
from tabhub.core.calls import Call
from tabhub.core.sessions import Session
from tabhub.core.tools import Tool
from tabhub.trust.approvals import ALLOWED, Approval, Ask, Outcome


class AllowAll:
    """Allows every call and asks nobody (calls.protocols.Permission)."""

    def __init__(self) -> None:
        self.waits = HeldCalls()

    def check(self, caller: Caller, tool: Tool, arguments: Mapping[str, Any]) -> Outcome:
        return ALLOWED

    async def ask(self, caller: Caller, tool: Tool, arguments: Mapping[str, Any], ask: Ask) -> Approval:
        raise AssertionError("AllowAll asks for no approval")

    def confirm_tab(self, caller: Caller, tool: Tool, message: str, tab_id: int) -> None:
        return None

    def recheck(self, session: Session, tool: Tool) -> None:
        pass

    def call_answered(self, session: Session, call: Call) -> None:
        pass
