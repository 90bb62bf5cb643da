"""Network throttling tools."""

from __future__ import annotations

from typing import Any, Final

from tabhub.browser.schemas import number
from tabhub.browser.tab_overrides import Override
from tabhub.browser.tool_spec import Call, tool, with_note
from tabhub.core.tools import ToolResult
from tabhub.errors import InvalidArguments

OVERRIDE_NAME = "throttling"
_KBIT = 1000 / 8
_PRESETS: Final[dict[str, tuple[float, float, float]]] = {
    "offline": (0, 0, 0),
    "slow-3g": (2000, 400 * _KBIT, 400 * _KBIT),
    "3g": (562, 1440 * _KBIT, 675 * _KBIT),
    "slow-4g": (150, 1600 * _KBIT, 750 * _KBIT),
    "4g": (60, 9000 * _KBIT, 4500 * _KBIT),
    "wifi": (10, 30_000 * _KBIT, 15_000 * _KBIT),
}
_UNLIMITED = {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
_RATE = number("Bytes per second.", least=1, most=1e9)


@tool(
    "browser_throttle_network",
    "Throttle the network",
    "Throttles the tab's network, or sets it offline, until browser_clear_network_throttle or the end of the session.",
    params={
        "preset?": {"enum": list(_PRESETS)},
        "latency?": number("Milliseconds.", least=0, most=60_000),
        "downloadThroughput?": _RATE,
        "uploadThroughput?": _RATE,
    },
    output={
        "tabId": "integer",
        "offline": "boolean",
        "latency": "number",
        "downloadThroughput": number("-1: no limit."),
        "uploadThroughput": "number",
        "note?": "string",
    },
    idempotent=True,
)
async def throttle_network(call: Call) -> ToolResult:
    args = call.args
    own: dict[str, Any] = {name: args[name] for name in _UNLIMITED if name in args}
    if not own and "preset" not in args:
        raise InvalidArguments(
            "No throttling is given.", hint=f"Give latency, throughput or a preset: {', '.join(_PRESETS)}."
        )
    conditions: dict[str, Any] = dict(_UNLIMITED)
    if "preset" in args:
        latency, down, up = _PRESETS[args["preset"]]
        conditions.update(latency=latency, downloadThroughput=down, uploadThroughput=up)
        conditions["offline"] = args["preset"] == "offline"
    conditions |= own
    page = await call.page()
    lost = call.box.network_overrides.pop_lost_note(page)
    command = ("Network.emulateNetworkConditions", conditions)
    description = f"the network is throttled ({args.get('preset', 'own values')})"
    change = Override(call.ctx.session, description, undo=((command[0], _UNLIMITED),), frame_commands=(command,))
    await call.box.network_overrides.apply(page, OVERRIDE_NAME, change, (command,))
    return ToolResult.data(with_note({"tabId": page.tab_id, **conditions}, lost))


@tool(
    "browser_clear_network_throttle",
    "End throttling",
    "Restores the tab's full network speed.",
    output={"tabId": "integer", "cleared": "boolean", "note?": "string"},
    idempotent=True,
)
async def clear_network_throttle(call: Call) -> ToolResult:
    page = await call.page()
    lost = call.box.network_overrides.pop_lost_note(page)
    cleared = await call.box.network_overrides.remove(page, OVERRIDE_NAME)
    facts: dict[str, Any] = {"tabId": page.tab_id, "cleared": cleared}
    if not cleared:
        facts["note"] = lost or "The network of this tab was not throttled."
    return ToolResult.data(facts)


TOOLS = (throttle_network, clear_network_throttle)
