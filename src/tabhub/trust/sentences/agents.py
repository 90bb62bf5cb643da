"""The name of an agent as a person knows it: that of its token, which identifies it, and the one it gives itself."""

from __future__ import annotations

import re

from tabhub.trust.redact import clean
from tabhub.trust.tokens import CLI, PANEL

_OWN = {PANEL: "The assistant", CLI: "Command line"}
_TITLES = {
    "claude-code": "Claude Code",
    "claude-ai": "Claude Desktop",
    "cursor": "Cursor",
    "cursor-vscode": "Cursor",
    "codex": "Codex",
    "codex-mcp-client": "Codex",
    "gemini-cli-mcp-client": "Gemini CLI",
    "opencode": "OpenCode",
    "vscode": "VS Code",
    "visual studio code": "VS Code",
    "windsurf": "Windsurf",
    "windsurf-client": "Windsurf",
}
"""Names that clients and their tokens have, and what people call them."""
_VERSION = re.compile(r"\s+v?\d[\w.+-]*$")
_LONGEST = 60


def agent_name(client: str, token: str | None) -> str:
    """Both names where they differ, the token's first: a client may call itself what it likes."""
    if token in _OWN:
        return _OWN[token]
    claimed = _title(_VERSION.sub("", client))
    if token is None:
        return claimed or "An agent"
    known = _title(token)
    return known if not claimed or _plain(known) == _plain(claimed) else f"{known} ({claimed})"


def _title(name: str) -> str:
    name = clean(name.strip(), _LONGEST)
    return _TITLES.get(name.lower(), name)


def _plain(name: str) -> str:
    return "".join(filter(str.isalnum, name.lower()))
