"""plugin_list_tabs: which open tabs belong to which site plugin."""

from __future__ import annotations

from collections.abc import Iterable

from tabhub.browser.browser_choice import browser_tool
from tabhub.browser.schemas import TAB, rows, text
from tabhub.browser.tool_spec import Call, PluginSite, data_result
from tabhub.core.match_patterns import any_matches, covers_only
from tabhub.core.tabs import Tab
from tabhub.core.tools import ToolResult
from tabhub.errors import NotInBrowser


@browser_tool(
    "plugin_list_tabs",
    "Tabs of plugins",
    "Lists, for each installed site plugin or for one of them, the open tabs it works on, whether they are ready for "
    "its tools, and which configured instance they show.",
    params={"plugin?": text("Only this plugin.", least=1, most=200)},
    output={"plugins": rows({"plugin": "string", "tabs": rows({**TAB, "ready?": "boolean", "instance?": "string"})})},
    read_only=True,
)
async def list_plugin_tabs(call: Call) -> ToolResult:
    if (wanted := call.args.get("plugin")) is not None:
        require_plugin(call, wanted)
    sites = [site for site in visible_plugins(call) if wanted in (None, site.name)]
    return data_result({"plugins": [{"plugin": site.name, "tabs": _tabs(call, site)} for site in sites]})


def visible_plugins(call: Call) -> list[PluginSite]:
    """The plugins that do not work only on sites that the agent is kept off."""
    hides = call.view.hides
    return [site for site in call.box.plugins() if not (call.view.active and covers_only(site.patterns, hides))]


def require_plugin(call: Call, name: str, more: Iterable[str] = ()) -> None:
    hidden = {site.name for site in call.box.plugins()} - {site.name for site in visible_plugins(call)}
    names = sorted(({site.name for site in call.box.plugins()} | set(more)) - hidden)
    if name not in names:
        raise NotInBrowser(
            f"There is no plugin named {name[:100]!r}.",
            hint=f"Plugins: {', '.join(names[:50])}." if names else "No plugins are installed.",
        )


def _tabs(call: Call, site: PluginSite) -> list[dict[str, object]]:
    def matches(tab: Tab) -> dict[str, object] | None:
        return {} if any_matches(site.patterns, tab.url) else None

    found = {tab: more for tab in call.box.browsers.book if (more := (site.about or matches)(tab)) is not None}
    return [{**tab.describe(), **found[tab]} for tab in call.visible_tabs(found)]
