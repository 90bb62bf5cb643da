"""URIs of external servers' resources: `tabhub+mcp://<server>/<the server's own URI>`, and back.

The server's own URI follows unchanged, so that any client can expand a template and the result can be parsed back. One
that is not a plain URI, or that a URL parser would rewrite after the prefix, is percent-encoded as a whole and marked
with `~`, with which no URI begins. Knows no server.
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

from tabhub.core.match_patterns import has_pieces

SCHEME = "tabhub+mcp://"
LONGEST = 8_000
"""Longest URI, in characters, that is accepted."""
_MARK = "~"
# Brackets are valid in hosts only, and no host follows the prefix.
_PLAIN = re.compile(
    r"[A-Za-z][A-Za-z0-9+.-]*:(?:[A-Za-z0-9._~:/?@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*"
    r"(?:#(?:[A-Za-z0-9._~:/?@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*)?"
)
_DOTS = re.compile(r"(?:^|[/:])(?:\.|%2[eE]){1,2}(?:[/?#]|$)")
_EXPRESSION = re.compile(r"\{[^{}]*\}")


def resource_uri(server: str, uri: str) -> str:
    plain = _PLAIN.fullmatch(uri) and not _DOTS.search(uri)
    return f"{SCHEME}{quote(server, safe='')}/{uri if plain else _MARK + quote(uri, safe='')}"


def template_uri(server: str, template: str) -> str:
    """The hub's form of a server's template: expanded, it is the prefix and the server's own template expanded."""
    return f"{SCHEME}{quote(server, safe='')}/{template}"


def parse_resource_uri(uri: str) -> tuple[str, str] | None:
    """Server and own URI (or template); None for any other URI."""
    if uri[: len(SCHEME)].lower() != SCHEME:
        return None
    server, slash, own = uri[len(SCHEME) :].partition("/")
    if not slash or not server or not own:
        return None
    return unquote(server, errors="replace"), unquote(own[1:], errors="replace") if own[0] == _MARK else own


def may_match_template(template: str, uri: str) -> bool:
    """Whether a URI may be an expansion of a template: the literal parts occur in order.

    Errs on the side of yes; templates are untrusted, so none is run as a pattern.
    """
    return has_pieces(uri, _EXPRESSION.split(template))
