"""plugin_analyze_site: framework, login, APIs and possible plugin tools of a site.

The site is opened in its own background tab, which is closed afterwards. Values of cookies, storage and fields are
never read.
"""

from __future__ import annotations

import asyncio
from typing import Any

from tabhub.browser.browser_choice import browser_tool
from tabhub.browser.driver.cdp_values import parse_object, parse_objects, parse_text
from tabhub.browser.driver.frames import script_value
from tabhub.browser.driver.page import Page, ignore_failure, open_tab, validate_url
from tabhub.browser.driver.worlds import call_source
from tabhub.browser.record.endpoints import authentication, endpoints, suggestions
from tabhub.browser.record.visible_records import visible_requests
from tabhub.browser.schemas import boolean, integer, known, list_of, number, text
from tabhub.browser.tool_spec import Call, data_result, with_note
from tabhub.core.tools import ToolResult
from tabhub.errors import CommandFailed, TabFailed
from tabhub.trust.redact import redact

_DEFAULT_WAIT = 3
_OBJECT_LIST = list_of("object")
_STRING_LIST = list_of("string")


@browser_tool(
    "plugin_analyze_site",
    "Analyze a site",
    "Opens a site in a background tab and reports its login, APIs, framework, forms, storage, page tools, and which "
    "tools a plugin could have. Names only, never values of cookies or storage.",
    params={
        "url": text(least=1, most=8192),
        "waitSeconds?": number("After loading (default 3).", least=0, most=15),
        "keepOpen?": boolean("Keep the tab as the session's."),
    },
    output={
        "url": "string",
        "title": "string",
        "tabId?": integer("With keepOpen."),
        "authentication": "object",
        "apis": _OBJECT_LIST,
        "frameworks": _STRING_LIST,
        "forms": _OBJECT_LIST,
        "storage": "object",
        "pageTools?": _OBJECT_LIST,
        "suggestions": _OBJECT_LIST,
        "note?": "string",
    },
    open_world=True,
)
async def analyze_site(call: Call) -> ToolResult:
    args, box = call.args, call.box
    url = validate_url(args["url"], files=box.file_urls)
    call.ctx.sent = True
    tab = await open_tab(box.browsers, group=box.choice.tab_group(call.ctx.session))
    page = Page(box.browsers, box.watch, box.browsers.tab(tab.tab_id), view=call.view)
    call.ctx.visit(tab.tab_id, tab.site)
    keep = False
    try:
        facts = await _analyze(call, page, url)
        keep = args.get("keepOpen", False)
        if keep:
            box.choice.adopt(call.ctx.session, tab.tab_id)
            facts["tabId"] = tab.tab_id
        return data_result(facts)
    finally:
        if not keep and page.link.closed is None:
            page.link.request("closeTab", {"tabId": tab.chrome_id}).add_done_callback(ignore_failure)


async def _analyze(call: Call, page: Page, url: str) -> dict[str, Any]:
    await call.box.watch.wait_watching(page.key)
    try:
        arrived = await page.command("browser_navigate", {"url": url, "waitUntil": "load"})
        note = parse_text(arrived.get("error"), 300)
    except TabFailed:
        raise
    except CommandFailed as error:
        raise CommandFailed(f"{url[:200]} could not be opened: {error.message}", hint=error.hint) from None
    await asyncio.sleep(call.args.get("waitSeconds", _DEFAULT_WAIT))
    record = await call.box.record.refreshed_record(page)
    seen, answer = await asyncio.gather(_scan(page), page.cdp("Network.getCookies"))
    requests = visible_requests(call.view, record, record.traffic.requests)
    cookies = [cookie for cookie in _cookies(answer) if not call.view.hides_host(cookie["domain"])]
    found = endpoints(requests)
    for entry in found:
        entry["url"] = redact(entry["url"])
    storage = {name: seen.get(name, []) for name in ("localStorage", "sessionStorage", "databases")}
    storage["cookies"] = [cookie["name"] for cookie in cookies]
    if seen.get("serviceWorker") is True:
        storage["serviceWorker"] = True
    facts = {
        "url": redact(parse_text(seen.get("url"), 2000)),
        "title": parse_text(seen.get("title"), 200),
        "description": parse_text(seen.get("description"), 300) or None,
        "generator": parse_text(seen.get("generator"), 300) or None,
        "authentication": authentication(seen, cookies, requests),
        "apis": found,
        "frameworks": [word for word in seen.get("frameworks", ()) if isinstance(word, str)],
        "forms": seen.get("forms", []),
        "storage": storage,
        "pageTools": seen.get("tools", []),
        "suggestions": suggestions(seen, found),
    }
    return with_note(known(facts), note)


async def _scan(page: Page) -> dict[str, Any]:
    """What the page's own world shows: frameworks and tools are out of an isolated world's reach."""
    expression = f"(() => {{\n{call_source('analyze', {})}\n}})()"
    script = {"expression": expression, "returnByValue": True, "awaitPromise": True}
    return parse_object(script_value(page, await page.cdp("Runtime.evaluate", script)))


def _cookies(answer: Any) -> list[dict[str, Any]]:
    """Names and flags; values are dropped here."""
    return [
        {
            "name": parse_text(cookie.get("name"), 100),
            "domain": parse_text(cookie.get("domain"), 200),
            **{flag: True for flag in ("httpOnly", "secure", "session") if cookie.get(flag) is True},
        }
        for cookie in parse_objects(parse_object(answer).get("cookies"))[:200]
    ]
