"""Cookie tools, and clearing site data.

Cookie values are secrets: they appear in answers and nowhere else.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from tabhub.browser.browser_choice import BROWSER_ID, MORE, BrowserCall, browser_tool, pick_fields
from tabhub.browser.schemas import list_of, number, rows, text
from tabhub.browser.tool_spec import data_result
from tabhub.core.origins import origin_of
from tabhub.core.tools import ToolResult
from tabhub.errors import CommandFailed, InvalidArguments, PermissionDenied

_COOKIE_WITHOUT_VALUE = {
    **dict.fromkeys(("name", "domain", "path"), "string"),
    **dict.fromkeys(("secure?", "httpOnly?", "session?", "hostOnly?"), "boolean"),
    "sameSite?": "string",
    "expirationDate?": "number",
    "partition?": "string",
}
_COOKIE = {**_COOKIE_WITHOUT_VALUE, "value": "string"}
_URL = text("A page that is sent the cookies.", least=1, most=10_000)
_NAME = text(least=1, most=4096)
_SETTABLE = ("url", "name", "value", "domain", "path", "secure", "httpOnly", "expirationDate")
_KINDS = {
    "cookies": "cookies of the whole site and its subdomains",
    "localStorage": "local storage",
    "cache": "the HTTP cache and script caches",
    "indexedDB": "IndexedDB",
    "serviceWorkers": "service workers",
}


def web_origin(given: str, field: str) -> str:
    origin = origin_of(given)
    if origin is None or not origin.startswith("http"):
        raise InvalidArguments(
            f"{field} must be a full http or https URL, not {given[:200]!r}.",
            hint="Use a URL such as https://example.com.",
        )
    return origin


def _hidden_cookies() -> PermissionDenied:
    return PermissionDenied("These cookies are of a site that the person keeps agents off; nothing was changed.")


@browser_tool(
    "browser_get_cookies",
    "Read cookies",
    "Returns the cookies sent to `url`, including HttpOnly. Values are the person's secrets.",
    params={"url": _URL, "name?": {**_NAME, "description": "Only cookies with this name."}, "browserId?": BROWSER_ID},
    output={"cookies": rows(_COOKIE), "more?": MORE},
    read_only=True,
)
async def get_cookies(call: BrowserCall) -> ToolResult:
    call.ctx.visit(None, web_origin(call.args["url"], "url"))
    return data_result(await call.list_rows("getCookies", call.given("url", "name"), "cookies", _COOKIE))


@browser_tool(
    "browser_set_cookie",
    "Set a cookie",
    "Sets a cookie for the site of `url`, replacing one of the same name, domain and path. Without `expirationDate` "
    "it is a session cookie.",
    params={
        "url": _URL,
        "name": _NAME,
        "value": text(most=4096),
        "domain?": text("Includes subdomains.", least=1, most=300),
        "path?": text("Default: that of url.", least=1, most=1024),
        "secure?": "boolean",
        "httpOnly?": "boolean",
        "expirationDate?": number("Seconds since 1970.", least=0, most=1e12),
        "browserId?": BROWSER_ID,
    },
    output=_COOKIE_WITHOUT_VALUE,
    destructive=True,
    idempotent=True,
)
async def set_cookie(call: BrowserCall) -> ToolResult:
    call.ctx.visit(None, web_origin(call.args["url"], "url"))
    if call.view.hides_host(call.args.get("domain", "")):
        raise _hidden_cookies()
    try:
        kept = await call.run(call.link(), "setCookie", call.given(*_SETTABLE))
    except CommandFailed as error:
        raise CommandFailed(
            error.message,
            hint="domain must be the host of url or above it; secure cookies and names that begin with __Secure- or "
            "__Host- need https; name and value must not contain ; or control characters, nor exceed 4096 bytes "
            "together; expirationDate must be in the future (browser_delete_cookies deletes).",
        ) from None
    return data_result(pick_fields(kept, _COOKIE_WITHOUT_VALUE))


@browser_tool(
    "browser_delete_cookies",
    "Delete cookies",
    "Deletes the cookies with one name that are sent to `url`.",
    params={"url": _URL, "name": _NAME, "browserId?": BROWSER_ID},
    output={"name": "string", "deleted": "integer", "note?": "string"},
    destructive=True,
    idempotent=True,
)
async def delete_cookies(call: BrowserCall) -> ToolResult:
    call.ctx.visit(None, web_origin(call.args["url"], "url"))
    if call.view.active and any(
        map(call.hides_row, await call.items("getCookies", "cookies", call.given("url", "name")))
    ):
        raise _hidden_cookies()
    answer = await call.run(call.link(), "deleteCookies", call.given("url", "name"))
    facts = {"name": call.args["name"], "deleted": answer["deleted"]}
    if not answer["deleted"]:
        left = await call.items("getCookies", "cookies", call.given("url"))
        names = ", ".join(sorted({cookie["name"] for cookie in call.visible_rows(left)})[:20])
        facts["note"] = f"No cookie had that name. {f'There are: {names}.' if names else 'There are no cookies.'}"
    return data_result(facts)


@browser_tool(
    "browser_clear_site_data",
    "Clear a site's data",
    "Deletes a site's data in the browser: the kinds set to true, or all if none is given. This logs the person out. "
    "Cookies are deleted for the whole site and its subdomains.",
    params={
        "origin": text("Such as https://example.com.", least=1, most=2000),
        **dict.fromkeys((f"{kind}?" for kind in _KINDS), "boolean"),
        "browserId?": BROWSER_ID,
    },
    output={"origin": "string", "cleared": list_of("string"), "note": "string"},
    destructive=True,
    idempotent=True,
)
async def clear_site_data(call: BrowserCall) -> ToolResult:
    origin = web_origin(call.args["origin"], "origin")
    given = call.given(*_KINDS)
    wanted = [kind for kind in _KINDS if given.get(kind, not any(given.values()))]
    if not wanted:
        raise InvalidArguments("Nothing to clear.", hint=f"Set one of {', '.join(_KINDS)} to true.")
    if "cookies" in wanted and call.view.hides_near(urlsplit(origin).hostname or ""):
        raise PermissionDenied(
            f"The cookies of {origin} may belong to a site that the person keeps agents off, too; nothing was cleared.",
            hint="Clear the other kinds, or use browser_delete_cookies for single cookies.",
        )
    call.ctx.visit(None, origin)
    answer = await call.run(call.link(), "clearSiteData", {"origin": origin, **dict.fromkeys(wanted, True)})
    cleared = [kind for kind in _KINDS if kind in answer.get("cleared", ())]
    note = f"Cleared for {origin}: {'; '.join(_KINDS[kind] for kind in cleared)}. Reload its open pages to see it."
    return data_result({"origin": origin, "cleared": cleared, "note": note})
