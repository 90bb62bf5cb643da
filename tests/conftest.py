"""Fixtures for all tests: a running hub, and the backend of async tests."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.harness.hub import RunningHub, running_hub

# Hypothesis measures how long examples take, which is meaningless on a busy machine.
settings.register_profile("tabhub", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tabhub")

# A shell that runs the tests in the background may have them ignore Ctrl+C; child processes must not inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# Folders whose tests start browsers and other processes. They run first, so that the many quick tests fill the gaps
# and the workers end together (`--no-loadscope-reorder` keeps this order).
SLOW_FOLDERS = ("e2e", "extension", "upstream", "cli", "relay", "conformance", "links", "examples", "faults", "load")
_RANKS = {name: rank for rank, name in enumerate(SLOW_FOLDERS)}
_TESTS = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: _RANKS.get(item.path.relative_to(_TESTS).parts[0], len(_RANKS)))


@pytest.fixture(scope="session")
def anyio_backend() -> tuple[str, dict[str, bool]]:
    """The event loop the product runs on."""
    return "asyncio", {"use_uvloop": True}


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[RunningHub]:
    async with running_hub(tmp_path) as running:
        yield running
