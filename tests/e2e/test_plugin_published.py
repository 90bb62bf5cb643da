"""A plugin as published for OpenTabs, unchanged: installed from its tarball, and run by the real extension."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.e2e import live
from tests.e2e.live import Caller, LiveHub
from tests.e2e.restartable_hub import RestartableHub
from tests.harness.local_server import LocalServer, QuietHandler
from tests.harness.waiting import until_outside
from tests.plugins import publishing

_BADGE = 'pageBegan = true; fetch("/badge", { headers: { "X-Badge": "b-%s" } }); var own = fetch;'
_SHOP = "<!doctype html><title>Shop</title><body data-open><script>{}</script><iframe src=/inner></iframe>"
_SHUT = "<!doctype html><title>Shut</title><body><script>{}</script>"
_STAMP = "return globalThis.__openTabs?.adapters?.counter?.__adapterHash ?? null"


class Shop(LocalServer):
    """A site whose pages send their badge as soon as they start."""

    def __init__(self) -> None:
        class Handler(QuietHandler):
            def answer(self) -> None:
                page = _SHUT if self.path.startswith("/shut") else _SHOP if self.path != "/inner" else "<p>in</p>"
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write(page.format(_BADGE % self.path.strip("/")).encode())

        super().__init__(Handler)


@pytest.fixture(scope="module")
def shop() -> Iterator[Shop]:
    site = Shop()
    yield site
    site.stop()


@pytest.fixture(scope="module")
def restartable(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestartableHub]:
    """A separate hub, so that the installation does not affect other tests."""
    hub = RestartableHub(tmp_path_factory.mktemp("published"))
    yield hub
    hub.stop()


@pytest.fixture
def own_hub(restartable: RestartableHub) -> LiveHub:
    return restartable.running


@pytest.fixture
async def caller(own_hub: LiveHub) -> AsyncIterator[Caller]:
    async with live.caller(own_hub) as agent:
        yield agent


async def ready(hub: LiveHub, tab: int) -> None:
    """Wait until a tab is ready for the plugin."""

    def there() -> bool:
        tabs = [each for plugin in hub.health()["pluginDetails"] for each in plugin["tabs"]]
        return any(each["tabId"] == tab and each["ready"] for each in tabs)

    await until_outside(there)


async def test_a_published_package_installs_registers_and_answers(
    own_hub: LiveHub, caller: Caller, shop: Shop, tmp_path: Path
) -> None:
    output = live.plugin(own_hub, "install", publishing.packed(tmp_path / "counter.tgz"))
    assert "Installed Counter 0.0.89 with 3 tools." in output
    assert "runs a script in these pages before their own" in live.plugin(own_hub, "inspect", "counter")
    (facts,) = own_hub.health()["pluginDetails"]
    assert (facts["name"], facts["sdkVersion"], facts["source"]) == ("counter", "0.0.115", "npm")
    assert facts["tools"] == ["counter_read_badge", "counter_count_up", "counter_sell_out"]
    assert "E01E5A" in facts["iconSvg"]
    tab = await caller.open(f"{shop.url}/front")
    await ready(own_hub, tab)
    assert await caller.get("counter_read_badge", tabId=tab) == {"badge": "b-front", "first": True}
    assert await caller.get("counter_count_up", tabId=tab, to=3) == {"counted": 3}
    failed = await caller.fail("counter_sell_out", tabId=tab)
    assert (failed["category"], failed["pluginCode"], failed["retryable"]) == ("rate_limit", "SOLD_OUT", True)
    assert failed["retryAfterMs"] == 1500
    hooks = ["activated"]
    hooks += [f"{each} {how}" for each in ("read_badge", "count_up") for how in ("began", "ended true")]
    assert await caller.run("return hooks", tabId=tab) == [*hooks, "sell_out began", "sell_out ended false"]
    locked = "const at = (o, k) => Object.getOwnPropertyDescriptor(o, k); const all = globalThis.__openTabs;"
    locked += "return [Object.isFrozen(all.adapters.counter), at(all.adapters, 'counter').writable]"
    assert await caller.run(locked, tabId=tab) == [True, False]
    await until_outside(lambda: own_hub.health()["pluginDetails"][0]["logBufferSize"] == 1)
    framed = "const inner = document.querySelector('iframe').contentWindow; return inner.__openTabs.preScript.counter"
    assert await caller.run(framed, tabId=tab) == {"first": True}
    excluded = await caller.open(f"{shop.url}/back/room")
    assert await caller.run("return globalThis.__openTabs ?? null", tabId=excluded) is None


async def test_a_page_that_reports_ready_is_ready_immediately(
    own_hub: LiveHub, caller: Caller, shop: Shop, tmp_path: Path
) -> None:
    live.plugin(own_hub, "install", publishing.packed(tmp_path / "counter.tgz"))
    tab = await caller.open(f"{shop.url}/shut")
    refused = await caller.fail("counter_read_badge", tabId=tab)
    assert refused["outcome"] == "not_sent"
    await caller.run("document.body.dataset.open = ''; opened()", tabId=tab)
    await ready(own_hub, tab)
    assert (await caller.get("counter_read_badge", tabId=tab))["badge"] == "b-shut"


async def test_update_and_uninstall_apply_to_pre_scripts(
    own_hub: LiveHub, caller: Caller, shop: Shop, tmp_path: Path
) -> None:
    live.plugin(own_hub, "install", publishing.packed(tmp_path / "1.tgz"))
    tab = await caller.open(f"{shop.url}/one")
    await ready(own_hub, tab)
    stamp = await caller.run(_STAMP, tabId=tab)
    fresh = publishing.published()["dist/adapter.iife.js"].replace("counted to", "now counted to")
    live.plugin(own_hub, "install", publishing.packed(tmp_path / "2.tgz", "0.0.90", adapter=fresh, pre_script=False))
    await until_outside(lambda: own_hub.health()["pluginDetails"][0]["version"] == "0.0.90")
    await ready(own_hub, tab)
    # The open page keeps what was stored for it and gets the new adapter; a new page gets no pre-script any more.
    assert (await caller.get("counter_read_badge", tabId=tab))["badge"] == "b-one"
    assert await caller.run(_STAMP, tabId=tab) not in (None, stamp)
    after = await caller.open(f"{shop.url}/two")
    await ready(own_hub, after)
    assert await caller.get("counter_read_badge", tabId=after) == {"badge": None, "first": False}
    live.plugin(own_hub, "install", publishing.packed(tmp_path / "3.tgz", "0.0.91"))
    third = await caller.open(f"{shop.url}/three")
    await ready(own_hub, third)
    assert (await caller.get("counter_read_badge", tabId=third))["badge"] == "b-three"
    folder = own_hub.home / "managed/extension/adapters"
    assert sorted(path.name.rpartition("-")[0] for path in folder.iterdir()) == ["counter", "counter-prescript"]
    live.plugin(own_hub, "remove", "counter")
    await until_outside(lambda: not list(folder.iterdir()))
    last = await caller.open(f"{shop.url}/four")
    assert await caller.run("return [globalThis.__openTabs ?? null, String(own)]", tabId=last) == [
        None,
        "function fetch() { [native code] }",
    ]
    assert await caller.run("return document.modelContext !== undefined", tabId=last) is True


async def test_a_restarted_browser_has_the_plugin_immediately_unless_it_was_uninstalled(
    restartable: RestartableHub, shop: Shop, tmp_path: Path
) -> None:
    hub = restartable.running
    live.plugin(hub, "install", publishing.packed(tmp_path / "counter.tgz"))
    async with live.caller(hub) as caller:
        await ready(hub, await caller.open(f"{shop.url}/one"))
    restartable.stop()
    hub = restartable.running
    async with live.caller(hub) as caller:
        tab = await caller.open(f"{shop.url}/two")
        await ready(hub, tab)
        assert (await caller.get("counter_read_badge", tabId=tab))["badge"] == "b-two"
    restartable.stop()
    live.plugin(hub, "remove", "counter")  # while neither hub nor browser runs
    hub = restartable.running
    async with live.caller(hub) as caller:
        tab = await caller.open(f"{shop.url}/three")
        assert await caller.run("return globalThis.__openTabs ?? null", tabId=tab) is None
        assert await caller.run("return document.modelContext !== undefined", tabId=tab) is True
