"""Screenshots of the panel compared with stored ones: pixel by pixel where the fonts match, otherwise by colours.

Every version of a browser renders letters a little differently, so pixels are compared in squares of two by two and may
differ slightly. With other fonts everything is in other places: then only the share of each colour is compared. The
browser itself decodes the pictures.
"""

from __future__ import annotations

import base64
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.async_api import Page

KEPT = Path(__file__).parent / "screenshots"
FONTS = KEPT / "fonts.json"
RENEW = "TABHUB_RENEW_SCREENSHOTS"
MOST = 0.004
"""The share of squares that may differ."""
COLOURS = 0.08
"""The share of the picture that may have another colour where the fonts differ."""

_COMPARE = """async ([one, other, unlike]) => {
  const pixels = async (data) => {
    const picture = await createImageBitmap(await (await fetch(`data:image/png;base64,${data}`)).blob());
    const canvas = new OffscreenCanvas(picture.width, picture.height);
    const pen = canvas.getContext("2d");
    pen.drawImage(picture, 0, 0);
    return pen.getImageData(0, 0, picture.width, picture.height);
  };
  const [a, b] = await Promise.all([pixels(one), pixels(other)]);
  if (a.width !== b.width || a.height !== b.height) return { share: 1, colours: 1, diff: other };
  const { width, height } = a;
  const square = (image, x, y, channel) => {
    let sum = 0;
    for (const [dx, dy] of [[0, 0], [1, 0], [0, 1], [1, 1]])
      sum += image.data[4 * (Math.min(y + dy, height - 1) * width + Math.min(x + dx, width - 1)) + channel];
    return sum / 4;
  };
  const canvas = new OffscreenCanvas(width, height);
  const pen = canvas.getContext("2d");
  pen.putImageData(b, 0, 0);
  pen.fillStyle = "rgb(255 255 255 / 70%)";
  pen.fillRect(0, 0, width, height);
  pen.fillStyle = "rgb(220 0 0)";
  let [differing, all] = [0, 0];
  // A letter that moved by less than a pixel is the same letter.
  const STEPS = [[1, 0], [-1, 0], [0, 1], [0, -1], [1, 1], [-1, -1], [1, -1], [-1, 1]];
  const counts = new Map();
  for (let y = 0; y < height; y += 2)
    for (let x = 0; x < width; x += 2) {
      all += 1;
      const [p, q] = [a, b].map((image) => [0, 1, 2].map((channel) => square(image, x, y, channel)));
      const near = (dx, dy) => {
        const [nx, ny] = [Math.min(Math.max(x + dx, 0), width - 1), Math.min(Math.max(y + dy, 0), height - 1)];
        return p.every((value, channel) => Math.abs(value - square(b, nx, ny, channel)) <= unlike);
      };
      if (!near(0, 0) && !STEPS.some(([dx, dy]) => near(dx, dy))) {
        differing += 1;
        pen.fillRect(x, y, 2, 2);
      }
      for (const [each, step] of [[p, 1], [q, -1]]) {
        const colour = each.map((value) => Math.round(value / 24)).join();
        counts.set(colour, (counts.get(colour) ?? 0) + step);
      }
    }
  const moved = [...counts.values()].reduce((sum, count) => sum + Math.abs(count), 0) / 2;
  const bytes = new Uint8Array(await (await canvas.convertToBlob()).arrayBuffer());
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return { share: differing / all, colours: moved / all, diff: btoa(text) };
}"""
_UNLIKE = 40
"""Maximum deviation of a colour value, of 255."""
_WIDTHS = """() => {
  const pen = new OffscreenCanvas(10, 10).getContext("2d");
  return ["13px system-ui", "600 15px system-ui", "12px monospace"].map((font) => {
    pen.font = font;
    return Math.round(pen.measureText("The quick brown fox, 0123456789").width * 4);
  });
}"""


@dataclass(frozen=True, slots=True)
class Desk:
    """Compares screenshots with stored ones."""

    page: Page
    """A page used for nothing else."""
    folder: Path
    """Where differing pictures are written."""
    same_letters: bool

    @classmethod
    async def ready(cls, page: Page, folder: Path) -> Desk:
        """Detect the installed fonts; they are stored with the pictures when these are regenerated."""
        widths = await page.evaluate(_WIDTHS)
        if os.environ.get(RENEW):
            KEPT.mkdir(exist_ok=True)
            FONTS.write_text(json.dumps(widths) + "\n")
        kept = json.loads(FONTS.read_text()) if FONTS.exists() else []
        return cls(page, folder, kept == widths)

    async def problem(self, name: str, taken: bytes) -> str | None:
        """Compare a picture with the stored one, or store it; returns what differs and where to see it."""
        path = KEPT / f"{name}.png"
        if os.environ.get(RENEW):
            path.write_bytes(taken)
            return None
        if not path.exists():
            return f"there is no {path.name}: make it with {RENEW}=1"
        kept = path.read_bytes()
        if kept == taken:
            return None
        found = await self.compare(kept, taken)
        share, most = (found["share"], MOST) if self.same_letters else (found["colours"], COLOURS)
        if share <= most:
            return None
        for kind, data in (("kept", kept), ("taken", taken), ("diff", base64.b64decode(found["diff"]))):
            (self.folder / f"{name}-{kind}.png").write_bytes(data)
        return f"{name}: {share:.1%} is different, at most {most:.1%} may be; see {self.folder / f'{name}-diff.png'}"

    async def compare(self, one: bytes, other: bytes) -> dict[str, Any]:
        """The shares that differ, and a picture of the differences."""
        given = [base64.b64encode(one).decode(), base64.b64encode(other).decode(), _UNLIKE]
        found: dict[str, Any] = await self.page.evaluate(_COMPARE, given)
        return found
