"""Real apps from PyPI and npm, and an agent with the defaults of the product: a hub with a managed headless browser.

`test_*.py` belong to `make test`; `app_*.py` install more and run with `make apps`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.apps.app_agent import AppAgent
from tests.e2e import live
from tests.e2e.live import LiveHub
from tests.harness.agent import Agent


@pytest.fixture(scope="session")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveHub]:
    hub = live.start(tmp_path_factory.mktemp("hub"))
    yield hub
    live.stop(hub)


@pytest.fixture
async def agent(hub: LiveHub) -> AsyncIterator[AppAgent]:
    async with Agent(hub) as client:
        yield AppAgent(client)
