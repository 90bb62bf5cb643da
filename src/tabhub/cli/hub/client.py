"""The hub as the command line sees it: where it is, one HTTP request to it, and the error of an unsuccessful response.

Owns finding the hub (hub.json, auth.json) and the credentials of a request (person.key). It imports next to nothing,
because every `tabhub tool call` pays for it. It knows no endpoint.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

from tabhub.client_errors import (
    CliError,
    HttpConnectError,
    HttpConnectionClosed,
    HttpError,
    HttpTimeout,
    HubDownError,
    UsageError,
)
from tabhub.net import http_client

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tabhub.net.http_client import Response

HOST = "127.0.0.1"
DEFAULT_PORT = 9515


class Hub:
    """Where the hub is, or would be, and the key of its extension, by which it proves who it is."""

    def __init__(
        self, home: str, port: int, extension_key: str | None, pid: int | None, record: dict[str, Any]
    ) -> None:
        self.home = home
        self.port = port
        self.extension_key = extension_key
        self.pid = pid
        """The running process that hub.json names."""
        self.record = record
        self.proved = pid is not None and record.get("port") == port
        """Whether the port is known to be the hub's: if none runs, any user of this machine could listen there."""

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"


def home() -> str:
    """The folder of all Tabhub files (TABHUB_HOME)."""
    named = os.environ.get("TABHUB_HOME", "").strip() or "~/.tabhub"
    return os.path.abspath(os.path.expanduser(named))  # noqa: PTH100,PTH111


def read_json(path: str) -> Any:
    """The content of a JSON file, or None if it does not exist."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - pathlib costs more than the call
            return json.loads(file.read())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError:
        raise CliError(f"{path} is not valid JSON.", "Run `tabhub doctor` to see how to fix it.") from None


def alive(pid: int) -> bool:
    """Whether a process runs, and is not a zombie."""
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True  # another user's process
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - pathlib costs more than the call
            return file.read().rpartition(b")")[2].split()[0] != b"Z"
    except (OSError, IndexError):
        return True  # a system without /proc


def find_hub() -> Hub:
    """The hub of this home: as TABHUB_PORT, the running hub's record or auth.json of the last run locate it."""
    folder = home()
    auth = read_json(f"{folder}/extension/auth.json")
    auth = auth if isinstance(auth, dict) else {}
    record = read_record(folder)
    pid = record.get("pid")
    pid = pid if isinstance(pid, int) and alive(pid) else None
    port = _port(os.environ.get("TABHUB_PORT"), record.get("port") if pid else None, auth.get("port"))
    key = auth.get("secret")
    return Hub(folder, port, key if isinstance(key, str) else None, pid, record if pid else {})


def read_record(folder: str) -> dict[str, Any]:
    """The content of hub.json; empty if it is missing or only partly written."""
    try:
        record = read_json(f"{folder}/hub.json")
    except CliError:
        return {}
    return record if isinstance(record, dict) else {}


def _port(*candidates: object) -> int:
    for candidate in candidates:
        text = str(candidate)
        if text.isascii() and text.isdigit() and 0 < int(text) < 65536:
            return int(text)
    return DEFAULT_PORT


def bearer(hub: Hub, path: str) -> str | None:
    """The credential for a path: an agent's token (TABHUB_TOKEN) for agents' paths, otherwise the person's key."""
    if path.startswith(("/tools", "/mcp")) and (token := os.environ.get("TABHUB_TOKEN", "").strip()):
        return token
    key = _person_key(hub)
    if key and not hub.proved:
        _prove(hub)
    return key


def _person_key(hub: Hub) -> str | None:
    """The key of the hub's last start; None before the first, and for a hub of an older version."""
    path = f"{hub.home}/run/person.key"
    try:
        with open(path, encoding="ascii") as file:  # noqa: PTH123 - pathlib costs more than the call
            return file.read().strip()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise CliError(f"{path} cannot be read: {error}.", "Restart the hub: tabhub stop, then tabhub start") from None


def _prove(hub: Hub) -> None:
    """Check that the server on the port knows the extension's key, before the person's key is sent to it."""
    import hmac  # here, because hardly any command needs it

    challenge = os.urandom(32).hex()
    facts = decode(request(hub, "GET", f"/health?challenge={challenge}", anonymous=True))
    proof = facts.get("proof") if isinstance(facts, dict) else None
    expected = hmac.digest(
        (hub.extension_key or "").encode(), f"tabhub hub {hub.port} {challenge}".encode(), "sha256"
    ).hex()
    if (
        not hub.extension_key
        or not isinstance(proof, str)
        or not hmac.compare_digest(proof.encode(), expected.encode())
    ):
        raise CliError(
            f"The server on {hub.address} is not the hub of {hub.home}: it does not know the key of its extension.",
            "Your key was not sent. Stop that server, or start a hub on another port: tabhub start --port N",
        )
    hub.proved = True


