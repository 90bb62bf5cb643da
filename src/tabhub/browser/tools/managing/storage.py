"""Storage tools: local and session storage of a page, and the names of its databases and caches."""

from __future__ import annotations

from typing import Any

from tabhub.browser.driver.frames import main_frame
from tabhub.browser.driver.page import Page
from tabhub.browser.schemas import boolean, integer, rows, text
from tabhub.browser.tool_spec import Call, data_result, tool
from tabhub.core.tools import ToolResult
from tabhub.errors import CommandFailed
from tabhub.trust.redact import redact_value


@tool(
    "browser_get_storage",
    "Read the page's storage",
    "Returns local or session storage of the page's origin, all of it or one key; for indexedDB and cache only names. "
    "Known secrets are redacted.",
    params={
        "storageType?": {"enum": ["local", "session", "indexedDB", "cache"], "description": "Default local."},
        "key?": text("Only this one.", most=10_000),
    },
    output={
        "tabId": "integer",
        "origin": "string",
        "storageType": "string",
        "items": rows({"key": "string", "value": "string", "length?": integer("Of the full value, if truncated.")}),
        "total": integer("How many there are."),
        "note?": "string",
    },
    read_only=True,
    repeats_page=True,
)
async def get_storage(call: Call) -> ToolResult:
    page, kind, key = await call.page(), call.args.get("storageType", "local"), call.args.get("key")
    found = await _run(page, {"kind": kind, "key": key})
    origin, total = found["origin"], found["total"]
    items = [{**item, "value": redact_value(item["key"], item["value"])} for item in found["items"]]
    if key is not None and not items:
        there = f"Keys there: {', '.join(found['names'])}." if found["names"] else "It is empty."
        raise CommandFailed(f"{origin} has no {key[:200]!r} in its {kind} storage.", hint=there)
    facts = {"tabId": page.tab_id, "origin": origin, "storageType": kind, "items": items, "total": total}
    notes = []
    if total > len(items):
        notes.append(f"{total - len(items)} more keys are left out; request one by its key.")
    if cut := sum("length" in item for item in items):
        notes.append(f"{cut} long values are truncated; request one by its key.")
    return data_result(facts, *notes)


@tool(
    "browser_set_storage",
    "Write the page's storage",
    "Sets one key of the page's local or session storage; null removes it. The page gets no event.",
    params={
        "storageType": {"enum": ["local", "session"]},
        "key": text(most=10_000),
        "value": {"type": ["string", "null"], "maxLength": 2_000_000},
    },
    output={"tabId": "integer", "origin": "string", "replaced": boolean("Whether the key was there before.")},
    destructive=True,
    idempotent=True,
)
async def set_storage(call: Call) -> ToolResult:
    page, args = await call.page(), call.args
    query = {"kind": args["storageType"], "key": args["key"], "write": True, "value": args["value"]}
    page.require_site()
    found = await _run(page, query)
    return data_result({"tabId": page.tab_id, "origin": found["origin"], "replaced": found["replaced"]})


async def _run(page: Page, query: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = await (await main_frame(page)).evaluate("storage", query)
    if "failed" not in found:
        return found
    why, kind, where = found["failed"], query["kind"], f"{found['url'][:200]} in tab {page.tab_id}"
    if why == "QuotaExceededError":
        raise CommandFailed(
            f"The {kind} storage of {found['origin']} is full; the value was not set.",
            hint="Remove keys that are not needed (value: null).",
        )
    if found["opaque"]:
        raise CommandFailed(
            f"The page {where} has an opaque origin (sandboxed, data: or about:blank) and no {kind} storage.",
            hint="Navigate to a page of the site first (browser_navigate_tab).",
        )
    raise CommandFailed(
        f"The {kind} storage of {where} cannot be used: {why}: {found['message']}",
        hint="It is available over https and on localhost, unless the person blocks site data.",
    )
