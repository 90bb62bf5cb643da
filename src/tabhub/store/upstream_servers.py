"""External MCP servers on disk: `mcp.json`, readable by this user alone, replaced when it changes.

Owns the record of a server and the format of the file. What a record may contain is upstream.config's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from tabhub.platform.locks import locked
from tabhub.store.json_file import JsonFile


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
    version: Literal[1]
    servers: list[Server]


class UpstreamStore:
    """The file of external servers."""

    def __init__(self, path: Path) -> None:
        self._lock = path.with_name(f"{path.name}.lock")
        self._file = JsonFile(path, _File)

    @property
    def error(self) -> str | None:
        """Why the file could not be read or written, while that is so."""
        return self._file.error

    def load(self) -> tuple[Server, ...]:
        """All servers; none if there is no file, or one that cannot be read."""
        saved = self._file.load()
        return tuple(saved.servers) if saved is not None else ()

    def change(self, change: Callable[[tuple[Server, ...]], Sequence[Server]]) -> tuple[Server, ...]:
        """Read, change and write the file under a lock; a failure leaves it unchanged and raises SetupError."""
        with locked(self._lock):
            before = self.load()
            after = tuple(change(before))
            if after != before:
                self._file.write(_File(1, list(after)))
        return after
