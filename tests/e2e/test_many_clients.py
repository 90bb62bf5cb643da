"""Clients of every kind at once in one browser, ten or one of each: each in its own tab, without affecting others."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tabhub.limits import DEFAULTS
from tests.e2e.live import Caller, DevTools, LiveHub
from tests.e2e.many_clients import KINDS, ManyClients, ToolClient
from tests.e2e.site import Site
from tests.e2e.test_leases import in_front, open_tabs, tabs
from tests.harness.agent import client as http_client
from tests.harness.waiting import eventually, until_outside

TEN = (*KINDS, "http-2025", "http-2026", "stdio-2025", "rest")
CALLS = 20
PROCESSES = 5
"""Calls of the command line, each of which is a process."""
MARK = "window.marks = [...(window.marks || []), args.mark]; document.title = args.mark; return window.marks"


async def settle_in(clients: ManyClients, site: Site) -> dict[ToolClient, int]:
    """The first call of each client, all at once and without a tab: returns whose tab is which."""
    went = await asyncio.gather(
        *(client.get("browser_navigate_tab", url=f"{site.url}/{client.name}") for client in clients.all)
    )
    return {client: facts["tabId"] for client, facts in zip(clients.all, went, strict=True)}


async def sessions(clients: ManyClients) -> dict[ToolClient, dict[str, Any]]:
    found = await asyncio.gather(*(client.session() for client in clients.all))
    return {client: facts for client, facts in zip(clients.all, found, strict=True) if facts is not None}


async def until_titled(agent: Caller, titles: dict[str, str]) -> None:
    """Wait until the tabs at these URLs have these titles, which the browser reports a little later."""

    async def titled() -> bool:
        return titles.items() <= {(tab["url"], tab["title"]) for tab in (await tabs(agent)).values()}

    await eventually(titled)


def shown(session: dict[str, Any]) -> str:
    """A session as other clients see it."""
    ident: str = session["session"]
    return f"{session['client']} ({ident if session['kind'] == 'rest' else ident[:8] + '…'})"


@pytest.mark.req("S004-context-01", "S004-goals-01", "S004-goals-02", "S004-goals-04", "S004-goals-06")
@pytest.mark.req("S004-binding-01", "S004-binding-03", "S004-flow-05", "S004-flow-06")
@pytest.mark.req("S004-verification-01", "S004-verification-02")
async def test_each_client_works_only_in_its_own_tab(live_hub: LiveHub, agent: Caller, site: Site) -> None:
    before = await tabs(agent)
    async with in_front(agent), ManyClients(live_hub, TEN) as clients:
        tab_of = await settle_in(clients, site)
        known = await sessions(clients)
        assert len({facts["session"] for facts in known.values()}) == len(TEN)
        assert len(set(tab_of.values()) - before.keys()) == len(TEN)
        assert {client: facts["tabId"] for client, facts in known.items()} == tab_of

        calls = {client: PROCESSES if client.kind == "cli" else CALLS for client in clients.all}

        async def work(client: ToolClient) -> None:
            for number in range(1, calls[client] + 1):
                marks = await client.run(MARK, args={"mark": f"{client.name}:{number}"})
                assert marks == [f"{client.name}:{n}" for n in range(1, number + 1)]

        await asyncio.gather(*(work(client) for client in clients.all))
        titles = {f"{site.url}/{client.name}": f"{client.name}:{calls[client]}" for client in clients.all}
        await until_titled(agent, titles)
        listed = await tabs(agent)
        assert listed.keys() == {*before, *tab_of.values()}, "no call opened a tab beside the first"
        assert {client: listed[tab_id]["url"] for client, tab_id in tab_of.items()} == {
            client: f"{site.url}/{client.name}" for client in clients.all
        }
        assert not any(listed[tab_id]["active"] for tab_id in tab_of.values())

        for client in reversed(clients.all):  # a client that disconnects closes its own tab and no other
            assert await clients.leave() is client
            gone = tab_of.pop(client)
            await until_outside(lambda gone=gone: gone not in open_tabs(live_hub))  # type: ignore[misc]
            assert open_tabs(live_hub).keys() == {*before, *tab_of.values()}
            if tab_of:
                (first, *_) = tab_of
                assert len(await first.run("return window.marks")) == calls[first]


@pytest.mark.req("S004-context-01", "S004-goals-03", "S004-binding-02", "S004-binding-03", "S004-flow-04")
@pytest.mark.req("S004-verification-03")
async def test_naming_a_tab_binds_the_client_to_it(live_hub: LiveHub, agent: Caller, site: Site) -> None:
    async with in_front(agent), ManyClients(live_hub, KINDS) as clients:
        own = await settle_in(clients, site)
        given = {client: await agent.open(f"{site.url}/given-to-{client.name}") for client in clients.all}
        for tab_id in given.values():
            await agent.get("browser_release_tab", tabId=tab_id)

        async def use(client: ToolClient) -> None:
            assert await client.run(MARK, args={"mark": client.name}, tabId=given[client]) == [client.name]
            assert await client.run("return location.pathname") == f"/given-to-{client.name}"
            assert await client.run("return window.marks ?? null", tabId=own[client]) is None

        await asyncio.gather(*(use(client) for client in clients.all))
        await until_titled(agent, {f"{site.url}/given-to-{client.name}": client.name for client in clients.all})
        kept = set(given.values())
        while clients.here:
            await clients.leave()
        await until_outside(lambda: not set(own.values()) & open_tabs(live_hub).keys())
        assert kept <= open_tabs(live_hub).keys(), "a tab that a session did not open outlives it"


async def test_other_clients_are_refused_a_leased_tab_and_see_its_holder(
    live_hub: LiveHub, agent: Caller, site: Site
) -> None:
    async with in_front(agent), ManyClients(live_hub, KINDS) as clients:
        tab_of = await settle_in(clients, site)
        known = await sessions(clients)
        neighbours = list(zip(clients.all, [*clients.all[1:], clients.all[0]], strict=True))

        async def intrude(client: ToolClient, neighbour: ToolClient) -> None:
            tab_id = tab_of[neighbour]
            for tool, arguments in (
                ("browser_execute_script", {"code": "document.title = 'taken'"}),
                ("browser_navigate_tab", {"url": f"{site.url}/other"}),
                ("browser_close_tab", {}),
            ):
                output = await client.refused(tool, tabId=tab_id, **arguments)
                assert f"Tab {tab_id} is held by another session: {shown(known[neighbour])}" in output
                assert "browser_request_tab" in output
            read = await client.get("browser_get_tab_info", tabId=tab_id)
            assert (read["tabId"], read["url"]) == (tab_id, f"{site.url}/{neighbour.name}")

        await asyncio.gather(*(intrude(*pair) for pair in neighbours))
        await asyncio.gather(*(stays(client, tab_of[client], site) for client in clients.all))
        one, two = clients.all[0], clients.all[3]
        await one.get("browser_release_tab")
        assert await two.run("return location.pathname", tabId=tab_of[one]) == f"/{one.name}"
        assert f"held by another session: {shown(known[two])}" in await one.refused(
            "browser_execute_script", code="1", tabId=tab_of[one]
        )


async def stays(client: ToolClient, tab_id: int, site: Site) -> None:
    """Checks that a client still works in its tab."""
    info = await client.get("browser_get_tab_info")
    assert (info["tabId"], info["url"], info["title"]) == (tab_id, f"{site.url}/{client.name}", f"/{client.name}")


@pytest.mark.req("S004-goals-05", "S004-status-01", "S004-status-03", "S004-verification-04", "S004-errors-01")
async def test_all_clients_get_an_error_while_the_extension_is_offline_and_recover_after_it_reconnects(
    live_hub: LiveHub, agent: Caller, site: Site, devtools: DevTools
) -> None:
    async def result(clients: ManyClients) -> set[bool]:
        replies = await asyncio.gather(*(m.get("browser_get_connection_status") for m in clients.all))
        assert all([b["connected"] for b in reply["browsers"]] == [reply["connected"]] for reply in replies)
        return {reply["connected"] for reply in replies}

    async def rested() -> bool:
        async with http_client(live_hub) as http:
            sessions = (await http.get("/sessions")).json()["sessions"]
        return all(each["idleSeconds"] > DEFAULTS.awake_idle + 1 for each in sessions)

    async with ManyClients(live_hub, KINDS) as clients:
        tab_of = await settle_in(clients, site)
        await asyncio.gather(*(m.run(MARK, args={"mark": m.name}) for m in clients.all))
        assert await result(clients) == {True}
        await eventually(rested)  # a tab that draws wakes the worker
        await devtools.stop_worker()
        await until_outside(lambda: not live_hub.connected)
        assert await result(clients) == {False}
        # All at once: after 30 s an alarm wakes the worker.
        refused = await asyncio.gather(*(m.refused("browser_execute_script", code="1") for m in clients.all))
        assert all("Browser extension not connected" in text for text in refused)
        await devtools.send("Target.closeTarget", targetId=await devtools.open("about:blank?woken"))
        await until_outside(lambda: live_hub.ready)
        assert await result(clients) == {True}
        for client in clients.all:
            assert await client.run("return window.marks") == [client.name]
            assert (await client.get("browser_get_tab_info"))["tabId"] == tab_of[client]
