"""Where the bridge socket is, and what may stand in its way."""

from __future__ import annotations

import os
import socket
import stat
import tempfile
from pathlib import Path

import pytest

from tabhub.errors import SetupError
from tabhub.platform.socket_path import TCP, bridge_path, checked, listen_unix


def runtime(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir(mode=0o700)
    return folder


def test_each_home_has_its_own_socket_name(tmp_path: Path) -> None:
    env = {"XDG_RUNTIME_DIR": str(runtime(tmp_path))}
    default = bridge_path(os.path.expanduser("~/.tabhub"), env)  # noqa: PTH111
    assert default == f"{tmp_path}/run/tabhub/bridge.sock"
    one, two = bridge_path("/home/one", env), bridge_path("/home/two", env)
    assert len({default, one, two}) == 3
    assert one == bridge_path("/home/one", env)
    assert one.startswith(f"{tmp_path}/run/tabhub/bridge-")


def test_without_a_private_runtime_folder_the_socket_is_in_the_home(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    for env in ({}, {"XDG_RUNTIME_DIR": ""}, {"XDG_RUNTIME_DIR": "/nowhere"}, {"XDG_RUNTIME_DIR": str(shared)}):
        assert bridge_path("/home/one", env) == "/home/one/run/bridge.sock"


def test_the_environment_sets_the_path(tmp_path: Path) -> None:
    env = {"XDG_RUNTIME_DIR": str(runtime(tmp_path)), "TABHUB_SOCKET": "~/x.sock"}
    assert bridge_path("/home/one", env) == os.path.expanduser("~/x.sock")  # noqa: PTH111
    assert bridge_path("/home/one", {"TABHUB_SOCKET": "tcp"}) == TCP
    assert bridge_path("/home/one", {"TABHUB_SOCKET": "run/mine.sock"}) == "/home/one/run/mine.sock"


def test_a_path_too_long_to_bind_is_refused_before_binding() -> None:
    assert checked("/" + "x" * 102)
    with pytest.raises(SetupError, match="200 bytes") as caught:
        checked("/" + "x" * 199)
    assert "TABHUB_SOCKET" in str(caught.value.hint)


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
    with pytest.raises(SetupError, match="not a safe folder"):
        listen_unix(str(shared / "bridge.sock"))
    (tmp_path / "file").write_text("")
    with pytest.raises(SetupError, match="not a safe folder"):
        listen_unix(str(tmp_path / "file" / "bridge.sock"))


def test_the_socket_accepts_connections(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    path = str(tmp_path / "bridge.sock")
    with listen_unix(path), socket.socket(socket.AF_UNIX) as client:
        client.connect(path)


def test_a_home_with_a_long_path_has_its_socket_in_a_private_temporary_folder(tmp_path: Path) -> None:
    home = str(tmp_path / "deep" / ("x" * 120))
    path = bridge_path(home, {"TMPDIR": "/somewhere"})
    assert path.startswith(f"/somewhere/tabhub-{os.getuid()}/bridge-")
    assert path == bridge_path(home, {"TMPDIR": "/somewhere/"})
    assert path != bridge_path(f"{home}y", {"TMPDIR": "/somewhere"})
    assert bridge_path(home, {"TMPDIR": "/somewhere", "TABHUB_SOCKET": "/here"}) == "/here"
    assert bridge_path(home, {"TMPDIR": home}) == bridge_path(home, {})


def test_a_symbolic_link_as_the_folder_is_refused() -> None:
    with tempfile.TemporaryDirectory(prefix="th-") as folder:
        Path(folder, "real").mkdir(mode=0o700)
        Path(folder, "link").symlink_to(Path(folder, "real"))
        with pytest.raises(SetupError, match="not a safe folder"):
            listen_unix(f"{folder}/link/d.sock")
