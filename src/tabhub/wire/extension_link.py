"""The extension link: the envelope of its messages, and everything the extension reports to the hub and back.

Owns the form and bounds of notifications and requests from the extension, and of the hub's notifications. The commands
of the hub are in browser_commands, the messages of page tools in page_tools. Knows no socket and no tab.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Literal

import msgspec

from tabhub.wire import page_tools, panel
from tabhub.wire.messages import Object, Received, Sent, TabId, convert, items_of, sent


class Envelope(msgspec.Struct):
    """The outside of a message whose result is still JSON."""

    jsonrpc: str = ""
    id: Any = None
    method: str | None = None
    result: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    error: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


ENVELOPE: msgspec.json.Decoder[Envelope] = msgspec.json.Decoder(Envelope)


class ErrorReply(Received):
    """Why a command failed."""

    code: int
    message: str
    data: Any = None


class DispatchError(Received):
    """The `data` of a plugin tool's error."""

    category: str = "internal"
    code: str | None = None
    retryable: bool = False
    retry_after_ms: Annotated[float, msgspec.Meta(ge=0, le=86_400_000)] | None = None
    sent: bool = True


# from the extension


class BrowserFacts(Received):
    """What an extension reports about its browser."""

    browser_id: str | None = None
    browser_name: str | None = None
    browser_version: str | None = None
    extension_version: str | None = None
    platform: str | None = None


class ExtensionHello(BrowserFacts):
    """The first message on a connection."""

    managed: bool = False
    """Whether the hub started this browser itself."""


class TabInfo(Received):
    """A tab as its browser describes it."""

    tab_id: TabId
    url: str = ""
    title: str = ""
    active: bool = False
    window_id: int = -1
    window_focused: bool = False
    index: int = -1
    status: str = "complete"
    """loading, complete or unloaded."""
    pinned: bool = False
    incognito: bool = False
    group_id: int = -1
    opener_tab_id: int | None = None
    opener_origin: str | None = None
    """The origin of the frame that opened it, if a frame did."""
    discarded: bool = False
    audible: bool = False
    last_accessed: float | None = None
    stopped: bool = False
    """Whether the person took it from the agents with the browser's own Cancel button."""


Tabs = Annotated[list[Any], items_of(TabInfo)]


class PluginTab(Received):
    """A tab of a plugin, and whether its adapter is ready there."""

    tab_id: TabId
    ready: bool = False


class PluginState(Received):
    """The tabs of one plugin."""

    state: Literal["closed", "unavailable", "ready"]
    tabs: list[PluginTab] = []


class DebuggerState(Received):
    """The tabs the debugger is attached to."""

    attached: list[int]


class TabSyncAll(Received):
    """All tabs of the browser."""

    tabs: Tabs
    plugins: dict[str, PluginState] = {}
    debugger: DebuggerState | None = None


class TabStateChanged(Received):
    """One tab has changed."""

    tab_id: TabId
    change: Literal["created", "updated", "activated", "removed", "replaced"]
    tab: TabInfo | None = None
    removed_tab_id: int | None = None
    """The id the tab had before it was replaced."""


class PluginStateChanged(PluginState, kw_only=True):
    """The tabs of one plugin have changed."""

    plugin: str


class CdpEvent(Received):
    """An event of the Chrome DevTools Protocol."""

    tab_id: TabId
    method: str
    params: Object = {}
    session_id: str | None = None
    """The child session (a frame in another process, a worker) it comes from."""


class CdpDetached(Received):
    """The debugger was detached from a tab."""

    tab_id: TabId
    reason: str


class PluginLogEntry(Received):
    """A line of a plugin's log."""

    plugin: str
    message: str
    level: str = "info"
    ts: str | float | None = None
    data: Any = None


class PluginLog(Received):
    """Lines of plugins' logs."""

    entries: Annotated[list[Any], items_of(PluginLogEntry)]


class LogEntry(Received):
    """A line of the extension's own log."""

    level: str = "error"
    source: str = ""
    message: str = ""
    time: float | None = None
    """Milliseconds since 1970."""


class Nothing(Received):
    """No parameters, or an empty result."""


FROM_EXTENSION: dict[str, tuple[type[msgspec.Struct], ...]] = {
    "extension.hello": (ExtensionHello,),
    "tab.syncAll": (TabSyncAll,),
    "tab.stateChanged": (TabStateChanged, PluginStateChanged),
    "debugger.changed": (DebuggerState,),
    "cdp.event": (CdpEvent,),
    "cdp.detached": (CdpDetached,),
    "browser/registerTools": (page_tools.RegisterTools,),
    "browser/updateTools": (page_tools.UpdateTools,),
    "browser/disconnected": (page_tools.PageDisconnected,),
    "browser/elicitConfirmation": (page_tools.ElicitConfirmation,),
    "tool.progress": (page_tools.ToolProgress,),
    "plugin.request": (page_tools.PluginRequest,),
    "plugin.log": (PluginLog,),
    "log": (LogEntry,),
    "ping": (Nothing,),
    "pong": (Nothing,),
    **panel.REQUESTS,
}
"""The parameters of the extension's notifications and of its panel's requests, in one or two forms."""


