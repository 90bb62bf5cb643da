"""The table of tokens that the hub counts with, made from a published vocabulary; `scripts/token_table` writes it."""

from __future__ import annotations

import base64
import gzip
import sys
from array import array
from importlib.resources import files
from pathlib import Path
from zlib import crc32

import tabhub.core.results

PATH = Path(tabhub.core.results.__path__[0], "tokens.crc32")


def make_table() -> bytes:
    """The CRC-32 of each token of o200k_base, ascending, as little-endian numbers of four bytes."""
    lines = gzip.decompress(files("bpe_openai").joinpath("data/o200k_base.tiktoken.gz").read_bytes()).split(b"\n")
    tokens = (base64.b64decode(line.split()[0]) for line in lines if line)
    table = array("I", sorted({crc32(token) for token in tokens}))
    if sys.byteorder == "big":
        table.byteswap()
    return table.tobytes()


if __name__ == "__main__":
    if "--write" in sys.argv:
        PATH.write_bytes(make_table())
