"""Storage tools in a real browser."""

from __future__ import annotations

from tests.e2e.live import Caller
from tests.e2e.site import Site


async def test_local_and_session_storage_belong_to_the_pages_origin(guest: Caller, site: Site) -> None:
    await guest.visit(f"{site.url}/other")
    await guest.run("localStorage.clear(); localStorage.b = 'two'; localStorage.a = 'one'; sessionStorage.s = 'three'")
    local = await guest.get("browser_get_storage")
    assert (local["origin"], local["storageType"], local["total"]) == (site.url, "local", 2)
    assert local["items"] == [{"key": "a", "value": "one"}, {"key": "b", "value": "two"}]
    session = await guest.get("browser_get_storage", storageType="session", key="s")
    assert session["items"] == [{"key": "s", "value": "three"}]
    wrote = await guest.get("browser_set_storage", storageType="local", key="__proto__", value="ünï")
    assert (wrote["origin"], wrote["replaced"]) == (site.url, False)
    assert await guest.run("return localStorage.getItem('__proto__')") == "ünï"
    assert (await guest.get("browser_set_storage", storageType="local", key="a", value=None))["replaced"] is True
    assert await guest.run("return localStorage.getItem('a')") is None
    missing = await guest.fail("browser_get_storage", key="a")
    assert "Keys there: __proto__, b." in missing["text"]


async def test_each_origin_has_its_own_storage(guest: Caller, site: Site) -> None:
    await guest.visit(f"{site.url}/other")
    await guest.get("browser_set_storage", storageType="local", key="mine", value="1")
    await guest.visit(f"{site.elsewhere}/other")
    result = await guest.get("browser_get_storage")
    assert result["origin"] == site.elsewhere
    assert not any(item["key"] == "mine" for item in result["items"])


async def test_long_values_are_truncated_in_lists_only(guest: Caller, site: Site) -> None:
    await guest.visit(f"{site.url}/other")
    await guest.run("localStorage.clear(); localStorage.long = 'x'.repeat(30000); localStorage.short = 'y'")
    result = await guest.get("browser_get_storage")
    long, short = result["items"]
    assert (len(long["value"]), long["length"]) == (10_000, 30_000)
    assert "length" not in short
    assert "by its key" in result["note"]
    (whole,) = (await guest.get("browser_get_storage", key="long"))["items"]
    assert len(whole["value"]) == 30_000


async def test_databases_and_caches_are_listed(guest: Caller, site: Site) -> None:
    await guest.visit(f"{site.url}/other")
    await guest.run(
        "await new Promise((done) => { indexedDB.open('shop', 3).onsuccess = done; });"
        "if (globalThis.caches) await caches.open('pictures');"
    )
    databases = await guest.get("browser_get_storage", storageType="indexedDB")
    assert databases["items"] == [{"key": "shop", "value": "version 3"}]
    assert (await guest.get("browser_get_storage", storageType="cache"))["items"][0]["key"] == "pictures"


async def test_an_opaque_origin_and_a_full_storage_are_reported(guest: Caller, site: Site) -> None:
    await guest.open("data:text/html,<title>opaque</title>")
    opaque = await guest.fail("browser_get_storage")
    assert "opaque origin" in opaque["text"]
    assert "browser_navigate_tab" in opaque["text"]
    await guest.visit(f"{site.url}/other")
    await guest.run("localStorage.clear()")
    full = "x" * 1_900_000
    for key in ("1", "2"):
        await guest.get("browser_set_storage", storageType="local", key=key, value=full)
    result = await guest.fail("browser_set_storage", storageType="local", key="3", value=full)
    assert "is full" in result["text"]
    await guest.run("localStorage.clear()")
