"""A hub with a model for the tests of one file, and its chat with nothing said yet for each of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from playwright.async_api import Page, Playwright

from tests.e2e.chat.talking import chatting, new_chat
from tests.e2e.live import LiveHub


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveHub]:
    with chatting(tmp_path_factory.mktemp("chat")) as hub:
        yield hub


@pytest.fixture
async def panel(playwright: Playwright, hub: LiveHub) -> AsyncIterator[Page]:
    async with new_chat(playwright, hub) as page:
        yield page