def request(
    hub: Hub,
    method: str,
    path: str,
    *,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    timeout: float = 10.0,
    anonymous: bool = False,
) -> Response:
    """Send one request and read its whole response, whatever its status."""
    sent = {"Accept": "application/json"}
    token = None if anonymous else bearer(hub, path)
    if token:
        sent["Authorization"] = f"Bearer {token}"
    if body is not None:
        sent["Content-Type"] = "application/json"
    for name, value in (headers or {}).items():
        if not (value.isascii() and value.isprintable()):
            raise UsageError(f"The value of {name} must be printable ASCII, not {value!r}.")
        sent[name] = value
    try:
        return http_client.request(method, HOST, hub.port, path, headers=sent, body=body, timeout=timeout)
    except HttpConnectError:
        raise HubDownError(hub.address) from None
    except HttpTimeout:
        raise CliError(
            f"The hub on {hub.address} did not answer within {timeout:g} s.",
            "The request may still take effect. See `tabhub logs` and `tabhub doctor`.",
        ) from None
    except HttpConnectionClosed:
        raise CliError(
            f"The hub on {hub.address} closed the connection before it answered.",
            "The request may have taken effect. See `tabhub status` and `tabhub logs`.",
        ) from None
    except HttpError as error:
        raise not_a_hub(str(error)) from None


def decode(response: Response) -> Any:
    """The body as JSON; CliError if it is not JSON, which no hub sends."""
    try:
        return json.loads(response.body)
    except ValueError:
        raise not_a_hub(f"it answered {response.status} with a body that is not JSON") from None


def not_a_hub(reason: str) -> CliError:
    return CliError(
        f"The server on this port is not a Tabhub hub: {reason}.",
        "`tabhub doctor` shows which program uses the port. `tabhub start --port N` uses another one.",
    )


def fetch(
    path: str,
    body: object = None,
    *,
    hub: Hub | None = None,
    headers: Mapping[str, str] | None = None,
    timeout: float = 10.0,
) -> Any:
    """The JSON that the hub answers to a GET, or with a body to a POST; raises its error."""
    hub = hub or find_hub()
    method, data = ("GET", None) if body is None else ("POST", json.dumps(body).encode())
    return checked(hub, request(hub, method, path, body=data, headers=headers, timeout=timeout))


def checked(hub: Hub, response: Response) -> Any:
    """The JSON of a successful response; otherwise raises its error."""
    if 200 <= response.status < 300:
        return decode(response)
    raise response_error(hub, response)


def response_error(hub: Hub, response: Response) -> CliError:
    message, hint = _message_and_hint(response)
    if response.status == 401:
        return CliError(
            f"The hub on {hub.address} does not accept the key in {hub.home}/run/person.key, or TABHUB_TOKEN if set.",
            "It may be the hub of another home (TABHUB_HOME), or of an older version: "
            "`tabhub stop`, then `tabhub start`. `tabhub doctor` shows which.",
        )
    if message is None and (response.status < 400 or not is_json(response)):
        return not_a_hub(f"it answered with status {response.status}")
    if hint is None and response.status == 429:
        hint = f"Try again in {response.headers.get('retry-after', 60)} s."
    elif hint is None and (response.status >= 500 or message is None):
        hint = "See `tabhub logs`."
    return CliError(message or f"The hub answered with status {response.status} and no explanation.", hint)


def unexpected_form(what: str) -> CliError:
    return CliError(
        f"The hub's {what} is not in the expected form.",
        "CLI and hub may be of different versions. Restart the hub: tabhub stop && tabhub start --background",
    )


def is_json(response: Response) -> bool:
    """Whether a hub may have sent it: its errors are JSON too."""
    return response.headers.get("content-type", "").startswith("application/json")


def _message_and_hint(response: Response) -> tuple[str | None, str | None]:
    """The text of a failed tool result, the message and hint of an error, or a plain text."""
    try:
        body = json.loads(response.body)
    except ValueError:
        plain = response.headers.get("content-type", "").startswith("text/plain")
        return (response.body[:2000].decode("utf-8", "replace").strip() or None) if plain else None, None
    content, error = (body.get("content"), body.get("error")) if isinstance(body, dict) else (None, None)
    if isinstance(content, list):
        return "\n".join(str(block["text"]) for block in content if "text" in block) or None, None
    return (error.get("message"), error.get("hint")) if isinstance(error, dict) else (None, None)
