r"""Parsing the messages of external servers.

Owns the one leniency: a lone surrogate, as JavaScript servers send when they cut text inside a character, becomes a
replacement character. Everything else that is not a message is refused.
"""

from __future__ import annotations

import re

import mcp_types as types

_ESCAPES = re.compile(
    rb"(?P<incomplete>\\(?:u[0-9a-fA-F]{0,4}(?:\\(?:u[0-9a-fA-F]{0,3})?)?)?\Z)"  # the next chunk decides
    rb"|\\\\"  # a backslash that is written out; what follows it is text
    rb"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a whole character
    rb"|(?P<lone>\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)


class SurrogateFilter:
    """Replaces lone surrogates in JSON that arrives in chunks."""

    def __init__(self) -> None:
        self.rest = b""
        """The beginning of an escape at the end of the last chunk."""

    def feed(self, chunk: bytes) -> bytes:
        data, self.rest = self.rest + chunk, b""
        return _ESCAPES.sub(self._replace, data) if b"\\" in data else data

    def _replace(self, found: re.Match[bytes]) -> bytes:
        if found["incomplete"]:
            self.rest = found[0]
            return b""
        return rb"\ufffd" if found["lone"] else found[0]


def replace_surrogates(data: bytes) -> bytes:
    surrogates = SurrogateFilter()
    return surrogates.feed(data) + surrogates.rest


def read_message(data: bytes) -> types.JSONRPCMessage:
    """ValueError if it is not a message."""
    try:
        return types.jsonrpc_message_adapter.validate_json(data, by_name=False)
    except ValueError:
        return types.jsonrpc_message_adapter.validate_json(replace_surrogates(data), by_name=False)
