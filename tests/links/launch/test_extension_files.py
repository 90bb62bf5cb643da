"""Installing the extension into a folder that a browser loads."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tabhub.errors import SetupError
from tabhub.links.launch import extension_files as install
from tabhub.links.launch.extension_files import (
    extension_stamp,
    extension_version,
    install_extension,
    packaged_extension,
)

SECRET = "5ec7e7" * 10 + "abcd"


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    source = tmp_path / "shipped"
    (source / "link").mkdir(parents=True)
    (source / "_locales" / "en").mkdir(parents=True)
    (source / "manifest.json").write_text('{"version": "1.2.3"}')
    (source / "background.js").write_text("1")
    (source / "link" / "socket.js").write_text("2")
    (source / "_locales" / "en" / "messages.json").write_text("{}")
    (source / "chrome.d.ts").write_text("types")
    (source / ".hidden").write_text("editor's")
    (source / "auth.json").write_text("of a developer")
    monkeypatch.setattr(install, "packaged_extension", lambda: source)
    return source


def files(folder: Path) -> set[str]:
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}


def test_the_packaged_extension_is_found_and_has_a_version() -> None:
    assert extension_version(packaged_extension()).count(".") >= 1


def test_installation_writes_the_files_and_the_secret(shipped: Path, tmp_path: Path) -> None:
    home = tmp_path / "home" / "extension"
    assert install_extension(home, key=SECRET, port=9515) == home
    assert files(home) == {
        "manifest.json",
        "background.js",
        "link/socket.js",
        "_locales/en/messages.json",
        "auth.json",
    }
    auth = json.loads((home / "auth.json").read_text())
    assert auth == {"secret": SECRET, "scope": "extension", "port": 9515, "host": "127.0.0.1", "managed": False}


def test_only_the_person_can_read_the_secret(shipped: Path, tmp_path: Path) -> None:
    home = tmp_path / "home" / "extension"
    install_extension(home, key=SECRET, port=9515, managed=True)
    assert home.stat().st_mode & 0o777 == 0o700
    assert home.parent.stat().st_mode & 0o777 == 0o700
    assert (home / "auth.json").stat().st_mode & 0o777 == 0o600
    (home / "auth.json").chmod(0o644)
    home.chmod(0o755)
    install_extension(home, key=SECRET, port=9515, managed=True)
    assert (home / "auth.json").stat().st_mode & 0o777 == 0o600
    assert home.stat().st_mode & 0o777 == 0o700
    assert json.loads((home / "auth.json").read_text())["managed"] is True


def test_an_unchanged_installation_writes_nothing(shipped: Path, tmp_path: Path) -> None:
    home = tmp_path / "extension"
    install_extension(home, key=SECRET, port=9515)
    before = {name: (home / name).stat().st_ino for name in files(home)}
    install_extension(home, key=SECRET, port=9515)
    assert {name: (home / name).stat().st_ino for name in files(home)} == before


def test_only_changed_files_are_written_and_stale_ones_removed(shipped: Path, tmp_path: Path) -> None:
    home = tmp_path / "extension"
    install_extension(home, key=SECRET, port=9515)
    before = {name: (home / name).stat().st_ino for name in files(home)}
    (home / "link" / "old.js").write_text("stale")
    (home / "gone").mkdir()
    (home / "gone" / "x.js").write_text("stale")
    (home / "background.js").write_text("tampered")
    (shipped / "link" / "socket.js").write_text("new")
    install_extension(home, key=SECRET, port=9515)
    after = {name: (home / name).stat().st_ino for name in files(home)}
    assert after.keys() == before.keys()
    assert {name for name in after if after[name] != before[name]} == {"background.js", "link/socket.js"}
    assert (home / "background.js").read_text() == "1"
    assert not (home / "gone").exists()


def test_a_link_is_removed_and_never_followed(shipped: Path, tmp_path: Path) -> None:
    home = tmp_path / "extension"
    install_extension(home, key=SECRET, port=9515)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "precious.txt").write_text("keep")
    (home / "linked").symlink_to(elsewhere)
    (home / "background.js").unlink()
    (home / "background.js").symlink_to(elsewhere / "precious.txt")
    install_extension(home, key=SECRET, port=9515)
    assert (elsewhere / "precious.txt").read_text() == "keep"
    assert not (home / "linked").exists()
    assert not (home / "background.js").is_symlink()


def test_a_folder_in_the_place_of_a_file_is_replaced(shipped: Path, tmp_path: Path) -> None:
    home = tmp_path / "extension"
    install_extension(home, key=SECRET, port=9515)
    (home / "background.js").unlink()
    (home / "background.js").mkdir()
    (home / "background.js" / "x").write_text("x")
    install_extension(home, key=SECRET, port=9515)
    assert (home / "background.js").read_text() == "1"


def test_a_folder_with_foreign_files_is_not_changed(shipped: Path, tmp_path: Path) -> None:
    home = tmp_path / "extension"
    home.mkdir()
    (home / "thesis.odt").write_text("precious")
    with pytest.raises(SetupError, match="not the extension's"):
        install_extension(home, key=SECRET, port=9515)
    assert files(home) == {"thesis.odt"}


@pytest.mark.req("F11")
def test_a_failed_write_is_reported_and_leaves_no_partial_file(
    shipped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "extension"
    install_extension(home, key=SECRET, port=9515)
    (shipped / "background.js").write_text("new")

    def full(_handle: int, _mode: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fchmod", full)
    with pytest.raises(SetupError, match="No space left on device") as caught:
        install_extension(home, key=SECRET, port=9515)
    assert str(home) in caught.value.message
    assert (home / "background.js").read_text() == "1"
    assert not list(home.glob(".new-*"))


def test_a_rotated_secret_does_not_change_the_stamp(shipped: Path, tmp_path: Path) -> None:
    home = tmp_path / "extension"
    install_extension(home, key=SECRET, port=9515)
    stamp = extension_stamp(home)
    install_extension(home, key="other", port=9516)
    auth = json.loads((home / "auth.json").read_text())
    assert (auth["secret"], auth["port"]) == ("other", 9516)
    assert extension_stamp(home) == stamp


def test_the_stamp_follows_the_content(shipped: Path, tmp_path: Path) -> None:
    home = install_extension(tmp_path / "extension", key=SECRET, port=9515)
    assert extension_stamp(home) == extension_stamp(shipped)
    assert extension_stamp(home).startswith("1.2.3+")
    (shipped / "background.js").write_text("new")
    assert extension_stamp(home) != extension_stamp(shipped)


@pytest.mark.parametrize("manifest", ["{", "[]", '{"version": 1}'])
def test_the_error_names_a_broken_manifest(tmp_path: Path, manifest: str) -> None:
    (tmp_path / "manifest.json").write_text(manifest)
    with pytest.raises(SetupError, match=r"manifest\.json") as caught:
        extension_version(tmp_path)
    assert caught.value.hint
