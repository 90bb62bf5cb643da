"""The messages between a page's frame and the extension's worker, which the hub never receives.

Owns their form for the published schemas and the extension's types (message_schemas.py).
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from tabhub.wire.messages import Object, received, sent
from tabhub.wire.page_tools import Count, Tools

FROM_FRAME: tuple[type[msgspec.Struct], ...] = (
    received(
        "FrameTools",
        "The frame registers its tools, or the first of them; `declared` is how many it has.",
        type=Literal["register-tools"],
        tools=Tools,
        declared=Count,
        capabilities=Object,
    ),
    received(
        "FrameToolsChanged",
        "All tools of the frame, again.",
        type=Literal["tools-updated"],
        tools=Tools,
        declared=Count,
        capabilities=Object,
    ),
    received(
        "FrameResult", "How a call ended.", type=Literal["tool-result"], request_id=str, success=bool, payload=Any
    ),
    received(
        "FrameProgress",
        "The progress of a call.",
        type=Literal["tool-progress"],
        request_id=str,
        progress=float,
        total=float | None,
        message=str | None,
    ),
    received(
        "FrameQuestion",
        "A tool asks the person for confirmation.",
        type=Literal["confirm-action"],
        confirm_id=str,
        request_id=str,
        tool_name=str,
        message=str,
        details=Any,
    ),
    received(
        "FrameTimer",
        "A request for a FrameWake after that many milliseconds.",
        type=Literal["wake-me"],
        wake_id=int,
        after=float,
    ),
)
TO_FRAME: tuple[type[msgspec.Struct], ...] = (
    sent(
        "FrameCall",
        "Run a tool.",
        type=Literal["execute-tool"],
        request_id=str,
        tool_name=str,
        args=Object,
        extensions=Any,
        _meta=Object | None,
    ),
    sent("FrameCancel", "Stop a call.", type=Literal["cancel-tool"], request_id=str),
    sent(
        "FrameAnswer",
        "The answer to a FrameQuestion.",
        type=Literal["confirm-result"],
        confirm_id=str,
        confirmed=bool,
        reason=str,
    ),
    sent("FrameWake", "A FrameTimer has expired.", type=Literal["wake"], wake_id=int),
    sent("FrameRefused", "This frame may not offer tools.", type=Literal["refused"]),
)
