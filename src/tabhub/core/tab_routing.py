"""Which tab a call of a page or plugin tool goes to, and whether the call may be retried."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from tabhub.core.tabs import Tab
from tabhub.errors import LinkLost, NotConnected, PluginToolFailed, TabhubError, TabNotFound


class Candidate(NamedTuple):
    """A tab that a call may go to."""

    tab_id: int
    used: float
    """When it was used or updated last."""
    ready: bool = True


def best_tab(
    candidates: Iterable[Candidate],
    tab: Callable[[int], Tab | None],
    held: Callable[[int], bool] = lambda _: False,
) -> Candidate:
    """The tab to call. Preferred are, in this order: a ready tab, the caller's own, the active tab of the focused
    window, an active tab, a tab in the focused window, the tab used last."""

    def rank(candidate: Candidate) -> tuple[bool, bool, bool, bool, bool, float, int]:
        known = tab(candidate.tab_id)
        active = known is not None and known.active
        focused = known is not None and known.window_focused
        own = held(candidate.tab_id)
        return candidate.ready, own, active and focused, active, focused, candidate.used, -candidate.tab_id

    return max(candidates, key=rank)


def site_url(origin: str, cached_url: str | None) -> str | None:
    """The URL to open when no tab has a site's tools: where they were last seen, else its front page."""
    if cached_url is not None:
        return cached_url
    return f"{origin}/" if origin.startswith(("http://", "https://")) else None


def never_sent(error: TabhubError) -> bool:
    """Whether the page certainly never received the call."""
    if isinstance(error, TabNotFound):
        return (error.data or {}).get("sent") is False
    return isinstance(error, NotConnected | LinkLost | PluginToolFailed) and error.outcome == "not_sent"


def may_retry(error: TabhubError, *, repeatable: bool) -> bool:
    """Whether a call that failed may be retried: if it never reached the page, or is repeatable."""
    lost = isinstance(error, TabNotFound | LinkLost) or error.outcome == "unknown"
    return never_sent(error) or (repeatable and lost)
