"""Pages over plain HTTP, such as those of intranets: plugins, page servers and forms work outside secure contexts."""

from __future__ import annotations

import pytest

from tests.extension.conftest import Site
from tests.extension.fakehub import Wire
from tests.extension.pagetab import PageTab
from tests.extension.pluginbench import Bench, bench

__all__ = ["bench"]

CONFIRM = "browser/elicitConfirmation"


@pytest.mark.req("C6")
async def test_plugins_run_report_and_log(bench: Bench, site: Site) -> None:
    await bench.sync(bench.plugin("plain", "http://intranet.test/*"))
    page = await bench.open(f"{site.intranet}/")
    assert await page.run("isSecureContext") is False
    await bench.state("plain", "ready", (page.tab, True))
    assert (await bench.call("plain", "echo"))["path"] == "/"
    at = len(bench.wire.seen)
    params = bench.params("plain", "steps", input={"steps": [{"progress": 1}]})
    assert (await bench.wire.ask("tool.dispatch", **params))["output"] == "done"
    assert (await bench.wire.notified("tool.progress", after=at, dispatchId=params["dispatchId"]))["progress"] == 1
    await bench.call("plain", "says", input={"lines": [["info", "read"]]})
    assert (await bench.wire.notified("plugin.log", after=at))["entries"][0]["message"] == "read"


@pytest.mark.req("C6")
async def test_the_tools_of_a_page_server_are_called_and_may_ask_for_confirmation(wire: Wire, shop: Site) -> None:
    wire.answers[CONFIRM] = {"confirmed": True}
    page = await PageTab.open(wire, f"{shop.intranet}/pages/transports.html")
    assert await page.run("isSecureContext") is False
    reported = await page.reported("price", "count", "waits", "order")
    assert reported["origin"] == shop.intranet
    assert await page.text("price", item="tea") == "tea costs 7"
    assert await page.text("order") == "ordered true"
    await wire.ask("closeTab", tabId=page.tab)


@pytest.mark.parametrize("confirmed", [True, False])
async def test_a_form_is_submitted_when_the_person_confirms(wire: Wire, shop: Site, confirmed: bool) -> None:
    wire.answers[CONFIRM] = {"confirmed": confirmed}
    page = await PageTab.open(wire, f"{shop.intranet}/pages/form.html")
    await page.reported("search", "buy", "odd", "go")
    answer = await page.call("buy", thing="tea")
    assert answer["success"] is confirmed, answer
    await wire.ask("closeTab", tabId=page.tab)
