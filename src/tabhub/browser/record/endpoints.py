"""The API endpoints of a site, derived from its recorded requests, and the plugin tools they suggest.

Owns grouping requests into endpoints and what follows from them. Pure: it works on recorded requests and page facts.
It reads only the names of headers and cookies, never their values.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

import orjson

from tabhub.browser.record.traffic import Request

_API_KINDS = ("xhr", "fetch", "websocket", "eventsource")
_ID = re.compile(r"^(\d+|[0-9a-f]{8,}|[0-9a-f-]{32,}|[A-Za-z0-9_-]*\d[A-Za-z0-9_-]{11,})$", re.IGNORECASE)
_AUTH = re.compile(r"auth|token|api[-_]?key|csrf|xsrf|session", re.IGNORECASE)
_OPERATION = re.compile(r"\b(query|mutation|subscription)\s+([A-Za-z_]\w{0,80})")
_WORD = re.compile(r"[^a-z0-9]+")
_VERBS = {"GET": "list", "POST": "create", "PUT": "update", "PATCH": "update", "DELETE": "delete"}
_MAX_ENDPOINTS, _MAX_SUGGESTIONS = 60, 12


def endpoints(requests: list[Request]) -> list[dict[str, Any]]:
    """Data requests, one entry per method and path template (`/items/{id}`)."""
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    for request in requests:
        graphql = _graphql(request)
        if request.kind not in _API_KINDS and not graphql:
            continue
        kind = "graphql" if graphql else request.kind
        key = (request.method, _template(request.url), ",".join(graphql))
        entry = found.get(key)
        if entry is None:
            if len(found) >= _MAX_ENDPOINTS:
                continue
            entry = found[key] = {"method": request.method, "url": key[1], "type": kind, "count": 0, "statuses": []}
            query = urlsplit(request.url).query.split("&")[:50]
            if names := sorted({part.partition("=")[0][:60] for part in query if part}):
                entry["parameters"] = names[:20]
            if graphql:
                entry["operations"] = graphql
        entry["count"] += 1
        state = request.status or request.error or "pending"
        if state not in entry["statuses"]:
            entry["statuses"].append(state)
        if request.mime:
            entry["mime"] = request.mime
        if names := sorted({name.lower() for name in request.request_headers if _AUTH.search(name)}):
            entry["authHeaders"] = names
    return list(found.values())


def authentication(page: dict[str, Any], cookies: list[dict[str, Any]], requests: list[Request]) -> dict[str, Any]:
    """Signs of a login: names, never values."""
    schemes, refused = set(), 0
    for request in requests:
        for name, value in request.request_headers.items():
            if name.lower() == "authorization":
                scheme = value.partition(" ")
                schemes.add(scheme[0][:20] if scheme[1] else "custom")
        refused += request.status in (401, 403)
    kept = [*page.get("localStorage", ()), *page.get("sessionStorage", ())]
    facts: dict[str, Any] = {
        "cookies": cookies,
        "sessionCookies": [c["name"] for c in cookies if c.get("httpOnly") or _AUTH.search(c["name"])],
        "storageKeys": [key for key in kept if _AUTH.search(key) or "jwt" in key.lower() or "user" in key.lower()],
        "loginForms": [form for form in page.get("forms", ()) if form.get("login")],
        "oauth": page.get("oauth", []),
        "signInLinks": page.get("signIn", []),
        "csrf": page.get("csrf", []),
        "authorizationSchemes": sorted(schemes),
        "refusedRequests": refused,
    }
    signs = facts["loginForms"] or facts["signInLinks"] or facts["oauth"]
    if page.get("signOut"):
        facts["state"] = "signed in"
    else:
        facts["state"] = "signed out" if signs else "no sign of a login"
    return facts


def suggestions(page: dict[str, Any], found: list[dict[str, Any]]) -> list[dict[str, str]]:
    """Tools that a plugin for the site could offer, and the evidence for each."""
    made: dict[str, dict[str, str]] = {}

    def suggest(name: str, why: str) -> None:
        if name and name not in made and len(made) < _MAX_SUGGESTIONS:
            made[name] = {"name": name, "why": why[:300]}

    for form in page.get("forms", ()):
        fields = ", ".join(field["name"] for field in form.get("fields", ())[:6])
        if form.get("login"):
            continue
        if form.get("search"):
            suggest("search", f"search form to {form.get('action')} ({fields})")
        else:
            name = _name(form.get("name") or form.get("action", ""))
            suggest(f"submit_{name}" if name else "submit_form", f"form to {form.get('action')} ({fields})")
    for entry in found:
        if entry["type"] == "graphql":
            for operation in entry.get("operations", ()):
                suggest(_name(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", operation)), f"GraphQL operation {operation}")
            continue
        if entry["type"] in ("websocket", "eventsource"):
            suggest("watch_updates", f"live updates over {entry['url']}")
            continue
        if not any(type(status) is int and status < 400 for status in entry["statuses"]):
            continue
        what, one = _subject(entry["url"])
        verb = _VERBS.get(entry["method"], "call")
        if what:
            suggest(f"{'get' if verb == 'list' and one else verb}_{what}", f"{entry['method']} {entry['url']}")
    counts = page.get("counts", {})
    if counts.get("tables"):
        suggest("read_table", f"{counts['tables']} table(s) in the page")
    if not made:
        suggest("read_page", "no forms or data requests were seen, only the page's text")
    return list(made.values())


def _subject(url: str) -> tuple[str, bool]:
    """The resource that a path names, and whether it is a single one."""
    parts = [part for part in urlsplit(url).path.split("/") if part]
    one = bool(parts) and parts[-1] == "{id}"
    names = [name for part in parts if part != "{id}" and (name := _name(part)) not in ("", "api", "rest")]
    names = [name for name in names if not re.fullmatch(r"v\d+", name)]
    return (names[-1] if names else "", one)


def _name(text: str) -> str:
    return _WORD.sub("_", text.lower()).strip("_")[:40]


def _template(url: str) -> str:
    split = urlsplit(url)
    path = "/".join("{id}" if _ID.match(part) else part for part in split.path.split("/"))
    return f"{split.scheme}://{split.netloc.rpartition('@')[2]}{path}"[:500]


def _graphql(request: Request) -> list[str]:
    """The operations of a GraphQL request; empty for other requests."""
    body = request.body or ""
    if "graphql" not in urlsplit(request.url).path.lower() and '"query"' not in body[:5000]:
        return []
    try:
        sent = orjson.loads(body)
    except orjson.JSONDecodeError:
        sent = None
    several = sent if isinstance(sent, list) else [sent]
    names = []
    for each in several[:20]:
        if isinstance(each, dict) and isinstance(each.get("query", ""), str):
            found = _OPERATION.search(each.get("query", "")[:5000])
            name = each.get("operationName") or (found[2] if found else "")
            if isinstance(name, str) and name:
                names.append(name[:80])
    return names or (["anonymous"] if "graphql" in request.url.lower() else [])
