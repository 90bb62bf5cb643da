"""Reads what the browser gives as a stream (PDF, traces) in pieces that fit a message."""

from __future__ import annotations

import base64
import binascii

from tabhub.browser.driver.page import Page
from tabhub.errors import CommandFailed

_PIECE = 4 * 1024 * 1024


async def read_stream(page: Page, handle: object, most: int, what: str) -> bytes:
    """The whole of a stream, at most `most` bytes; it is closed in any case."""
    if type(handle) is not str or not handle:
        raise CommandFailed(f"invalid response: the browser gave no {what}.")
    pieces: list[bytes] = []
    size = 0
    try:
        while True:
            answer = await page.cdp("IO.read", {"handle": handle, "size": _PIECE})
            piece = _piece(answer, what)
            pieces.append(piece)
            size += len(piece)
            if size > most:
                raise CommandFailed(f"The {what} is larger than {most} bytes and was not taken.")
            if answer.get("eof"):
                return b"".join(pieces)
            if not piece:
                raise CommandFailed(f"invalid response: the {what} ends in the middle.")
    finally:
        page.cdp_nowait("IO.close", {"handle": handle})


def _piece(answer: object, what: str) -> bytes:
    data = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(answer, dict) or type(data) is not str:
        raise CommandFailed(f"invalid response: a piece of the {what} cannot be read.")
    if not answer.get("base64Encoded"):
        return data.encode("utf-8", "replace")
    try:
        return base64.b64decode(data, validate=True)
    except binascii.Error:
        raise CommandFailed(f"invalid response: a piece of the {what} is not base64.") from None
