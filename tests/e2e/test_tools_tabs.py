"""Tab and group tools in a real browser; only browser_focus_tab takes the focus."""

from __future__ import annotations

import pytest

from tests.e2e import live
from tests.e2e.live import Caller, LiveHub
from tests.e2e.site import Site


async def active_tabs(agent: Caller) -> list[int]:
    return [tab["tabId"] for tab in (await agent.get("browser_list_tabs"))["tabs"] if tab["active"]]


@pytest.fixture
async def pair(agent: Caller, site: Site) -> tuple[int, int]:
    """Two ungrouped tabs of the agent."""
    tabs = await agent.open(f"{site.url}/"), await agent.open(f"{site.url}/other")
    await agent.get("browser_remove_tabs_from_group", tabIds=list(tabs))
    return tabs


async def test_back_forward_and_reload_move_the_sessions_tab(agent: Caller, site: Site) -> None:
    tab_id = await agent.open(f"{site.url}/")
    await agent.get("browser_navigate_tab", url=f"{site.url}/other")
    before = await active_tabs(agent)
    back = await agent.get("browser_go_back")
    assert (back["tabId"], back["url"], back["title"], back["ok"]) == (tab_id, f"{site.url}/", "Plain page", True)
    assert await agent.run("return location.pathname") == "/"
    forward = await agent.get("browser_go_forward", tabId=tab_id)
    assert forward["url"] == f"{site.url}/other"
    asked = site.count("/other")
    await agent.run("window.mark = 1")
    again = await agent.get("browser_reload_tab", ignoreCache=True)
    assert (again["status"], site.count("/other")) == ("complete", asked + 1)
    assert await agent.run("return window.mark ?? null") is None
    assert await active_tabs(agent) == before


async def test_going_past_the_end_of_the_history_is_an_error(agent: Caller, site: Site) -> None:
    tab_id = await agent.open(f"{site.url}/")
    error = await agent.fail("browser_go_forward")
    assert f"Tab {tab_id} could not go forward: The tab's history has no page after this one." in error["text"]
    assert error["outcome"] == "failed"
    missing = await agent.fail("browser_go_back", tabId=999_999)
    assert "There is no tab 999999." in missing["text"]


async def test_focus_tab_activates_exactly_that_tab(agent: Caller, site: Site) -> None:
    tab_id = await agent.open(f"{site.url}/")
    await agent.open(f"{site.url}/other")
    assert tab_id not in await active_tabs(agent)
    shown = await agent.get("browser_focus_tab", tabId=tab_id)
    assert (shown["tabId"], shown["active"]) == (tab_id, True)
    assert tab_id in await active_tabs(agent)
    assert await agent.run("return document.visibilityState", tabId=tab_id) == "visible"


async def test_the_tabs_of_all_sessions_of_an_agent_are_in_one_group(live_hub: LiveHub, site: Site) -> None:
    async with live.caller(live_hub) as one, live.caller(live_hub) as two:
        mine = [await one.open(f"{site.url}/"), await one.open("data:text/html,<title>D</title>")]
        other = await two.open(f"{site.url}/other")
        listed = (await one.get("browser_list_tab_groups"))["groups"]
        (group,) = [group for group in listed if mine[0] in group["tabIds"]]
        assert {*mine, other} <= set(group["tabIds"])
        assert group["title"]


async def test_groups_are_created_filled_changed_listed_and_emptied(agent: Caller, pair: tuple[int, int]) -> None:
    one, two = pair
    before = await active_tabs(agent)
    made = await agent.get("browser_create_tab_group", tabIds=[one], title="Work", color="cyan")
    assert (made["title"], made["color"], made["tabIds"]) == ("Work", "cyan", [one])
    group = made["groupId"]
    assert group in [g["groupId"] for g in (await agent.get("browser_list_tab_groups"))["groups"]]
    assert group in [
        g["groupId"] for g in (await agent.get("browser_list_tab_groups", windowId=made["windowId"]))["groups"]
    ]
    grown = await agent.get("browser_add_tabs_to_group", groupId=group, tabIds=[two])
    assert sorted(grown["tabIds"]) == sorted(pair)
    inside = await agent.get("browser_list_tabs_in_group", groupId=group)
    assert {tab["title"] for tab in inside["tabs"]} == {"Plain page", "Other page"}
    changed = await agent.get("browser_update_tab_group", groupId=group, title="Done", collapsed=True)
    assert (changed["title"], changed["color"], changed["collapsed"]) == ("Done", "cyan", True)
    await agent.get("browser_update_tab_group", groupId=group, collapsed=False, browserId=changed["browserId"])
    taken = await agent.get("browser_remove_tabs_from_group", tabIds=[one, two])
    assert taken == {"tabIds": [one, two], "removed": 2}
    gone = await agent.fail("browser_list_tabs_in_group", groupId=group)
    assert f"There is no groupId {group}." in gone["text"]
    assert await active_tabs(agent) == before


async def test_an_unknown_id_is_answered_with_the_existing_ones(agent: Caller, pair: tuple[int, int]) -> None:
    made = await agent.get("browser_create_tab_group", tabIds=[pair[0]], title="Reading list")
    there = f"{made['groupId']} (Reading list)"
    for name, arguments in (
        ("browser_update_tab_group", {"title": "x"}),
        ("browser_list_tabs_in_group", {}),
        ("browser_add_tabs_to_group", {"tabIds": [pair[1]]}),
    ):
        error = await agent.fail(name, groupId=999_999, **arguments)
        assert there in error["text"], name
        assert (error["category"], error["outcome"]) == ("not_found", "not_sent")
    window = await agent.fail("browser_list_tab_groups", windowId=999_999)
    assert str(made["windowId"]) in window["text"]


async def test_a_tab_of_another_session_cannot_be_grouped(live_hub: LiveHub, agent: Caller, site: Site) -> None:
    async with live.caller(live_hub) as other:
        theirs = await other.open(f"{site.url}/")
        for name in ("browser_create_tab_group", "browser_remove_tabs_from_group"):
            error = await agent.fail(name, tabIds=[theirs])
            assert f"Tab {theirs} is held by another session" in error["text"]


_MAKERS = """document.body.innerHTML = `<button id=blank>blank</button><a id=blob target=_blank>blob</a>`;
blank.onclick = () => { const made = open("about:blank"); made.document.write("<p>Balance"); };
blob.href = URL.createObjectURL(new Blob(["<p>Balance"], { type: "text/html" }));"""


@pytest.mark.parametrize("maker", ["blank", "blob"])
async def test_document_that_a_page_writes_belongs_to_the_pages_site(agent: Caller, site: Site, maker: str) -> None:
    await agent.open(f"{site.url}/")
    await agent.run(_MAKERS)
    (made,) = (await agent.get("browser_click_element", selector=f"#{maker}"))["opened"]
    agent.opened.append(made)
    assert (await agent.get("browser_get_tab_info", tabId=made))["origin"] == site.url
