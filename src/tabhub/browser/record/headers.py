"""Redaction of headers and bodies shown to agents: credentials are masked.

Owns which headers carry secrets and which part stays visible. Text is redacted by the same rules as logs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tabhub.trust.redact import HIDDEN, redact

_SECRET = re.compile(r"token|secret|passw|api[-_]?key|credential|session|csrf|xsrf|signature|auth", re.IGNORECASE)
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9-]{1,20}) +\S")
_PLAIN = ("www-authenticate", "proxy-authenticate", "authority", ":authority", "sec-websocket-version")
_STRUCTURED = re.compile(r"json|x-www-form-urlencoded|multipart/form-data", re.IGNORECASE)


def redact_headers(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: redact_header(name, value) for name, value in headers.items()}


def redact_header(name: str, value: str) -> str:
    """One header value: cookies keep their names, an authorization keeps its scheme."""
    low = name.lower()
    if low == "cookie":
        return "; ".join(f"{cookie}={HIDDEN}" for cookie in cookie_names(value))
    if low == "set-cookie":
        return "\n".join(_cookie_set(line) for line in value.split("\n"))
    if low in _PLAIN or not _SECRET.search(low):
        return redact(value)
    found = _SCHEME.match(value) if low.endswith("authorization") else None
    return f"{found[1]} {HIDDEN}" if found else HIDDEN


def cookie_names(value: str) -> list[str]:
    return [name for part in value.split(";") if (name := part.partition("=")[0].strip())]


def _cookie_set(line: str) -> str:
    cookie, mark, attributes = line.partition(";")
    return f"{cookie.partition('=')[0].strip()}={HIDDEN}{mark}{attributes}"


def redact_body(text: str, mime: str) -> str:
    """A body; only data (JSON, forms) is redacted, not pages or scripts."""
    return redact(text) if not mime or _STRUCTURED.search(mime) else text
