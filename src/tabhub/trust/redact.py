"""Text for logs: secrets redacted, and untrusted text made safe for one line.

Owns what counts as a secret and what counts as a plain character. Knows nothing of log files. Redact before cutting:
half a secret is not recognised. Every pattern takes time linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

HIDDEN = "[redacted]"

_MARKS = re.compile(
    r"bearer|eyJ|[0-9a-f]{64}|(?:token|secret|password|api_?key)\W|://[^\s/?#@:]{0,200}:[^\s/?#@]{1,500}@",
    re.IGNORECASE,
)
_SECRETS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\b(bearer)(\s+|%20|\+)[A-Za-z0-9._~+/=%-]+", re.IGNORECASE), rf"\1 {HIDDEN}"),
    (re.compile(r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*"), HIDDEN),
    (re.compile(r"(?<![0-9a-fA-F])[0-9a-fA-F]{64,}"), HIDDEN),
    (
        re.compile(
            r"""(?<![a-z0-9])((?:[a-z]+_)?(?:token|secret|password|api_?key)["']?\s*[=:]\s*["']?)(?!\[redacted\])[^\s"'&,;}]+""",
            re.IGNORECASE,
        ),
        rf"\1{HIDDEN}",
    ),
    (re.compile(r"(://[^\s/?#@:]{0,200}:)[^\s/?#@]{1,500}@"), rf"\1{HIDDEN}@"),
)
_LONGEST = 500
_SHORTEST_SECRET = 6


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Replace the given secrets and anything that looks like one: bearer tokens, JWTs, 64 hex digits, `token=…`, the
    password in a URL."""
    for secret in secrets:
        if len(secret) >= _SHORTEST_SECRET:
            text = text.replace(secret, HIDDEN)
    if _MARKS.search(text):
        for pattern, instead in _SECRETS:
            text = pattern.sub(instead, text)
    return text


def clean(text: str, limit: int = _LONGEST) -> str:
    """The text as one safe line: control, invisible and direction-changing characters escaped, the rest cut."""
    if len(text) <= limit and text.isprintable():
        return text
    out: list[str] = []
    room = limit
    for place, character in enumerate(text):
        shown = character if character.isprintable() else character.encode("unicode_escape").decode()
        if len(shown) > room:
            return f"{''.join(out)}… ({len(text) - place} more)"
        out.append(shown)
        room -= len(shown)
    return "".join(out)
