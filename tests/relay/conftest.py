"""The key file of a relay."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def key(tmp_path: Path) -> Path:
    file = tmp_path / "relay.key"
    file.write_text("0123456789abcdef" * 4)
    return file
