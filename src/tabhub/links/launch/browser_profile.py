"""The managed browser's profile: one hub at a time, nothing left of a browser whose hub died, and the extension fresh.

Owns the lock on the profile, the locks a browser leaves in it, the settings the extension needs there, and the ending
of a browser's processes. Knows nothing of how a browser is started.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from tabhub.errors import SetupError
from tabhub.trust.guard import EXTENSION_ID

_POLL = 0.02
_LEFT_BEHIND = ("SingletonLock", "SingletonSocket", "SingletonCookie")


class ProfileLock:
    """Held while a hub uses the profile. The kernel releases it when the hub ends, however it ends."""

    def __init__(self, profile: Path) -> None:
        self._profile = profile
        self._handle: int | None = None

    def take(self) -> None:
        """Take the lock, making the profile if there is none; SetupError when another hub holds it."""
        if self._handle is not None:
            return
        path = self._profile.with_name(f"{self._profile.name}.lock")
        try:
            self._profile.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise SetupError(
                f"The managed browser's profile {self._profile} cannot be used: {error.strerror}.",
                hint="Make its folder writable, or set TABHUB_HOME to another folder.",
            ) from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            raise SetupError(
                f"Another hub already runs the managed browser of {self._profile}.",
                hint="Stop it (tabhub stop), start this one with --no-launch, or set TABHUB_HOME to another folder.",
            ) from None
        self._handle = handle

    def release(self) -> None:
        """Let another hub have the profile."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


async def free_profile(profile: Path, *, grace: float) -> None:
    """Take the profile back from a browser whose hub is gone. Call it only with the ProfileLock held.

    A browser refuses a profile that another one holds, and also one whose holder had another host name (a container
    started anew), though nothing runs there. We hold the lock, so whoever is named in it is a leftover.
    """
    try:
        host, _, pid = str((profile / "SingletonLock").readlink()).rpartition("-")
    except OSError:
        host, pid = "", ""
    here = host == os.uname().nodename and pid.isdigit()
    if here and f" --user-data-dir={profile} " in f"{_command_of(int(pid))} ":
        await _end_leftover(int(pid), grace)
    for name in _LEFT_BEHIND:
        (profile / name).unlink(missing_ok=True)


def prepare_profile(profile: Path, stamp: str) -> None:
    """Make a profile that no browser uses ready for the extension of that stamp.

    Without developer mode a browser unloads an unpacked extension that reloads itself, for good; and it keeps a new
    extension's button in a menu, where nobody sees what it shows. And it starts a worker from its own cache after the
    files changed, whatever their version: then the cache has to go. Sites register their workers anew at the next
    visit; what they stored stays.
    """
    _set_preferences(profile / "Default" / "Preferences")
    if _loaded(profile) != stamp:
        for name in ("Database", "ScriptCache"):
            shutil.rmtree(profile / "Default" / "Service Worker" / name, ignore_errors=True)


def remember_loaded(profile: Path, stamp: str) -> None:
    """Note which extension the profile has loaded, for the next `prepare_profile`."""
    if _loaded(profile) != stamp:
        _stamp_file(profile).write_text(stamp)


def _stamp_file(profile: Path) -> Path:
    return profile.with_name(f"{profile.name}.extension")


def _loaded(profile: Path) -> str | None:
    try:
        return _stamp_file(profile).read_text()
    except OSError:
        return None


def _set_preferences(path: Path) -> None:
    try:
        settings = json.loads(path.read_bytes())
    except (OSError, ValueError):
        # none yet, or broken: a browser starts over from what it can read
        settings = {}
    extensions = settings.setdefault("extensions", {})
    interface = extensions.setdefault("ui", {})
    if interface.get("developer_mode") is not True:
        interface["developer_mode"] = True
        # Only the first time: a person who takes the button away again means it.
        pinned = extensions.setdefault("pinned_extensions", [])
        if EXTENSION_ID not in pinned:
            pinned.append(EXTENSION_ID)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = path.with_name("Preferences.tabhub")
        fresh.write_text(json.dumps(settings))
        fresh.chmod(0o600)
        fresh.replace(path)


async def end_group(group: int, *, grace: float) -> None:
    """Kill what is left of a process group and wait, at most `grace` seconds, until nothing of it runs."""
    loop = asyncio.get_running_loop()
    end = loop.time() + grace
    while group_runs(group):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
        if loop.time() > end:
            return
        await asyncio.sleep(_POLL)


def group_runs(group: int) -> bool:
    """Whether a process of the group still runs; one that ended and was not reaped does not count."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        # macOS says so of a group in which only unreaped processes are left
        return sys.platform != "darwin"
    if not Path("/proc/self/stat").exists():
        return True
    return any(_running_group(entry) == group for entry in Path("/proc").iterdir() if entry.name.isdigit())


def _running_group(entry: Path) -> int | None:
    """The group of a process that runs, None for one that ended."""
    try:
        fields = (entry / "stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] in (b"Z", b"X") else int(fields[2])


def _command_of(pid: int) -> str:
    """The command line of a process, or nothing."""
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
    """Ask the browser to end, then make it."""
    end = asyncio.get_running_loop().time() + grace
    with suppress(ProcessLookupError):
        group = os.getpgid(pid)
        os.kill(pid, signal.SIGTERM)
        while _running_group(Path(f"/proc/{pid}")) is not None:
            if asyncio.get_running_loop().time() > end:
                break
            await asyncio.sleep(_POLL)
        if group == pid:
            await end_group(group, grace=grace)
        else:
            os.kill(pid, signal.SIGKILL)
