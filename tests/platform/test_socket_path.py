"""The path of the bridge socket in each environment."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tabhub.errors import SetupError
from tabhub.platform.socket_path import TCP, bridge_path, checked


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


def test_a_home_with_a_long_path_has_its_socket_in_a_private_temporary_folder(tmp_path: Path) -> None:
    home = str(tmp_path / "deep" / ("x" * 120))
    path = bridge_path(home, {"TMPDIR": "/somewhere"})
    assert path.startswith(f"/somewhere/tabhub-{os.getuid()}/bridge-")
    assert path == bridge_path(home, {"TMPDIR": "/somewhere/"})
    assert path != bridge_path(f"{home}y", {"TMPDIR": "/somewhere"})
    assert bridge_path(home, {"TMPDIR": "/somewhere", "TABHUB_SOCKET": "/here"}) == "/here"
    assert bridge_path(home, {"TMPDIR": home}) == bridge_path(home, {})
