"""`tabhub extension`: where the extension is and how to load it."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Run


def test_extension_path_and_how_to_load_it(home: Path, tabhub: Run) -> None:
    done = tabhub("extension", "path")
    assert done.returncode == 2
    assert "tabhub start" in done.stderr
    (home / "extension" / "manifest.json").write_text("{}")
    assert tabhub("extension", "path").stdout == f"{home}/extension\n"
    shown = tabhub("extension", "open").stdout
    assert f"{home}/extension" in shown
    assert "Load unpacked" in shown
