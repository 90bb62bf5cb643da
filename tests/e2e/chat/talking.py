"""How one talks in the chat of a live hub's panel, and gives it a model to talk to."""

from __future__ import annotations

import asyncio
import itertools

from playwright.async_api import Locator, Page, expect

from tests.agent.scripted import Scripted
from tests.e2e.agenthome import give_model
from tests.e2e.live import LiveHub

_models = itertools.count(1)


async def thinks_with(hub: LiveHub, server: Scripted, page: Page) -> None:
    """Give it a model; the panel shows its name once the hub has taken it."""
    name = f"m{next(_models)}"
    await asyncio.to_thread(give_model, hub, server, name)
    await expect(page.locator(".composer-about")).to_contain_text(f"{name} · ")


def message(page: Page) -> Locator:
    return page.get_by_role("textbox", name="Message to the assistant")


async def say(page: Page, text: str) -> None:
    await message(page).fill(text)
    await message(page).press("Enter")


def step(page: Page, tool: str) -> Locator:
    return page.locator(f"[data-step='{tool}']").last
