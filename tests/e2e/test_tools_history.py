"""The tools for history, bookmarks and closed tabs, in a real browser."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tests.e2e.live import Caller
from tests.e2e.site import Site
from tests.harness.waiting import becomes


async def test_visited_pages_are_found_by_text_and_time(agent: Caller, site: Site) -> None:
    url = f"{site.url}/remembered-page"
    await agent.open(url)
    await agent.get("browser_reload_tab")
    found = await agent.get("browser_search_history", query="remembered-page")
    (entry,) = found["entries"]
    assert (entry["url"], entry["title"]) == (url, "/remembered-page")
    now = datetime.now(UTC)
    assert abs(datetime.fromisoformat(entry["lastVisitTime"]) - now) < timedelta(minutes=5)
    hour_ago = (now - timedelta(hours=1)).isoformat()
    assert (await agent.get("browser_search_history", query="remembered-page", startTime=hour_ago))["entries"]
    assert not (await agent.get("browser_search_history", query="remembered-page", endTime=hour_ago))["entries"]
    await agent.open(f"{site.url}/remembered-too")
    some = await agent.get("browser_search_history", query="remembered", maxResults=1)
    assert (len(some["entries"]), some["cut"]) == (1, True)
    visits = (await agent.get("browser_get_visits", url=url))["visits"]
    assert (len(visits), visits[0]["transition"]) == (2, "reload")
    assert visits[0]["visitTime"] > visits[1]["visitTime"]
    assert (await agent.get("browser_get_visits", url=f"{url}/never"))["visits"] == []
    assert "is not a full URL" in (await agent.fail("browser_get_visits", url="rare"))["text"]
    wrong = await agent.fail("browser_search_history", query="", startTime="yesterday")
    assert "invalid startTime 'yesterday'. Use a time such as" in wrong["text"]


async def test_a_closed_tab_is_restored_in_the_background(agent: Caller, site: Site) -> None:
    url = f"{site.url}/closed-and-back"
    tab_id = await agent.open(url)
    active = [tab["tabId"] for tab in (await agent.get("browser_list_tabs"))["tabs"] if tab["active"]]
    await agent.get("browser_close_tab", tabId=tab_id)
    closed = (await agent.get("browser_get_recently_closed", maxResults=5))["closed"]
    (last,) = [item for item in closed if item.get("url") == url]
    assert (last["kind"], last["title"]) == ("tab", "/closed-and-back")
    back = await agent.get("browser_restore_session", sessionId=last["sessionId"])
    (tab,) = back["tabs"]
    assert (back["kind"], tab["url"], tab["active"]) == ("tab", url, False)
    agent.opened.append(tab["tabId"])
    assert [each["tabId"] for each in (await agent.get("browser_list_tabs"))["tabs"] if each["active"]] == active
    # The browser reports the URL before the page has loaded.
    await becomes(lambda: agent.run("return location.pathname", tabId=tab["tabId"]), "/closed-and-back")
    error = await agent.fail("browser_restore_session", sessionId="never-was")
    assert "There is no closed tab or window with sessionId 'never-was'" in error["text"]
    assert error["category"] == "not_found"


async def test_a_closed_window_is_restored_with_its_tabs(agent: Caller, site: Site) -> None:
    made = await agent.get("browser_create_window", url=f"{site.url}/window-and-back")
    await agent.get("browser_close_window", windowId=made["window"]["windowId"])
    closed = (await agent.get("browser_get_recently_closed"))["closed"]
    last = next(item for item in closed if item["kind"] == "window")
    assert [tab["url"] for tab in last["tabs"]] == [f"{site.url}/window-and-back"]
    back = await agent.get("browser_restore_session", sessionId=last["sessionId"])
    assert [tab["url"] for tab in back["tabs"]] == [f"{site.url}/window-and-back"]
    await agent.get("browser_close_window", windowId=back["tabs"][0]["windowId"])


async def test_bookmarks_are_created_found_and_listed(agent: Caller, site: Site) -> None:
    (root,) = (await agent.get("browser_list_bookmark_tree", maxDepth=1))["roots"]
    folder = root["children"][0]["id"]
    made = await agent.get("browser_create_bookmark", title="Rare words", url=f"{site.url}/", parentId=folder)
    assert (made["title"], made["url"], made["parentId"]) == ("Rare words", f"{site.url}/", folder)
    loose = await agent.get("browser_create_bookmark", title="Rare too", url=f"{site.url}/other")
    found = (await agent.get("browser_search_bookmarks", query="rare"))["bookmarks"]
    assert {bookmark["id"] for bookmark in found} == {made["id"], loose["id"]}
    assert (await agent.get("browser_search_bookmarks", query="no such thing"))["bookmarks"] == []
    (below,) = (await agent.get("browser_list_bookmark_tree", parentId=folder))["roots"]
    assert [child["id"] for child in below["children"]] == [made["id"]]
    for name, more in (
        ("browser_create_bookmark", {"title": "x", "url": site.url}),
        ("browser_list_bookmark_tree", {}),
    ):
        for wrong in ("999999", "https://"):
            error = await agent.fail(name, parentId=wrong, **more)
            assert f"The folder '{wrong}' cannot be used" in error["text"]
            assert f"{folder} ({root['children'][0]['title']})" in error["text"]
    inside = await agent.fail("browser_create_bookmark", title="x", url=site.url, parentId=made["id"])
    assert "does not specify a folder" in inside["text"]
    script = await agent.fail("browser_create_bookmark", title="x", url="javascript:alert(1)")
    assert script["outcome"] == "not_sent"
