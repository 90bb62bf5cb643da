"""Request and response bodies: fetched from the browser on demand, bounded and redacted.

Owns where a body comes from and the reasons for a missing one. It knows no tool.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tabhub.browser.driver.cdp_values import parse_object
from tabhub.browser.driver.page import Page
from tabhub.browser.record import headers
from tabhub.browser.record.traffic import ABANDONED, Request
from tabhub.errors import CommandFailed

PARALLEL = 8
_TEXT = ("text/", "json", "xml", "javascript", "ecmascript", "urlencoded", "graphql", "event-stream", "yaml", "csv")


@dataclass(frozen=True, slots=True)
class Body:
    """A body, or the reason why it is missing."""

    text: str | None = None
    data: bytes | None = None
    """Binary content."""
    reason: str = ""

    @property
    def length(self) -> int:
        """In characters, or in bytes for binary content."""
        return len(self.text if self.text is not None else self.data or b"")

    def masked(self, mask: Callable[[str], str]) -> Body:
        return self if self.text is None else replace(self, text=mask(self.text))

    def preview(self, mime: str, most: int) -> str:
        """As text for an agent: secrets redacted, long text cut, binary content described."""
        if self.text is not None:
            safe = headers.redact_body(self.text, mime)
            return safe if len(safe) <= most else f"{safe[:most]}… ({len(safe) - most} more characters)"
        return f"[{len(self.data)} bytes {mime}".rstrip() + "]" if self.data is not None else f"[{self.reason}]"


def decode_body(content: Any, encoded: bool, mime: str) -> Body:
    if type(content) is not str:
        return Body(reason="the browser returned no body")
    if not encoded:
        return Body(text=content)
    try:
        data = base64.b64decode(content, validate=True)
        is_text = not mime or any(part in mime.lower() for part in _TEXT)
        return Body(text=data.decode()) if is_text else Body(data=data)
    except binascii.Error:
        return Body(reason="the browser returned an unreadable body")
    except UnicodeDecodeError:
        return Body(data=data)


async def response_body(page: Page, request: Request) -> Body:
    if request.captured_body is not None:
        return decode_body(request.captured_body, request.captured_base64, request.mime)
    if request.redirect:
        return Body(reason="a redirect has no body")
    if request.kind == "websocket":
        return Body(reason="a WebSocket; see browser_get_websocket_frames")
    if request.error and not request.status:
        return Body(reason=f"no response: {request.error}")
    if request.ended is None:
        return Body(reason=ABANDONED if request.abandoned else "still loading")
    session, request_id = request.key
    try:
        answer = parse_object(await page.cdp("Network.getResponseBody", {"requestId": request_id}, session))
    except CommandFailed as error:
        return _absent(error)
    return decode_body(answer.get("body"), answer.get("base64Encoded") is True, request.mime)


async def request_body(page: Page, request: Request) -> Body:
    if request.body is not None:
        return Body(text=request.body)
    if not request.has_body:
        return Body(reason="none")
    session, request_id = request.key
    try:
        answer = parse_object(await page.cdp("Network.getRequestPostData", {"requestId": request_id}, session))
    except CommandFailed as error:
        return _absent(error)
    return decode_body(answer.get("postData"), answer.get("base64Encoded") is True, "")


def _absent(error: CommandFailed) -> Body:
    if "larger than" in error.message:
        return Body(reason=f"too large: {error.message.partition('. ')[0]}"[:300])
    return Body(reason=f"no longer available: {error.message}"[:300])
