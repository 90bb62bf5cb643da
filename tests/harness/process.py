"""A hub in a separate process, as users run it, with a temporary home."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tabhub.store import extension_key
from tabhub.store.home import Home
from tests.harness.hub import Address, agent_token, without_approvals

_RUNNING = re.compile(rb"is running on http://127\.0\.0\.1:(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class HubProcess(Address):
    """A hub in a process."""

    home: Home
    process: asyncio.subprocess.Process


def environment(home: Path) -> dict[str, str]:
    """The environment of a command that uses this home."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TABHUB_", "PYTEST_", "PORT"))}
    return kept | {"TABHUB_HOME": str(home)}


async def tabhub(home: Path, *words: str) -> asyncio.subprocess.Process:
    """Start a command of the command line."""
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tabhub",
        *words,
        env=environment(home),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


@asynccontextmanager
async def hub_process(home: Path, port: int = 0) -> AsyncIterator[HubProcess]:
    """Start a hub on a port (0: any), wait until it serves, and kill it at the end."""
    ask_nobody(home)
    process = await tabhub(home, "start", "--port", str(port), "--no-launch")
    try:
        assert process.stdout is not None
        async with asyncio.timeout(30):
            first = await process.stdout.readline()
        found = _RUNNING.search(first)
        assert found is not None, (first, await _errors(process))
        place = Home(home)
        yield HubProcess(
            port=int(found[1]),
            token=agent_token(place),
            extension_key=extension_key.read(place),
            person_key=place.person_key.read_text(),
            home=place,
            process=process,
        )
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


def ask_nobody(home: Path) -> None:
    """Give a home without settings some that require no approvals, because fake browsers count as the person's own."""
    if not (home / "config.json").exists():
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        (home / "config.json").write_text(json.dumps(without_approvals({})))


async def _errors(process: asyncio.subprocess.Process) -> str:
    _, errors = await process.communicate()
    return errors.decode()
