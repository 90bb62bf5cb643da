"""Sending a CDP command to a tab without waiting for its result.

Owns the shape of such a command on the link. Commands whose result a tool needs go through `Page.cdp`.
"""

from __future__ import annotations

from asyncio import Future
from typing import Any

from tabhub.links.extension import ExtensionLink


def send_cdp(
    link: ExtensionLink,
    chrome_id: int,
    method: str,
    params: dict[str, Any] | None = None,
    session_id: str | None = None,
) -> Future[Any] | None:
    """Send one command; None if the link is closed. The caller must consume the future's exception."""
    if link.closed is not None:
        return None
    command: dict[str, Any] = {"tabId": chrome_id, "method": method, "params": params or {}}
    if session_id is not None:
        command["sessionId"] = session_id
    return link.request("forwardCDPCommand", command)


def send_cdp_nowait(
    link: ExtensionLink,
    chrome_id: int,
    method: str,
    params: dict[str, Any] | None = None,
    session_id: str | None = None,
) -> None:
    """Send one command and ignore how it ends: for cleanup, and for what only prepares the next command."""
    sent = send_cdp(link, chrome_id, method, params, session_id)
    if sent is not None:
        sent.add_done_callback(ignore_failure)


def ignore_failure(future: Future[Any]) -> None:
    """Done callback that marks an exception as retrieved."""
    if not future.cancelled():
        future.exception()
