"""The requests of the person's panel over the extension link, and of the command line over HTTP.

Owns the form and bounds of these requests. The hub accepts them only from extensions on this machine.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from tabhub.wire.messages import Object, Received

Decision = Literal["allow_once", "allow_session", "allow_always", "deny"]
WiderScope = Literal["every_site", "every_agent"]
Text = Annotated[str, msgspec.Meta(min_length=1, max_length=300)]
OneLine = Annotated[str, msgspec.Meta(max_length=300, pattern=r"^[^\x00-\x1f\x7f-\x9f\u2028-\u202e]*$")]
Level = Literal["off", "ask", "auto"]
ConversationId = Annotated[str, msgspec.Meta(min_length=12, max_length=12)]


class NoParams(Received):
    """A request without parameters."""


# approvals


class ApprovalDecision(Received):
    """What the person decided on a call."""

    decision: Decision
    reason: Annotated[str, msgspec.Meta(max_length=500)] = ""
    wider: list[WiderScope] = []
    """With allow_always: hold on every site, or for every agent, instead of only for this one."""


class ConfirmationResponse(ApprovalDecision, kw_only=True):
    """The decision on one request."""

    id: Text
    by: Literal["panel", "notification"] = "panel"


class OneApproval(Received):
    """A pending approval."""

    id: Text


class GiveTab(Received):
    """A tab of this browser that the person gives to an agent, by the agent's session."""

    session: Text
    tab_id: int


# settings


class ToolPermission(Received):
    """The permission of one tool; null removes it."""

    plugin: Text
    tool: Text
    permission: Level | None


class SourcePermission(Received):
    """The permission of all tools of a source; null removes it."""

    plugin: Text
    permission: Level | None


class SkipPermissions(Received):
    """Whether `ask` counts as `auto` everywhere."""

    skip: bool


class Setting(Received):
    """A setting by its key; null restores the default."""

    key: Text
    value: Any = None


class SiteLevel(Received):
    """What agents, or one, may do on the sites of a pattern; null removes that."""

    pattern: Text
    level: Literal["block", "read", "ask", "act"] | None
    agent: Text | None = None


class OneGrant(Received):
    """A grant to revoke."""

    id: Text


class SensitiveSites(Received):
    """A category of sensitive sites to block; null dismisses the suggestion."""

    category: Text | None


class OnePage(Received):
    """A page the person looks at, and the agent to explain it for."""

    url: Annotated[str, msgspec.Meta(max_length=10_000)]
    agent: Text | None = None


class Explain(Received):
    """A call to explain the permission of."""

    tool: Text
    url: Annotated[str, msgspec.Meta(max_length=10_000)] | None = None
    frame: Annotated[str, msgspec.Meta(max_length=10_000)] | None = None
    agent: Text | None = None


class PluginSettings(Received):
    """Settings of a plugin."""

    plugin: Text
    settings: Object


# sessions, the pause, the audit log


class OneSession(Received):
    """A session by its id."""

    id: Text


class HeldTab(Received):
    """A tab that an agent holds."""

    tab_id: int


class Pause(Received):
    """Stop the agents' calls: `wait` holds new ones, `fail` refuses them."""

    reason: OneLine = ""
    mode: Literal["wait", "fail"] = "wait"


class PauseRequest(Pause):
    """A pause over HTTP, and who asked for it."""

    by: OneLine = ""


class AuditFilter(Received):
    """Which calls to list; of a tool, source, session or client, part of the name is enough."""

    limit: Annotated[int, msgspec.Meta(ge=1)] = 100
    before: str | None = None
    ok: bool | None = None
    tool: str = ""
    source: str = ""
    session: str = ""
    client: str = ""


class PanelOpen(Received):
    """Whether a panel is open, and so is sent what happens."""

    open: bool = False


# plugins


class PluginSearch(Received):
    """Words to search plugins by."""

    query: OneLine


class InstallPlugin(Received):
    """A plugin or package, and its version if not the newest."""

    name: OneLine
    version: OneLine | None = None


class InstalledPlugin(Received):
    """An installed plugin."""

    name: OneLine


class InstalledPackage(Received):
    """An installed plugin by its package."""

    specifier: OneLine


class OpenFolder(Received):
    """A folder to show in the file manager."""

    path: Annotated[str, msgspec.Meta(min_length=1, max_length=4096)]


# external servers


class AddServers(Received):
    """The configuration of external servers: an object, or its JSON."""

    json: str | Object


class OneServer(Received):
    """An external server."""

    name: Text


class ServerSettings(OneServer):
    """Switch an external server, or tools of it."""

    enabled: bool | None = None
    disabled_tools: Annotated[list[str], msgspec.Meta(max_length=2000)] | None = None


# the agent in the panel


class AgentMessage(Received):
    """A message to the agent, in a new conversation if none is named."""

    text: Annotated[str, msgspec.Meta(max_length=20_000, pattern=r"\S")]
    conversation: ConversationId | None = None


class OneConversation(Received):
    """A conversation with the agent."""

    conversation: ConversationId


REQUESTS: dict[str, tuple[type[msgspec.Struct], ...]] = {
    "confirmation.response": (ConfirmationResponse,),
    "approvals.picture": (OneApproval,),
    "approvals.show": (OneApproval,),
    "sessions.give": (GiveTab,),
    "config.getState": (NoParams,),
    "config.setToolPermission": (ToolPermission,),
    "config.setPluginPermission": (SourcePermission,),
    "config.setSkipPermissions": (SkipPermissions,),
    "config.setPluginSettings": (PluginSettings,),
    "config.set": (Setting,),
    "sites.set": (SiteLevel,),
    "sites.suggestion": (SensitiveSites,),
    "grants.revoke": (OneGrant,),
    "sites.page": (OnePage,),
    "sessions.end": (OneSession,),
    "sessions.release": (HeldTab,),
    "hub.pause": (Pause,),
    "hub.resume": (NoParams,),
    "audit.list": (AuditFilter,),
    "panel.watch": (PanelOpen,),
    "plugin.search": (PluginSearch,),
    "plugin.install": (InstallPlugin,),
    "plugin.updateFromRegistry": (InstalledPlugin,),
    "plugin.remove": (InstalledPlugin,),
    "plugin.removeBySpecifier": (InstalledPackage,),
    "plugin.checkUpdates": (NoParams,),
    "folder.open": (OpenFolder,),
    "upstream.add": (AddServers,),
    "upstream.set": (ServerSettings,),
    "upstream.refresh": (OneServer,),
    "upstream.remove": (OneServer,),
    "agent.send": (AgentMessage,),
    "agent.stop": (OneConversation,),
    "agent.list": (NoParams,),
    "agent.resume": (OneConversation,),
    "agent.remove": (OneConversation,),
}
