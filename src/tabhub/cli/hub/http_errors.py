"""Errors for the hub's unsuccessful responses: one message and hint per HTTP status. It sends nothing."""

from __future__ import annotations

import json

from tabhub.cli.hub.client import decode, not_a_hub
from tabhub.client_errors import CliError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tabhub.cli.hub.client import Hub
    from tabhub.net.http_client import Response


def checked(hub: Hub, response: Response) -> Any:
    """The JSON of a successful response; otherwise raises its error."""
    if 200 <= response.status < 300:
        return decode(response)
    raise response_error(hub, response)


def response_error(hub: Hub, response: Response) -> CliError:
    message, hint = _message_and_hint(response)
    if response.status == 401:
        return CliError(
            f"The hub on {hub.address} does not accept the secret in {hub.home}/extension/auth.json.",
            "It may be the hub of another home (TABHUB_HOME), or the secret was rotated while it ran: "
            "`tabhub stop`, then `tabhub start`. `tabhub doctor` shows which.",
        )
    if response.status == 429:
        wait = response.headers.get("retry-after")
        return CliError(message or "Too many requests.", hint or f"Try again in {wait or 60} s.")
    if response.status == 503 and is_json(response):
        return CliError(
            message or "No browser is connected to the hub.",
            hint
            or "Load the extension into a browser (`tabhub extension open`), or let the hub start one: `tabhub stop`, "
            "then `tabhub start --launch`.",
        )
    if message is None:
        if response.status < 400 or not is_json(response):
            return not_a_hub(f"it answered with status {response.status}")
        return CliError(f"The hub answered with status {response.status} and no explanation.", "Look at `tabhub logs`.")
    return CliError(message, hint or ("Look at `tabhub logs`." if response.status >= 500 else None))


def unexpected_form(what: str) -> CliError:
    return CliError(
        f"The hub's {what} is not in the expected form.",
        "CLI and hub may be of different versions. Restart the hub: tabhub stop && tabhub start --background",
    )


def is_json(response: Response) -> bool:
    """Whether a hub may have sent it: its errors are JSON too."""
    return response.headers.get("content-type", "").startswith("application/json")


def _message_and_hint(response: Response) -> tuple[str | None, str | None]:
    """Of an error body: ours, a tool result, a JSON-RPC error, or plain text."""
    try:
        body = json.loads(response.body)
    except ValueError:
        text = response.body[:2000].decode("utf-8", "replace").strip()
        plain = response.headers.get("content-type", "").startswith("text/plain")
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
