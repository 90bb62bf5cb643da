"""The bridge socket is private, replaces a dead hub's, and is never created in a folder that others may change."""

from __future__ import annotations

import socket
import stat
import tempfile
from pathlib import Path

import pytest

from tabhub.errors import SetupError
from tabhub.platform.bridge_socket import listen_unix


def test_the_socket_is_private_to_this_user(tmp_path: Path) -> None:
    path = tmp_path / "run" / "bridge.sock"
    with listen_unix(str(path)):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_dead_hubs_socket_is_replaced_and_a_live_one_kept(tmp_path: Path) -> None:
    path = str(tmp_path / "bridge.sock")
    tmp_path.chmod(0o700)
    listen_unix(path).close()  # closed, but its file stays: as after a kill
    with listen_unix(path), pytest.raises(SetupError, match="Another hub listens"):
        listen_unix(path)


def test_a_file_that_is_not_a_socket_is_kept(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    path = tmp_path / "bridge.sock"
    path.write_text("mine")
    with pytest.raises(SetupError, match="not a socket"):
        listen_unix(str(path))
    assert path.read_text() == "mine"


def test_a_folder_others_may_write_to_is_refused(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    with pytest.raises(SetupError, match="Other users may write"):
        listen_unix(str(shared / "bridge.sock"))
    (tmp_path / "file").write_text("")
    with pytest.raises(SetupError, match="not a folder"):
        listen_unix(str(tmp_path / "file" / "bridge.sock"))


def test_the_socket_accepts_connections(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    path = str(tmp_path / "bridge.sock")
    with listen_unix(path), socket.socket(socket.AF_UNIX) as client:
        client.connect(path)


def test_a_symbolic_link_as_the_folder_is_refused() -> None:
    with tempfile.TemporaryDirectory(prefix="th-") as folder:
        Path(folder, "real").mkdir(mode=0o700)
        Path(folder, "link").symlink_to(Path(folder, "real"))
        with pytest.raises(SetupError, match="not a folder"):
            listen_unix(f"{folder}/link/d.sock")
