"""`tabhub stop`: end the hub of this home. A process id is used only after checking that it is a hub."""

from __future__ import annotations

import os
import signal
from argparse import Namespace
from pathlib import Path

from tabhub.cli.command import Command, option, seconds
from tabhub.cli.hub.background import health, wait_for_exit
from tabhub.cli.hub.client import Hub, find_hub, read_record
from tabhub.client_errors import CliError, HubDownError, UsageError

_KILL_SECONDS = 5.0


def stop(args: Namespace) -> None:
    hub = find_hub()
    if hub.pid is None:
        if health(hub) is not None:
            raise CliError(
                f"A hub answers on {hub.address}, but {hub.home}/hub.json does not name its process.",
                "Stop it where it was started (Ctrl+C).",
            )
        raise UsageError(HubDownError(hub.address).message, "There is nothing to stop.")
    if not _is_hub(hub):
        raise UsageError(
            f"{hub.home}/hub.json names process {hub.pid}, which is not a hub; nothing was stopped.",
            f"The file is left over from a hub that was killed. Remove it: rm {hub.home}/hub.json",
        )
    if _end(hub, hub.pid, signal.SIGTERM, args.timeout):
        print("The hub has stopped.")
    elif not args.force:
        raise CliError(
            f"The hub (pid {hub.pid}) has not stopped within {args.timeout:g} s.", "Kill it: tabhub stop --force"
        )
    elif _end(hub, hub.pid, signal.SIGKILL, _KILL_SECONDS):
        print("The hub did not stop by itself and was killed.")
    else:
        raise CliError(
            f"The hub (pid {hub.pid}) does not end, not even when killed.", "It may hang in the kernel: see `ps`."
        )


def _end(hub: Hub, pid: int, number: signal.Signals, timeout: float) -> bool:
    """Send the signal and wait; False if the process is still running. Removes the record of a hub that has ended."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass  # it has just ended by itself
    except PermissionError:
        raise CliError(f"The hub (pid {pid}) runs as another user.", "Stop it as that user.") from None
    if not wait_for_exit(pid, timeout):
        return False
    if read_record(hub.home).get("pid") == pid:  # no other hub has started since
        Path(hub.home, "hub.json").unlink(missing_ok=True)
    return True


def _is_hub(hub: Hub) -> bool:
    """Whether the process is ours: it accepts our key, or its command line says so."""
    if health(hub) is not None:
        return True
    try:
        words = Path("/proc", str(hub.pid), "cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return b"start" in words and any(word.rpartition(b"/")[2] == b"tabhub" for word in words)


COMMAND = Command(
    stop,
    option("--force", action="store_true", help="kill it if it does not stop"),
    option("--timeout", metavar="SECONDS", type=seconds, default=10.0, help="how long to wait (default: 10)"),
    details="Running calls fail; a browser started by the hub stops too. The exit code is 2 if no hub is running.",
)
