"""Calls that disturb other sessions: they change the data of a site where another works, or restart its browser."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tabhub.core.leases import Lease
from tabhub.core.origins import origin_of, share_cookies
from tabhub.core.sessions import Session
from tabhub.core.tools import Tool
from tabhub.links.browsers import Browsers
from tabhub.trust.redact import clean

_RESTARTS = frozenset({"extension_reload", "extension_force_reconnect"})
"""Tools that fail all calls that run in a browser."""
_SITE_DATA = {"browser_set_cookie": "url", "browser_delete_cookies": "url", "browser_clear_site_data": "origin"}
"""Tools that change what a site stores in the browser, and the argument that names the site."""
DISTURBING = _RESTARTS.union(_SITE_DATA)


def disturbance(
    session: Session,
    tool: Tool,
    arguments: Mapping[str, Any],
    browsers: Browsers,
    held_by_others: Callable[[Session], list[Lease]],
) -> str:
    """How a call of one of these tools would disturb other sessions, for the person; empty if it would not."""
    named = _SITE_DATA.get(tool.name)
    own = browsers.book.get(session.tab) if session.tab is not None else None
    chosen = arguments.get("browserId") or (own.browser_id if own is not None else None)
    browser_id = chosen or browsers.default_link().browser_id
    held = [(lease, browsers.book.get(lease.tab)) for lease in held_by_others(session)]
    here = [(lease, tab) for lease, tab in held if tab is not None and tab.browser_id == browser_id]
    if named is not None:
        site = origin_of(str(arguments[named]))
        here = [(lease, tab) for lease, tab in here if share_cookies(tab.origin, site)]
    if not here:
        return ""
    clients = ", ".join(dict.fromkeys(clean(lease.holder.client, 60) for lease, _ in here[:5]))
    if named is None:
        return f"{tool.name} fails every call that runs in the browser, where {clients} works."
    return f"{tool.name} changes what {site} has stored in the browser, and {clients} works there."
