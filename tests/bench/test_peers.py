"""The comparison with other servers: reading pictures and snapshots, and its tables."""

from __future__ import annotations

import base64
import struct
import zlib

import pytest

from bench.peers.comparison import LEAN, TABHUB, Figures, render
from bench.peers.connections import Failed
from bench.peers.dialects import CHROME_DEVTOOLS, PLAYWRIGHT, find_ref
from bench.peers.dialects import TABHUB as OWN
from bench.peers.measures import MEASURES, picture
from bench.peers.starts import EVALUATED, READY


def png(width: int, height: int, pixel: bytes, line_filter: int) -> str:
    """A picture of one colour, with only its first line filtered as given."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    lines = bytes([line_filter]) + pixel * width + (b"\0" + pixel * width) * (height - 1)
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + body).decode()


@pytest.mark.parametrize("line_filter", range(5))
def test_a_picture_has_a_size_and_a_first_pixel_whatever_its_filter(line_filter: int) -> None:
    assert picture(png(7, 3, b"\x01\x02\x03", line_filter)) == ((7, 3), (1, 2, 3))


@pytest.mark.parametrize("image", [None, "", "bm90IGEgcGljdHVyZQ=="])
def test_what_is_no_picture_fails(image: str | None) -> None:
    with pytest.raises(Failed, match="not a PNG"):
        picture(image)


def test_an_element_is_found_in_the_snapshot_of_each_server() -> None:
    assert find_ref(OWN, 'heading "Form" [ref=b0]\nbutton "Go on" [ref=b1]', "Go on") == "b1"
    assert find_ref(PLAYWRIGHT, '- heading "Form" [ref=e1]\n- button "Go on" [active] [ref=e2]', "Go on") == "e2"
    assert find_ref(CHROME_DEVTOOLS, 'uid=1_1 heading "Form"\n  uid=1_2 button "Go on"', "Go on") == "1_2"
    with pytest.raises(LookupError, match="Stop"):
        find_ref(OWN, 'button "Go on" [ref=b1]', "Stop")


def test_the_tables_say_whether_each_target_is_met() -> None:
    times = {one.name: {TABHUB: [1.0, 1.0], LEAN: [2.0, 2.0]} for one in MEASURES}
    cpu = {one.name: {TABHUB: [3.0], LEAN: [4.0]} for one in MEASURES}
    starts = {READY: {TABHUB: [60.0], LEAN: [100.0]}, EVALUATED: {TABHUB: [90.0], LEAN: [100.0]}}
    text = render(Figures((10, 20), times, cpu, starts, ["One is left out."]), MEASURES, 2, 1.0)
    assert "pages of 10x20" in text
    assert "One is left out." in text
    assert "navigate, p50 to Playwright lean: required at most 1, measured 0.50: met" in text
    assert "evaluate, p50 to Playwright lean: required at most 0.33, measured 0.50: NOT met" in text
    assert f"start {READY}, to the best peer: required at most 0.7, measured 0.60: met" in text
    assert f"start {EVALUATED}, to the best peer: required at most 0.8, measured 0.90: NOT met" in text
