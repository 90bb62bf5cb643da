"""The home folder: the paths of the hub's files. It knows nothing of their contents. Every command imports it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from tabhub.errors import SetupError
from tabhub.platform.files import make_private_folder, remove_stale_temporaries

DOWNLOADS = "downloads"
"""The folder for downloads, below the one that tools read and write files in."""


class Home:
    """The folder `~/.tabhub`, or the one `TABHUB_HOME` names."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.config = root / "config.json"
        self.extension = root / "extension"
        self.auth = self.extension / "auth.json"
        self.managed = root / "managed"
        self.audit = root / "audit.log"
        self.logs = root / "logs"
        self.hub_log = self.logs / "hub.log"
        self.hub_json = root / "hub.json"
        self.results = root / "results"
        self.files = root / "files"
        self.plugins = root / "plugins"
        self.tokens = root / "tokens.json"
        self.grants = root / "grants.json"
        self.client_tokens = root / "client-tokens"
        self.old_secret = root / "old-secret.sha256"
        self.person_key = root / "run" / "person.key"
        self.lock = root / "hub.lock"

    @classmethod
    def find(cls, env: Mapping[str, str] = os.environ) -> Home:
        named = env.get("TABHUB_HOME", "").strip()
        folder = named or env.get("HOME", "").strip() or os.path.expanduser("~")  # noqa: PTH111 - never raises
        if folder.startswith("~"):
            folder = os.path.expanduser(folder)  # noqa: PTH111 - the same
            if folder.startswith("~"):
                raise SetupError(f"No home folder: {folder!r} means nothing here.", hint="Set TABHUB_HOME to a folder.")
        root = Path(os.path.abspath(folder))  # noqa: PTH100 - keeps links as the person wrote them
        return cls(root if named else root / ".tabhub")

    def files_folder(self, chosen: str | None) -> Path:
        """The folder that tools write files to: the `chosen` one, or the home's own."""
        return Path(chosen).expanduser() if chosen else self.files

    def ensure(self) -> None:
        """Create the folders, private to this user; raises SetupError for a home that others could change or we
        cannot."""
        for folder in (self.root, self.extension, self.logs, self.files, self.managed):
            make_private_folder(folder)
        for folder in (self.root, self.extension):
            remove_stale_temporaries(folder)
