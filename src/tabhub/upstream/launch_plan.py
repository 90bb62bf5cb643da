"""How one server is reached right now: its record with every secret filled in.

A plan is made for one connection and discarded with it; nothing of it is stored, shown or logged.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tabhub.errors import SetupError
from tabhub.store.upstream_servers import Server
from tabhub.upstream.secrets import expand, expand_all

_INHERITED = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER", "SYSTEMROOT", "APPDATA")
"""What a command gets of the hub's environment; the rest may hold secrets of others."""


@dataclass(frozen=True, slots=True)
class ConnectionPlan:
    """The URL or command line of a server, ready to use."""

    name: str
    url: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    oauth: Mapping[str, str] = field(default_factory=dict, repr=False)
    argv: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str | None = None


def make_plan(server: Server, env: Mapping[str, str] = os.environ) -> ConnectionPlan:
    """SetupError says what is missing. May ask the keyring, so call it in a thread."""
    if server.url is not None:
        headers = expand_all(server.headers, f"{server.name}.headers", env)
        for header, value in headers.items():
            if not value.isprintable() or not value.isascii():
                raise SetupError(f"The value of {server.name}.headers.{header} may contain printable ASCII only.")
        oauth = expand_all(server.oauth, f"{server.name}.oauth", env)
        return ConnectionPlan(
            server.name, url=expand(server.url, f"{server.name}.url", env), headers=headers, oauth=oauth
        )
    command = expand(server.command or "", f"{server.name}.command", env)
    args = tuple(expand(arg, f"{server.name}.args", env) for arg in server.args)
    inherited = {key: env[key] for key in _INHERITED if key in env}
    own = {**inherited, **expand_all(server.env, f"{server.name}.env", env)}
    # The command is one program and its arguments, never a line for a shell.
    program = shutil.which(
        str(Path(command).expanduser()) if command.startswith("~") else command, path=own.get("PATH")
    )
    if program is None:
        raise SetupError(
            f"The command {command[:200]!r} of {server.name} was not found.",
            hint="Check its spelling and the hub's PATH, or write its whole path; arguments belong in `args`.",
        )
    cwd = expand(server.cwd, f"{server.name}.cwd", env) if server.cwd else None
    if cwd is not None and not Path(cwd).expanduser().is_dir():
        raise SetupError(f"The folder {cwd[:200]!r} of {server.name} does not exist.")
    return ConnectionPlan(server.name, argv=(program, *args), env=own, cwd=str(Path(cwd).expanduser()) if cwd else None)
