"""The heartbeat of a link: regular pings, and the end of a link that does not answer them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tabhub.limits import Limits
from tabhub.links.extension import SILENT, ExtensionLink


async def heartbeat(link: ExtensionLink, limits: Limits, detach: Callable[[ExtensionLink], None]) -> None:
    """Ping a link until it ends; close and detach it when nothing is received in time after a ping."""
    unanswered: float | None = None
    next_ping = link.loop.time() + limits.ping_interval
    while link.closed is None:
        due = next_ping if unanswered is None else min(next_ping, unanswered + limits.ping_timeout)
        await asyncio.sleep(max(0.0, due - link.loop.time()))
        now = link.loop.time()
        if unanswered is not None and link.last_seen > unanswered:
            unanswered = None
        if unanswered is not None and now >= unanswered + limits.ping_timeout:
            link.close(SILENT, f"no message received for {now - link.last_seen:.0f} s")
            detach(link)
        elif now >= next_ping:
            link.notify("ping", {})
            unanswered, next_ping = unanswered if unanswered is not None else now, now + limits.ping_interval
