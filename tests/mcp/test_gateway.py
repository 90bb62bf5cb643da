"""The gateway: two tools that give access to all others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tabhub.core.results.tokens import estimate_tokens
from tests.harness.agent import Agent, client, message, stateless
from tests.harness.fake_extension import FakeExtension
from tests.harness.hub import RunningHub, running_hub
from tests.harness.probe import Probe

OFF = {"permissions": {"browser": {"tools": {"browser_close_tab": "off"}}}}


def gateway(hub: RunningHub) -> Agent:
    return Agent(hub, "/mcp/gateway?tools=structured")


async def found(agent: Agent, name: str = "tabhub_list_tools", **arguments: Any) -> dict[str, Any]:
    """The answer of the listing tool."""
    result = (await agent.call(name, arguments))["result"]
    assert "isError" not in result, result
    answer: dict[str, Any] = json.loads(result["content"][0]["text"])
    return answer


@pytest.mark.req("S002-modes-02", "S002-gateway-01", "S002-gateway-05")
async def test_the_gateway_lists_exactly_two_tools_in_both_eras(hub: RunningHub) -> None:
    Probe(hub)
    async with gateway(hub) as agent, client(hub) as http:
        tools = (await agent.request("tools/list"))["result"]["tools"]
        body, headers = stateless("tools/list")
        modern = (await http.post("/mcp/gateway", json=body, headers=headers)).json()["result"]
        stranger = await http.post("/mcp/gateway", json=message("ping"), headers={"Authorization": "Bearer no"})
        everything = {t.name for t in hub.hub.registry.tools()}
        reached = await found(agent, detail="names", limit=500)
    assert [t["name"] for t in tools] == ["tabhub_list_tools", "tabhub_call"]
    assert [tool["name"] for tool in modern["tools"]] == [tool["name"] for tool in tools]
    assert "session" in modern["tools"][1]["inputSchema"]["properties"]
    assert stranger.status_code == 401
    assert set(reached["tools"]) == everything


@pytest.mark.req("S002-gateway-02")
async def test_the_listing_filters_by_plugin(hub: RunningHub) -> None:
    Probe(hub)
    async with gateway(hub) as agent:
        probes = await found(agent, plugin="probe", detail="names")
        none = await found(agent, plugin="nobody")
        both = await found(agent, plugin="browser", query="probe echo value")
    assert probes["tools"] == [t.name for t in hub.hub.registry.tools() if t.source.key == "probe"] != []
    assert (none["total"], none["tools"]) == (0, [])
    assert "browser" in none["hint"]
    assert "probe" in none["hint"]
    assert all(entry["plugin"] == "browser" for entry in both["tools"])


async def test_a_query_ranks_the_intended_tool_first(hub: RunningHub) -> None:
    async with gateway(hub) as agent:
        for query, wanted in [
            ("take a picture of the page", "browser_screenshot_tab"),
            ("which tabs are open", "browser_list_tabs"),
            ("run javascript", "browser_execute_script"),
        ]:
            names = (await found(agent, query=query, detail="names"))["tools"]
            assert wanted in names[:3], (query, names[:5])


async def test_detail_selects_names_summaries_or_schemas(hub: RunningHub) -> None:
    async with gateway(hub) as agent:
        name = "browser_execute_script"
        names = await found(agent, query=name, detail="names", limit=1)
        summaries = await found(agent, query=name, limit=1)
        schemas = await found(agent, query=name, detail="schemas", limit=1)
    assert names["tools"] == [name]
    (summary,) = summaries["tools"]
    assert summary["name"].startswith(f"{name}(")
    assert "code" in summary["name"]
    assert "tabId?" in summary["name"]
    assert len(summary["description"]) <= 160
    (schema,) = schemas["tools"]
    assert schema["inputSchema"]["required"] == ["code"]
    assert schema["plugin"] == "browser"


async def test_pages_give_every_tool_once(hub: RunningHub) -> None:
    async with gateway(hub) as agent:
        seen: list[str] = []
        offset = 0
        while True:
            page = await found(agent, detail="names", limit=7, offset=offset)
            seen += page["tools"]
            if "nextOffset" not in page:
                break
            offset = page["nextOffset"]
        beyond = await found(agent, offset=10_000)
    assert seen == [t.name for t in hub.hub.registry.tools()]
    assert beyond["tools"] == []
    assert beyond["total"] == len(seen)


async def test_a_page_of_schemas_never_floods_the_agent(tmp_path: Path) -> None:
    async with running_hub(tmp_path, limits={"result_tokens": 2000}) as hub, gateway(hub) as agent:
        seen: list[str] = []
        offset: int | None = 0
        while offset is not None:
            result = (await agent.call("tabhub_list_tools", {"detail": "schemas", "limit": 500, "offset": offset}))[
                "result"
            ]
            text = result["content"][0]["text"]
            assert estimate_tokens(text) < 2600
            page = json.loads(text)
            seen += [tool["name"] for tool in page["tools"]]
            offset = page.get("nextOffset")
    assert seen == [t.name for t in hub.hub.registry.tools()]


@pytest.mark.req("S002-gateway-03")
async def test_any_tool_is_called_by_name_with_arguments(hub: RunningHub) -> None:
    async with FakeExtension(hub), gateway(hub) as agent, Agent(hub) as direct:
        script = {"code": "return 1"}
        through = await agent.call(
            "tabhub_call", {"name": "browser_execute_script", "arguments": {**script, "tabId": 7}}
        )
        plain = await direct.call("browser_execute_script", script)
        bare = await agent.call("tabhub_call", {"name": "browser_list_tabs"})
    assert through["result"] == plain["result"]
    assert bare["result"]["structuredContent"]["tabs"][0]["tabId"] == 7
    assert [line["tool"] for line in hub.hub.engine.audit.recent(3)] == [
        "browser_list_tabs",
        "browser_execute_script",
        "browser_execute_script",
    ]


@pytest.mark.req("S002-gateway-06")
async def test_the_names_of_opentabs_are_aliases(hub: RunningHub) -> None:
    async with FakeExtension(hub), gateway(hub) as agent:
        assert await found(agent, "opentabs_list_tools", query="tabs") == await found(agent, query="tabs")
        alike = [await agent.call(name, {"name": "browser_list_tabs"}) for name in ("opentabs_call", "tabhub_call")]
    assert alike[0]["result"] == alike[1]["result"]
    assert "isError" not in alike[0]["result"]


async def test_an_unknown_name_suggests_the_nearest(hub: RunningHub) -> None:
    async with gateway(hub) as agent:
        wrong = (await agent.call("tabhub_call", {"name": "browser_list_tab"}))["error"]
        direct = (await agent.call("browser_list_tabs"))["error"]
    assert wrong["code"] == -32602
    assert "browser_list_tabs" in wrong["data"]["nearest"]
    assert "Did you mean" in wrong["message"]
    assert "tabhub_call" in direct["message"]


async def test_wrong_arguments_give_the_schema(hub: RunningHub) -> None:
    async with FakeExtension(hub) as browser, gateway(hub) as agent:
        answer = await agent.call("tabhub_call", {"name": "browser_execute_script", "arguments": {"code": 5}})
        unusable = await agent.call("tabhub_call", {"name": "browser_list_tabs", "arguments": "x"})
        unknown = await agent.call("tabhub_list_tools", {"detail": "all"})
        assert browser.seen.empty()
    text = answer["result"]["content"][0]["text"]
    assert answer["result"]["isError"] is True
    assert "code: " in text
    schema = json.loads(text.partition("The schema of browser_execute_script: ")[2])
    assert schema["required"] == ["code"]
    assert answer["result"]["_meta"]["tabhub/error"]["errors"][0]["field"] == "code"
    assert "arguments" in unusable["result"]["content"][0]["text"]
    assert "detail" in unknown["result"]["content"][0]["text"]


@pytest.mark.parametrize("shown", [False, True])
async def test_disabled_tools_are_hidden_or_marked_and_never_run(tmp_path: Path, shown: bool) -> None:
    async with (
        running_hub(tmp_path, **OFF, showDisabled=shown) as hub,
        FakeExtension(hub) as browser,
        gateway(hub) as agent,
    ):
        names = (await found(agent, detail="names", limit=500))["tools"]
        hits = (await found(agent, query="close tab"))["tools"]
        refused = await agent.call("tabhub_call", {"name": "browser_close_tab", "arguments": {"tabId": 7}})
        assert browser.seen.empty()
    assert ("browser_close_tab" in names) is shown
    marked = [hit for hit in hits if hit["name"].startswith("browser_close_tab(")]
    assert [hit["description"].startswith("[Disabled] ") for hit in marked] == ([True] if shown else [])
    assert refused["result"]["isError"] is True
    assert refused["result"]["_meta"]["tabhub/error"]["category"] == "permission"


async def test_a_permission_that_changes_is_seen_in_listing_and_search(hub: RunningHub) -> None:
    async with gateway(hub) as agent, client(hub) as http:

        async def hits() -> list[str]:
            names: list[str] = (await found(agent, query="close tab", detail="names"))["tools"]
            return names

        assert "browser_close_tab" in await hits()
        hub.home.config.write_text(json.dumps(OFF))
        assert (await http.post("/reload")).status_code == 200
        assert "browser_close_tab" not in await hits()
        hub.home.config.write_text("{}")
        assert (await http.post("/reload")).status_code == 200
        assert "browser_close_tab" in await hits()
