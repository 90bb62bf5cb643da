"""What a browser answers when a command fails, as errors of ours."""

from __future__ import annotations

from typing import Any

from tabhub.errors import CallCancelled, CommandFailed, PluginToolFailed, TabhubError, TabNotFound

_LONGEST_MESSAGE = 2000
_LONGEST_CODE = 100
_LONGEST_WAIT = 86_400_000


_CATEGORIES = ("auth", "rate_limit", "not_found", "validation", "internal", "timeout", "unavailable")
_HINTS = {
    "auth": "The person has to sign in on that page first.",
    "unavailable": "The page is not ready for it: it may be loading, or want the person to sign in.",
}


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
    if method == "tool.dispatch" and type(error.get("data")) is dict and "category" in error["data"]:
        return _dispatch_failed(message, error["data"])
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


def _dispatch_failed(message: str, data: dict[str, Any]) -> PluginToolFailed:
    """What a plugin's own error says, as far as it is of the agreed form."""
    category = data["category"] if isinstance(data["category"], str) and data["category"] in _CATEGORIES else "internal"
    facts: dict[str, Any] = {"retryable": data.get("retryable") is True}
    if isinstance(code := data.get("code"), str) and code.isprintable():
        facts["pluginCode"] = code[:_LONGEST_CODE]
    wait = data.get("retryAfterMs")
    hint = _HINTS.get(category)
    if isinstance(wait, int | float) and not isinstance(wait, bool) and 0 <= wait <= _LONGEST_WAIT:
        facts["retryAfterMs"] = round(wait)
        hint = f"Call again in {max(round(wait / 1000, 1), 0.1):g} s."
    elif facts["retryable"]:
        hint = hint or "It may work when called again."
    sent = data.get("sent") is not False
    return PluginToolFailed(message, category=category, sent=sent, data={**facts, "sent": sent}, hint=hint)
