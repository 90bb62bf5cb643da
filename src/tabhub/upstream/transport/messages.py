"""Parsing the messages of external servers.

Owns the one leniency: a lone surrogate, as JavaScript servers send when they cut text inside a character, becomes a
replacement character. Everything else that is not a message is refused.
"""

from __future__ import annotations

import re

import mcp_types as types

_HALVES = re.compile(
    rb"\\\\"  # a backslash that is written out; what follows it is text
    rb"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a whole character
    rb"|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)


def read_message(data: bytes | str) -> types.JSONRPCMessage:
    """ValueError if it is not a message."""
    try:
        return types.jsonrpc_message_adapter.validate_json(data, by_name=False)
    except ValueError:
        raw = data.encode() if isinstance(data, str) else data
        whole = _HALVES.sub(lambda found: rb"\ufffd" if found[1] else found[0], raw)
        if whole == raw:
            raise
        return types.jsonrpc_message_adapter.validate_json(whole, by_name=False)
