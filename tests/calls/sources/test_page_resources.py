"""Prompts and resources of pages: listed, requested, and under the same rules as the tools of their pages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.harness.agent import Agent
from tests.harness.hub import RunningHub, running_hub
from tests.harness.pages import PAY, SHOP, Browser, tool

PROMPT = "website_prompt_shop_example_greet"
URI = "tabhub+mcp://https%3A%2F%2Fshop.example/shop://list"
WHO = {"type": "object", "properties": {"who": {"type": "string", "description": "Whom."}}, "required": ["who"]}
OFFERS = [
    tool("prompt:greet", kind="prompt", via="mcpb", title="Greeting", inputSchema=WHO),
    tool("resource:shop://list", kind="resource", via="mcpb", title="List", annotations={"mimeType": "text/plain"}),
    tool("template:shop://item/{id}", kind="template", via="mcpb"),
]


def answers(params: dict[str, Any]) -> dict[str, Any]:
    if params["toolName"].startswith("prompt:"):
        given: dict[str, Any] = {"messages": [{"role": "user", "content": f"Greet {params['args']['who']}."}]}
    else:
        given = {"contents": [{"uri": params["args"]["uri"], "text": "tea"}]}
    return {"success": True, "payload": {"content": [], "structuredContent": given}}


async def listed(agent: Agent, kind: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await agent.request(f"{kind}/list"))["result"][kind.rpartition("/")[2]]
    return found


async def test_prompts_and_resources_of_pages_are_listed_and_requested(hub: RunningHub) -> None:
    async with Browser(hub) as browser, Agent(hub) as agent:
        browser.handlers["browser/executeTool"] = answers
        await browser.offer(7, tool("add"), *OFFERS)
        tools = (await agent.request("tools/list"))["result"]["tools"]
        assert [each["name"] for each in tools if each["name"].startswith("website_")] == [
            "website_tool_shop_example_tab1_add"
        ]
        (prompt,) = await listed(agent, "prompts")
        assert (prompt["name"], prompt["title"]) == (PROMPT, "Greeting")
        assert prompt["arguments"] == [{"name": "who", "required": True, "description": "Whom."}]
        assert "shop.example" in prompt["description"]
        (resource,) = await listed(agent, "resources")
        assert (resource["uri"], resource["name"], resource["mimeType"]) == (URI, "List", "text/plain")
        (template,) = (await agent.request("resources/templates/list"))["result"]["resourceTemplates"]
        assert template["uriTemplate"].endswith("/shop://item/{id}")
        got = (await agent.request("prompts/get", {"name": PROMPT, "arguments": {"who": "Anna"}}))["result"]
        assert got["messages"] == [{"role": "user", "content": {"type": "text", "text": "Greet Anna."}}]
        assert got["_meta"]["tabhub/untrusted"] == {"origin": SHOP}
        for uri in (URI, template["uriTemplate"].replace("{id}", "5"), "shop://list"):
            read = (await agent.request("resources/read", {"uri": uri}))["result"]
            assert [content["text"] for content in read["contents"]] == ["tea"]
        missing = await agent.request("resources/read", {"uri": URI + "s"})
        assert missing["error"]["code"] == -32002
        await browser.offer(7, tool("add"))
        assert await listed(agent, "prompts") == await listed(agent, "resources") == []


async def test_names_with_hidden_characters_are_refused(hub: RunningHub) -> None:
    async with Browser(hub) as browser, Agent(hub) as agent:
        await browser.offer(7, tool("prompt:gr\u202eeet", kind="prompt", via="mcpb"), OFFERS[1])
        assert await listed(agent, "prompts") == []
        assert len(await listed(agent, "resources")) == 1


async def test_a_page_may_list_no_more_of_them_than_tools(tmp_path: Path) -> None:
    async with running_hub(tmp_path, limits={"page_tools": 5}) as hub, Browser(hub) as browser, Agent(hub) as agent:
        await browser.offer(7, *(tool(f"resource:shop://{n}", kind="resource", via="mcpb") for n in range(20)))
        assert len(await listed(agent, "resources")) == 5


@pytest.mark.req("B25")
async def test_nothing_of_a_blocked_site_is_listed_or_requested(tmp_path: Path) -> None:
    async with (
        running_hub(tmp_path, sites={"pay.example": "block"}) as hub,
        Browser(hub) as browser,
        Agent(hub) as agent,
    ):
        browser.handlers["browser/executeTool"] = answers
        await browser.offer(7, *OFFERS)
        await browser.offer(7, *OFFERS, origin=PAY, frame=3)
        assert [each["name"] for each in await listed(agent, "prompts")] == [PROMPT]
        assert [each["uri"] for each in await listed(agent, "resources")] == [URI]
        theirs = URI.replace("shop.example", "pay.example")
        refused = await agent.request("resources/read", {"uri": theirs})
        assert "error" in refused
        wrong = PROMPT.replace("shop", "pay")
        unknown = await agent.request("prompts/get", {"name": wrong, "arguments": {"who": "x"}})
        assert "pay.example" not in json.dumps(unknown).replace(wrong, "")
        await browser.settle()
        methods = [browser.seen.get_nowait()["method"] for _ in range(browser.seen.qsize())]
        assert "browser/executeTool" not in methods


async def test_they_need_the_same_permission_as_the_tools_of_their_page(tmp_path: Path) -> None:
    permissions = {SHOP: {"permission": "off"}}
    async with running_hub(tmp_path, permissions=permissions) as hub, Browser(hub) as browser, Agent(hub) as agent:
        await browser.offer(7, *OFFERS)
        refused = await agent.request("prompts/get", {"name": PROMPT, "arguments": {"who": "x"}})
        assert "switched off" in json.dumps(refused)
