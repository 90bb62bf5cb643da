"""Redaction of headers and bodies shown to agents.

Owns which headers carry secrets and which part stays visible. Text is redacted by the same rules as logs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tabhub.trust.redact import HIDDEN, redact
from tabhub.trust.secret_names import is_secret_name

_SECRET = re.compile(r"token|secret|passw|api[-_]?key|credential|session|csrf|xsrf|signature|auth", re.IGNORECASE)
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9-]{1,20}) +\S")
_PLAIN = ("www-authenticate", "proxy-authenticate", "authority", ":authority", "sec-websocket-version")
_DATA = re.compile(r"json|x-www-form-urlencoded|multipart/form-data|html|xml|text/plain", re.IGNORECASE)
_PART = re.compile(
    r'\bname="([^"\r\n]{1,200})"[^\r\n]{0,200}\r?\n(?:[^\r\n]{1,500}\r?\n){0,8}\r?\n(.*?)(?=\r?\n--|\Z)', re.DOTALL
)
"""A part of a multipart form: its name and its value."""
_ELEMENT = re.compile(r"<([\w:.-]{1,100})>([^<>]{1,5000})(?=</)")
_INPUT = re.compile(r"<(?:input\b[^<>]{1,5000}>|textarea\b[^<>]{1,5000}>[^<]{0,5000})", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"""([\w-]{1,50})\s{0,3}=\s{0,3}(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""")
_SHORTEST_ELSEWHERE = 6
_SECRET_FIELD = re.compile(r"password|one-time-code|cc-(?:number|csc|exp)", re.IGNORECASE)


def redact_headers(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: redact_header(name, value) for name, value in headers.items()}


def redact_header(name: str, value: str) -> str:
    """One header value: cookies keep their names, an authorization keeps its scheme."""
    low = name.lower()
    if low == "cookie":
        return "; ".join(f"{cookie}={HIDDEN}" for cookie in cookie_names(value))
    if low == "set-cookie":
        return "\n".join(_cookie_set(line) for line in value.split("\n"))
    if low in _PLAIN or not (_SECRET.search(low) or is_secret_name(low)):
        return redact(value)
    found = _SCHEME.match(value) if low.endswith("authorization") else None
    return f"{found[1]} {HIDDEN}" if found else HIDDEN


def cookie_names(value: str) -> list[str]:
    return [name for part in value.split(";") if (name := part.partition("=")[0].strip())]


def _cookie_set(line: str) -> str:
    cookie, mark, attributes = line.partition(";")
    return f"{cookie.partition('=')[0].strip()}={HIDDEN}{mark}{attributes}"


def redact_body(text: str, mime: str) -> str:
    """A body; everything but scripts, styles and other code is redacted."""
    if mime and not _DATA.search(mime):
        return text
    if "name=" in text and ("multipart" in mime or not mime):
        text = _PART.sub(_redact_part, text)
    if "html" in mime:
        text = _redact_fields(text)
    elif "xml" in mime:
        text = _ELEMENT.sub(_redact_part, text)
    return redact(text)


def _redact_part(found: re.Match[str]) -> str:
    if not found[2] or not is_secret_name(found[1]):
        return found[0]
    return found[0][: found.start(2) - found.start()] + HIDDEN


def _redact_fields(text: str) -> str:
    """HTML without the values of its secret fields; longer ones are redacted wherever else they are, too."""
    values: set[str] = set()

    def field(found: re.Match[str]) -> str:
        tag, _, content = found[0].partition(">")
        attributes = {each[1].lower(): each for each in _ATTRIBUTE.finditer(tag)}
        texts = {name: each[2] or each[3] or each[4] or "" for name, each in attributes.items()}
        named = any(is_secret_name(texts.get(name, "")) for name in ("name", "id"))
        if not named and not any(_SECRET_FIELD.search(texts.get(name, "")) for name in ("type", "autocomplete")):
            return found[0]
        values.update((texts.get("value", ""), content))
        if value := attributes.get("value"):
            tag = f'{tag[: value.start()]}value="{HIDDEN}"{tag[value.end() :]}'
        return f"{tag}>{HIDDEN if content else ''}"

    text = _INPUT.sub(field, text)
    for value in sorted(values, key=len, reverse=True):
        text = text.replace(value, HIDDEN) if len(value) >= _SHORTEST_ELSEWHERE else text
    return text
