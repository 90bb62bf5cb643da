"""Text for logs: secrets redacted, and untrusted text made safe for one line.

Owns what counts as a secret and what counts as a plain character. Knows nothing of log files. Redact before cutting:
half a secret is not recognised. Every pattern takes time linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from tabhub.trust.secret_names import CARD, is_card_number, is_secret_name

HIDDEN = "[redacted]"

_TOKENS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\b(bearer)(\s+|%20|\+)[A-Za-z0-9._~+/=%-]+", re.IGNORECASE), rf"\1 {HIDDEN}"),
    (
        re.compile(r"""(authorization["']?\s{0,3}[:=]\s{0,3}["']?basic\s+)[A-Za-z0-9+/=]+""", re.IGNORECASE),
        rf"\1{HIDDEN}",
    ),
    (re.compile(r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)?"), HIDDEN),
    (re.compile(r"(?<![0-9a-fA-F])[0-9a-fA-F]{64,}"), HIDDEN),
    (
        re.compile(
            r"(?<![A-Za-z0-9])(?:[prs]k_(?:live|test)_[A-Za-z0-9]{8,}|sk-[A-Za-z0-9_-]{20,}|gh[pousr]_[A-Za-z0-9]{20,}"
            r"|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,}|xox[abprs]-[A-Za-z0-9-]{10,}|AKIA[0-9A-Z]{16}"
            r"|AIza[A-Za-z0-9_-]{30,})"
        ),
        HIDDEN,
    ),
    (re.compile(r"(://[^\s/?#@:]{0,200}:)[^\s/?#@]{1,500}@"), rf"\1{HIDDEN}@"),
)
"""Secrets that are recognised by their own form."""
_KEY = re.compile(
    r"""(?<![\w.-])([\w.\[-][\w.\[\]-]{0,79})\\{0,3}["']?\s{0,3}(?:[=:]|%3D)\s{0,3}(?![\s=:]|//)""", re.IGNORECASE
)
"""A name before its value: in URLs, headers, JSON (also inside a JSON string), forms and logs."""
_OPENING = re.compile(r"""(\\{0,3})(["'])""")
_QUOTED = {quote: re.compile(rf"[^{quote}\\]*(?:\\.[^{quote}\\]*)*", re.DOTALL) for quote in "\"'"}
_BARE = re.compile(r"""(?:(?!%26)[^\s"'&,;}<>\\])+""", re.IGNORECASE)
_HARMLESS = ("", "true", "false", "null", "undefined", "none", "{", "[")
_PARAMETER = re.compile(
    rb"([?&#;](?:amp;|u0026)?)([A-Za-z0-9_.\[\]-]{1,60})=(?!\[redacted\])([^&#\s\"'<>\\;,()]{1,5000})"
)
_LONGEST = 500
_SHORTEST_SECRET = 6


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Replace the given secrets and all known kinds of them: the values of names such as `password` and `token`, bearer
    tokens, JWTs, keys of well-known services, 64 hex digits, card numbers, the password in a URL."""
    for secret in secrets:
        if len(secret) >= _SHORTEST_SECRET:
            text = text.replace(secret, HIDDEN)
    for pattern, instead in _TOKENS:
        text = pattern.sub(instead, text)
    return CARD.sub(_card, _redact_named(text))


def redact_url(url: str) -> str:
    """A URL with the secrets of its parameters redacted."""
    return redact(url) if "=" in url or "@" in url else url


def redact_urls(data: bytes) -> bytes:
    """Text with the secrets in the parameters of its URLs redacted, and nothing else."""
    if b"?" in data or b"&" in data or b"#" in data:
        return _PARAMETER.sub(_parameter, data)
    return data


def redact_value(name: str, value: str) -> str:
    """The value of a name: redacted as a whole if the name is that of a secret."""
    return HIDDEN if value and is_secret_name(name) else redact(value)


def redact_arguments(value: Any, concealed: Collection[str] = ()) -> Any:
    """JSON without the values of secret names, the secrets in its texts, and the texts to conceal."""
    if isinstance(value, Mapping):
        return {
            key: HIDDEN
            if isinstance(inner, (str, int, float)) and not isinstance(inner, bool) and is_secret_name(str(key))
            else redact_arguments(inner, concealed)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [redact_arguments(inner, concealed) for inner in value]
    if isinstance(value, str):
        return HIDDEN if value in concealed else redact(value)
    return value


def _redact_named(text: str) -> str:
    """Replace the values of secret names."""
    out: list[str] = []
    copied = at = 0
    while (key := _KEY.search(text, at)) is not None:
        at = key.end()
        if not is_secret_name(key[1]):
            continue
        start, at = _value(text, at)
        if text[start:at].lower() not in _HARMLESS and not text.startswith(HIDDEN, start):
            out += (text[copied:start], HIDDEN)
            copied = at
    return "".join((*out, text[copied:])) if out else text


def _value(text: str, at: int) -> tuple[int, int]:
    """Where the value that begins here starts and ends, without its quotes."""
    opening = _OPENING.match(text, at)
    if opening is None:
        bare = _BARE.match(text, at)
        return at, bare.end() if bare is not None else at
    start = opening.end()
    if opening[1]:  # a string inside a string
        end = text.find(opening[0], start)
        return start, end if end >= 0 else len(text)
    quoted = _QUOTED[opening[2]].match(text, start)
    return start, quoted.end() if quoted is not None else start


def _parameter(found: re.Match[bytes]) -> bytes:
    if not is_secret_name(found[2].decode()):
        return found[0]
    return b"%b%b=%b" % (found[1], found[2], HIDDEN.encode())


def _card(found: re.Match[str]) -> str:
    return HIDDEN if is_card_number(found[0]) else found[0]


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
