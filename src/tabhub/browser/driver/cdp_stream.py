"""Reads CDP streams (PDF, traces) in chunks that fit a message."""

from __future__ import annotations

import base64
import binascii

from tabhub.browser.driver.page import Page
from tabhub.errors import CommandFailed

_CHUNK = 4 * 1024 * 1024


async def read_stream(page: Page, handle: object, limit: int, what: str) -> bytes:
    """The whole stream, at most `limit` bytes; it is closed in any case."""
    if type(handle) is not str or not handle:
        raise CommandFailed(f"invalid response: the browser returned no {what}.")
    chunks: list[bytes] = []
    size = 0
    try:
        while True:
            answer = await page.cdp("IO.read", {"handle": handle, "size": _CHUNK})
            chunk = _decode_chunk(answer, what)
            chunks.append(chunk)
            size += len(chunk)
            if size > limit:
                raise CommandFailed(f"The {what} is larger than {limit} bytes and was not read.")
            if answer.get("eof"):
                return b"".join(chunks)
            if not chunk:
                raise CommandFailed(f"invalid response: the {what} is truncated.")
    finally:
        page.cdp_nowait("IO.close", {"handle": handle})


def _decode_chunk(answer: object, what: str) -> bytes:
    data = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(answer, dict) or type(data) is not str:
        raise CommandFailed(f"invalid response: a chunk of the {what} cannot be read.")
    if not answer.get("base64Encoded"):
        return data.encode("utf-8", "replace")
    try:
        return base64.b64decode(data, validate=True)
    except binascii.Error:
        raise CommandFailed(f"invalid response: a chunk of the {what} is not base64.") from None
