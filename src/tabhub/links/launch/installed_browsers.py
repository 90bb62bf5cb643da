"""Which browsers this machine has: Chrome, Chromium, Edge and Brave.

Owns the table of installation paths and the meaning of TABHUB_BROWSER. It does not know how a browser is started.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tabhub.errors import SetupError


@dataclass(frozen=True, slots=True)
class FoundBrowser:
    """A browser that can be started. A branded one does not load extensions from its command line."""

    name: str
    path: Path
    branded: bool


@dataclass(frozen=True, slots=True)
class _Kind:
    """One browser: its commands on the PATH, and its paths on macOS and Linux."""

    name: str
    branded: bool
    commands: tuple[str, ...]
    mac: str
    fixed: tuple[str, ...]


_KINDS = (
    _Kind(
        "Chrome",
        True,
        ("google-chrome-stable", "google-chrome", "google-chrome-beta", "google-chrome-unstable"),
        "Google Chrome.app/Contents/MacOS/Google Chrome",
        ("/opt/google/chrome/chrome",),
    ),
    _Kind(
        "Chromium",
        False,
        ("chromium", "chromium-browser"),
        "Chromium.app/Contents/MacOS/Chromium",
        ("/usr/lib/chromium/chromium", "/snap/bin/chromium"),
    ),
    _Kind(
        "Edge",
        True,
        ("microsoft-edge-stable", "microsoft-edge", "microsoft-edge-beta", "microsoft-edge-dev"),
        "Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
        ("/opt/microsoft/msedge/msedge",),
    ),
    _Kind(
        "Brave",
        False,
        ("brave-browser-stable", "brave-browser", "brave"),
        "Brave Browser.app/Contents/MacOS/Brave Browser",
        ("/opt/brave.com/brave/brave",),
    ),
)

_HOW_TO_INSTALL = {
    "linux": "Install one, for example with: sudo apt-get install chromium",
    "darwin": "Install one, for example with: brew install --cask chromium",
}


def find_browsers(env: Mapping[str, str] | None = None, *, platform: str = sys.platform) -> list[FoundBrowser]:
    """Every supported browser on this machine, the preferred one first; SetupError if there is none.

    TABHUB_BROWSER, a path or a name such as `chromium` or `edge`, selects one.
    """
    env = os.environ if env is None else env
    found = _installed(env, platform)
    wanted = env.get("TABHUB_BROWSER", "").strip()
    if wanted:
        return [_chosen(wanted, found, env)]
    if not found:
        how = _HOW_TO_INSTALL.get(platform, "Install one of them.")
        raise SetupError(
            "No browser was found: looked for Chrome, Chromium, Edge and Brave.",
            hint=f"{how} To use a browser in an unusual place, set TABHUB_BROWSER to its path.",
        )
    return found


def _installed(env: Mapping[str, str], platform: str) -> list[FoundBrowser]:
    found: list[FoundBrowser] = []
    for kind in _KINDS:
        path = next((p for p in _places(kind, env, platform) if _runs(p)), None)
        if path is not None:
            found.append(FoundBrowser(kind.name, path, kind.branded))
    # Snaps come last: they cannot read hidden folders of the home directory, where our extension and profile are.
    return sorted(found, key=_is_snap)


def _places(kind: _Kind, env: Mapping[str, str], platform: str) -> list[Path]:
    if platform == "darwin":
        roots = [Path("/Applications")]
        if env.get("HOME"):
            roots.append(Path(env["HOME"], "Applications"))
        return [root / kind.mac for root in roots]
    on_path = (shutil.which(command, path=env.get("PATH", os.defpath)) for command in kind.commands)
    return [Path(p) for p in on_path if p] + [Path(p) for p in kind.fixed]


def _chosen(wanted: str, found: list[FoundBrowser], env: Mapping[str, str]) -> FoundBrowser:
    """The browser that TABHUB_BROWSER names: a found one by name, a path, or a command on the PATH."""
    for browser in found:
        if wanted.lower() == browser.name.lower():
            return browser
    path = Path(wanted).expanduser()
    if not _runs(path):
        command = shutil.which(wanted, path=env.get("PATH", os.defpath))
        if command is None:
            names = ", ".join(b.name.lower() for b in found) or "none was found"
            raise SetupError(
                f"TABHUB_BROWSER is {wanted!r}, but no browser with that path or name can be started.",
                hint=f"Give the path of a browser, or one of those on this machine ({names}), or unset it.",
            )
        path = Path(command)
    return _described(path.absolute())


def _described(path: Path) -> FoundBrowser:
    """Infer the kind from the path: Chrome for Testing and unknown builds count as unbranded."""
    text = path.name.lower()
    for kind in _KINDS:
        if text in kind.commands or text == Path(kind.mac).name.lower() or str(path) in kind.fixed:
            return FoundBrowser(kind.name, path, kind.branded)
    if text.startswith("msedge"):
        return FoundBrowser("Edge", path, branded=True)
    return FoundBrowser("Chromium", path, branded=False)


def _is_snap(browser: FoundBrowser) -> bool:
    return browser.path.is_relative_to("/snap") or Path(os.path.realpath(browser.path)).name == "snap"


def _runs(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
