"""Error replies of a browser, as errors of the hub."""

from __future__ import annotations

from typing import Any

from tabhub.errors import (
    CallCancelled,
    CommandFailed,
    InvalidParams,
    PluginToolFailed,
    TabhubError,
    TabNotFound,
    TabStopped,
)
from tabhub.wire.extension_link import DispatchError, ErrorReply
from tabhub.wire.messages import convert

_MAX_MESSAGE = 2000
_MAX_CODE = 100
_CATEGORIES = ("auth", "rate_limit", "not_found", "validation", "internal", "timeout", "unavailable")
_HINTS = {
    "auth": "The person has to sign in on that page first.",
    "unavailable": "The page is not ready: it may be loading, or the person has to sign in.",
}


def unusable(method: str, why: str) -> CommandFailed:
    """The error for a reply that arrived and cannot be used."""
    return CommandFailed(
        f"invalid response: the browser's reply to {method} cannot be used: {why}",
        hint="The command ran in the browser; only its reply is lost. Ask for less, or update the extension.",
    )


def failure(method: str, error: Any) -> TabhubError:
    """The typed error for a browser's error reply."""
    try:
        reply = convert("error", error, ErrorReply)
    except InvalidParams as problem:
        return unusable(method, problem.message)
    code, message = reply.code, reply.message[:_MAX_MESSAGE]
    data = reply.data if isinstance(reply.data, dict) else {}
    if method == "tool.dispatch" and "category" in data:
        return _dispatch_failed(message, data)
    if code == -32001:
        sent = data.get("sent")
        return TabNotFound(message, data={"sent": sent} if type(sent) is bool else None)
    if code == -32017:
        return TabStopped(data["tabId"] if type(data.get("tabId")) is int else -1)
    if code == -32010:
        return CallCancelled("The browser stopped the command: it was cancelled.")
    if code == -32601:
        return CommandFailed(
            f"The extension does not know the command {method}: {message}",
            hint="Update the extension: `tabhub extension path` prints where the current one is.",
        )
    return CommandFailed(message, data={"browserCode": code})


def _dispatch_failed(message: str, data: dict[str, Any]) -> PluginToolFailed:
    """A plugin's own error. Plugins write it, so a field of the wrong form is dropped rather than the whole error."""
    fields: dict[str, Any] = {}
    for name, value in data.items():
        try:
            convert("error.data", {name: value}, DispatchError)
        except InvalidParams:
            continue
        fields[name] = value
    error = convert("error.data", fields, DispatchError)
    category = error.category if error.category in _CATEGORIES else "internal"
    facts: dict[str, Any] = {"retryable": error.retryable}
    if error.code is not None and error.code.isprintable():
        facts["pluginCode"] = error.code[:_MAX_CODE]
    hint = _HINTS.get(category)
    if error.retry_after_ms is not None:
        facts["retryAfterMs"] = round(error.retry_after_ms)
        hint = f"Call again in {max(round(error.retry_after_ms / 1000, 1), 0.1):g} s."
    elif error.retryable:
        hint = hint or "It may work when called again."
    return PluginToolFailed(message, category=category, sent=error.sent, data={**facts, "sent": error.sent}, hint=hint)
