"""One process, on this machine only, with all endpoints."""

from __future__ import annotations

import pytest

from tabhub.config.settings import Config
from tabhub.core.registry import Entry
from tabhub.core.tools import CallContext, Source, Tool, ToolResult
from tabhub.server.run import listen
from tests.harness.agent import Agent, client
from tests.harness.fake_extension import FakeExtension
from tests.harness.hub import RunningHub


@pytest.mark.req("S002-server-01")
async def test_one_process_serves_agents_and_the_extension_on_port_9515_by_default(hub: RunningHub) -> None:
    assert Config().port == 9515
    async with FakeExtension(hub), Agent(hub) as agent:
        answer = await agent.call("browser_list_tabs")
        assert answer["result"]["structuredContent"]["tabs"][0]["tabId"] == 7


@pytest.mark.req("S002-server-02")
def test_the_hub_listens_on_loopback_only() -> None:
    sockets = listen(0)
    try:
        assert {sock.getsockname()[0] for sock in sockets} <= {"127.0.0.1", "::1"}
        assert sockets[0].getsockname()[0] == "127.0.0.1"
        assert len({sock.getsockname()[1] for sock in sockets}) == 1
    finally:
        for sock in sockets:
            sock.close()


@pytest.mark.req("S002-full-01", "S002-capabilities-01")
async def test_a_client_receives_plugin_tools_and_built_in_tools(hub: RunningHub) -> None:
    async def run(ctx: CallContext, args: dict[str, object]) -> ToolResult:
        return ToolResult.text("sent")

    slack = Source("plugin", "slack")
    hub.hub.tabs.register(slack, [Entry(Tool("slack_send", slack, "Sends a message."), run)])
    async with Agent(hub) as agent:
        names = {tool["name"] for tool in (await agent.request("tools/list"))["result"]["tools"]}
    assert {"slack_send", "browser_list_tabs", "browser_open_tab"} <= names
    own = {tool.name for tool in hub.hub.registry.tools() if tool.source.kind == "browser"}
    assert own
    assert all(name.startswith(("browser_", "extension_", "plugin_")) for name in own)


@pytest.mark.req("S002-endpoints-02", "S002-endpoints-03")
@pytest.mark.parametrize("path", ["/mcp", "/mcp/gateway"])
async def test_both_mcp_endpoints_accept_post_get_and_delete_with_the_token(hub: RunningHub, path: str) -> None:
    async with client(hub) as http:
        for method in ("POST", "GET", "DELETE"):
            refused = await http.request(method, path, headers={"Authorization": "Bearer wrong"})
            assert refused.status_code == 401
        assert (await http.request("PUT", path)).status_code == 405
    async with Agent(hub, path) as agent:  # POST
        assert (await agent.request("ping"))["result"] == {}
        async with agent.http.stream("GET", path, headers={**agent.headers, "Accept": "text/event-stream"}) as stream:
            assert stream.status_code == 200
        gone = await agent.http.delete(path, headers=agent.headers)
        assert gone.status_code == 204
