"""Cookie tools, and clearing site data.

Cookie values are secrets: they appear in answers and nowhere else.
"""

from __future__ import annotations

from typing import Any

from tabhub.browser.browser_choice import (
    BROWSER_ID,
    MORE,
    choose_link,
    given_args,
    list_from_browser,
    pick_fields,
    pick_rows,
    query_browser,
    run_command,
)
from tabhub.browser.tool_spec import Call, hints, object_schema, tool
from tabhub.core.tabs import origin_of
from tabhub.core.tools import ToolResult
from tabhub.errors import CommandFailed, InvalidArguments

_FIELDS = {
    "name": "string",
    "value": "string",
    "domain": "string",
    "path": "string",
    "secure": "boolean",
    "httpOnly": "boolean",
    "sameSite": "string",
    "session": "boolean",
    "hostOnly": "boolean",
    "expirationDate": "number",
    "partition": "string",
}
_FIELDS_WITHOUT_VALUE = {name: kind for name, kind in _FIELDS.items() if name != "value"}
_COOKIE = object_schema(_FIELDS, ("name", "value", "domain", "path"))
_URL = {"type": "string", "minLength": 1, "maxLength": 10_000, "description": "A page that is sent the cookies."}
_NAME = {"type": "string", "minLength": 1, "maxLength": 4096}
_KINDS = {
    "cookies": "cookies of the whole site and its subdomains",
    "localStorage": "local storage",
    "cache": "the HTTP cache and script caches",
    "indexedDB": "IndexedDB",
    "serviceWorkers": "service workers",
}


def _web_origin(given: str, field: str) -> str:
    origin = origin_of(given)
    if origin is None or not origin.startswith("http"):
        raise InvalidArguments(
            f"{field} must be a full http or https URL, not {given[:200]!r}.",
            hint="Use a URL such as https://example.com.",
        )
    return origin


@tool(
    "browser_get_cookies",
    "Read cookies",
    "Returns the cookies sent to `url`, including HttpOnly. Values are the person's secrets.",
    params={"url": _URL, "name": {**_NAME, "description": "Only cookies with this name."}, "browserId": BROWSER_ID},
    required=("url",),
    output={"cookies": {"type": "array", "items": _COOKIE}, "more": MORE},
    output_required=("cookies",),
    annotations=hints(read_only=True, open_world=False),
    on_tab=False,
)
async def get_cookies(call: Call) -> ToolResult:
    call.ctx.touch(None, _web_origin(call.args["url"], "url"))
    params = given_args(call, "url", "name")
    return ToolResult.data(await list_from_browser(call, "getCookies", params, "cookies", _FIELDS))


@tool(
    "browser_set_cookie",
    "Set a cookie",
    "Sets a cookie for the site of `url`, replacing one of the same name, domain and path. Without `expirationDate` "
    "it is a session cookie.",
    params={
        "url": _URL,
        "name": _NAME,
        "value": {"type": "string", "maxLength": 4096},
        "domain": {"type": "string", "minLength": 1, "maxLength": 300, "description": "Includes subdomains."},
        "path": {"type": "string", "minLength": 1, "maxLength": 1024, "description": "Default: that of url."},
        "secure": "boolean",
        "httpOnly": "boolean",
        "expirationDate": {"type": "number", "minimum": 0, "maximum": 1e12, "description": "Seconds since 1970."},
        "browserId": BROWSER_ID,
    },
    required=("url", "name", "value"),
    output=object_schema(_FIELDS_WITHOUT_VALUE)["properties"],
    output_required=("name", "domain", "path"),
    annotations=hints(destructive=True, idempotent=True, open_world=False),
    on_tab=False,
)
async def set_cookie(call: Call) -> ToolResult:
    """Returns the stored cookie without its value."""
    call.ctx.touch(None, _web_origin(call.args["url"], "url"))
    try:
        kept = await run_command(call, choose_link(call), "setCookie", given_args(call, *_COOKIE["properties"], "url"))
    except CommandFailed as error:
        raise CommandFailed(
            error.message,
            hint="domain must be the host of url or above it; secure cookies and names that begin with __Secure- or "
            "__Host- need https; name and value must not contain ; or control characters, nor exceed 4096 bytes "
            "together; expirationDate must be in the future (browser_delete_cookies deletes).",
        ) from None
    return ToolResult.data(pick_fields(kept, _FIELDS_WITHOUT_VALUE))


@tool(
    "browser_delete_cookies",
    "Delete cookies",
    "Deletes the cookies with one name that are sent to `url`.",
    params={"url": _URL, "name": _NAME, "browserId": BROWSER_ID},
    required=("url", "name"),
    output={"name": "string", "deleted": "integer", "note": "string"},
    annotations=hints(destructive=True, idempotent=True, open_world=False),
    on_tab=False,
)
async def delete_cookies(call: Call) -> ToolResult:
    origin, link = _web_origin(call.args["url"], "url"), choose_link(call)
    call.ctx.touch(None, origin)
    answer = await run_command(call, link, "deleteCookies", given_args(call, "url", "name"))
    facts: dict[str, Any] = {"name": call.args["name"], **pick_fields(answer, {"deleted": "integer"})}
    if facts.get("deleted") == 0:
        left = pick_rows(
            await query_browser(link, "getCookies", given_args(call, "url")), "cookies", {"name": "string"}
        )
        names = ", ".join(sorted({cookie["name"] for cookie in left if "name" in cookie})[:20])
        facts["note"] = f"No cookie had that name. {f'There are: {names}.' if names else 'There are no cookies.'}"
    return ToolResult.data(facts)


@tool(
    "browser_clear_site_data",
    "Clear a site's data",
    "Deletes a site's data in the browser: the kinds set to true, or all if none is given. This logs the person out. "
    "Cookies are deleted for the whole site and its subdomains.",
    params={
        "origin": {"type": "string", "minLength": 1, "maxLength": 2000, "description": "Such as https://example.com."},
        **{kind: {"type": "boolean"} for kind in _KINDS},
        "browserId": BROWSER_ID,
    },
    required=("origin",),
    output={"origin": "string", "cleared": {"type": "array", "items": {"type": "string"}}, "note": "string"},
    output_required=("origin", "cleared", "note"),
    annotations=hints(destructive=True, idempotent=True, open_world=False),
    on_tab=False,
)
async def clear_site_data(call: Call) -> ToolResult:
    origin = _web_origin(call.args["origin"], "origin")
    given = given_args(call, *_KINDS)
    wanted = [kind for kind in _KINDS if given.get(kind, not any(given.values()) and kind not in given)]
    if not wanted:
        raise InvalidArguments("Nothing to clear.", hint=f"Set one of {', '.join(_KINDS)} to true.")
    call.ctx.touch(None, origin)
    answer = await run_command(
        call, choose_link(call), "clearSiteData", {"origin": origin, **dict.fromkeys(wanted, True)}
    )
    done = answer.get("cleared")
    cleared = [kind for kind in _KINDS if isinstance(done, list) and kind in done]
    note = f"Cleared for {origin}: {'; '.join(_KINDS[kind] for kind in cleared)}. Reload its open pages to see it."
    return ToolResult.data({"origin": origin, "cleared": cleared, "note": note})


TOOLS = (get_cookies, set_cookie, delete_cookies, clear_site_data)
