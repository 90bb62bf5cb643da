"""Clients of every kind at once in one browser, ten or one of each: each in its own tab, none in another's way."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.e2e.crowd import KINDS, Crowd, Member
from tests.e2e.live import Caller, DevTools, LiveHub
from tests.e2e.site import Site
from tests.e2e.test_leases import in_front, open_tabs, tabs
from tests.harness.waiting import eventually, until_outside

TEN = (*KINDS, "http-2025", "http-2026", "stdio-2025", "rest")
CALLS = 20
PROCESSES = 5
"""The calls of the command line, which are a process each."""
MARK = "window.marks = [...(window.marks || []), args.mark]; document.title = args.mark; return window.marks"


async def settle_in(crowd: Crowd, site: Site) -> dict[Member, int]:
    """The first call of each, all at once and without a tab: gives whose tab is which."""
    went = await asyncio.gather(
        *(member.get("browser_navigate_tab", url=f"{site.url}/{member.name}") for member in crowd.members)
    )
    return {member: facts["tabId"] for member, facts in zip(crowd.members, went, strict=True)}


async def sessions(crowd: Crowd) -> dict[Member, dict[str, Any]]:
    found = await asyncio.gather(*(member.session() for member in crowd.members))
    return {member: facts for member, facts in zip(crowd.members, found, strict=True) if facts is not None}


async def until_titled(agent: Caller, titles: dict[str, str]) -> None:
    """Wait until the tabs at these addresses have these titles, which the browser tells a little later."""

    async def titled() -> bool:
        return titles.items() <= {(tab["url"], tab["title"]) for tab in (await tabs(agent)).values()}

    await eventually(titled)


def shown(session: dict[str, Any]) -> str:
    """A session as the others may see it."""
    ident: str = session["session"]
    return f"{session['client']} ({ident if session['kind'] == 'rest' else ident[:8] + '…'})"


@pytest.mark.req("S004-context-01", "S004-goals-01", "S004-goals-02", "S004-goals-04", "S004-goals-06")
@pytest.mark.req("S004-binding-01", "S004-binding-03", "S004-flow-05", "S004-flow-06")
@pytest.mark.req("S004-verification-01", "S004-verification-02")
async def test_each_client_works_in_its_own_tab_and_only_there(live_hub: LiveHub, agent: Caller, site: Site) -> None:
    before = await tabs(agent)
    async with in_front(agent), Crowd(live_hub, TEN) as crowd:
        tab_of = await settle_in(crowd, site)
        known = await sessions(crowd)
        assert len({facts["session"] for facts in known.values()}) == len(TEN)
        assert len(set(tab_of.values()) - before.keys()) == len(TEN)
        assert {member: facts["tabId"] for member, facts in known.items()} == tab_of

        calls = {member: PROCESSES if member.kind == "cli" else CALLS for member in crowd.members}

        async def work(member: Member) -> None:
            for number in range(1, calls[member] + 1):
                marks = await member.run(MARK, args={"mark": f"{member.name}:{number}"})
                assert marks == [f"{member.name}:{n}" for n in range(1, number + 1)]

        await asyncio.gather(*(work(member) for member in crowd.members))
        titles = {f"{site.url}/{member.name}": f"{member.name}:{calls[member]}" for member in crowd.members}
        await until_titled(agent, titles)
        listed = await tabs(agent)
        assert listed.keys() == {*before, *tab_of.values()}, "no call opened a tab beside the first"
        assert {member: listed[tab_id]["url"] for member, tab_id in tab_of.items()} == {
            member: f"{site.url}/{member.name}" for member in crowd.members
        }
        assert not any(listed[tab_id]["active"] for tab_id in tab_of.values())

        for member in reversed(crowd.members):  # who goes takes its own tab along, and no other
            assert await crowd.leave() is member
            gone = tab_of.pop(member)
            await until_outside(lambda gone=gone: gone not in open_tabs(live_hub))  # type: ignore[misc]
            assert open_tabs(live_hub).keys() == {*before, *tab_of.values()}
            if tab_of:
                (first, *_) = tab_of
                assert len(await first.run("return window.marks")) == calls[first]


@pytest.mark.req("S004-context-01", "S004-goals-03", "S004-binding-02", "S004-binding-03", "S004-flow-04")
@pytest.mark.req("S004-verification-03")
async def test_a_named_tab_gets_the_calls_of_the_client_that_named_it(
    live_hub: LiveHub, agent: Caller, site: Site
) -> None:
    async with in_front(agent), Crowd(live_hub, KINDS) as crowd:
        own = await settle_in(crowd, site)
        given = {member: await agent.open(f"{site.url}/given-to-{member.name}") for member in crowd.members}
        for tab_id in given.values():
            await agent.get("browser_release_tab", tabId=tab_id)

        async def use(member: Member) -> None:
            assert await member.run(MARK, args={"mark": member.name}, tabId=given[member]) == [member.name]
            assert await member.run("return location.pathname") == f"/given-to-{member.name}"
            assert await member.run("return window.marks ?? null", tabId=own[member]) is None

        await asyncio.gather(*(use(member) for member in crowd.members))
        await until_titled(agent, {f"{site.url}/given-to-{member.name}": member.name for member in crowd.members})
        kept = set(given.values())
        while crowd.here:
            await crowd.leave()
        await until_outside(lambda: not set(own.values()) & open_tabs(live_hub).keys())
        assert kept <= open_tabs(live_hub).keys(), "a tab that a session did not open outlives it"


async def test_a_clients_tab_is_closed_to_all_others_who_are_told_whose_it_is(
    live_hub: LiveHub, agent: Caller, site: Site
) -> None:
    async with in_front(agent), Crowd(live_hub, KINDS) as crowd:
        tab_of = await settle_in(crowd, site)
        known = await sessions(crowd)
        neighbours = list(zip(crowd.members, [*crowd.members[1:], crowd.members[0]], strict=True))

        async def intrude(member: Member, neighbour: Member) -> None:
            tab_id = tab_of[neighbour]
            for tool, arguments in (
                ("browser_execute_script", {"code": "document.title = 'taken'"}),
                ("browser_navigate_tab", {"url": f"{site.url}/other"}),
                ("browser_close_tab", {}),
            ):
                said = await member.refused(tool, tabId=tab_id, **arguments)
                assert f"Tab {tab_id} is held by another session: {shown(known[neighbour])}" in said
                assert "browser_request_tab" in said
            read = await member.get("browser_get_tab_info", tabId=tab_id)
            assert (read["tabId"], read["url"]) == (tab_id, f"{site.url}/{neighbour.name}")

        await asyncio.gather(*(intrude(*pair) for pair in neighbours))
        await asyncio.gather(*(stays(member, tab_of[member], site) for member in crowd.members))
        one, two = crowd.members[0], crowd.members[3]
        await one.get("browser_release_tab")
        assert await two.run("return location.pathname", tabId=tab_of[one]) == f"/{one.name}"
        assert f"held by another session: {shown(known[two])}" in await one.refused(
            "browser_execute_script", code="1", tabId=tab_of[one]
        )


async def stays(member: Member, tab_id: int, site: Site) -> None:
    """A client is where it was, undisturbed."""
    info = await member.get("browser_get_tab_info")
    assert (info["tabId"], info["url"], info["title"]) == (tab_id, f"{site.url}/{member.name}", f"/{member.name}")


@pytest.mark.req("S004-goals-05", "S004-status-01", "S004-status-03", "S004-verification-04", "S004-errors-01")
async def test_every_client_is_told_the_truth_while_the_extension_is_away_and_goes_on_when_it_is_back(
    live_hub: LiveHub, agent: Caller, site: Site, devtools: DevTools
) -> None:
    async def told(crowd: Crowd) -> set[bool]:
        replies = await asyncio.gather(*(m.get("browser_get_connection_status") for m in crowd.members))
        assert all([b["connected"] for b in reply["browsers"]] == [reply["connected"]] for reply in replies)
        return {reply["connected"] for reply in replies}

    async with Crowd(live_hub, KINDS) as crowd:
        tab_of = await settle_in(crowd, site)
        await asyncio.gather(*(m.run(MARK, args={"mark": m.name}) for m in crowd.members))
        assert await told(crowd) == {True}
        await devtools.stop_worker()
        await until_outside(lambda: not live_hub.connected)
        assert await told(crowd) == {False}
        for member in crowd.members:
            assert "Browser extension not connected" in await member.refused("browser_execute_script", code="1")
        await devtools.send("Target.closeTarget", targetId=await devtools.open("about:blank?woken"))
        await until_outside(lambda: live_hub.ready)
        assert await told(crowd) == {True}
        for member in crowd.members:
            assert await member.run("return window.marks") == [member.name]
            assert (await member.get("browser_get_tab_info"))["tabId"] == tab_of[member]
