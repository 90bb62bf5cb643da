"""Scripts of plugins that run before the page's own: registered for exactly the current plugins."""

from __future__ import annotations

from tests.extension.conftest import Site
from tests.extension.fakehub import Message
from tests.extension.pluginbench import Bench, bench

__all__ = ["bench"]

HERE = "*://127.0.0.1/*"
_SAYS = "(globalThis.before ??= []).push('%s ' + document.readyState + ' ' + (document.body === null));"


def early(bench: Bench, name: str, digest: str = "0123456789ab") -> Message:
    """A plugin with such a script, written like the hub does."""
    plugin = bench.plugin(name, HERE)
    file = f"adapters/{name}-prescript-{digest}.js"
    (bench.chromium.extension / file).write_text(_SAYS % f"{name} {digest[0]}")
    return {**plugin, "preScriptFile": file}


async def seen(bench: Bench, url: str) -> object:
    """The scripts that ran before a new page."""
    page = await bench.open(url)
    return await page.run("(globalThis.before ?? []).join()")


async def test_a_pre_script_runs_before_the_page_and_is_removed_with_its_plugin(bench: Bench, site: Site) -> None:
    await bench.sync(early(bench, "one"), early(bench, "two"), bench.plugin("three", HERE))
    await bench.wire.ask("plugin.uninstall", name="nobody")  # earlier messages have been processed
    ran = str(await seen(bench, f"{site.url}/strict")).split(",")
    assert sorted(ran) == ["one 0 loading true", "two 0 loading true"]
    update = early(bench, "one", "abcdef012345")
    await bench.wire.notify("plugin.update", plugin=update)
    await bench.wire.ask("plugin.uninstall", name="two")
    assert await seen(bench, f"{site.url}/strict") == "one a loading true"
    await bench.wire.ask("plugin.uninstall", name="one")
    assert await seen(bench, f"{site.url}/strict") == ""


async def test_pages_that_do_not_match_get_no_pre_script(bench: Bench, site: Site) -> None:
    elsewhere = {**early(bench, "one"), "urlPatterns": ["*://elsewhere.example/*"]}
    excluded = {**early(bench, "two"), "excludePatterns": [f"{HERE[:-1]}strict*"]}
    await bench.sync(elsewhere, excluded)
    await bench.wire.ask("plugin.uninstall", name="nobody")
    assert await seen(bench, f"{site.url}/strict") == ""
    assert await seen(bench, f"{site.url}/") == "two 0 loading true"


async def test_the_scripts_for_page_tools_stay_registered(bench: Bench, site: Site) -> None:
    await bench.sync(early(bench, "one"))
    await bench.wire.notify("pages.settings", allowedOrigins=["https://other.example"], modelContext=True)
    await bench.wire.ask("plugin.uninstall", name="nobody")
    assert await seen(bench, f"{site.url}/") == "one 0 loading true"
    await bench.wire.notify("pages.settings", allowedOrigins=["*"], modelContext=True)
    await bench.wire.ask("plugin.uninstall", name="one")
    page = await bench.open(f"{site.url}/")
    await page.until("typeof document.modelContext === 'object'")


async def test_an_invalid_file_name_refuses_the_plugin_and_a_missing_file_the_script(bench: Bench, site: Site) -> None:
    named = {**bench.plugin("named", HERE), "preScriptFile": "adapters/../auth.json"}
    missing = {**bench.plugin("missing", HERE), "preScriptFile": "adapters/missing-prescript-000000000000.js"}
    at = len(bench.wire.seen)
    await bench.sync(named, missing, early(bench, "fine"))
    await bench.wire.ask("plugin.uninstall", name="nobody")
    assert await seen(bench, f"{site.url}/") == "fine 0 loading true"
    assert (await bench.call("missing", "echo"))["path"] == "/"
    noted = [m["params"]["message"] for m in bench.wire.seen[at:] if m.get("method") == "log"]
    assert any("preScriptFile is invalid" in text for text in noted)
    assert any("The pre-script of missing cannot be used" in text for text in noted)
