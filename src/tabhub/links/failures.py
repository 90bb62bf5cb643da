"""What a browser answers when a command fails, as errors of ours."""

from __future__ import annotations

from typing import Any

from tabhub.errors import CallCancelled, CommandFailed, TabhubError, TabNotFound

_LONGEST_MESSAGE = 2000


def unusable(method: str, why: str) -> CommandFailed:
    """The error for an answer that came and cannot be used."""
    return CommandFailed(
        f"invalid response: the browser's answer to {method} cannot be used: {why}",
        hint="It ran in the browser; only its answer is lost. Ask for less, or update the extension.",
    )


def failure(method: str, error: Any) -> TabhubError:
    """The typed error for what the browser answered."""
    if type(error) is not dict or type(error.get("code")) is not int or type(error.get("message")) is not str:
        return unusable(method, "its error has no whole number `code` and text `message`")
    code, message = error["code"], error["message"][:_LONGEST_MESSAGE]
    if code == -32001:
        data = error.get("data")
        sent = data.get("sent") if type(data) is dict else None
        return TabNotFound(message, data={"sent": sent} if type(sent) is bool else None)
    if code == -32010:
        return CallCancelled("The browser stopped the command: it was cancelled.")
    if code == -32601:
        return CommandFailed(
            f"The extension does not know the command {method}: {message}",
            hint="Update the extension: `tabhub extension path` says where the current one is.",
        )
    return CommandFailed(message, data={"browserCode": code})
