"""What an action changed in the page, for answers of acting tools with `changes: true`.

Owns when the page is looked at: before the action unless the agent has seen it already, and when the page has reacted.
What changed is what a snapshot with `changes` says.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import orjson

from tabhub.browser.tool_spec import Call
from tabhub.browser.tools.reading.snapshot import has_snapshot, snapshot
from tabhub.errors import TabhubError


@dataclass(frozen=True, slots=True)
class PageChanges:
    """Reads the changes that actions make."""

    max_tokens: int

    async def begin(self, call: Call) -> None:
        """Before the action: take a snapshot to compare with, if the agent has none."""
        with suppress(TabhubError):  # the action itself says what is wrong
            ref = call.box.choice.find_tab(call.ctx.session, call.args.get("tabId"), True)
            if ref is not None and not has_snapshot(call, ref):
                await snapshot.run(self._reading(call, ref.tab.tab_id))

    async def read(self, call: Call) -> str:
        """After the action: the changes, or why they cannot be read."""
        page = call.worked_on
        if page is None or page.browsers.book.get(page.tab_id) is None:
            return ""
        try:
            answer = await snapshot.run(self._reading(call, page.tab_id, changes=True))
        except TabhubError as error:
            return f"[What changed cannot be read: {error.message}]"
        facts = orjson.loads(answer.facts or b"{}")
        return "\n".join(filter(None, (facts["snapshot"], f"[{facts['note']}]" if "note" in facts else "")))

    def _reading(self, call: Call, tab_id: int, *, changes: bool = False) -> Call:
        args = {"tabId": tab_id, "changes": changes, "maxTokens": max(self.max_tokens, 100)}
        return Call(call.box, call.ctx, args, True, call.view)
