"""browser_notify: a notification on the person's desktop."""

from __future__ import annotations

from tabhub.browser.browser_choice import BROWSER_ID, BrowserCall, browser_tool
from tabhub.browser.schemas import boolean, text
from tabhub.browser.tool_spec import data_result
from tabhub.browser.tools.managing.cookies import web_origin
from tabhub.core.tools import ToolResult
from tabhub.trust.redact import clean

_LONGEST_LINE = 2000


@browser_tool(
    "browser_notify",
    "Notify the person",
    "Shows a notification in your name on the person's desktop. A click on it opens `url`, if any, in a tab in front.",
    params={
        "title": text(least=1, most=200),
        "message": text(most=2000),
        "iconUrl?": text("A picture to show below the text, as a data: address (png, jpeg or webp).", most=200_000)
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
    session, args = call.ctx.session, call.args
    # Characters that hide or turn text could undo what the extension puts in front of it.
    wanted = {
        "agent": clean(session.token or session.name),
        "title": clean(args["title"]),
        "message": "\n".join(clean(line, _LONGEST_LINE) for line in args["message"].split("\n")),
        **call.given("requireInteraction", "url"),
        **({"contextMessage": clean(args["contextMessage"])} if "contextMessage" in args else {}),
        **({"imageUrl": args["iconUrl"]} if "iconUrl" in args else {}),
    }
    answer = await call.run(call.link(), "showNotification", wanted)
    facts = {name: answer[name] for name in ("notificationId", "allowed")}
    if not answer["allowed"]:
        facts["note"] = "The person has switched off notifications of this extension, so it was not shown."
    return data_result(facts)
