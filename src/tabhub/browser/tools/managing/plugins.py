"""plugin_list_tabs: which open tabs belong to which site plugin."""

from __future__ import annotations

from collections.abc import Iterable

from tabhub.browser.tool_spec import TAB, Call, PluginSite, hints, object_schema, tool
from tabhub.core.match_patterns import any_matches
from tabhub.core.tabs import Tab
from tabhub.core.tools import ToolResult
from tabhub.errors import NotInBrowser


def known_plugin(call: Call, name: str, more: Iterable[str] = ()) -> None:
    """Raise an error that lists the plugins if there is none with this name."""
    names = sorted({site.name for site in call.box.plugins()} | set(more))
    if name not in names:
        raise NotInBrowser(
            f"There is no plugin named {name[:100]!r}.",
            hint=f"Plugins: {', '.join(names[:50])}." if names else "No plugins are installed.",
        )


PLUGIN_TAB = {
    **TAB,
    "properties": {**TAB["properties"], "ready": {"type": "boolean"}, "instance": {"type": "string"}},
}


@tool(
    "plugin_list_tabs",
    "Tabs of plugins",
    "Lists, for each installed site plugin or for one of them, the open tabs it works on, whether they are ready for "
    "its tools, and which configured instance they show.",
    params={"plugin": {"type": "string", "minLength": 1, "maxLength": 200, "description": "Only this plugin."}},
    output={
        "plugins": {
            "type": "array",
            "items": object_schema(
                {"plugin": "string", "tabs": {"type": "array", "items": PLUGIN_TAB}}, ("plugin", "tabs")
            ),
        }
    },
    annotations=hints(read_only=True, open_world=False),
    on_tab=False,
)
async def list_plugin_tabs(call: Call) -> ToolResult:
    if (wanted := call.args.get("plugin")) is not None:
        known_plugin(call, wanted)
    sites = [site for site in call.box.plugins() if wanted in (None, site.name)]
    return ToolResult.data({"plugins": [{"plugin": site.name, "tabs": _tabs(call, site)} for site in sites]})


def _tabs(call: Call, site: PluginSite) -> list[dict[str, object]]:
    def about(tab: Tab) -> dict[str, object] | None:
        return {} if any_matches(site.patterns, tab.url) else None

    found = [(tab, (site.about or about)(tab)) for tab in call.box.browsers.book]
    return [{**tab.describe(), **more} for tab, more in found if more is not None]


TOOLS = (list_plugin_tabs,)
