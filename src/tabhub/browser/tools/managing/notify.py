"""browser_notify: a notification on the person's desktop."""

from __future__ import annotations

from tabhub.browser.browser_choice import BROWSER_ID, BrowserCall, browser_tool
from tabhub.browser.schemas import boolean, text
from tabhub.browser.tool_spec import data_result
from tabhub.browser.tools.managing.cookies import web_origin
from tabhub.core.tools import ToolResult


@browser_tool(
    "browser_notify",
    "Notify the person",
    "Shows a notification on the person's desktop. A click on it opens `url`, if given, in a tab in front.",
    params={
        "title": text(least=1, most=200),
        "message": text(most=2000),
        "iconUrl?": text("A picture as a data: address (png, jpeg or webp); without it, our own.", most=200_000)
        | {"pattern": "^data:image/(png|jpeg|webp);base64,[A-Za-z0-9+/=]+$"},
        "requireInteraction?": boolean("Keep it until the person has seen to it."),
        "contextMessage?": text("A line below, in small letters.", most=200),
        "url?": text("An http or https address.", least=1, most=10_000),
        "browserId?": BROWSER_ID,
    },
    output={
        "notificationId": "string",
        "allowed": boolean("Whether the browser's notifications are switched on."),
        "note?": "string",
    },
)
async def notify(call: BrowserCall) -> ToolResult:
    if "url" in call.args:
        web_origin(call.args["url"], "url")
    wanted = call.given("title", "message", "iconUrl", "requireInteraction", "contextMessage", "url")
    answer = await call.run(call.link(), "showNotification", wanted)
    facts = {name: answer[name] for name in ("notificationId", "allowed")}
    if not answer["allowed"]:
        facts["note"] = "The person has switched off notifications of this extension, so it was not shown."
    return data_result(facts)
