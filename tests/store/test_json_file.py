"""A JSON file is loaded as it was saved; one that cannot be read or written is reported, and only its contents are
lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from tabhub.errors import SetupError
from tabhub.store.json_file import JsonFile


def test_a_saved_value_is_loaded_from_a_private_file(tmp_path: Path) -> None:
    path = tmp_path / "numbers.json"
    assert JsonFile(path, list[int]).load() is None
    assert JsonFile(path, list[int]).save([1, 2])
    assert JsonFile(path, list[int]).load() == [1, 2]
    assert path.stat().st_mode & 0o777 == 0o600


def test_an_unchanged_value_is_not_written_again(tmp_path: Path) -> None:
    file = JsonFile(tmp_path / "numbers.json", list[int])
    assert file.save([1])
    (tmp_path / "numbers.json").unlink()
    assert file.save([1])
    assert not (tmp_path / "numbers.json").exists()


@pytest.mark.parametrize("text", [b"", b"{", b'["a"]', b"\xff\xfe"])
def test_a_file_that_cannot_be_read_is_set_aside(tmp_path: Path, caplog: pytest.LogCaptureFixture, text: bytes) -> None:
    path = tmp_path / "numbers.json"
    path.write_bytes(text)
    file = JsonFile(path, list[int])
    assert file.load() is None
    assert "set aside as numbers.json.broken" in (file.error or "")
    assert len(caplog.records) == 1
    assert (tmp_path / "numbers.json.broken").read_bytes() == text
    assert file.save([1])
    assert file.error is None


def test_a_failed_write_is_logged_once_and_retried(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = JsonFile(tmp_path / "none" / "numbers.json", list[int])
    assert not file.save([1])
    assert not file.save([1])
    assert "Could not write" in (file.error or "")
    assert len(caplog.records) == 1
    with pytest.raises(SetupError, match="Could not write"):
        file.write([1])
    (tmp_path / "none").mkdir()
    assert file.save([1])
    assert not file.error


def test_without_a_path_nothing_is_stored() -> None:
    file = JsonFile(None, list[int])
    assert file.save([1])
    assert file.load() is None
