"""The managed browser's profile: used by one hub at a time, freed from browsers of dead hubs, ready for the extension.

Owns the lock on the profile, the locks a browser leaves in it, the settings the extension needs there, and ending a
browser's processes. It does not know how a browser is started.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tabhub.errors import SetupError
from tabhub.platform.files import make_private_folder, write_atomic
from tabhub.platform.locks import try_lock
from tabhub.trust.guard import EXTENSION_ID

_POLL = 0.02
_BROWSER_LOCKS = ("SingletonLock", "SingletonSocket", "SingletonCookie")


@contextlib.contextmanager
def profile_lock(profile: Path) -> Iterator[None]:
    """Hold the profile, creating it if needed; SetupError if another hub holds it."""
    make_private_folder(profile)
    with try_lock(profile.with_name(f"{profile.name}.lock")) as is_free:
        if not is_free:
            raise SetupError(
                f"Another hub already runs the managed browser of {profile}.",
                hint="Stop it (tabhub stop), start this one with --no-launch, or set TABHUB_HOME to another folder.",
            )
        yield


async def free_profile(profile: Path, *, grace: float) -> None:
    """End the browser of a dead hub and remove the locks it left; only to be called while holding `profile_lock`.

    A browser refuses a profile with such a lock even if no process holds it, for instance when a container was started
    again under another host name.
    """
    try:
        host, _, pid = str((profile / "SingletonLock").readlink()).rpartition("-")
    except OSError:
        host, pid = "", ""
    is_local = host == os.uname().nodename and pid.isdigit()
    if is_local and f" --user-data-dir={profile} " in f"{_command_line(int(pid))} ":
        await _end_leftover(int(pid), grace)
    for name in _BROWSER_LOCKS:
        (profile / name).unlink(missing_ok=True)


def prepare_profile(profile: Path, stamp: str, downloads: Path | None = None) -> None:
    """Prepare an unused profile for the extension with this stamp; files are downloaded to `downloads`, if given.

    A browser starts an extension's worker from its own cache even after the files have changed, whatever their version,
    so the cache is removed then. Sites register their workers again at the next visit; their stored data stays.
    """
    _set_preferences(profile / "Default" / "Preferences", downloads)
    if _loaded_stamp(profile) != stamp:
        for name in ("Database", "ScriptCache"):
            shutil.rmtree(profile / "Default" / "Service Worker" / name, ignore_errors=True)


def remember_loaded(profile: Path, stamp: str) -> None:
    """Record which extension the profile has loaded, for the next `prepare_profile`."""
    if _loaded_stamp(profile) != stamp:
        _stamp_file(profile).write_text(stamp)


def _stamp_file(profile: Path) -> Path:
    return profile.with_name(f"{profile.name}.extension")


def _loaded_stamp(profile: Path) -> str | None:
    try:
        return _stamp_file(profile).read_text()
    except OSError:
        return None


def _set_preferences(path: Path, downloads: Path | None) -> None:
    """Set the download folder, and developer mode, without which a browser unloads an extension that reloads itself."""
    try:
        settings = json.loads(path.read_bytes())
    except (OSError, ValueError):
        settings = {}  # a browser ignores a broken file, too
    before = json.dumps(settings)
    if downloads is not None:
        make_private_folder(downloads)
        folder = {"default_directory": str(downloads)}
        settings.setdefault("download", {}).update(folder, directory_upgrade=True, prompt_for_download=False)
        settings.setdefault("savefile", {}).update(folder)
    extensions = settings.setdefault("extensions", {})
    interface = extensions.setdefault("ui", {})
    if interface.get("developer_mode") is not True:
        interface["developer_mode"] = True
        # The button belongs on the toolbar, where its state is visible; only at first, so that a person may remove it.
        pinned = extensions.setdefault("pinned_extensions", [])
        if EXTENSION_ID not in pinned:
            pinned.append(EXTENSION_ID)
    if json.dumps(settings) != before:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomic(path, json.dumps(settings))


async def end_group(group: int, *, grace: float) -> None:
    """Kill a process group and wait up to `grace` seconds until none of it runs."""
    with suppress(TimeoutError):
        async with asyncio.timeout(grace):
            while group_runs(group):
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(group, signal.SIGKILL)
                await asyncio.sleep(_POLL)


def group_runs(group: int) -> bool:
    """Whether a process of the group still runs; one that exited and was not reaped does not count."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        # On macOS this is the error for a group with only unreaped processes.
        return sys.platform != "darwin"
    if not Path("/proc/self/stat").exists():
        return True
    return any(_running_group(entry) == group for entry in Path("/proc").iterdir() if entry.name.isdigit())


def _running_group(entry: Path) -> int | None:
    """The group of a running process; None if it has exited."""
    try:
        fields = (entry / "stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] in (b"Z", b"X") else int(fields[2])


def _command_line(pid: int) -> str:
    """The command line of a process; empty if it cannot be read."""
    try:
        if Path("/proc/self/cmdline").exists():
            return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        shown = subprocess.run(
            ["ps", "-ww", "-o", "command=", "-p", str(pid)], capture_output=True, timeout=5, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return shown.stdout.decode(errors="replace")


async def _end_leftover(pid: int, grace: float) -> None:
    """Ask the browser to exit, then kill it."""
    with suppress(ProcessLookupError):
        group = os.getpgid(pid)
        os.kill(pid, signal.SIGTERM)
        with suppress(TimeoutError):
            async with asyncio.timeout(grace):
                while _running_group(Path(f"/proc/{pid}")) is not None:  # noqa: ASYNC110 - it reports to no one
                    await asyncio.sleep(_POLL)
        if group == pid:
            await end_group(group, grace=grace)
        else:
            os.kill(pid, signal.SIGKILL)
