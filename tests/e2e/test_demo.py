"""`tabhub demo` as a newcomer runs it: hub, Chromium and shop are started, used, and gone afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

PNG = b"\x89PNG\r\n\x1a\n"


def test_the_demo_uses_the_shop_tools_asks_for_approval_and_leaves_only_the_screenshot(tmp_path: Path) -> None:
    home = tmp_path / "home"
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TABHUB_")}
    with tempfile.TemporaryDirectory() as place:  # short, because the browser creates a socket in it
        done = subprocess.run(
            [sys.executable, "-m", "tabhub", "demo", "--headless", "--output", str(tmp_path / "shop.png")],
            env={**kept, "TABHUB_HOME": str(home), "TMPDIR": place},
            input="n\n",
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        left = list(Path(place).iterdir())
    assert done.returncode == 0, done.stderr
    assert "The page declared 5 tools" in done.stdout
    assert "  answer  3 found: Storm lantern" in done.stdout
    assert "  answer  LANTERN10: 10 % off.\n" in done.stdout
    assert "  answer  In the cart: 2 items, €86.40.\n" in done.stdout
    assert "Confirm? [y/N] n\n" in done.stdout
    assert "  answer  The person did not confirm; nothing was ordered.\n" in done.stdout
    assert (tmp_path / "shop.png").read_bytes().startswith(PNG)
    assert left == []
    assert not home.exists()
