"""Fixtures for tests with invalid input."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.harness.hub import RunningHub, running_hub
from tests.harness.probe import Probe
from tests.security.surfaces import SURFACES, Surface
from tests.wire.builders import record_parsed_texts


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[RunningHub]:
    """A hub with the probe's tools and without rate limits."""
    rates = {"admin_rate": 0, "session_rate": 0, "auth_failure_rate": 0}
    async with running_hub(tmp_path, limits=rates) as running:
        Probe(running)
        yield running


@pytest.fixture
def parsed(hub: RunningHub, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Records every text that is later passed to a JSON parser."""
    return record_parsed_texts(monkeypatch)


@pytest.fixture(params=SURFACES, ids=str)
def surface(request: pytest.FixtureRequest) -> Surface:
    found: Surface = request.param
    return found
