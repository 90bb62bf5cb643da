"""Storage tools: local and session storage of a page, and the names of its databases and caches."""

from __future__ import annotations

from typing import Any

from tabhub.browser.driver.frames import main_frame
from tabhub.browser.driver.page import Page
from tabhub.browser.schemas import boolean, integer, rows, text
from tabhub.browser.tool_spec import Call, tool, with_note
from tabhub.core.tools import ToolResult
from tabhub.errors import CommandFailed

_MAX_KEYS_NAMED = 20


@tool(
    "browser_get_storage",
    "Read the page's storage",
    "Returns local or session storage of the page's origin, all of it or one key; for indexedDB and cache only names. "
    "Values may be secrets.",
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
)
async def get_storage(call: Call) -> ToolResult:
    page, kind, key = await call.page(), call.args.get("storageType", "local"), call.args.get("key")
    found = await _run(page, {"kind": kind, "key": key})
    items = [_item(item) for item in found.get("items") or [] if isinstance(item, dict)]
    total = found["total"] if type(found.get("total")) is int else len(items)
    if key is not None and not items:
        names = [str(name)[:100] for name in found.get("names") or []][:_MAX_KEYS_NAMED]
        there = f"Keys there: {', '.join(names)}." if names else "It is empty."
        raise CommandFailed(f"{found.get('origin')} has no {key[:200]!r} in its {kind} storage.", hint=there)
    facts: dict[str, Any] = {
        "tabId": page.tab_id,
        "origin": str(found.get("origin"))[:2000],
        "storageType": kind,
        "items": items,
        "total": total,
    }
    notes = []
    if total > len(items):
        notes.append(f"{total - len(items)} more keys are left out; request one by its key.")
    if cut := sum("length" in item for item in items):
        notes.append(f"{cut} long values are truncated; request one by its key.")
    return ToolResult.data(with_note(facts, *notes))


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
    found = await _run(page, query)
    origin = str(found.get("origin"))[:2000]
    return ToolResult.data({"tabId": page.tab_id, "origin": origin, "replaced": found.get("replaced") is True})


async def _run(page: Page, query: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = await (await main_frame(page)).evaluate("storage", query)
    why, kind = found.get("failed"), query["kind"]
    if why is None:
        return found
    where = f"{str(found.get('url'))[:200]} in tab {page.tab_id}"
    if why == "QuotaExceededError":
        raise CommandFailed(
            f"The {kind} storage of {found.get('origin')} is full; the value was not set.",
            hint="Remove keys that are not needed (value: null).",
        )
    if found.get("opaque") is True:
        raise CommandFailed(
            f"The page {where} has an opaque origin (sandboxed, data: or about:blank) and no {kind} storage.",
            hint="Navigate to a page of the site first (browser_navigate_tab).",
        )
    raise CommandFailed(
        f"The {kind} storage of {where} cannot be used: {str(why)[:100]}: {str(found.get('message'))[:300]}",
        hint="It is available over https and on localhost, unless the person blocks site data.",
    )


def _item(item: dict[str, Any]) -> dict[str, Any]:
    entry: dict[str, Any] = {"key": str(item.get("key", "")), "value": str(item.get("value", ""))}
    if type(item.get("length")) is int:
        entry["length"] = item["length"]
    return entry
