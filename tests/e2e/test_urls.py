"""Where a tab can be navigated, and the error when it cannot: network and site errors, dialogs, restricted pages."""

from __future__ import annotations

import socket

import pytest

from tests.e2e.live import Caller, DevTools
from tests.e2e.site import Site
from tests.harness.waiting import eventually


async def test_an_http_error_page_loads_and_its_status_is_reported(agent: Caller, site: Site) -> None:
    for path, status in (("/missing", 404), ("/broken", 500)):
        went = await agent.get("browser_open_tab", url=site.url + path)
        agent.opened.append(went["tabId"])
        assert (went["ok"], went["httpStatus"], went["title"]) == (False, status, path)
        assert await agent.run("return document.body.innerText") == path


async def test_a_redirect_is_followed_and_the_final_url_is_reported(agent: Caller, site: Site) -> None:
    went = await agent.get("browser_open_tab", url=f"{site.url}/moved")
    agent.opened.append(went["tabId"])
    assert (went["url"], went["ok"], went["httpStatus"]) == (f"{site.url}/other", True, 200)


async def test_an_unknown_host_is_named_in_the_error(guest: Caller) -> None:
    await guest.visit("about:blank")
    error = await guest.fail("browser_navigate_tab", url="http://no-such-host.invalid/")
    assert "ERR_NAME_NOT_RESOLVED" in error["text"]
    assert "check the spelling" in error["text"]


async def test_a_refused_connection_is_reported(agent: Caller) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    error = await agent.fail("browser_open_tab", url=f"http://127.0.0.1:{port}/")
    agent.opened.append(error["tabId"])
    assert "ERR_CONNECTION_REFUSED" in error["text"]
    assert f"Tab {error['tabId']} stays open" in error["text"]


async def test_a_url_without_content_leaves_the_tab_where_it_is(
    guest: Caller, site: Site, subtests: pytest.Subtests
) -> None:
    await guest.visit(f"{site.url}/")
    for path in ("/file", "/nothing"):
        with subtests.test(path):
            error = await guest.fail("browser_navigate_tab", url=site.url + path)
            assert "gave no page (a download, or an empty response)" in error["text"]
            assert await guest.run("return location.pathname") == "/"


async def test_a_data_url_opens_only_in_a_new_tab(agent: Caller) -> None:
    opened = await agent.get("browser_open_tab", url="data:text/html,<title>Own</title><p>own words")
    agent.opened.append(opened["tabId"])
    assert (opened["title"], opened["status"], opened["ok"]) == ("Own", "complete", True)
    assert (await agent.get("browser_get_tab_content"))["content"] == "own words"
    error = await agent.fail("browser_navigate_tab", url="data:text/html,other")
    assert "browser_open_tab" in error["hint"]


async def test_an_empty_tab_can_be_used(agent: Caller) -> None:
    opened = await agent.get("browser_open_tab", url="about:blank")
    agent.opened.append(opened["tabId"])
    assert (opened["url"], opened["status"], opened["ok"]) == ("about:blank", "complete", True)
    assert await agent.run("document.body.textContent = 'written'; return document.body.innerText") == "written"


async def test_other_urls_are_refused_up_front(agent: Caller, subtests: pytest.Subtests) -> None:
    before = await agent.get("browser_list_tabs")
    for url in ("chrome://version", "javascript:alert(1)", "view-source:http://x.example/", "x.example"):
        with subtests.test(url):
            for tool in ("browser_open_tab", "browser_navigate_tab"):
                error = await agent.fail(tool, url=url)
                assert error["outcome"] == "not_sent"
                assert "url" in error["text"]
            assert await agent.get("browser_list_tabs") == before


async def test_a_browser_internal_page_can_only_be_closed(agent: Caller, devtools: DevTools) -> None:
    await devtools.open("chrome://version/")

    async def there() -> int | None:
        tabs = (await agent.get("browser_list_tabs"))["tabs"]
        return next((tab["tabId"] for tab in tabs if tab["url"].startswith("chrome://version")), None)

    tab_id = await eventually(there)
    for tool in ("browser_get_tab_content", "browser_screenshot_tab"):
        error = await agent.fail(tool, tabId=tab_id)
        assert f"Tab {tab_id} shows chrome://version/" in error["text"]
        assert "extensions may not access" in error["text"]
        assert error["hint"]
    assert (await agent.get("browser_close_tab", tabId=tab_id))["closed"] is True


async def test_scripts_cannot_run_in_the_extension_gallery(agent: Caller) -> None:
    await agent.open("about:blank")
    # It need not be reachable: the browser restricts its URL.
    await agent.fail("browser_navigate_tab", url="https://chromewebstore.google.com/")
    error = await agent.fail("browser_execute_script", code="return 1")
    assert "extensions may not access" in error["text"]


async def test_a_script_that_opens_a_dialog_reports_it_and_the_tab_can_be_closed(agent: Caller, site: Site) -> None:
    tab_id = await agent.open(f"{site.url}/")
    error = await agent.fail("browser_execute_script", code="alert('Look here'); return 1")
    assert error["outcome"] == "unknown"
    assert error["dialog"] == {"type": "alert", "message": "Look here"}
    again = await agent.fail("browser_execute_script", code="return 1")
    assert again["outcome"] == "not_sent"
    assert (await agent.get("browser_get_tab_info"))["dialog"]["message"] == "Look here"
    assert (await agent.get("browser_close_tab"))["closed"] is True
    assert tab_id not in [tab["tabId"] for tab in (await agent.get("browser_list_tabs"))["tabs"]]


async def test_a_beforeunload_dialog_is_reported_and_the_tab_can_be_closed(
    agent: Caller, devtools: DevTools, site: Site
) -> None:
    tab_id = await agent.open(f"{site.url}/stay")
    await devtools.touch(f"{site.url}/stay")
    error = await agent.fail("browser_navigate_tab", url=f"{site.url}/other")
    assert "beforeunload" in error["text"]
    assert "close" in error["hint"]
    assert (await agent.get("browser_close_tab", tabId=tab_id))["closed"] is True
    assert tab_id not in [tab["tabId"] for tab in (await agent.get("browser_list_tabs"))["tabs"]]


async def test_a_strict_csp_blocks_neither_scripts_nor_reading(guest: Caller, site: Site) -> None:
    await guest.visit(f"{site.url}/strict")
    assert await guest.run("document.title = 'changed'; return document.title") == "changed"
    assert (await guest.get("browser_get_tab_content"))["content"] == "strict words"


async def test_a_cross_site_frame_does_not_disturb_its_page(guest: Caller, site: Site) -> None:
    await guest.visit(f"{site.url}/framed")
    assert await guest.run("return [origin, document.querySelector('iframe').contentDocument]") == [site.url, None]
    assert (await guest.get("browser_get_tab_content"))["content"].startswith("outer")
    assert (await guest.call("browser_screenshot_tab"))["content"][0]["type"] == "image"
