"""The tools for cookies and site data, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.live import Caller, LiveHub
from tests.e2e.live_settings import without_approvals
from tests.e2e.site import Site


@pytest.fixture(autouse=True, scope="module")
def unasked(live_hub: LiveHub) -> Iterator[None]:
    with without_approvals(live_hub):
        yield


@pytest.fixture(autouse=True)
async def nothing_kept(agent: Caller, site: Site) -> None:
    """Cookies ignore ports, so cookies that other tests set for this host are deleted."""
    await agent.get("browser_clear_site_data", origin=site.url)


async def test_a_cookie_is_set_sent_read_and_deleted(agent: Caller, site: Site) -> None:
    url = f"{site.url}/"
    kept = await agent.get("browser_set_cookie", url=url, name="flavour", value="s3cret-oat", httpOnly=True, path="/")
    assert (kept["name"], kept["domain"], kept["httpOnly"], kept["session"]) == ("flavour", "127.0.0.1", True, True)
    assert "value" not in kept
    await agent.open(f"{site.url}/me")
    assert await agent.run("return [document.body.textContent, document.cookie]") == ["flavour=s3cret-oat", ""]
    (read,) = (await agent.get("browser_get_cookies", url=url, name="flavour"))["cookies"]
    assert (read["value"], read["path"], read["hostOnly"]) == ("s3cret-oat", "/", True)
    await agent.get("browser_set_cookie", url=url, name="until", value="", expirationDate=4_000_000_000)
    names = {cookie["name"] for cookie in (await agent.get("browser_get_cookies", url=url))["cookies"]}
    assert {"flavour", "until"} <= names
    assert await agent.get("browser_delete_cookies", url=url, name="flavour") == {"name": "flavour", "deleted": 1}
    again = await agent.get("browser_delete_cookies", url=url, name="flavour")
    assert again["deleted"] == 0
    assert "until" in again["note"]
    await agent.get("browser_delete_cookies", url=url, name="until")


async def test_a_cookies_value_is_in_no_log(live_hub: LiveHub, agent: Caller, site: Site) -> None:
    value = "value-that-must-not-leak"
    await agent.get("browser_set_cookie", url=f"{site.url}/", name="quiet", value=value)
    await agent.get("browser_get_cookies", url=f"{site.url}/", name="quiet")
    await agent.get("browser_delete_cookies", url=f"{site.url}/", name="quiet")
    written = [path for path in live_hub.home.rglob("*") if path.suffix == ".log" or path.parent.name == "logs"]
    assert any(path.name == "audit.log" for path in written)
    for path in written:
        if path.is_file():
            assert value.encode() not in path.read_bytes(), path


async def test_a_cookie_the_browser_rejects_has_a_hint(agent: Caller, site: Site) -> None:
    error = await agent.fail("browser_set_cookie", url=f"{site.url}/", name="__Secure-x", value="1")
    assert "need https" in error["text"]
    other = await agent.fail("browser_set_cookie", url=f"{site.url}/", name="x", value="1", domain="example.com")
    assert "domain must be the host of url" in other["text"]
    large = await agent.fail("browser_set_cookie", url=f"{site.url}/", name="x", value="v" * 4096)
    assert "exceed 4096 bytes together" in large["text"]
    past = await agent.fail("browser_set_cookie", url=f"{site.url}/", name="x", value="1", expirationDate=1)
    assert "must be in the future" in past["text"]
    for name, more in (("browser_get_cookies", {}), ("browser_delete_cookies", {"name": "x"})):
        refused = await agent.fail(name, url="file:///etc/hostname", **more)
        assert "url must be a full http or https URL" in refused["text"]


KEEP = """
document.cookie = "c=1"; localStorage.kept = "1";
await new Promise((done, failed) => {
  const opening = indexedDB.open("kept", 1);
  opening.onsuccess = () => { opening.result.close(); done(); };
  opening.onerror = failed;
});
"""
LEFT = """return {
  cookie: document.cookie, local: localStorage.kept ?? null,
  databases: (await indexedDB.databases()).map((each) => each.name),
}"""


async def test_site_data_is_cleared_by_kind_for_one_origin_only(agent: Caller, site: Site) -> None:
    await agent.open(f"{site.elsewhere}/")
    await agent.run("localStorage.kept = 'elsewhere'")
    await agent.open(f"{site.url}/")
    await agent.run(KEEP)
    done = await agent.get("browser_clear_site_data", origin=site.url, localStorage=True)
    assert (done["origin"], done["cleared"]) == (site.url, ["localStorage"])
    await agent.get("browser_reload_tab")
    assert await agent.run(LEFT) == {"cookie": "c=1", "local": None, "databases": ["kept"]}
    everything = await agent.get("browser_clear_site_data", origin=f"{site.url}/some/page")
    assert everything["cleared"] == ["cookies", "localStorage", "cache", "indexedDB", "serviceWorkers"]
    assert "subdomains" in everything["note"]
    await agent.get("browser_reload_tab")
    assert await agent.run(LEFT) == {"cookie": "", "local": None, "databases": []}
    await agent.get("browser_navigate_tab", url=f"{site.elsewhere}/")
    assert await agent.run("return localStorage.kept") == "elsewhere"
    refused = await agent.fail("browser_clear_site_data", origin="example.com")
    assert "origin must be a full http or https URL" in refused["text"]
