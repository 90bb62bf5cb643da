"""Questions of external servers to a person, marked with the server's name.

The agent's client shows them as the hub's, the only server it knows; a person must not mistake a question of a server
behind it for the hub's own.
"""

from __future__ import annotations

from typing import Any

from tabhub.core.descriptions import visible

_LONGEST = 4_000


def with_server_name(server: str, method: str, params: dict[str, Any]) -> dict[str, Any]:
    message = params.get("message")
    if method != "elicitation/create" or not isinstance(message, str):
        return params
    return {**params, "message": f"The external server {server} asks: {visible(message[:_LONGEST])[0]}"}
