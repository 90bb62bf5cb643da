"""Which tab a page tool's call goes to, and what may be retried: pure decisions, carried out elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Literal

from tabhub.core.page_tools import Frame
from tabhub.core.tabs import Tab
from tabhub.errors import LinkLost, NotConnected, TabhubError, TabNotFound

RetryWhere = Literal["no", "same", "other"]


def best_frame(
    frames: Iterable[Frame],
    tab: Callable[[int], Tab | None],
    without: Collection[int] = (),
    held: Callable[[int], bool] = lambda _: False,
) -> Frame | None:
    """The frame to call: in a tab the caller holds, else in the active tab (the focused window's first), else the
    one updated last."""

    def rank(frame: Frame) -> tuple[bool, bool, bool, float, int]:
        there = tab(frame.tab_id)
        active = there is not None and there.active
        focused = active and there is not None and there.window_focused
        return held(frame.tab_id), focused, active, frame.updated, -frame.tab_id

    return max((frame for frame in frames if frame.tab_id not in without), key=rank, default=None)


def site_url(origin: str, cached_url: str | None) -> str | None:
    """The URL to open when no tab has a site's tools: where they were last seen, else its front page."""
    if cached_url is not None:
        return cached_url
    return f"{origin}/" if origin.startswith(("http://", "https://")) else None


def never_sent(error: TabhubError) -> bool:
    """Whether the page certainly never received the call."""
    if isinstance(error, TabNotFound):
        return (error.data or {}).get("sent") is False
    return isinstance(error, NotConnected | LinkLost) and error.outcome == "not_sent"


def retry_where(error: TabhubError, *, repeatable: bool, exact: bool) -> RetryWhere:
    """Whether a call that failed may be retried, and in which tab.

    A call that never reached the page may; one that did only if it is repeatable. A call that names its tab stays
    there.
    """
    lost = isinstance(error, TabNotFound | LinkLost) or error.outcome == "unknown"
    if never_sent(error) or (repeatable and lost):
        return "same" if exact else "other"
    return "no"
