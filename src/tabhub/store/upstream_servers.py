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
        same = {name: getattr(self, name) for name in ("name", "enabled", "disabled_tools", "cached_tools")}
        return msgspec.structs.replace(other, **same) == self


class _File(msgspec.Struct, frozen=True):
    version: Literal[1]
    servers: list[Server]


class UpstreamStore(JsonFile[_File]):
    """The file of external servers."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, _File)
        self._lock = path.with_name(f"{path.name}.lock")

    def servers(self) -> tuple[Server, ...]:
        """All servers; none if there is no file, or one that cannot be read."""
        saved = self.load()
        return tuple(saved.servers) if saved is not None else ()

    def change(self, change: Callable[[tuple[Server, ...]], Sequence[Server]]) -> tuple[Server, ...]:
        """Read, change and write the file under a lock; a failure leaves it unchanged and raises SetupError."""
        with locked(self._lock):
            before = self.servers()
            after = tuple(change(before))
            if after != before:
                self.write(_File(1, list(after)))
        return after
