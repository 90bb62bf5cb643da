"""A hub with a model, its browser for the tests of one file, and an empty chat for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from playwright.async_api import BrowserContext, Page, Playwright, expect

from tests.e2e.live import LiveHub
from tests.e2e.panels import browser_of, panel_of
from tests.e2e.restartable_hub import RestartableHub


@pytest.fixture(scope="module")
def hub(agent_hub: RestartableHub) -> LiveHub:
    return agent_hub.running


@pytest.fixture(scope="module")
async def browser(playwright: Playwright, hub: LiveHub) -> AsyncIterator[BrowserContext]:
    async with browser_of(playwright, hub) as browser:
        yield browser


@pytest.fixture
async def panel(browser: BrowserContext, request: pytest.FixtureRequest) -> AsyncIterator[Page]:
    async with panel_of(browser, request, "chat") as page:
        await expect(page.get_by_role("heading", level=2).first).to_have_text("New conversation")
        yield page
