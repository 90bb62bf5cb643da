"""browser_notify: a notification on the person's desktop."""

from __future__ import annotations

from tabhub.browser.browser_choice import BROWSER_ID, choose_link, given_args, pick_fields, run_command
from tabhub.browser.tool_spec import Call, hints, tool
from tabhub.core.tabs import origin_of
from tabhub.core.tools import ToolResult
from tabhub.errors import InvalidArguments


@tool(
    "browser_notify",
    "Notify the person",
    "Shows a notification on the person's desktop. A click on it opens `url`, if given, in a tab in front.",
    params={
        "title": {"type": "string", "minLength": 1, "maxLength": 200},
        "message": {"type": "string", "maxLength": 2000},
        "iconUrl": {
            "type": "string",
            "maxLength": 200_000,
            "pattern": "^data:image/(png|jpeg|webp);base64,[A-Za-z0-9+/=]+$",
            "description": "A picture as a data: address (png, jpeg or webp); without it, our own.",
        },
        "requireInteraction": {"type": "boolean", "description": "Keep it until the person has seen to it."},
        "contextMessage": {"type": "string", "maxLength": 200, "description": "A line below, in small letters."},
        "url": {"type": "string", "minLength": 1, "maxLength": 10_000, "description": "An http or https address."},
        "browserId": BROWSER_ID,
    },
    required=("title", "message"),
    output={
        "notificationId": "string",
        "allowed": {"type": "boolean", "description": "Whether the browser's notifications are switched on."},
        "note": "string",
    },
    annotations=hints(open_world=False),
    on_tab=False,
)
async def notify(call: Call) -> ToolResult:
    url = call.args.get("url")
    if url is not None and not (origin_of(url) or "").startswith("http"):
        raise InvalidArguments(f"url must be a full http or https address, not {url[:200]!r}.")
    names = ("title", "message", "iconUrl", "requireInteraction", "contextMessage", "url")
    answer = await run_command(call, choose_link(call), "showNotification", given_args(call, *names))
    facts = pick_fields(answer, {"notificationId": "string", "allowed": "boolean"})
    if facts.get("allowed") is False:
        facts["note"] = "The person has switched off notifications of this extension, so it was not shown."
    return ToolResult.data(facts)


TOOLS = (notify,)
