"""The folder in which tools read and write files; existing files are overwritten only on request.

Owns the validation of paths given by agents, and writing. It does not know the content.
"""

from __future__ import annotations

import itertools
import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tabhub.errors import CommandFailed, InvalidArguments

_MAX_LENGTH = 1000


@dataclass(frozen=True, slots=True)
class Folder:
    """The folder, and whether the person allowed paths outside it."""

    path: Path | None
    """None where no files can be used: a server shared by many people keeps no files of theirs."""
    anywhere: bool = False

    @property
    def _root(self) -> Path:
        if self.path is None:
            raise InvalidArguments(
                "Files can be neither read nor written here.",
                hint="Leave filePath out; a hub on your own machine (tabhub start) has a folder for files.",
            )
        return self.path.resolve()

    def output_path(self, given: str, suffixes: tuple[str, ...]) -> Path:
        root = self._root
        if not _is_plain(given):
            raise InvalidArguments("filePath must be a plain path of at most 1000 characters.")
        path = Path(given)
        if path.suffix.lower() not in suffixes:
            raise InvalidArguments(f"filePath must end in {' or '.join(suffixes)} for this format, not {given!r}.")
        if not self.anywhere and (path.is_absolute() or given.startswith("~")):
            raise InvalidArguments(
                f"filePath {given!r} is outside the folder for files.",
                hint="Give a relative path such as shots/page.png.",
            )
        if ".." in path.parts:
            raise InvalidArguments(f"filePath {given!r} must not contain `..`.")
        place = (root / path).parent.resolve() / path.name
        if not self.anywhere and not place.is_relative_to(root):
            raise InvalidArguments(f"filePath {given!r} leaves the folder for files through a symbolic link.")
        return place

    def input_path(self, given: str) -> Path:
        root = self._root
        if not _is_plain(given):
            raise InvalidArguments("A path must be plain and of at most 1000 characters.")
        place = (root / Path(given).expanduser()).resolve() if self.anywhere else (root / given).resolve()
        if not self.anywhere and not place.is_relative_to(root):
            raise InvalidArguments(
                f"{given!r} is outside the folder for files ({root}).",
                hint="Put the file there, or let the person allow more: tabhub config set filesAnywhere true",
            )
        if not place.is_file():
            folder = place if place.is_dir() else place.parent
            there = sorted(entry.name for entry in folder.iterdir())[:10] if folder.is_dir() else []
            absent = f"There is no file {given!r} in {root}." if not self.anywhere else f"There is no file {place}."
            raise InvalidArguments(
                f"{given!r} is a folder." if place.is_dir() else absent,
                hint=f"In that folder: {', '.join(there)}." if there else "The folder is empty or does not exist.",
            )
        return place

    def unused_path(self, name: str, suffix: str) -> Path:
        """A path that does not exist yet, based on the name."""
        stem = re.sub(r"[^A-Za-z0-9.-]+", "-", name).strip("-.")[:60] or "file"
        root = self._root
        names = (f"{stem}{f'-{number}' if number > 1 else ''}{suffix}" for number in itertools.count(1))
        return next(place for name in names if not os.path.lexists(place := root / name))

    def check_vacant(self, place: Path, *, overwrite: bool) -> None:
        """Fail as `write` would for an existing file, before data is produced that would then be lost."""
        if not overwrite and os.path.lexists(place):
            raise _exists_error(place)

    def write(self, place: Path, data: bytes, *, overwrite: bool) -> None:
        """Write the file atomically."""
        try:
            place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle, name = tempfile.mkstemp(dir=place.parent, prefix=".tabhub-")
            draft = Path(name)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(data)
                if overwrite:
                    draft.replace(place)
                else:
                    # A link fails where a rename would silently replace an existing file.
                    os.link(draft, place)
            finally:
                draft.unlink(missing_ok=True)
        except FileExistsError:
            raise _exists_error(place) from None
        except OSError as error:
            raise CommandFailed(
                f"{place} could not be written: {error.strerror}.",
                hint="Without filePath the result comes back directly.",
            ) from None


def _is_plain(given: str) -> bool:
    return 0 < len(given) <= _MAX_LENGTH and all(ord(letter) >= 32 for letter in given)


def _exists_error(place: Path) -> CommandFailed:
    return CommandFailed(
        f"{place} exists already and was not changed.", hint="Choose another filePath, or pass overwrite: true."
    )
