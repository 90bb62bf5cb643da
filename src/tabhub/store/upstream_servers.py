"""External MCP servers on disk: `mcp.json`, readable by this user alone, replaced when it changes.

Owns the record of a server and the file. What a record may contain is upstream.config's. A file that cannot be read is
set aside, never overwritten: it contains what a person typed.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tabhub.errors import SetupError
from tabhub.platform.files import write_atomic
from tabhub.platform.locks import locked

log = logging.getLogger("tabhub.upstream")

_VERSION = 1
_LARGEST = 64 * 1024 * 1024


class Server(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One external server as it is stored."""

    id: str
    name: str
    enabled: bool
    url: str | None = None
    headers: dict[str, str] = {}
    oauth: dict[str, str] = {}
    command: str | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    cwd: str | None = None
    disabled_tools: tuple[str, ...] = ()
    cached_tools: tuple[dict[str, Any], ...] = ()
    """As the server listed them last."""

    @property
    def where(self) -> str:
        """Its URL or command line, for a person."""
        return self.url if self.url is not None else " ".join((self.command or "", *self.args))

    def same_way(self, other: Server) -> bool:
        """Whether both are reached in the same way, so that a connection can stay."""
        return _way(self) == _way(other)


def _way(server: Server) -> tuple[Any, ...]:
    return server.id, server.url, server.headers, server.oauth, server.command, server.args, server.env, server.cwd


class _File(msgspec.Struct, frozen=True):
    version: int
    servers: list[Server]


class UpstreamStore:
    """The file of external servers."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.error: str | None = None
        """Why the file could not be read or written, while that is so."""

    def load(self) -> tuple[Server, ...]:
        """All servers; none if there is no file, or one that cannot be read."""
        try:
            if self.path.stat().st_size > _LARGEST:
                raise ValueError(f"it is larger than {_LARGEST} bytes")
            saved = msgspec.json.decode(self.path.read_bytes(), type=_File)
            if saved.version != _VERSION:
                raise ValueError(f"it is of version {saved.version}, and this Tabhub reads {_VERSION}")
        except FileNotFoundError:
            return ()
        except (OSError, ValueError) as error:
            aside = self.path.with_name(f"{self.path.name}.broken")
            self.error = f"{self.path} cannot be read and was set aside as {aside.name}: {error}"
            log.error("%s", self.error)
            with contextlib.suppress(OSError):
                self.path.replace(aside)
            return ()
        return tuple(saved.servers)

    def change(self, change: Callable[[tuple[Server, ...]], Sequence[Server]]) -> tuple[Server, ...]:
        """Read, change and write the file under a lock; a failure leaves it unchanged."""
        with locked(self.path.with_name(f"{self.path.name}.lock")):
            before = self.load()
            after = tuple(change(before))
            if after != before:
                try:
                    write_atomic(self.path, msgspec.json.encode(_File(_VERSION, list(after))))
                except SetupError as error:
                    self.error = error.message
                    raise
                self.error = None
        return after
