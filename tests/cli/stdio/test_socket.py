"""The bridge socket as `status` and `doctor` see it."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run, announce
from tests.cli.fake_http_hub import FakeHub
from tests.cli.test_doctor import report
from tests.cli.test_status import HEALTH


@contextmanager
def answering(listener: socket.socket, answer: bytes) -> Iterator[list[dict[str, Any]]]:
    """A server that gives every client the same answer; yields the requests."""
    requests: list[dict[str, Any]] = []

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                requests.append(json.loads(connection.recv(65536)))
                connection.sendall(answer)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield requests
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(10)


@pytest.fixture
def path(home: Path, hub: FakeHub) -> Path:
    """The socket that hub.json of the running hub names."""
    place = home / "run" / "bridge.sock"
    place.parent.mkdir(mode=0o700, exist_ok=True)
    hub.answer("GET /health", HEALTH)
    name_socket(home, hub, str(place))
    return place


def name_socket(home: Path, hub: FakeHub, place: str) -> None:
    announce(home, hub.port)
    record = json.loads((home / "hub.json").read_text())
    (home / "hub.json").write_text(json.dumps({**record, "socket": place}))


def listen(path: Path, mode: int = 0o600) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    path.chmod(mode)
    listener.listen()
    return listener


OK = b'{"type":"STATUS_OK","id":"status","extensionConnected":true,"activeSessions":3}\n'


def test_responding_socket_is_ok_and_listed_in_status(path: Path, tabhub: Run) -> None:
    with answering(listen(path), OK) as requests:
        code, found = report(tabhub)
    assert code == 0
    assert found["checks"]["socket"]["level"] == "ok"
    assert f"{path} answers, 3 open sessions" in found["checks"]["socket"]["message"]
    assert requests == [{"type": "STATUS", "id": "status"}]
    assert f"socket     {path}" in tabhub("status").stdout


def test_loopback_port_is_queried_with_its_token(home: Path, hub: FakeHub, path: Path, tabhub: Run) -> None:
    name_socket(home, hub, "tcp")
    listener = socket.create_server(("127.0.0.1", 0))
    record = home / "run" / "bridge.json"
    record.write_text(json.dumps({"port": listener.getsockname()[1], "token": "t"}))
    record.chmod(0o600)
    with answering(listener, OK) as requests:
        assert report(tabhub)[1]["checks"]["socket"]["level"] == "ok"
    assert requests == [{"type": "STATUS", "id": "status", "token": "t"}]


def test_doctor_reports_a_broken_socket(path: Path, tabhub: Run) -> None:
    code, found = report(tabhub)
    assert (code, found["broken"]) == (1, "socket")
    assert "No such file" in found["checks"]["socket"]["message"]
    listen(path).close()
    code, found = report(tabhub)
    assert (code, found["broken"]) == (1, "socket")
    assert "refused" in found["checks"]["socket"]["message"]
    assert "tabhub stop" in found["checks"]["socket"]["remedy"]


def test_doctor_reports_a_mismatched_socket_path(path: Path, tabhub: Run) -> None:
    code, found = report(tabhub, TABHUB_SOCKET="/nowhere/else.sock")
    reply = found["checks"]["socket"]
    assert (code, found["broken"]) == (1, "socket")
    assert reply["message"] == f"TABHUB_SOCKET means /nowhere/else.sock here, but the hub listens on {path}."
    assert "TABHUB_SOCKET" in reply["remedy"]


@pytest.mark.parametrize("answer", [b"", b"half", b"nope\n", b'{"type":"ERROR"}\n', b"[]\n"])
def test_socket_of_another_process_is_detected(path: Path, tabhub: Run, answer: bytes) -> None:
    with answering(listen(path), answer):
        code, found = report(tabhub)
    assert (code, found["broken"]) == (1, "socket")


def test_doctor_reports_a_socket_open_to_other_users(path: Path, tabhub: Run) -> None:
    with answering(listen(path, 0o666), OK):
        code, found = report(tabhub)
    assert (code, found["broken"]) == (1, "socket")
    assert found["checks"]["socket"]["remedy"] == f"Run: chmod 600 {path}"


def test_hub_without_a_socket_is_a_warning(hub: FakeHub, tabhub: Run) -> None:
    hub.answer("GET /health", HEALTH)
    code, found = report(tabhub)
    assert (code, found["checks"]["socket"]["level"]) == (0, "warn")
    assert str(os.getpid()) not in found["checks"]["socket"]["message"]
