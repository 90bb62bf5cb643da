"""The home folder: found, private, and its files replaced atomically."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tabhub.errors import SetupError
from tabhub.platform.files import write_atomic
from tabhub.platform.locks import locked
from tabhub.store.home import Home


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_the_environment_names_the_home(tmp_path: Path) -> None:
    assert Home.find({"TABHUB_HOME": str(tmp_path / "x")}).root == tmp_path / "x"
    assert Home.find({"HOME": str(tmp_path)}).root == tmp_path / ".tabhub"
    assert Home.find({"TABHUB_HOME": " ", "HOME": str(tmp_path)}).root == tmp_path / ".tabhub"
    assert Home.find({"TABHUB_HOME": "relative"}).root == Path.cwd() / "relative"
    assert Home.find({"TABHUB_HOME": "~/hub"}).root == Path("~/hub").expanduser()
    with pytest.raises(SetupError, match="No home folder"):
        Home.find({"TABHUB_HOME": "~nobody-of-that-name/hub"})


def test_paths_are_as_documented(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert home.config == tmp_path / "config.json"
    assert home.auth == tmp_path / "extension" / "auth.json"
    assert home.audit == tmp_path / "audit.log"
    assert home.hub_log == tmp_path / "logs" / "hub.log"
    assert home.hub_json == tmp_path / "hub.json"


def test_folders_are_private_whatever_the_umask(tmp_path: Path) -> None:
    home = Home(tmp_path / "deep" / "home")
    before = os.umask(0o022)
    try:
        home.ensure()
    finally:
        os.umask(before)
    for folder in (home.root, home.extension, home.logs, home.files, home.managed):
        assert mode(folder) == 0o700


def test_a_home_that_others_may_write_to_is_refused(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.ensure()
    home.extension.chmod(0o770)
    with pytest.raises(SetupError, match="Other users may write") as caught:
        home.ensure()
    assert caught.value.hint == f"Run: chmod 700 {home.extension}"


def test_a_home_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: mine + 1)
    with pytest.raises(SetupError, match="belongs to another user"):
        Home(tmp_path / "home").ensure()


def test_a_home_that_cannot_be_written_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(tmp_path / "home")
    home.ensure()
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(SetupError, match="is not writable"):
        home.ensure()


def test_a_file_in_place_of_the_home_is_refused(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    with pytest.raises(SetupError, match="is not a folder"):
        Home(tmp_path / "home").ensure()
    with pytest.raises(SetupError, match="Could not create the folder"):
        Home(tmp_path / "home" / "below").ensure()


def test_a_file_is_replaced_atomically_and_private(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomic(path, "one")
    write_atomic(path, b"two", 0o644)
    assert path.read_bytes() == b"two"
    assert mode(path) == 0o644
    write_atomic(path, "three")
    assert mode(path) == 0o600
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_a_linked_file_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_atomic(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


@pytest.mark.parametrize("call", ["fsync", "replace", "fchmod"])
def test_a_failure_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    path = tmp_path / "file"
    path.write_text("old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail)
        with pytest.raises(SetupError, match="No space left on device"):
            write_atomic(path, "new")
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_a_write_that_stops_midway_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, hard))
    try:
        with pytest.raises(SetupError, match="File too large"):
            write_atomic(path, "x" * 4096)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_a_short_write_is_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda fd, data: real(fd, data[:3]))
        write_atomic(tmp_path / "file", "0123456789")
    assert (tmp_path / "file").read_text() == "0123456789"


def test_temporary_files_of_killed_writers_are_removed(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.ensure()
    dead = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    left = home.root / f".config.json.{int(dead.stdout)}.00ff00ff.tmp"
    alive = home.root / f".config.json.{os.getpid()}.00ff00ff.tmp"
    other = home.root / ".something.tmp"
    for path in (left, alive, other):
        path.write_text("x")
    home.ensure()
    assert not left.exists()
    assert alive.exists()
    assert other.exists()


def test_a_lock_has_one_holder_and_is_released_when_it_dies(tmp_path: Path) -> None:
    holder = (
        "import sys; from pathlib import Path; from tabhub.platform.locks import locked\n"
        "with locked(Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"
    )
    lock = tmp_path / "lock"
    with subprocess.Popen(
        [sys.executable, "-c", holder, str(lock)], stdout=subprocess.PIPE, stdin=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        process.kill()
        with locked(lock):
            assert process.wait() != 0


def test_a_lock_that_cannot_be_created_is_a_setup_error(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="Could not open the lock"), locked(tmp_path / "missing" / "lock"):
        raise AssertionError
