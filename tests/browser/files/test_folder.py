"""Where tools may write files: below one folder, without overwriting anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from tabhub.browser.files.folder import Folder
from tabhub.errors import CommandFailed, InvalidArguments


def test_links_out_of_the_folder_are_rejected_and_a_link_in_place_of_the_file_is_not_followed(tmp_path: Path) -> None:
    root, outside = tmp_path / "files", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (root / "way").symlink_to(outside)
    folder = Folder(root)
    with pytest.raises(InvalidArguments, match="through a symbolic link"):
        folder.output_path("way/a.png", (".png",))
    target = outside / "kept.png"
    target.write_bytes(b"kept")
    (root / "a.png").symlink_to(target)
    place = folder.output_path("a.png", (".png",))
    with pytest.raises(CommandFailed, match="exists already"):
        folder.write(place, b"new", overwrite=False)
    folder.write(place, b"new", overwrite=True)
    assert target.read_bytes() == b"kept"
    assert place.read_bytes() == b"new"


def test_an_absolute_path_is_accepted_only_if_the_person_allowed_it(tmp_path: Path) -> None:
    given = str(tmp_path / "elsewhere" / "a.png")
    place = Folder(tmp_path / "files", anywhere=True).output_path(given, (".png",))
    assert str(place) == given


def test_the_error_names_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "files").write_text("a file")
    folder = Folder(tmp_path / "files")
    with pytest.raises(CommandFailed, match="could not be written"):
        folder.write(tmp_path / "files" / "a" / "b.png", b"x", overwrite=False)


def test_a_generated_name_is_plain_and_unused(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    first = folder.unused_path("../../Some: page?", ".pdf")
    assert first == tmp_path.resolve() / "Some-page.pdf"
    folder.write(first, b"1", overwrite=False)
    assert folder.unused_path("Some: page", ".pdf").name == "Some-page-2.pdf"
    assert folder.unused_path("…", ".pdf").name == "file.pdf"


@pytest.mark.parametrize("given", [".", "sub/..", "sub"])
def test_a_folder_is_not_a_file_and_nothing_outside_is_listed(tmp_path: Path, given: str) -> None:
    (tmp_path / "secret").write_text("x")
    root = tmp_path / "files"
    (root / "sub").mkdir(parents=True)
    (root / "sub" / "inner.txt").write_text("x")
    with pytest.raises(InvalidArguments, match="is a folder") as caught:
        Folder(root).input_path(given)
    assert "secret" not in str(caught.value.hint)
    assert ("inner.txt" if given == "sub" else "sub") in str(caught.value.hint)


def test_the_error_for_a_missing_file_lists_the_existing_ones(tmp_path: Path) -> None:
    with pytest.raises(InvalidArguments, match=r"no file 'a\.txt'") as caught:
        Folder(tmp_path / "nowhere").input_path("a.txt")
    assert "does not exist" in str(caught.value.hint)
    (tmp_path / "b.txt").write_text("x")
    with pytest.raises(InvalidArguments, match=r"no file 'a\.txt'") as caught:
        Folder(tmp_path).input_path("a.txt")
    assert caught.value.hint == "In that folder: b.txt."
