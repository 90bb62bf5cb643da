"""Helpers for the chat of a live hub: set a model, send messages, find steps."""

from __future__ import annotations

import asyncio
import itertools

from playwright.async_api import Locator, Page, expect

from tests.agent.scripted import Scripted
from tests.e2e.agent_hub import give_model
from tests.e2e.live import LiveHub

_models = itertools.count(1)


async def use_model(hub: LiveHub, server: Scripted, page: Page) -> None:
    """Set the model and wait until the panel shows its name."""
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
