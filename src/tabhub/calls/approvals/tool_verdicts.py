"""The verdicts on tools: what the settings and pins say of each, whatever site a call reaches.

Owns a tool's names in the settings, its kind of action, its definition as its author wrote it, and what is known of all
that, which holds until settings, pins or the tool change.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import NamedTuple
from weakref import WeakKeyDictionary

from tabhub.browser.tools.acting import batch
from tabhub.calls.approvals.disturbance import DISTURBING
from tabhub.calls.approvals.memory import PINNED, ApprovalMemory
from tabhub.calls.call_sites import uses_tab
from tabhub.core.pages.tools import PageTool
from tabhub.core.tools import Tool
from tabhub.errors import PermissionDenied
from tabhub.store.audit import AuditLog
from tabhub.trust import pins
from tabhub.trust.actions import LEASE_TOOLS, kind_of
from tabhub.trust.approvals import Verdict
from tabhub.trust.permissions import Permissions, ToolFacts
from tabhub.trust.verdicts import tool_verdict

log = logging.getLogger("tabhub.permissions")

BATCH = batch.browser_act.tool.name
"""The tool that runs steps of other tools: their settings hold in it."""


class ToolRules(NamedTuple):
    """What the permission check needs of a tool for one agent, whatever the call."""

    verdict: Verdict
    acts_in_tab: bool
    """Whether it acts in the tab that it names, or in its session's."""
    may_disturb: bool
    """Whether it may disturb other sessions."""
    has_steps: bool
    """Whether it runs other tools, whose settings hold in it."""
    is_free: bool
    """Whether it needs no approval unless a site rule or the data-flow guard requires one."""


class Names(NamedTuple):
    """A tool's name in its source and in the settings, and all names it may be set by."""

    own: str
    all: tuple[str, ...]


class ToolVerdicts:
    """The tools of one hub under its settings."""

    def __init__(
        self,
        permissions: Permissions,
        memory: ApprovalMemory,
        audit: AuditLog,
        declared: Callable[[Tool], PageTool | None],
    ) -> None:
        self.permissions = permissions
        self._memory = memory
        self._audit = audit
        self._declared = declared
        self._known: dict[str | None, WeakKeyDictionary[Tool, ToolRules]] = {}
        """By agent and tool, until settings, pins or the tool change; the tools of closed pages are not kept."""
        memory.on_pin(self._known.clear)

    def apply_settings(self, permissions: Permissions) -> None:
        self.permissions = permissions
        self._known.clear()

    def facts(self, tool: Tool) -> ToolFacts:
        reads = tool.read_only and (tool.source.kind != "page" or self.permissions.trust_pages)
        return ToolFacts(tool.name, tool.source.kind, self.kind(tool), reads)

    def kind(self, tool: Tool) -> str:
        """Its kind of action; a page's tool goes by its own name, whichever tab has it."""
        return kind_of(tool.source.kind, self.names(tool).own if tool.source.kind == "page" else tool.name)

    def verdict(self, tool: Tool, client: str | None = None) -> Verdict:
        """What holds for a tool; without `client`, for clients without settings of their own."""
        return self.rules(tool, client).verdict

    def is_off(self, tool: Tool) -> bool:
        """Whether the settings switch the tool off; listings ask this of thousands, so nothing is remembered."""
        if not self.permissions.may_switch_off(tool.source.setting):
            return False
        stated = self.permissions.stated(tool.source.setting, self.names(tool).all)
        return stated is not None and stated.level == "off"

    def rules(self, tool: Tool, client: str | None) -> ToolRules:
        """What holds for a tool when an agent calls it."""
        known = self._known.get(client)
        if known is None:
            known = self._known[client] = WeakKeyDictionary()
        rules = known.get(tool)
        if rules is not None:
            return rules
        own = tool.source.kind == "browser"
        verdict, may_disturb, has_steps = (
            self._look_up(tool, client),
            own and tool.name in DISTURBING,
            tool.name == BATCH,
        )
        rules = known[tool] = ToolRules(
            verdict,
            acts_in_tab=own and not tool.read_only and tool.name not in LEASE_TOOLS and uses_tab(tool),
            may_disturb=may_disturb,
            has_steps=has_steps,
            is_free=verdict.level == "auto" and not may_disturb and not has_steps,
        )
        return rules

    def _look_up(self, tool: Tool, client: str | None) -> Verdict:
        """The verdict from the settings and pins; a tool that is allowed for good is pinned as it is now."""
        source, names = tool.source, self.names(tool)
        stated = self.permissions.stated(source.setting, names.all, client)
        if stated is None or stated.level != "auto" or stated.scope == "default" or source.kind not in PINNED:
            return tool_verdict(self.permissions, self.facts(tool), source.setting, names.all, client)
        definition = self.definition(tool)
        if self._memory.pins.get(source.setting, names.own) is None:
            self._memory.pins.approve(source.setting, names.own, pins.fingerprint(definition), definition)
        return self.changed(tool, definition) or Verdict("auto", own=stated.scope == "tool")

    def changed(self, tool: Tool, definition: str) -> Verdict | None:
        """The verdict on a tool whose definition is not one that was approved."""
        source, fingerprint = tool.source, pins.fingerprint(definition)
        pin = self._memory.pins.get(source.setting, self.names(tool).own)
        if pin is not None and pin.has(fingerprint):
            return None
        log.warning("%s has changed since it was approved; the person is asked again", tool.name)
        approved = pin.fingerprints[-1][:16] if pin is not None else None
        facts = {"of": tool.name, "approved": approved, "now": fingerprint[:16]}
        self._audit.event("definition changed", source, tab_id=None, **facts)
        message = f"{tool.name} is not what was approved: its definition has changed since."
        return Verdict("ask", "pin", message, pins.diff(pin.text, definition) if pin is not None else None)

    def pin(self, tool: Tool) -> None:
        """Approve a tool as it is defined now."""
        if tool.source.kind in PINNED:
            self._memory.pin(tool, self.names(tool).own, self.definition(tool))

    def switched_off(self, tool: Tool) -> PermissionDenied:
        return PermissionDenied(
            f"{tool.name} is switched off by the person who runs this hub.",
            hint=f"They can allow it with: tabhub config set "
            f"permissions.{tool.source.setting}.tools.{self.names(tool).own} auto",
        )

    # tools as settings and pins know them

    def declares(self, tool: Tool) -> bool:
        """Whether a page still offers the tool."""
        return self._declared(tool) is not None

    def names(self, tool: Tool) -> Names:
        key = tool.source.key
        if tool.source.kind == "page":
            declared = self._declared(tool)
            own = declared.name if declared is not None else tool.name
        elif tool.source.kind == "upstream":
            own = tool.name.removeprefix(f"mcp__{key}__")
        else:
            own = tool.name
        return Names(own, (tool.name, own) if own != tool.name else (own,))

    def definition(self, tool: Tool) -> str:
        """The definition of a tool of PINNED as its author wrote it."""
        declared = self._declared(tool) if tool.source.kind == "page" else None
        meta = (tool.meta or {}).get("tabhub/plugin")
        defined = declared if declared is not None else tool
        return pins.definition(
            name=defined.name,
            title=defined.title,
            description=defined.description,
            input_schema=defined.input_schema,
            output_schema=defined.output_schema,
            annotations=defined.annotations,
            version=str(meta.get("version")) if isinstance(meta, Mapping) and tool.source.kind == "plugin" else None,
        )
