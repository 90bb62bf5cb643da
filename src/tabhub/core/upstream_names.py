"""Names of external servers' tools: `mcp__<server>__<tool>`.

Where such a name would be ambiguous (spaces, non-ASCII letters, `__` in the server's name, too long) a hash of both
names is added, the same in every run. Knows no server.
"""

from __future__ import annotations

import hashlib
import re

PREFIX = "mcp__"
LONGEST = 64
_HASH = 10
_SUFFIX = re.compile(r"_h[0-9a-f]{10}$")
_PLAIN = re.compile(r"[A-Za-z0-9_-]+")
_ODD = re.compile(r"[^A-Za-z0-9_-]+")


def upstream_name(server: str, tool: str) -> str:
    name = f"{PREFIX}{server}__{tool}"
    if _plain_server(server) and _PLAIN.fullmatch(tool) and not _SUFFIX.search(name) and len(name) <= LONGEST:
        return name
    key = f"{server}\0{tool}".encode("utf-8", "surrogatepass")
    suffix = f"_h{hashlib.sha256(key).hexdigest()[:_HASH]}"
    room = LONGEST - len(PREFIX) - 2 - len(suffix)
    first = re.sub("__+", "_", _ODD.sub("_", server)).strip("_") or "server"
    second = _ODD.sub("_", tool).strip("_") or "tool"
    second = second[: max(room - len(first), room // 2)]
    return f"{PREFIX}{first[: room - len(second)]}__{second}{suffix}"


def _plain_server(server: str) -> bool:
    # The first `__` separates the two, so none may be in the server's name or arise at its end.
    return bool(_PLAIN.fullmatch(server)) and "__" not in server and not server.startswith("_") and server[-1] != "_"
