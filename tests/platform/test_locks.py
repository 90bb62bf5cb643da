"""Lock files: held by one process at a time."""

from __future__ import annotations

from pathlib import Path

import pytest

from tabhub.errors import SetupError
from tabhub.platform.locks import locked, try_lock


def test_a_held_lock_is_reported_and_free_again_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    with locked(path), try_lock(path) as acquired:
        assert not acquired
    with try_lock(path) as acquired, try_lock(path) as again:
        assert (acquired, again) == (True, False)


def test_a_lock_that_cannot_be_opened_is_a_setup_error(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="Could not open the lock"), try_lock(tmp_path / "missing" / "a.lock"):
        pass
