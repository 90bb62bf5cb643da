"""Reloading and reconnecting the extension: when the tools return, and the error if nothing reconnects."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from tabhub.browser import browser_tools
from tabhub.errors import CommandFailed
from tabhub.limits import DEFAULTS
from tabhub.links.browsers import Browsers
from tabhub.links.extension import RECONNECT
from tests.browser.conftest import Bench, Choice
from tests.browser.fake_browser import FakeBrowser, settle, tab


@pytest.fixture
async def bench(tmp_path: Path) -> Bench:
    """A browser that has half a second to reconnect."""
    browsers = Browsers(replace(DEFAULTS, extension_back=0.5))
    browser = FakeBrowser().join(browsers, tab(1))
    made = browser_tools(browsers, Choice(browsers), tmp_path)
    return Bench(browsers, browser, {tool.name: (tool, run) for tool, run in made}, tmp_path)


async def test_reconnect_returns_when_the_browser_has_reported_its_tabs(bench: Bench) -> None:
    call = asyncio.create_task(bench.call("extension_force_reconnect", browserId="b1"))
    await settle()
    assert bench.browser.closed == [(RECONNECT, "asked to reconnect")]
    fresh = FakeBrowser()
    bench.browsers.attach(fresh.link)
    assert not call.done()
    fresh.notify("tab.syncAll", tabs=[tab(1)])
    assert (await call)["browserId"] == "b1"
    assert bench.context.sent


async def test_reload_returns_when_a_new_connection_replaced_the_old_one(bench: Bench) -> None:
    call = asyncio.create_task(bench.call("extension_reload"))
    await settle()
    assert bench.browser.sent[-1]["method"] == "extension.reload"
    FakeBrowser().join(bench.browsers, tab(1))
    assert "seconds" in await call


@pytest.mark.parametrize("name", ["extension_reload", "extension_force_reconnect"])
async def test_an_extension_that_does_not_reconnect_is_an_error(bench: Bench, name: str) -> None:
    with pytest.raises(CommandFailed, match=r"did not reconnect within 0\.5 s") as caught:
        await bench.call(name)
    assert "doctor" in (caught.value.hint or "")
