"""Invalid adapters, adapters made with classes, and pages that tamper: each affects only itself."""

from __future__ import annotations

import pytest

from tests.extension.conftest import PAGES, Site
from tests.extension.pluginbench import Bench, bench, refusal

__all__ = ["bench"]

HERE = "*://127.0.0.1/*"
BUNDLED = """
(() => {
  const seen = (globalThis.seen ??= []);
  class Adapter {
    name = NAME;
    tools = [{ name: "echo", handle: async () => VERSION }];
    async isReady() { return true; }
    onDeactivate() { seen.push("deactivated"); }
    onToolInvocationStart() { seen.push("began"); }
    onNavigate() { seen.push("navigated"); }
    teardown() { seen.push(`torn down ${VERSION}`); }
  }
  const box = (globalThis.__openTabs ??= {});
  if (Object.getOwnPropertyDescriptor(box, "adapters")?.writable === false) throw new Error("locked");
  box.adapters ??= {};
  const made = new Adapter();
  made.__adapterHash = HASH;
  Object.freeze(made);
  Object.defineProperty(box.adapters, NAME, { value: made, enumerable: true });
  Object.defineProperty(box, "adapters", { value: box.adapters, writable: false, configurable: false });
})();
"""


async def test_an_adapter_of_a_class_runs_its_hooks_itself_and_may_freeze_its_namespace(
    bench: Bench, site: Site
) -> None:
    await bench.sync(bench.plugin("bundled", HERE, text=BUNDLED), bench.plugin("beside", HERE))
    page = await bench.open(f"{site.url}/strict")
    await bench.state("beside", "ready", (page.tab, True))
    assert await bench.call("bundled", "echo") == "1"
    await page.run("void (location.hash = '#two')")
    await page.until("seen.includes('1 at #two')")
    await bench.wire.notify("plugin.update", plugin=bench.plugin("bundled", HERE, version="2", text=BUNDLED))
    assert await bench.call("bundled", "echo") == "2"
    await bench.wire.ask("plugin.uninstall", name="bundled")
    assert await page.run("Object.keys(__openTabs.adapters).join()") == "beside"
    assert await page.run("seen.join()") == "1 at #two,torn down 1,torn down 2"
    assert (await bench.call("beside", "echo"))["path"] == "/strict"


TAMPERED = {
    "own": ("window.__openTabs = { mine: 1 }; window.mine = window.__openTabs", True),
    "frozen": ("window.mine = window.__openTabs = Object.freeze({ mine: 1 })", True),
    "frozen adapters": ("window.__openTabs = { mine: 1, adapters: Object.freeze({ theirs: 2 }) }", True),
    "primitive": ("window.__openTabs = 7", True),
    "locked": ("Object.defineProperty(window, '__openTabs', { value: Object.freeze({ mine: 1 }) })", False),
    "getter": ("Object.defineProperty(window, '__openTabs', { get() { throw new Error('no'); } })", False),
}


@pytest.mark.parametrize("how", TAMPERED)
async def test_a_page_with_its_own_open_tabs_object_only_affects_itself(
    bench: Bench, site: Site, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    script, works = TAMPERED[how]
    monkeypatch.setitem(PAGES, "/tampered", ("", f"<title>T</title><script>{script}</script>"))
    await bench.sync(bench.plugin("brave", HERE))
    page, fair = await bench.open(f"{site.url}/tampered"), await bench.open(f"{site.url}/")
    await bench.state("brave", "ready", (page.tab, works), (fair.tab, True))
    assert (await bench.call("brave", "echo", tabId=fair.tab))["path"] == "/"
    if works:
        assert (await bench.call("brave", "echo", tabId=page.tab))["path"] == "/tampered"
        if how != "primitive":
            assert await page.run("__openTabs.mine") == 1
        await bench.wire.ask("plugin.uninstall", name="brave")
        if "mine" in script:
            assert await page.run("__openTabs.mine") == 1
            assert await page.run("__openTabs.adapters?.brave ?? null") is None
        return
    error = await refusal(bench.call("brave", "echo", tabId=page.tab))
    assert f"brave is not in tab {page.tab}" in error.message
    assert "The page" in error.message
    assert error.data["sent"] is False


async def test_a_page_that_fakes_the_adapter_only_affects_its_own_tab(bench: Bench, site: Site) -> None:
    await bench.sync(bench.plugin("lied", HERE))
    page, fair = await bench.open(f"{site.url}/other"), await bench.open(f"{site.url}/")
    await bench.state("lied", "ready", (page.tab, True), (fair.tab, True))
    await page.run(
        "void (globalThis.__openTabs = { adapters: { lied: { isReady: () => true, tools: [{ name: 'echo',"
        " handle: () => ({ lies: true }) }] } } })"
    )
    assert await bench.call("lied", "echo", tabId=page.tab) == {"lies": True}
    assert (await bench.call("lied", "echo", tabId=fair.tab))["path"] == "/"


async def test_a_missing_or_invalid_adapter_is_reported_with_a_reason(bench: Bench, site: Site) -> None:
    missing = {**bench.plugin("missing", HERE), "adapterFile": "adapters/missing-000000000000.js"}
    wrong = {**bench.plugin("wrong", HERE), "adapterHash": "f" * 64}
    empty = bench.plugin("empty", HERE, text="void 0;")
    broken = bench.plugin("broken", HERE, text="throw new Error('no')")
    bad = {**bench.plugin("bad", HERE), "adapterFile": "../auth.json"}
    at = len(bench.wire.seen)
    await bench.sync(missing, wrong, empty, broken, bad, bench.plugin("fine", HERE))
    page = await bench.open(f"{site.url}/")
    await bench.state("fine", "ready", (page.tab, True))
    for name, words in (
        ("missing", "missing-000000000000.js"),
        ("wrong", "another hash"),
        ("empty", "did not register"),
        ("broken", "did not register"),
    ):
        error = await refusal(bench.call(name, "echo"))
        assert words in error.message
        assert error.data["sent"] is False
    assert (await bench.call("fine", "echo"))["path"] == "/"
    noted = [m["params"]["message"] for m in bench.wire.seen[at:] if m.get("method") == "log"]
    assert any("adapterFile is invalid" in text for text in noted)
