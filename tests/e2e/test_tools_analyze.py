"""plugin_analyze_site in real Chromium: what it reports about a site, and that it reports no secrets."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.e2e.live import Caller
from tests.e2e.netsite import NetSite
from tests.harness.waiting import becomes


@pytest.fixture(scope="module")
def net() -> Iterator[NetSite]:
    site = NetSite()
    yield site
    site.stop()


async def tabs(agent: Caller) -> set[int]:
    return {tab["tabId"] for tab in (await agent.get("browser_list_tabs"))["tabs"]}


async def test_the_analysis_has_names_only_and_closes_its_tab(agent: Caller, net: NetSite) -> None:
    before = await tabs(agent)
    answer = await agent.get("plugin_analyze_site", url=f"{net.url}/net_app", waitSeconds=1)
    assert answer["title"] == "Shop application"
    assert {"Next.js", "React"} <= set(answer["frameworks"])
    sign_in = answer["authentication"]
    assert sign_in["state"] == "signed out"
    assert sign_in["authorizationSchemes"] == ["Bearer"]
    assert sign_in["storageKeys"] == ["authToken"]
    assert sign_in["csrf"] == ["csrf-token"]
    assert [form["name"] for form in sign_in["loginForms"]] == ["login"]
    assert sign_in["oauth"][0]["to"].startswith("https://accounts.google.com/")
    assert "visitor" in answer["storage"]["cookies"]
    assert answer["storage"]["sessionStorage"] == ["cart"]
    apis = {(api["method"], api["url"].removeprefix(net.url)): api for api in answer["apis"]}
    assert apis["GET", "/api/items"]["statuses"] == [200]
    assert apis["GET", "/api/items"]["authHeaders"] == ["authorization"]
    assert apis["GET", "/api/items/{id}"]["count"] == 2
    assert apis["GET", "/api/missing"]["statuses"] == [404]
    assert apis["POST", "/graphql"]["operations"] == ["Basket"]
    assert any(api["type"] == "websocket" for api in answer["apis"])
    names = {suggestion["name"] for suggestion in answer["suggestions"]}
    assert {"search", "list_items", "basket", "watch_updates"} <= names
    text = json.dumps(answer)
    for secret in ("very-secret-csrf", "top-secret-storage-value", "visitor-cookie-value", "page-bearer-secret"):
        assert secret not in text
    await becomes(lambda: tabs(agent), before)


async def test_keep_open_keeps_the_tab_and_binds_the_session_to_it(agent: Caller, net: NetSite) -> None:
    answer = await agent.get("plugin_analyze_site", url=f"{net.url}/net_index", waitSeconds=0, keepOpen=True)
    agent.opened.append(answer["tabId"])
    assert await agent.run("return document.title") == "Talking page"


async def test_the_sessions_own_tab_is_untouched(agent: Caller, net: NetSite) -> None:
    await agent.open(f"{net.url}/net_index")
    await agent.get("plugin_analyze_site", url=f"{net.url}/net_inner", waitSeconds=0)
    assert await agent.run("return document.title") == "Talking page"


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/", "javascript:alert(1)", "no address"])
async def test_a_site_that_cannot_be_opened_is_an_error_and_leaves_no_tab(agent: Caller, url: str) -> None:
    before = await tabs(agent)
    failed = await agent.fail("plugin_analyze_site", url=url, waitSeconds=0)
    assert failed["text"]
    await becomes(lambda: tabs(agent), before)
