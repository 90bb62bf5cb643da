"""`tabhub stop`: end the hub of this home.

Never signals another process: a process id is used only after checking that it is a hub.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

from tabhub.cli.command import Command, option, seconds
from tabhub.cli.hub.background import health, wait_for_exit
from tabhub.cli.hub.client import Hub, find_hub, read_record
from tabhub.client_errors import CliError, HubDownError

if TYPE_CHECKING:
    from argparse import Namespace


def stop(args: Namespace) -> int:
    """Ask the hub to stop, and wait until it has."""
    hub = find_hub()
    if hub.pid is None:
        if health(hub) is not None:
            raise CliError(
                f"A hub answers on {hub.address}, but {hub.home}/hub.json does not say which process it is.",
                "End it where it was started (Ctrl+C).",
            )
        raise CliError(HubDownError(hub.address).message, "There is nothing to stop.", exit_code=2)
    if not _is_hub(hub):
        raise CliError(
            f"{hub.home}/hub.json names process {hub.pid}, which is not a hub; nothing was stopped.",
            f"The file is left over from a hub that was killed. Remove it: rm {hub.home}/hub.json",
            exit_code=2,
        )
    _signal(hub.pid, signal.SIGTERM)
    if wait_for_exit(hub.pid, args.timeout):
        _forget(hub)
        print("The hub has stopped.")
        return 0
    if not args.force:
        raise CliError(
            f"The hub (pid {hub.pid}) has not stopped within {args.timeout:g} s.",
            "End it hard with: tabhub stop --force",
        )
    _signal(hub.pid, signal.SIGKILL)
    if not wait_for_exit(hub.pid, 5.0):
        raise CliError(
            f"The hub (pid {hub.pid}) does not end, not even killed.", "It may hang in the kernel: see `ps`."
        )
    _forget(hub)
    print("The hub did not stop by itself and was killed.")
    return 0


def _is_hub(hub: Hub) -> bool:
    """Whether the process is ours: it answers with our secret, or its command line says so."""
    if health(hub) is not None:
        return True
    try:
        words = Path("/proc", str(hub.pid), "cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return b"start" in words and any(word.rpartition(b"/")[2] == b"tabhub" for word in words)


def _forget(hub: Hub) -> None:
    """Remove the files of a killed hub, unless another has started meanwhile."""
    if read_record(hub.home).get("pid") == hub.pid:
        Path(hub.home, "hub.json").unlink(missing_ok=True)


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return  # it has just ended by itself
    except PermissionError:
        raise CliError(f"The hub (pid {pid}) runs as another user.", "Stop it as that user.") from None


COMMAND = Command(
    "Stop the hub",
    stop,
    option("--force", action="store_true", help="kill it if it does not stop"),
    option("--timeout", metavar="SECONDS", type=seconds, default=10.0, help="how long to wait (default: 10)"),
    details="Running calls fail; a browser started by the hub stops too. The exit code is 2 if no hub is running.",
    examples=(("tabhub stop", ""),),
)
