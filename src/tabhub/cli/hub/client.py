"""The hub as the command line sees it: where it is, and HTTP/1.1 to it over one plain socket.

Owns finding the hub (hub.json, auth.json) and one request and its answer. It imports next to nothing, because every
`tabhub tool call` pays for it. It knows no endpoint.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time

from tabhub.client_errors import CliError, HubDownError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

HOST = "127.0.0.1"
DEFAULT_PORT = 9515
CONNECT_TIMEOUT = 3.0
MAX_HEAD = 64 * 1024
MAX_ANSWER = 256 * 1024 * 1024


class Hub:
    """Where the hub is, or would be, and the secret that opens it."""

    __slots__ = ("home", "pid", "port", "proved", "record", "secret")

    def __init__(self, home: str, port: int, secret: str | None, pid: int | None, record: dict[str, Any]) -> None:
        self.home = home
        self.port = port
        self.secret = secret
        self.pid = pid
        """The process that says it is this home's hub and is alive."""
        self.record = record
        """What it wrote about itself."""
        self.proved = pid is not None and record.get("port") == port
        """Whether the port is known to be the hub's: if none runs, any user of this machine could listen there."""

    @property
    def address(self) -> str:
        """Host and port."""
        return f"{HOST}:{self.port}"


class Answer:
    """One HTTP answer."""

    __slots__ = ("body", "headers", "status")

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    def json(self) -> Any:
        """The body as JSON, or an error saying that it is none."""
        try:
            return json.loads(self.body)
        except ValueError:
            raise not_a_hub(f"it answered {self.status} with something that is not JSON") from None


def home() -> str:
    """The folder everything is kept in."""
    named = os.environ.get("TABHUB_HOME", "").strip() or "~/.tabhub"
    return os.path.abspath(os.path.expanduser(named))  # noqa: PTH100,PTH111


def read_json(path: str) -> Any:
    """A JSON file of ours; None when there is none."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - pathlib costs more than the call
            return json.loads(file.read())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError:
        raise CliError(f"{path} is not valid JSON.", "Run `tabhub doctor` to see how to mend it.") from None


def alive(pid: int) -> bool:
    """Whether a process of that id runs, and is not merely waiting for its parent to notice its end."""
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True  # another user's, but there
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - pathlib costs more than the call
            return file.read().rpartition(b")")[2].split()[0] != b"Z"
    except (OSError, IndexError):
        return True  # no /proc to ask


def find_hub() -> Hub:
    """Where this home's hub is: what the running hub wrote, else what its settings say."""
    folder = home()
    auth = read_json(f"{folder}/extension/auth.json")
    auth = auth if isinstance(auth, dict) else {}
    record = read_record(folder)
    pid = record.get("pid")
    pid = pid if isinstance(pid, int) and alive(pid) else None
    port = _port(os.environ.get("TABHUB_PORT"), record.get("port") if pid else None, auth.get("port"))
    secret = auth.get("secret")
    return Hub(folder, port, secret if isinstance(secret, str) else None, pid, record if pid else {})


def read_record(folder: str) -> dict[str, Any]:
    """What the hub of a home wrote about itself; empty when it wrote nothing, or is just writing."""
    try:
        record = read_json(f"{folder}/hub.json")
    except CliError:
        return {}
    return record if isinstance(record, dict) else {}


def _port(*candidates: object) -> int:
    for candidate in candidates:
        if isinstance(candidate, int) and 0 < candidate < 65536:
            return candidate
        if isinstance(candidate, str) and candidate.isascii() and candidate.isdigit() and 0 < int(candidate) < 65536:
            return int(candidate)
    return DEFAULT_PORT


def bearer(hub: Hub, path: str) -> str | None:
    """What opens an address: the agent's own token (TABHUB_TOKEN) where agents go, else the hub's secret."""
    token = os.environ.get("TABHUB_TOKEN", "").strip() if path.startswith(("/tools", "/mcp")) else ""
    if not token and hub.secret and not hub.proved:
        _prove(hub, hub.secret)
    return token or hub.secret


