"""The official SDK's client against the hub, in both eras."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp.client import Client, ClientRequestContext
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitRequestParams, ElicitResult

from tabhub.browser.families import CORE
from tests.harness.agent import client as http_client
from tests.harness.fake_extension import FakeExtension, Silent
from tests.harness.hub import RunningHub
from tests.harness.probe import Probe

MODES = ["legacy", "auto", "2026-07-28"]
SPOKEN = {"legacy": "2025-11-25", "auto": "2026-07-28", "2026-07-28": "2026-07-28"}


@asynccontextmanager
async def connected(hub: RunningHub, mode: str, path: str = "/mcp", **more: Any) -> AsyncIterator[Client]:
    async with http_client(hub) as http:
        transport = streamable_http_client(f"{hub.url}{path}", http_client=http)
        async with Client(transport, mode=mode, **more) as client:
            yield client


@pytest.mark.req("S002-mcp-01", "S000-hub-01")
@pytest.mark.parametrize("mode", MODES)
async def test_the_official_client_lists_and_calls_tools(hub: RunningHub, mode: str) -> None:
    Probe(hub)
    async with FakeExtension(hub), connected(hub, mode) as client:
        assert client.protocol_version == SPOKEN[mode]
        names = {tool.name for tool in (await client.list_tools()).tools}
        probes = {tool.name for tool in hub.hub.registry.tools() if tool.source.kind == "plugin"}
        assert names == {*CORE, "tabhub_list_tools", "tabhub_call", *probes}
        result = await client.call_tool("browser_execute_script", {"tabId": 7, "code": "return 1"})
        assert not result.is_error
        assert result.content[0].text == '{"value":"fake"}'  # type: ignore[union-attr]
        unfit = await client.call_tool("probe_echo", {"value": 7})
        assert unfit.is_error


@pytest.mark.req("S002-gateway-01", "S002-gateway-03", "S002-gateway-05")
@pytest.mark.parametrize("mode", MODES)
async def test_the_official_client_finds_and_calls_tools_through_the_gateway(hub: RunningHub, mode: str) -> None:
    async with FakeExtension(hub), connected(hub, mode, "/mcp/gateway") as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert names == ["tabhub_list_tools", "tabhub_call"]
        found = await client.call_tool("tabhub_list_tools", {"query": "list tabs"})
        assert "browser_list_tabs" in found.content[0].text  # type: ignore[union-attr]
        listed = await client.call_tool("tabhub_call", {"name": "browser_list_tabs"})
        assert not listed.is_error


@pytest.mark.parametrize("mode", MODES)
async def test_the_official_client_gets_progress(hub: RunningHub, mode: str) -> None:
    Probe(hub)
    seen: list[tuple[float, float | None]] = []

    async def record(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total))

    async with connected(hub, mode) as client:
        await client.call_tool("probe_report", progress_callback=record)
    assert seen == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize("mode", MODES)
async def test_a_call_continues_after_an_elicitation_was_answered(hub: RunningHub, mode: str) -> None:
    Probe(hub)

    async def human(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        return ElicitResult(action="accept", content={"colour": "green"})

    async with connected(hub, mode, elicitation_callback=human) as client:
        result = await client.call_tool("probe_ask")
        assert result.structured_content is not None
        assert result.structured_content["answer"]["content"] == {"colour": "green"}


@pytest.mark.parametrize("mode", MODES)
async def test_a_call_the_official_client_cancels_is_cancelled_in_the_browser(hub: RunningHub, mode: str) -> None:
    async with FakeExtension(hub) as browser, connected(hub, mode) as client:
        begun = asyncio.Event()

        def hold(params: dict[str, Any]) -> object:
            if params["method"] == "Runtime.evaluate":
                begun.set()
                return Silent
            return {}

        browser.handlers["forwardCDPCommand"] = hold
        arguments = {"tabId": 7, "code": "return 1"}
        running = asyncio.create_task(client.call_tool("browser_execute_script", arguments))
        await begun.wait()
        running.cancel()
        await browser.next_notification("cancel")
        await browser.settle()
        assert len(hub.hub.engine.calls) == 0


async def test_the_session_of_the_official_client_ends_with_it(hub: RunningHub) -> None:
    async with connected(hub, "legacy") as client:
        await client.list_tools()
        assert len(hub.hub.sessions) == 1
    assert len(hub.hub.sessions) == 0
