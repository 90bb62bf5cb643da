"""Untrusted packages: whatever their bytes are, all files are unpacked inside the folder, or the package is refused."""

from __future__ import annotations

import contextlib
import gzip
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabhub.errors import PluginError
from tabhub.plugins.archive import unpack
from tests.plugins.packages import files, tarball

WHOLE = gzip.decompress(tarball(files()))
HEADS = [at for at in range(0, len(WHOLE), 512) if WHOLE[at + 257 : at + 262] == b"ustar"]
SIZE = slice(124, 136)


def changed(head: int, place: slice, value: bytes) -> bytes:
    """The package with a changed header value and a corrected checksum."""
    data = bytearray(WHOLE)
    one = bytearray(data[head : head + 512])
    one[place] = value
    one[148:156] = b" " * 8
    one[148:156] = b"%06o\0 " % sum(one)
    data[head : head + 512] = one
    return gzip.compress(bytes(data), 1)


changes = st.tuples(st.sampled_from(HEADS), st.integers(0, 511), st.binary(min_size=1, max_size=12)).map(
    lambda each: changed(each[0], slice(each[1], min(each[1] + len(each[2]), 512)), each[2][: 512 - each[1]])
)
sizes = st.tuples(st.sampled_from(HEADS), st.binary(min_size=12, max_size=12)).map(
    lambda each: changed(each[0], SIZE, each[1])
)
cut = st.integers(0, len(WHOLE)).map(lambda end: gzip.compress(WHOLE[:end], 1))


@settings(max_examples=300)
@given(st.one_of(changes, sizes, cut, st.binary(max_size=600)))
def test_a_package_of_any_bytes_is_unpacked_in_its_folder_or_refused(data: bytes) -> None:
    with TemporaryDirectory() as place:
        folder = Path(place, "inside")
        with contextlib.suppress(PluginError):  # refused
            unpack(data, folder)
        assert [entry.name for entry in Path(place).iterdir()] == ["inside"]
        assert not [
            entry for entry in folder.rglob("*") if entry.is_symlink() or not (entry.is_file() or entry.is_dir())
        ]


@pytest.mark.parametrize("size", [-1, -512, -(2**60), -(2**80)])
def test_negative_file_size_is_rejected(tmp_path: Path, size: int) -> None:
    number = tarfile.itn(size, 12, tarfile.GNU_FORMAT)  # type: ignore[attr-defined]
    with pytest.raises(PluginError, match="less than empty"):
        unpack(changed(HEADS[0], SIZE, number), tmp_path / "inside")
