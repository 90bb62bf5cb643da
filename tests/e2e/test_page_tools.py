"""Page tools on the whole road: a page in a real Chromium declares them, an agent lists and calls them."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.e2e.live import Caller
from tests.e2e.site import Site

DECLARE = """
const tools = args => args.map(name => ({
  name, description: `does ${name}`, inputSchema: {type: "object", properties: {text: {type: "string"}}},
  annotations: {readOnlyHint: true, cache: name === "kept"},
  execute: async ({text}) => ({content: [{type: "text", text: `${name}: ${text} at ${location.pathname}`}]}),
}));
for (const tool of tools(%s)) document.modelContext.registerTool(tool);
return "done";
"""


async def listed(agent: Caller, site: str) -> dict[str, dict[str, Any]]:
    tools = (await agent.http.get("/tools", params={"plugin": site})).json()
    return {tool["name"]: tool for tool in tools}


async def appear(agent: Caller, site: str, number: int) -> tuple[dict[str, dict[str, Any]], float]:
    """Wait until a site lists that many tools; gives how long it took."""
    began = time.monotonic()
    while len(found := await listed(agent, site)) != number:
        assert time.monotonic() - began < 5, found
    return found, time.monotonic() - began


@pytest.mark.req("S000-overview-02", "S000-spec-architecture-01", "S000-spec-routing-11", "S000-spec-testing-02")
async def test_a_page_declares_tools_and_an_agent_calls_them_in_the_right_tab(agent: Caller, site: Site) -> None:
    first = await agent.open(f"{site.url}/one")
    await agent.run(DECLARE % '["say"]', tabId=first)
    second = await agent.open(f"{site.url}/two")
    await agent.run(DECLARE % '["say", "more"]', tabId=second)
    tools, _ = await appear(agent, site.url, 3)
    numbers = {tool["_meta"]["tabhub/page"]["tabId"]: tool["_meta"]["tabhub/page"]["tab"] for tool in tools.values()}
    start = f"website_tool_127_0_0_1_{site.port}"
    for tab_id, path in ((first, "/one"), (second, "/two")):
        answer = await agent.call(f"{start}_tab{numbers[tab_id]}_say", text="hi")
        assert answer["content"] == [{"type": "text", "text": f"say: hi at {path}"}]
        assert answer["_meta"]["tabhub/untrusted"] == {"origin": site.url}
    await agent.get("browser_close_tab", tabId=first)
    await appear(agent, site.url, 2)
    await agent.get("browser_navigate_tab", tabId=second, url=f"{site.url}/elsewhere")
    await appear(agent, site.url, 0)


@pytest.mark.req("S000-spec-testing-05")
async def test_ten_tools_are_listed_soon_and_a_call_is_quick(agent: Caller, site: Site) -> None:
    tab_id = await agent.open(f"{site.elsewhere}/ten")
    await agent.run(DECLARE % str([f"t{n}" for n in range(10)]).replace("'", '"'), tabId=tab_id)
    tools, took = await appear(agent, site.elsewhere, 10)
    assert took < 0.6  # 100 ms, and the 500 ms for which the page's changes are gathered
    name = next(iter(tools))
    times = []
    for _ in range(10):
        began = time.monotonic()
        assert not (await agent.call(name, text="x")).get("isError")
        times.append(time.monotonic() - began)
    assert sorted(times)[5] < 0.5
