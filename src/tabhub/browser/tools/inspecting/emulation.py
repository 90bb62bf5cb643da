"""Emulation tools: device, geolocation, media features, vision. Overrides end with their session."""

from __future__ import annotations

from typing import Any

from tabhub.browser.driver.frames import main_frame
from tabhub.browser.driver.page import Page
from tabhub.browser.schemas import boolean, closed_object, integer, list_of, number, text
from tabhub.browser.tab_overrides import Command, Override
from tabhub.browser.tool_spec import Call, data_result, tool
from tabhub.core.tools import ToolResult
from tabhub.errors import InvalidArguments

_OUTPUT = {"tabId": "integer", "active": list_of("string", "All active overrides of the tab."), "note?": "string"}
_FEATURE = {
    "enum": [
        "media",
        "prefers-color-scheme",
        "prefers-reduced-motion",
        "prefers-contrast",
        "prefers-reduced-transparency",
        "prefers-reduced-data",
        "forced-colors",
        "color-gamut",
    ]
}
_VALUE = {"type": "string", "maxLength": 40, "pattern": "^[a-z0-9-]*$"}
_VISION = ("none", "blurredVision", "reducedContrast", "achromatopsia", "deuteranopia", "protanopia", "tritanopia")


@tool(
    "browser_emulate_device",
    "Emulate a device",
    "Emulates a device: screen size, pixel density, touch and mobile layout, user agent. Lasts until "
    "browser_clear_emulation or the end of the session; the browser window is unchanged.",
    params={
        "width": integer("In CSS pixels.", least=1, most=10_000),
        "height": integer(least=1, most=10_000),
        "deviceScaleFactor?": number("Default: unchanged.", least=0.1, most=10),
        "mobile?": boolean("Touch and mobile layout (default false)."),
        "userAgent?": {"type": "string", "minLength": 1, "maxLength": 500, "pattern": "^[ -~]+$"},
    },
    output=_OUTPUT,
    idempotent=True,
)
async def emulate_device(call: Call) -> ToolResult:
    args, page = call.args, await call.page()
    width, height, ratio = args["width"], args["height"], args.get("deviceScaleFactor", 0)
    mobile, agent = args.get("mobile", False), args.get("userAgent", "")
    screen = {"width": width, "height": height, "deviceScaleFactor": ratio, "mobile": mobile}
    # The visible size is not set: a background tab would not get it back.
    screen |= {"screenWidth": width, "screenHeight": height, "dontSetVisibleSize": True}
    touch = {"enabled": mobile, **({"maxTouchPoints": 5} if mobile else {})}
    user_agent = ("Emulation.setUserAgentOverride", {"userAgent": agent})
    commands: tuple[Command, ...] = (
        ("Emulation.setDeviceMetricsOverride", screen),
        ("Emulation.setTouchEmulationEnabled", touch),
        user_agent,
    )
    undo: tuple[Command, ...] = (
        ("Emulation.clearDeviceMetricsOverride", {}),
        ("Emulation.setTouchEmulationEnabled", {"enabled": False}),
        ("Emulation.setUserAgentOverride", {"userAgent": ""}),
    )
    description = f"device {width} x {height}{f' at {ratio:g}' if ratio else ''}"
    description += f"{', mobile' if mobile else ''}{f', as {agent[:80]}' if agent else ''}"
    await call.box.emulation.apply(
        page, "device", Override(call.ctx.session, description, undo, (user_agent,)), commands
    )
    note = "The site sees the user agent after the next load: use browser_reload_tab." if agent else ""
    return _active(call, page, note)


@tool(
    "browser_set_geolocation",
    "Set the geolocation",
    "Sets the geolocation for pages with permission. Only the person grants that permission; the result says whether "
    "the page has it.",
    params={
        "latitude": number(least=-90, most=90),
        "longitude": number(least=-180, most=180),
        "accuracy?": number("In metres (default 10).", least=0, most=1_000_000),
    },
    output={**_OUTPUT, "permission": text("granted, prompt, denied or unavailable")},
    idempotent=True,
)
async def set_geolocation(call: Call) -> ToolResult:
    args, page = call.args, await call.page()
    place = {"latitude": args["latitude"], "longitude": args["longitude"], "accuracy": args.get("accuracy", 10)}
    command, undo = ("Emulation.setGeolocationOverride", place), "Emulation.clearGeolocationOverride"
    await _apply(call, page, "position", f"position {place['latitude']:g}, {place['longitude']:g}", command, (undo, {}))
    permission = await (await main_frame(page)).evaluate("permission", {"name": "geolocation"})
    state = str(permission.get("state"))[:40]
    notes = {
        "granted": "",
        "unavailable": "Geolocation needs https or localhost; this page cannot use it.",
        "denied": "The person denied this site geolocation; they can change it in the site settings.",
    }
    asks = "The site has no geolocation permission yet: when it asks, the person is asked first."
    unseen = "Browsers give the position only to tabs in view." if permission.get("hidden") else ""
    return _active(call, page, f"{notes.get(state, asks)} {unseen}".strip(), permission=state)


