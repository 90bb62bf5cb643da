"""The heartbeat of a link: a ping now and then, and the end of a link that stays silent after one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tabhub.limits import Limits
from tabhub.links.extension import SILENT, ExtensionLink


async def heartbeat(link: ExtensionLink, limits: Limits, detach: Callable[[ExtensionLink], None]) -> None:
    """Ping a link until it ends; close and detach it when it stays silent too long."""
    asked: float | None = None
    next_ping = link.loop.time() + limits.ping_interval
    while link.closed is None:
        due = next_ping if asked is None else min(next_ping, asked + limits.ping_timeout)
        await asyncio.sleep(max(0.0, due - link.loop.time()))
        now = link.loop.time()
        if asked is not None and link.last_seen > asked:
            asked = None
        if asked is not None and now >= asked + limits.ping_timeout:
            link.close(SILENT, f"no sign of life for {now - link.last_seen:.0f} s")
            detach(link)
        elif now >= next_ping:
            link.notify("ping", {})
            asked, next_ping = asked if asked is not None else now, now + limits.ping_interval
