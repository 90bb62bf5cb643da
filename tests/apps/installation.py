"""The environments of the apps: one folder each below `.cache/apps`, installed from lock files with hashes when wanted.

    python -m tests.apps.installation node-red      install what is missing of these apps

An environment is complete if its `.ready` is the same as its lock file. Needs only the development environment.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOCKS = Path(__file__).parent / "environments"
CACHE = ROOT / ".cache" / "apps"
PYTHON_APPS = ("jupyterlab", "streamlit", "wagtail")
NODE_APPS = ("node-red",)
APPS = (*NODE_APPS, *PYTHON_APPS)
_SHOWN_LINES = 30
Report = Callable[[str], None]


class InstallationFailed(Exception):
    """An app could not be installed; the message says what to do."""


def lock_file(app: str) -> Path:
    return LOCKS / app / "package-lock.json" if app in NODE_APPS else LOCKS / f"{app}.txt"


def ready(app: str) -> bool:
    """Whether its environment is installed as the lock file says, and its programs start."""
    stamp = CACHE / app / ".ready"
    if not stamp.exists() or stamp.read_bytes() != lock_file(app).read_bytes():
        return False
    return (
        app in NODE_APPS or subprocess.run([python_of(app), "-c", ""], check=False, capture_output=True).returncode == 0
    )


def python_of(app: str) -> Path:
    return CACHE / app / "bin" / "python"


def install(app: str, report: Report = print) -> Path:
    """Install an app unless that has been done; returns the folder of its environment."""
    folder = CACHE / app
    with _only_one(app):
        if ready(app):
            return folder
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        report(f"installing {app} {version_of(app)} into {folder.relative_to(ROOT)}")
        if app in NODE_APPS:
            _install_node_app(app, folder)
        else:
            _install_python_app(app, folder)
        shutil.copyfile(lock_file(app), folder / ".ready")
    return folder


def version_of(app: str) -> str:
    if app in NODE_APPS:
        text = (LOCKS / app / "package.json").read_text()
        return text.partition(f'"{app}": "')[2].partition('"')[0]
    return (LOCKS / f"{app}.in").read_text().strip().partition("==")[2]


def _install_python_app(app: str, folder: Path) -> None:
    # pip of the development environment installs into it, so it needs none of its own.
    _run(app, [sys.executable, "-m", "venv", "--without-pip", str(folder)])
    pip = [sys.executable, "-m", "pip", "--python", str(python_of(app)), "install", "--disable-pip-version-check"]
    how = ["--quiet", "--no-compile", "--only-binary", ":all:", "--require-hashes", "--requirement"]
    _run(app, [*pip, *how, str(lock_file(app))])


def _install_node_app(app: str, folder: Path) -> None:
    for name in ("package.json", "package-lock.json", ".npmrc"):
        shutil.copyfile(LOCKS / app / name, folder / name)
    how = ["--omit=optional", "--no-audit", "--no-fund", "--loglevel=error"]
    _run(app, [*_npm(app), "ci", *how], folder)


def node() -> str:
    """The Node.js of the development environment, or of the system."""
    own = ROOT / ".venv" / "bin" / "node"
    found = str(own) if own.exists() else shutil.which("node")
    if found is None:
        raise InstallationFailed("Node.js is missing: run scripts/setup, or install it.")
    return found


def _npm(app: str) -> list[str]:
    if (found := shutil.which("npm")) is not None:
        return [found]
    own = Path(node()).resolve().parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    if not own.exists():
        raise InstallationFailed(f"{app} cannot be installed: npm is missing. Install Node.js with npm, and repeat.")
    return [node(), str(own)]


def _run(app: str, command: Sequence[str], where: Path = ROOT) -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    done = subprocess.run(
        command, cwd=where, env=os.environ | {"PATH": path}, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        output = "\n".join(f"{done.stdout}{done.stderr}".splitlines()[-_SHOWN_LINES:])
        raise InstallationFailed(
            f"{app} could not be installed: {' '.join(command[:4])} … ended with {done.returncode}.\n{output}\n"
            "It needs the package registry; what was fetched is kept in the cache of pip or npm. Repeat the command."
        )


@contextmanager
def _only_one(app: str) -> Iterator[None]:
    """Keep other processes from installing the same app at the same time."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{app}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main(apps: Sequence[str]) -> int:
    if unknown := set(apps) - set(APPS):
        print(f"error: unknown app: {', '.join(sorted(unknown))}. Choose from: {', '.join(APPS)}.", file=sys.stderr)
        return 2
    for app in apps or APPS:
        try:
            install(app, lambda text: print(f"apps: {text}", flush=True))
        except InstallationFailed as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