def _prove(hub: Hub, secret: str) -> None:
    """Have whoever listens on the port show that it knows the secret, before it is told."""
    import hmac  # here, because hardly any command needs it

    challenge = os.urandom(32).hex()
    facts = request(hub, "GET", f"/health?challenge={challenge}", anonymous=True).json()
    shown = facts.get("proof") if isinstance(facts, dict) else None
    wanted = hmac.digest(secret.encode(), f"tabhub hub {hub.port} {challenge}".encode(), "sha256").hex()
    if not isinstance(shown, str) or not hmac.compare_digest(shown.encode(), wanted.encode()):
        raise CliError(
            f"What answers on {hub.address} is not the hub of {hub.home}: it does not know our secret.",
            "It was not told. End what holds the port, or start a hub on another: tabhub start --port N",
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
) -> Answer:
    """Send one request and read its whole answer."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: {hub.address}", "Connection: close", "Accept: application/json"]
    secret = None if anonymous else bearer(hub, path)
    if secret:
        lines.append(f"Authorization: Bearer {secret}")
    if body is not None:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    for name, value in (headers or {}).items():
        if not (value.isascii() and value.isprintable()):
            raise CliError(f"The value of {name} may hold printable ASCII only, not {value!r}.", exit_code=2)
        lines.append(f"{name}: {value}")
    head = "\r\n".join(lines).encode("ascii") + b"\r\n\r\n"
    try:
        connection = socket.create_connection((HOST, hub.port), timeout=CONNECT_TIMEOUT)
    except OSError:
        raise HubDownError(hub.address) from None
    with connection:
        return _exchange(connection, hub, head + (body or b""), timeout)


def _exchange(connection: socket.socket, hub: Hub, message: bytes, timeout: float) -> Answer:
    reader = _Reader(connection, time.monotonic() + timeout)
    try:
        connection.settimeout(timeout)
        # A refused send may have its answer (413) waiting already; if not, reading says so.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(message)
        return _read_answer(reader)
    except TimeoutError:
        raise CliError(
            f"The hub on {hub.address} did not answer within {timeout:g} s.",
            "What was asked may still happen. Look at `tabhub logs` and `tabhub doctor`.",
        ) from None
    except (ConnectionError, EOFError):
        raise CliError(
            f"The hub on {hub.address} closed the connection before it had answered.",
            "What was asked may have happened. Look at `tabhub status` and `tabhub logs`.",
        ) from None


def not_a_hub(what: str) -> CliError:
    """The error for an answer no hub gives."""
    return CliError(
        f"What answers is not a Tabhub hub: {what}.",
        "Another program may hold the port: `tabhub doctor` names it. `tabhub start --port N` uses another one.",
    )


class _Reader:
    """A socket as lines and counted bytes, until a moment in time."""

    __slots__ = ("buffer", "connection", "until")

    def __init__(self, connection: socket.socket, until: float) -> None:
        self.connection = connection
        self.until = until
        self.buffer = bytearray()

    def more(self) -> bool:
        """Read what is there; False at the end."""
        left = self.until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self.connection.settimeout(left)
        data = self.connection.recv(262144)
        self.buffer += data
        return bool(data)

    def line(self) -> bytes:
        while (end := self.buffer.find(b"\n")) < 0:
            if len(self.buffer) > MAX_HEAD:
                raise not_a_hub("its answer has a line without end")
            if not self.more():
                raise EOFError
        found = bytes(self.buffer[:end]).rstrip(b"\r")
        del self.buffer[: end + 1]
        return found

    def exactly(self, size: int) -> bytes:
        while len(self.buffer) < size:
            if not self.more():
                raise EOFError
        found = bytes(self.buffer[:size])
        del self.buffer[:size]
        return found

    def rest(self) -> bytes:
        while self.more():
            if len(self.buffer) > MAX_ANSWER:
                raise not_a_hub("its answer is too large")
        return bytes(self.buffer)


def _read_answer(reader: _Reader) -> Answer:
    while True:
        first = reader.line().split(b" ", 2)
        if len(first) < 2 or first[0] not in (b"HTTP/1.1", b"HTTP/1.0") or not first[1].isdigit():
            raise not_a_hub("it does not speak HTTP")
        status = int(first[1])
        headers = _read_headers(reader)
        if status >= 200:
            break
    if status in (204, 304):
        return Answer(status, headers, b"")
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return Answer(status, headers, _read_chunks(reader))
    length = headers.get("content-length")
    if length is None:
        return Answer(status, headers, reader.rest())
    if not (length.isascii() and length.isdigit()) or int(length) > MAX_ANSWER:
        raise not_a_hub("its answer has no sensible length")
    return Answer(status, headers, reader.exactly(int(length)))


def _read_headers(reader: _Reader) -> dict[str, str]:
    headers: dict[str, str] = {}
    size = 0
    while field := reader.line():
        size += len(field)
        name, colon, value = field.decode("latin-1").partition(":")
        if not colon or size > MAX_HEAD:
            raise not_a_hub("its answer has a broken header")
        headers[name.strip().lower()] = value.strip()
    return headers


def _read_chunks(reader: _Reader) -> bytes:
    body = bytearray()
    while True:
        try:
            size = int(reader.line().split(b";")[0], 16)
        except ValueError:
            raise not_a_hub("its answer has a broken chunk") from None
        if size < 0 or len(body) + size > MAX_ANSWER:
            raise not_a_hub("its answer is too large")
        if size == 0:
            while reader.line():
                pass  # trailers say nothing we need
            return bytes(body)
        body += reader.exactly(size)
        reader.line()
