"""The relay's metadata for OAuth clients (RFC 9728) and its request for a token (RFC 6750).

Owns the relay's public URL, the metadata document and the challenge that points to it. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from tabhub.errors import Forbidden, SetupError
from tabhub.trust.guard import host_allowed
from tabhub.wire import urls as addresses

MCP = "/mcp"
WELL_KNOWN = "/.well-known/oauth-protected-resource"
_HOST = re.compile(rb"([A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(:[0-9]{1,5})?")


@dataclass(frozen=True, slots=True)
class RelayUrl:
    """The URL by which clients reach the relay."""

    scheme: str
    port: int
    public_url: str | None = None
    """Without it, each client gets the URL it used."""

    def base(self, headers: Mapping[bytes, bytes]) -> str:
        """The base URL of a request; Forbidden if it is not this relay's."""
        host = headers.get(b"host", b"")
        if self.public_url is not None:
            names = _authorities(self.public_url)
            if host.lower() not in names and not host_allowed(host, self.port):
                raise Forbidden("The Host header does not name this relay.", hint=f"Use {self.public_url}{MCP}")
            return self.public_url
        if not _HOST.fullmatch(host):
            raise Forbidden("The Host header does not name this relay.")
        return f"{self.scheme}://{host.decode()}"


def _authorities(url: str) -> tuple[bytes, ...]:
    """The Host headers that match a URL: clients omit the default port."""
    parts = urlsplit(url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else str(parts.hostname)
    default = 443 if parts.scheme == "https" else 80
    port = parts.port or default
    with_port = f"{host}:{port}".encode()
    return (with_port, host.encode()) if port == default else (with_port,)


def read_url(option: str, text: str) -> str:
    """An https URL from an option, without trailing slash or path; plain http is for loopback."""
    base = text.strip().rstrip("/")
    if option == "--public-url":
        base = base.removesuffix(MCP)
    parts = addresses.split(base)
    invalid = parts is None or not addresses.plain(parts) or (option == "--public-url" and parts.path)
    if parts is None or invalid or parts.scheme not in ("http", "https") or not parts.hostname:
        raise SetupError(f"{option}: invalid URL {text[:100]!r}.", hint="Use a URL like https://relay.example.com")
    if parts.scheme == "http" and not addresses.names_this_machine(parts.hostname):
        raise SetupError(f"{option} must begin with https://", hint="http:// is allowed for this machine only.")
    return base


def document(base: str, auth_servers: Iterable[str]) -> dict[str, Any]:
    servers = list(auth_servers)
    return {
        "resource": f"{base}{MCP}",
        **({"authorization_servers": servers} if servers else {}),
        "bearer_methods_supported": ["header"],
        "resource_name": "Tabhub relay",
    }


def challenge(base: str, problem: str | None) -> bytes:
    """The WWW-Authenticate header; without an error for a client that sent no token."""
    error = "" if problem is None else f', error="invalid_token", error_description="{problem}"'
    return f'Bearer resource_metadata="{base}{WELL_KNOWN}{MCP}"{error}'.encode()
