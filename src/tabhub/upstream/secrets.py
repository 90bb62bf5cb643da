"""References to secrets in a server's configuration, and how they are resolved when the server is reached.

`${NAME}` and `${env:NAME}` are variables of the hub's environment, `${NAME:-text}` has a default,
`${keyring:SERVICE/USER}` is the system's keyring. Resolved values are never stored, shown or logged.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from collections.abc import Mapping

from tabhub.errors import SetupError

_REFERENCE = re.compile(r"\$\{([^{}]{1,300})\}")
_VARIABLE = re.compile(r"(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)
_KEYRING_TIMEOUT = 20.0


def expand(text: str, where: str, env: Mapping[str, str]) -> str:
    """Replace the references in a text; SetupError names what is missing, and where."""
    return _REFERENCE.sub(lambda found: _value(found[1], where, env), text)


def expand_all(values: Mapping[str, str], where: str, env: Mapping[str, str]) -> dict[str, str]:
    return {key: expand(value, f"{where}.{key}", env) for key, value in values.items()}


def has_reference(text: str) -> bool:
    return _REFERENCE.search(text) is not None


def _value(reference: str, where: str, env: Mapping[str, str]) -> str:
    if reference.startswith("keyring:"):
        return _keyring(reference.removeprefix("keyring:"), where)
    if reference.startswith("input:"):
        raise SetupError(
            f"{where} uses ${{{reference}}}, which only the client it was written for can resolve.",
            hint="Write ${NAME} instead and set the variable NAME for the hub, or use ${keyring:SERVICE/USER}.",
        )
    named = _VARIABLE.fullmatch(reference)
    if named is None:
        raise SetupError(
            f"{where}: ${{{reference}}} is not a valid reference.", hint="Write ${NAME} or ${keyring:SERVICE/USER}."
        )
    found = env.get(named[1]) or named[2]
    if found is None:
        raise SetupError(
            f"{where} needs the environment variable {named[1]}, which is not set for the hub.",
            hint=f"Set {named[1]} and restart the hub.",
        )
    return found


def _keyring(reference: str, where: str) -> str:
    service, slash, user = reference.partition("/")
    if not slash or not service or not user or service.startswith("-") or user.startswith("-"):
        raise SetupError(f"{where}: write the keyring's entry as ${{keyring:SERVICE/USER}}.")
    secret = _from_module(service, user) if importlib.util.find_spec("keyring") else _from_command(service, user, where)
    if not secret:
        raise SetupError(
            f"{where}: the keyring has nothing for {service}/{user}.", hint=f"Set it: keyring set {service} {user}"
        )
    return secret


def _from_module(service: str, user: str) -> str | None:
    module = importlib.import_module("keyring")
    found = module.get_password(service, user)
    return found if isinstance(found, str) else None


def _from_command(service: str, user: str, where: str) -> str | None:
    command = shutil.which("keyring")
    if command is None:
        raise SetupError(
            f"{where} refers to the keyring, but `keyring` is not installed.",
            hint="Install it (pip install keyring), or use ${NAME} and an environment variable.",
        )
    try:
        done = subprocess.run(
            [command, "get", service, user],
            capture_output=True,
            text=True,
            timeout=_KEYRING_TIMEOUT,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SetupError(f"{where}: the keyring did not answer: {type(error).__name__}.") from None
    return done.stdout.rstrip("\n") if done.returncode == 0 else None
