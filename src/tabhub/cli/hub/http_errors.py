"""What an answer that is not a success means to the person, and what to do about it.

Owns the words for each HTTP status; it sends nothing.
"""

from __future__ import annotations

import json

from tabhub.cli.hub.client import not_a_hub
from tabhub.client_errors import CliError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tabhub.cli.hub.client import Answer, Hub


def checked(hub: Hub, answer: Answer) -> Any:
    """The JSON of a successful answer; anything else is raised as the error it is."""
    if 200 <= answer.status < 300:
        return answer.json()
    raise refusal(hub, answer)


def refusal(hub: Hub, answer: Answer) -> CliError:
    """The error an unsuccessful answer stands for."""
    message, hint = _said(answer)
    if answer.status == 401:
        return CliError(
            f"The hub on {hub.address} does not accept the secret in {hub.home}/extension/auth.json.",
            "It may be the hub of another home (TABHUB_HOME), or the secret was rotated while it ran: "
            "`tabhub stop`, then `tabhub start`. `tabhub doctor` tells which.",
        )
    if answer.status == 429:
        wait = answer.headers.get("retry-after")
        return CliError(message or "The hub has had too many requests.", hint or f"Try again in {wait or 60} s.")
    if answer.status == 503 and speaks_json(answer):
        return CliError(
            message or "No browser is connected to the hub.",
            hint
            or "Load the extension into one (`tabhub extension open`), or let the hub start one: `tabhub stop`, then "
            "`tabhub start --launch`.",
        )
    if message is None:
        if answer.status < 400 or not speaks_json(answer):
            return not_a_hub(f"it answered with status {answer.status}")
        return CliError(f"The hub answered with status {answer.status} and no explanation.", "Look at `tabhub logs`.")
    return CliError(message, hint or ("Look at `tabhub logs`." if answer.status >= 500 else None))


def speaks_json(answer: Answer) -> bool:
    """Whether a hub may have said it: even its refusals are JSON."""
    return answer.headers.get("content-type", "").startswith("application/json")


def _said(answer: Answer) -> tuple[str | None, str | None]:
    """Message and hint of an error body: ours, a tool result, a JSON-RPC error, or plain text."""
    try:
        body = json.loads(answer.body)
    except ValueError:
        text = answer.body[:2000].decode("utf-8", "replace").strip()
        plain = answer.headers.get("content-type", "").startswith("text/plain")
        return (text, None) if text and plain else (None, None)
    if not isinstance(body, dict):
        return None, None
    content = body.get("content")
    if isinstance(content, list) and "error" not in body:
        text = "\n".join(c["text"] for c in content if isinstance(c, dict) and isinstance(c.get("text"), str))
        return text or None, None
    error = body.get("error", body)
    if isinstance(error, str):
        return error, _text(body.get("hint"))
    if not isinstance(error, dict):
        return None, None
    data = error.get("data")
    hint = error.get("hint") or (data.get("hint") if isinstance(data, dict) else None)
    return _text(error.get("message")), _text(hint)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
