"""Page tools through a whole hub: a browser reports the tools of its pages, agents list and call them."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import pytest

from tabhub.wire.extension_link import READERS
from tests.harness.agent import Agent, client, stateless
from tests.harness.fake_extension import tab
from tests.harness.hub import RunningHub, running_hub
from tests.harness.pages import ADD, PAY, SCHEMA, SHOP, Browser, listed, page, text, text_of, tool
from tests.harness.waiting import until


@pytest.mark.req("S000-flows-01", "S000-flows-03", "S000-messages-02", "S000-spec-routing-06", "S000-spec-routing-08")
async def test_a_page_tool_is_listed_called_and_its_answer_marked_as_the_pages(hub: RunningHub) -> None:
    async with Browser(hub) as browser, Agent(hub) as agent:
        await browser.offer(7, tool("add", annotations={"readOnlyHint": False, "untrustedContentHint": True}))
        entry = (await listed(agent))[ADD]
        assert entry["description"] == "[shop.example · tab 1 · “The shop” · active tab] The page says: does add"
        assert entry["inputSchema"] == SCHEMA
        assert entry["annotations"] == {"readOnlyHint": False, "untrustedContentHint": True}
        assert entry["_meta"]["tabhub/page"] == {
            "origin": SHOP, "tab": 1, "tabId": 7, "frameId": 0, "via": "webmcp"
        }  # fmt: skip
        answer = await agent.call(ADD, {"id": "x"})
        assert text_of(answer) == "add in 7"
        assert answer["result"]["_meta"]["tabhub/untrusted"] == {"origin": SHOP}
        sent = (await browser.next_request("browser/executeTool"))["params"]
        assert sent == {"tabId": 7, "frameId": 0, "documentId": "doc-7-0", "toolName": "add", "args": {"id": "x"}}
        wrong = await agent.call(ADD, {"id": 7})
        assert wrong["result"]["isError"]


@pytest.mark.req("S000-flows-02", "S000-page-server-02", "S000-hub-04", "S000-spec-cleanup-02", "S000-spec-cleanup-01")
async def test_updated_and_closed_pages_change_the_list(hub: RunningHub) -> None:
    async with Browser(hub) as browser, Agent(hub) as agent:
        await browser.offer(7, tool("add"))
        where = {"tabId": 7, "frameId": 0, "documentId": "doc-7-0"}
        await browser.notify("browser/updateTools", {**where, "tools": [tool("find")]})
        await browser.settle()
        assert list(await listed(agent)) == ["website_tool_shop_example_tab1_find"]
        await browser.notify("browser/disconnected", where)
        await browser.settle()
        assert await listed(agent) == {}
        assert (await agent.call(ADD))["error"]["code"] == -32602
        await browser.offer(7, tool("add"))
        await browser.change(7, "removed")
        assert await listed(agent) == {}


@pytest.mark.req("S000-spec-routing-09", "S000-flows-04", "S000-principles-06", "S000-overview-05", "S000-overview-04")
async def test_tabs_of_a_site_have_numbers_and_several_sites_work_together(hub: RunningHub) -> None:
    tabs = [tab(7, f"{SHOP}/p"), tab(8, f"{SHOP}/q", active=True), tab(9, PAY)]
    async with Browser(hub, *tabs) as browser, Agent(hub) as agent:
        for tab_id in (7, 8):
            await browser.offer(tab_id, tool("add"))
        await browser.offer(9, tool("add"), origin=PAY)
        names = list(await listed(agent))
        assert names == ["website_tool_pay_example_tab1_add", ADD, "website_tool_shop_example_tab2_add"]
        assert [text_of(await agent.call(name)) for name in names] == ["add in 9", "add in 7", "add in 8"]
        # without a tab number: not listed while tabs have it, but callable; the active tab is chosen
        assert text_of(await agent.call("website_tool_shop_example_add")) == "add in 8"


@pytest.mark.req("S000-spec-routing-10")
async def test_another_active_tab_changes_descriptions_without_a_notification(hub: RunningHub) -> None:
    tabs = [tab(7, f"{SHOP}/p", active=True), tab(8, f"{SHOP}/q")]
    async with Browser(hub, *tabs) as browser, Agent(hub) as agent:
        for tab_id in (7, 8):
            await browser.offer(tab_id, tool("add"))
        version = hub.hub.registry.version
        await browser.change(8, "activated", url=f"{SHOP}/q", active=True)
        await until(lambda: "active" not in hub.hub.registry.by_name.get(ADD).tool.description)  # type: ignore[union-attr]
        now = await listed(agent)
        assert "active tab" in now["website_tool_shop_example_tab2_add"]["description"]
        assert "active tab" not in now[ADD]["description"]
        assert hub.hub.registry.version == version


async def test_frames_of_one_site_in_a_tab_join_and_the_top_one_has_the_name(hub: RunningHub) -> None:
    async with Browser(hub) as browser, Agent(hub) as agent:
        browser.handlers["browser/executeTool"] = lambda params: text(str(params["frameId"]))
        await browser.offer(7, tool("add"), frame=4)
        await browser.offer(7, tool("pay"), origin=PAY, frame=5)
        assert text_of(await agent.call(ADD)) == "4"
        await browser.offer(7, tool("add"))
        tools = await listed(agent)
        assert len(tools) == 3
        assert text_of(await agent.call(ADD)) == "0"
        (other,) = [name for name in tools if name.startswith(f"{ADD}_h")]
        assert text_of(await agent.call(other)) == "4"
        pay = tools["website_tool_pay_example_tab1_pay"]
        assert "embedded in shop.example" in pay["description"]


@pytest.mark.req("S000-spec-cleanup-03", "S000-spec-routing-01", "S000-spec-routing-05", "S000-spec-routing-17")
async def test_a_kept_tool_stays_listed_without_its_tab_and_a_call_opens_its_page(hub: RunningHub) -> None:
    async with Browser(hub) as browser, Agent(hub) as agent:
        await browser.offer(7, tool("find", annotations={"cache": True, "readOnlyHint": True}), tool("add"))
        await browser.change(7, "removed")
        tools = await listed(agent)
        assert list(tools) == ["website_tool_shop_example_find"]
        assert "opens the site" in tools["website_tool_shop_example_find"]["description"]

        async def created(params: dict[str, Any]) -> dict[str, Any]:
            made = tab(50, params["url"])
            asyncio.get_running_loop().call_later(0.05, lambda: late.append(asyncio.create_task(offer())))
            return made

        async def offer() -> None:
            await browser.offer(50, tool("find", annotations={"cache": True, "readOnlyHint": True}))

        late: list[asyncio.Task[None]] = []
        browser.handlers["createTab"] = created
        assert text_of(await agent.call("website_tool_shop_example_find")) == "find in 50"
        asked = (await browser.next_request("createTab"))["params"]
        assert asked == {"url": f"{SHOP}/p", "active": False}
        await asyncio.gather(*late)


@pytest.mark.req("S000-spec-cleanup-06", "S000-spec-cleanup-08")
async def test_kept_tools_survive_a_restart_and_the_loss_of_the_browser(tmp_path: Path) -> None:
    async with running_hub(tmp_path) as first, Agent(first) as agent:
        async with Browser(first) as browser:
            await browser.offer(7, tool("find", annotations={"cache": True}), tool("add"))
        await until(lambda: not first.hub.browsers.links())
        assert list(await listed(agent)) == ["website_tool_shop_example_find"]
    async with running_hub(tmp_path) as second, Agent(second) as agent:
        assert list(await listed(agent)) == ["website_tool_shop_example_find"]
        async with Browser(second) as browser:
            await browser.offer(7, tool("find", annotations={"cache": True}))
            assert list(await listed(agent)) == ["website_tool_shop_example_tab1_find"]


@pytest.mark.req("S000-capabilities-01", "S000-capabilities-03")
async def test_clients_find_what_pages_can_do_in_both_eras(hub: RunningHub) -> None:
    async with Browser(hub) as browser, client(hub) as http, Agent(hub) as agent:
        body, headers = stateless("server/discover")
        for expected in (False, True):
            found = (await http.post("/mcp", json=body, headers=headers)).json()["result"]["capabilities"]
            assert found["experimental"]["browser"] == {
                "multiTabSupport": True, "cacheSupported": expected, "elicitation": expected
            }  # fmt: skip
            await browser.offer(7, capabilities={"browser": {"cacheSupported": True, "elicitation": True}})
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        first = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
        answer = await http.post("/mcp", json=first, headers={"Accept": agent.headers["Accept"]})
        assert answer.json()["result"]["capabilities"]["experimental"]["browser"]["cacheSupported"] is True


@pytest.mark.req("B19", "S000-security-01", "S000-spec-transport-08", "S000-spec-security-02", "S000-spec-security-07")
async def test_invalid_registrations_are_refused_and_logged(hub: RunningHub, caplog: pytest.LogCaptureFixture) -> None:
    good = page(7, tool("add"))
    async with Browser(hub) as browser, Agent(hub) as agent:
        for wrong in (
            {"origin": "null"},
            {"origin": PAY},
            {"origin": 7},
            {"origin": "javascript:alert(1)"},
            {"url": None},
            {"frameId": "0"},
            {"frameId": -1},
            {"documentId": None},
            {"documentId": "x" * 500},
            {"tabId": "7"},
            {"tabId": 12345},
            {"extensions": ["x" * 100_000]},
            {"tools": {"length": 1}},
        ):
            await browser.notify("browser/registerTools", {**good, **wrong})
        await browser.settle()
        assert await listed(agent) == {}
        assert hub.hub.browsers.links()[0].counts.refused == 12
        with caplog.at_level(logging.WARNING):
            await browser.offer(7, tool("add"), tool(""), tool("s", inputSchema={"$ref": "#"}))
        assert list(await listed(agent)) == [ADD]
        refused = [r.getMessage() for r in caplog.records if "refused" in r.getMessage()]
        assert len([line for line in refused if "refused browser/registerTools: " in line]) == 9
        assert len([line for line in refused if line.startswith("tab 7: refused: tools of ")]) == 3
        assert refused[-2:] == [
            "tab 7, frame 0: refused: a tool without a name",
            "tab 7, frame 0: refused: tool 's': the schema refers to itself without end",
        ]


@pytest.mark.req("S000-spec-registration-09")
async def test_an_empty_list_is_an_update_that_registers_nothing_and_is_logged(
    hub: RunningHub, caplog: pytest.LogCaptureFixture
) -> None:
    where = {"tabId": 7, "frameId": 0, "documentId": "doc-7-0"}
    async with Browser(hub) as browser, Agent(hub) as agent:
        with caplog.at_level(logging.INFO):
            await browser.notify("browser/updateTools", {**where, "tools": []})
            await browser.settle()
        assert "tab 7, frame 0: the page offers no tools" in caplog.text
        assert await listed(agent) == {}
        assert not [line for line in hub.home.audit.read_text().splitlines() if "page.tools" in line]
        await browser.offer(7, tool("add"))
        assert list(await listed(agent)) == [ADD]
        await browser.notify("browser/updateTools", {**where, "tools": []})
        await browser.settle()
        assert await listed(agent) == {}


@pytest.mark.req("S000-spec-cleanup-04")
async def test_a_closed_tab_changes_the_descriptions_of_the_others_of_its_site(hub: RunningHub) -> None:
    tabs = [tab(7, f"{SHOP}/p", active=True), tab(8, f"{SHOP}/q"), tab(9, PAY)]

    def described(name: str) -> str:
        entry = hub.hub.registry.by_name.get(f"website_tool_shop_example_{name}")
        assert entry is not None
        return entry.tool.description

    async with Browser(hub, *tabs) as browser, Agent(hub) as agent:
        for tab_id in (7, 8):
            await browser.offer(tab_id, tool("add", annotations={"cache": True}))
        assert ("in 2 open tabs" in described("add"), "active tab" in described("tab1_add")) == (True, True)
        await browser.change(7, "removed")
        await browser.change(8, "activated", url=f"{SHOP}/q", active=True)
        await until(lambda: "active tab" in described("tab2_add"))
        assert "in 1 open tab" in described("add")
        await browser.change(8, "removed")
        assert "opens the site" in (await listed(agent))["website_tool_shop_example_add"]["description"]


@pytest.mark.req("S000-errors-01")
async def test_errors_have_mcp_codes_and_a_missing_tab_has_its_own(hub: RunningHub) -> None:
    async with Browser(hub), Agent(hub) as agent:
        missing = (await agent.call("browser_execute_script", {"tabId": 99, "code": "1"}))["result"]
        assert missing["_meta"]["tabhub/error"]["code"] == -32001
        assert "There is no tab 99." in missing["content"][0]["text"]
        assert (await agent.call("website_tool_nowhere_example_add"))["error"]["code"] == -32602
        assert (await agent.request("tools/none"))["error"]["code"] == -32601


@pytest.mark.req("B14", "B15")
async def test_unusual_names_are_mapped_reversibly(hub: RunningHub) -> None:
    names = ["__proto__", "constructor", "a b", "ü", "x" * 128, "__", "tab2_x", "browser_click"]
    async with Browser(hub) as browser, Agent(hub) as agent:
        browser.handlers["browser/executeTool"] = lambda params: text(params["toolName"])
        await browser.offer(7, *(tool(name) for name in names))
        assert {text_of(await agent.call(name)) for name in await listed(agent)} == set(names)
        assert {name[:13] for name in await listed(agent)} == {"website_tool_"}


@pytest.mark.req("S000-spec-security-01")
async def test_only_allowed_origins_register_tools_and_browsers_get_the_setting(tmp_path: Path) -> None:
    async with running_hub(tmp_path, pages={"allowedOrigins": [SHOP], "modelContext": False}) as hub:
        tabs = [tab(7, f"{SHOP}/p"), tab(8, PAY)]
        async with Browser(hub, *tabs) as browser, Agent(hub) as agent:
            settings = (await browser.next_notification("pages.settings"))["params"]
            assert settings == {
                "modelContext": False, "allowedOrigins": [SHOP],
                "maxTools": 100, "maxBytes": 262_144, "maxDocuments": 50, "maxUpdates": 10,
            }  # fmt: skip
            await browser.offer(7, tool("add", annotations={"cache": True}))
            await browser.offer(8, tool("pay"), origin=PAY)
            assert list(await listed(agent)) == [ADD]
            hub.home.config.write_text(json.dumps({"pages": {"allowedOrigins": ["https://*.pay.example", PAY]}}))
            hub.hub.reload()
            assert (await browser.next_notification("pages.settings"))["params"]["modelContext"] is True
            assert await listed(agent) == {}
            await browser.offer(8, tool("pay"), origin=PAY)
            assert list(await listed(agent)) == ["website_tool_pay_example_tab1_pay"]


@pytest.mark.req("S000-security-04")
async def test_calls_of_a_site_are_rate_limited_and_its_texts_cleaned(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tabs = [tab(7, f"{SHOP}/p"), tab(8, PAY)]
    async with (
        running_hub(tmp_path, limits={"page_call_rate": 3}) as hub,
        Browser(hub, *tabs) as browser,
        Agent(hub) as one,
        Agent(hub) as two,
        client(hub) as http,
    ):
        with caplog.at_level(logging.WARNING):
            await browser.offer(7, tool("add", description="adds\u202e"), tool("look"), tool(""))
        await browser.offer(8, tool("pay"), origin=PAY)
        assert (await listed(one))[ADD]["description"].endswith("adds\\u{202E}")
        assert "tab 7, frame 0: refused: a tool without a name" in caplog.text
        for agent, name in ((one, "add"), (two, "add"), (one, "look")):
            assert text_of(await agent.call(f"website_tool_shop_example_tab1_{name}")) == f"{name} in 7"
        for agent in (one, two):
            refused = (await agent.call(ADD))["result"]["_meta"]["tabhub/error"]
            assert (refused["category"], refused["outcome"]) == ("rate_limit", "not_sent")
            assert 1 <= refused["retryAfter"] <= 61
        late = await http.post(f"/tools/{ADD}/call", json={})
        assert (late.status_code, 1 <= int(late.headers["retry-after"]) <= 61) == (429, True)
        assert text_of(await one.call("website_tool_pay_example_tab1_pay")) == "pay in 8"
        assert browser.seen.qsize() == 4


@pytest.mark.req("L8")
async def test_a_flood_of_updates_is_rate_limited_and_the_last_state_arrives(
    hub: RunningHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Browser(hub) as browser, Agent(hub) as agent:
        await browser.offer(7, tool("t"))
        version = hub.hub.registry.version
        where = {"tabId": 7, "frameId": 0, "documentId": "doc-7-0"}
        with monkeypatch.context() as patched:
            now = hub.hub.pages.clock()
            patched.setattr(hub.hub.pages, "clock", lambda: now)  # all of them arrive within one second
            for number in range(500):
                await browser.notify("browser/updateTools", {**where, "tools": [tool(f"t{number}")]})
            await browser.settle()
            assert hub.hub.registry.version - version <= 10
        last = "website_tool_shop_example_tab1_t499"
        await until(lambda: hub.hub.registry.by_name.get(last) is not None)
        assert list(await listed(agent)) == [last]


@pytest.mark.req("S000-spec-security-05")
async def test_registrations_and_calls_are_in_the_audit_log_with_tab_and_site(hub: RunningHub) -> None:
    async with Browser(hub) as browser, Agent(hub) as agent:
        await browser.offer(7, tool("add"))
        await agent.call(ADD)
        came, call = [json.loads(line) for line in hub.home.audit.read_text().splitlines()]
        assert (came["tool"], came["origin"], came["tabId"], came["added"]) == ("page.tools", SHOP, 7, ["add"])
        assert (call["tool"], call["origin"], call["tabId"], call["source"]) == (ADD, SHOP, 7, f"page:{SHOP}")
        assert hub.hub.engine.audit.summary()["totalInvocations"] == 1


@pytest.mark.req("L4", "S000-spec-testing-05")
async def test_ten_more_tools_do_not_rebuild_or_reorder_the_others(hub: RunningHub) -> None:
    # `python -m bench rows L4` measures it with 5,000 tools of 500 origins.
    pages, registry = hub.hub.pages, hub.hub.registry
    async with Browser(hub) as browser, Agent(hub) as agent:
        for site in range(50):
            offered = page(1000 + site, *(tool(f"t{n}") for n in range(10)), origin=f"https://s{site}.example")
            pages.receive(1000 + site, READERS["browser/registerTools"](offered))
        before = await all_names(agent)
        entries = {name: registry.by_name.get(name) for name in before}
        assert len(before) >= 500
        await browser.offer(7, *(tool(f"new{n}") for n in range(10)), frame=999)
        after = await all_names(agent)
        assert [name for name in after if name in entries] == before
        assert {name for name in after if name not in entries} == {
            f"website_tool_shop_example_tab1_new{n}" for n in range(10)
        }
        assert all(registry.by_name.get(name) is entry for name, entry in entries.items())  # no tool was created again


async def all_names(agent: Agent) -> list[str]:
    """The names of all tools, page by page."""
    names: list[str] = []
    params: dict[str, Any] = {}
    while True:
        listed = (await agent.request("tools/list", params))["result"]
        names += [each["name"] for each in listed["tools"]]
        if "nextCursor" not in listed:
            return names
        params = {"cursor": listed["nextCursor"]}
