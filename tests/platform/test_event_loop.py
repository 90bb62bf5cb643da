"""What both applications do around their event loop."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from tabhub.platform.event_loop import freeze_startup_objects


@pytest.fixture
def collector() -> Iterator[None]:
    """Restores the garbage collector."""
    before = gc.get_threshold()
    yield
    gc.enable()
    gc.unfreeze()
    gc.set_threshold(*before)


@pytest.mark.usefixtures("collector")
def test_the_collector_is_on_after_the_start_and_leaves_what_was_made_in_it() -> None:
    gc.disable()
    frozen = gc.get_freeze_count()
    freeze_startup_objects()
    assert gc.isenabled()
    assert gc.get_freeze_count() > frozen