def _read_state_changed(params: Object) -> TabStateChanged | PluginStateChanged:
    if "plugin" in params:
        return convert("tab.stateChanged", params, PluginStateChanged)
    return convert("tab.stateChanged", params, TabStateChanged)


READERS: dict[str, Callable[[Object], Any]] = {
    **{method: partial(convert, method, kind=kinds[0]) for method, kinds in FROM_EXTENSION.items()},
    "tab.stateChanged": _read_state_changed,
    "browser/registerTools": page_tools.read_registration,
}
"""By method, what makes its struct of the parameters, or raises InvalidParams."""


def tab_info(value: Any) -> TabInfo:
    return convert("tab", value, TabInfo)


# from the hub


PluginInstance = sent("PluginInstance", "One of several installations of a site.", name=str, url_patterns=list[str])


class Plugin(Sent):
    """A plugin as browsers get it."""

    name: str
    display_name: str
    version: str
    description: str
    url_patterns: list[str]
    exclude_patterns: list[str]
    homepage: str | None
    adapter_hash: str
    tools: list[str]
    adapter_file: str | None = None
    """The adapter in the extension's own folder."""
    adapter_source: str | None = None
    """The adapter itself, where the hub cannot write to that folder."""
    pre_script_file: str | None = None
    icon_svg: str | None = None
    instances: list[PluginInstance] = []  # type: ignore[valid-type]


SyncFull = sent("SyncFull", "All plugins; others are removed from pages.", plugins=list[Plugin])
PluginUpdate = sent("PluginUpdate", "A plugin that is new or has changed.", plugin=Plugin)


class InvocationStart(Sent):
    """A call has begun; sent while a panel is open."""

    call_id: str
    tool: str
    source: str
    session: str
    client: str | None
    token: str | None = None
    tab_id: int | None = None
    what: str = ""
    """What it does, in words."""


InvocationError = sent("InvocationError", "Why a call failed.", message=str, category=str)
InvocationEnd = sent(
    "InvocationEnd", "A call has ended.", call_id=str, ok=bool, duration_ms=float, error=InvocationError | None
)
PanelChanged = sent("PanelChanged", "What an open panel must load again.", what=[str])


class AgentTab(Sent):
    """A tab in which an agent works."""

    tab_id: TabId
    label: str
    """The agent's name."""
    color: str
    doing: str = ""
    """What it does there now."""


class AgentOutline(Sent):
    """An element that an agent works on, in CSS pixels of its tab's viewport."""

    tab_id: TabId
    x: int
    y: int
    width: int
    height: int
    color: str
    long: bool = False
    """Whether the person asked to see it."""


ActiveAgent = sent("ActiveAgent", "An agent that may be given a tab.", session=str, name=str)
AgentWork = sent("AgentWork", "The state of all agents' work.", paused=bool, working=int, agents=[ActiveAgent])
AgentTabs = sent("AgentTabs", "All tabs that show which agent works in them.", tabs=list[AgentTab])


class ConfirmationRequest(Sent):
    """A call that needs approval."""

    id: str
    tool: str
    plugin: str
    source: str
    params: Any
    client: str | None
    session: str
    reason: str
    message: str
    choices: list[str]
    expires_at: float
    """Milliseconds since 1970."""
    agent: str
    """The agent's name."""
    sentence: str
    """What the agent wants to do, as in: Claude Code wants to click "Pay now"."""
    steps: list[str] = []
    """The steps of a batch, or the fields of a form, in order."""
    harmless: bool = False
    """Whether the sentence is enough to allow it: it changes nothing in a page and gives nothing away."""
    pictured: bool = False
    """Whether the element was found, so that there is a picture of it, and it can be shown in its page."""
    changed: str = ""
    """The sentence of the question before, which was withdrawn because the page changed."""
    session_scope: str | None = None
    """What an approval for the session would allow, as in: click and type on shop.example."""
    notify: bool = False
    """Whether to show a notification where no panel is open."""
    token: str | None = None
    tab_id: int | None = None
    title: str | None = None
    url: str | None = None
    origin: str | None = None
    diff: Any = None
    scope: str | None = None
    """What "always" would allow, as a sentence."""
    wider: list[str] = []
    """How that scope may be widened: every_site, every_agent."""


class ConfirmationDone(Sent):
    """An approval was decided, or is no longer needed."""

    id: str
    decision: str | None
    by: str


CancelRequest = sent("CancelRequest", "Stop a request. It is still answered, with -32010.", id=int | str)
Empty = sent("Empty", "No parameters.")


FROM_HUB: dict[str, type[msgspec.Struct] | None] = {
    "cancel": CancelRequest,
    "sync.full": SyncFull,
    "plugin.update": PluginUpdate,
    "tool.invocationStart": InvocationStart,
    "tool.invocationEnd": InvocationEnd,
    "confirmation.request": ConfirmationRequest,
    "confirmation.done": ConfirmationDone,
    "plugins.changed": PanelChanged,
    "panel.changed": PanelChanged,
    "agent.event": None,
    "agents.marks": AgentTabs,
    "agents.outline": AgentOutline,
    "agents.work": AgentWork,
    "pages.settings": page_tools.PageSettings,
    "extension.reload": Empty,
    "ping": Empty,
    "pong": Empty,
}
"""The hub's notifications and their parameters; None for those of a conversation with the agent."""