@tool(
    "browser_set_media_features",
    "Set media features",
    "Overrides CSS media features, such as prefers-color-scheme: dark or media: print. Replaces earlier ones; an empty "
    "object ends it.",
    params={
        "features": {
            "description": 'An object such as {"prefers-color-scheme": "dark"}, or a list of {name, value}.',
            "oneOf": [
                {"type": "object", "propertyNames": _FEATURE, "additionalProperties": _VALUE},
                list_of(closed_object({"name": _FEATURE, "value": _VALUE}), most=20),
            ],
        }
    },
    output=_OUTPUT,
    idempotent=True,
)
async def set_media_features(call: Call) -> ToolResult:
    """One override for all features; an unknown value is an error and removes it."""
    given, page = call.args["features"], await call.page()
    wanted = dict(given) if isinstance(given, dict) else {str(item["name"]): item["value"] for item in given}
    wanted = {name: str(value) for name, value in wanted.items() if value}
    if not wanted:
        await call.box.emulation.remove(page, "media")
        return _active(call, page)
    media = wanted.pop("media", "")
    features = [{"name": name, "value": value} for name, value in wanted.items()]
    description = ", ".join([*([f"media {media}"] if media else []), *map(": ".join, wanted.items())])
    command = ("Emulation.setEmulatedMedia", {"media": media, "features": features})
    await _apply(call, page, "media", description, command, (command[0], {"media": "", "features": []}))
    queries = [*([media] if media else []), *(f"({name}: {value})" for name, value in wanted.items())]
    failed = (await (await main_frame(page)).evaluate("unmatched_media", {"queries": queries})).get("failed")
    if failed:
        await call.box.emulation.remove(page, "media")
        raise InvalidArguments(
            f"The browser does not know {', '.join(str(query)[:100] for query in failed)}; nothing is overridden now.",
            hint="Values are those of CSS, e.g. prefers-color-scheme: dark or light; prefers-reduced-motion: reduce.",
        )
    return _active(call, page)


@tool(
    "browser_emulate_vision_deficiency",
    "Emulate vision deficiency",
    "Renders the page as with a vision deficiency; browser_screenshot_tab shows it. `none` ends it.",
    params={"type": {"enum": list(_VISION)}},
    output=_OUTPUT,
    idempotent=True,
)
async def emulate_vision_deficiency(call: Call) -> ToolResult:
    kind, page = call.args["type"], await call.page()
    if kind == "none":
        await call.box.emulation.remove(page, "vision")
        return _active(call, page)
    command = ("Emulation.setEmulatedVisionDeficiency", {"type": kind})
    await _apply(call, page, "vision", f"vision {kind}", command, (command[0], {"type": "none"}))
    return _active(call, page)


@tool(
    "browser_clear_emulation",
    "End emulation",
    "Ends all emulation in a tab: device, geolocation, media features, vision, forced pseudo states.",
    output={"tabId": "integer", "cleared": list_of("string"), "note?": "string"},
    idempotent=True,
)
async def clear_emulation(call: Call) -> ToolResult:
    page = await call.page()
    cleared = await call.box.emulation.clear(page)
    lost = call.box.emulation.pop_lost_note(page)
    note = lost if cleared or lost else "Nothing was emulated."
    return data_result({"tabId": page.tab_id, "cleared": cleared}, note)


async def _apply(call: Call, page: Page, name: str, description: str, command: Command, undo: Command) -> None:
    """Apply an override that is one command, the same in every frame."""
    override = Override(call.ctx.session, description, (undo,), (command,))
    await call.box.emulation.apply(page, name, override, (command,))


def _active(call: Call, page: Page, note: str = "", **more: Any) -> ToolResult:
    overrides = call.box.emulation
    active = [override.description for override in overrides.active(page).values()]
    facts = {"tabId": page.tab_id, "active": active, **more}
    return data_result(facts, overrides.pop_lost_note(page), note)
