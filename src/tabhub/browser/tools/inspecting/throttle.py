"""Network throttling tools."""

from __future__ import annotations

from typing import Any

from tabhub.browser.schemas import number
from tabhub.browser.tab_overrides import Override
from tabhub.browser.tool_spec import Call, data_result, tool
from tabhub.core.tools import ToolResult
from tabhub.errors import InvalidArguments

OVERRIDE_NAME = "throttling"
_UNLIMITED: dict[str, Any] = {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}


def _preset(latency: int, down: int, up: int) -> dict[str, Any]:
    """Network conditions from milliseconds and kilobits per second."""
    return {"latency": latency, "downloadThroughput": down * 125, "uploadThroughput": up * 125}


_PRESETS = {
    "offline": {**_preset(0, 0, 0), "offline": True},
    "slow-3g": _preset(2000, 400, 400),
    "3g": _preset(562, 1440, 675),
    "slow-4g": _preset(150, 1600, 750),
    "4g": _preset(60, 9000, 4500),
    "wifi": _preset(10, 30_000, 15_000),
}
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
    given = {name: args[name] for name in _UNLIMITED if name in args}
    if not given and "preset" not in args:
        raise InvalidArguments(
            "No throttling is given.", hint=f"Give latency, throughput or a preset: {', '.join(_PRESETS)}."
        )
    conditions = {**_UNLIMITED, **_PRESETS.get(args.get("preset", ""), {}), **given}
    page = await call.page()
    lost = call.box.network_overrides.pop_lost_note(page)
    command = ("Network.emulateNetworkConditions", conditions)
    description = f"the network is throttled ({args.get('preset', 'own values')})"
    override = Override(call.ctx.session, description, undo=((command[0], _UNLIMITED),), frame_commands=(command,))
    await call.box.network_overrides.apply(page, OVERRIDE_NAME, override, (command,))
    return data_result({"tabId": page.tab_id, **conditions}, lost)


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
    note = "" if cleared else lost or "The network of this tab was not throttled."
    return data_result({"tabId": page.tab_id, "cleared": cleared}, note)
