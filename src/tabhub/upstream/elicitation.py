"""Questions of external servers to a person: who asks is said with them.

Owns that word. The agent's client shows them as the hub's, which is the only server it knows; a person must not take
what some server behind it wants to know for the hub's own question.
"""

from __future__ import annotations

from typing import Any

from tabhub.core.descriptions import visible

_LONGEST = 4_000


def with_server_name(server: str, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """The params of a question, with the server's name in what the person reads."""
    said = params.get("message")
    if method != "elicitation/create" or not isinstance(said, str):
        return params
    return {**params, "message": f"The external server {server} asks: {visible(said[:_LONGEST])[0]}"}
