"""The same calls from every kind of client: MCP in both eras, the gateway, REST, the command line, the stdio bridge."""

from __future__ import annotations

import base64
import json
import re
import sys
from typing import Any

import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.types import CallToolResult, ImageContent, TextContent

from tests.e2e import png
from tests.e2e.live import Caller, LiveHub
from tests.e2e.site import Site
from tests.harness.hub import AGENT

ERAS = {"legacy": "2025-11-25", "2026-07-28": "2026-07-28"}
FIRST_TOOLS = {
    "browser_list_tabs",
    "browser_open_tab",
    "browser_close_tab",
    "browser_navigate_tab",
    "browser_get_tab_info",
    "browser_screenshot_tab",
    "browser_execute_script",
    "browser_get_tab_content",
    "browser_get_connection_status",
    "tabhub_read_result",
}
BLUE, RED = (0, 0, 255), (255, 0, 0)


def text(result: CallToolResult) -> str:
    (first, *_) = result.content
    assert isinstance(first, TextContent)
    return first.text


async def data(client: Client, name: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(name, arguments)
    assert not result.is_error, text(result)
    assert result.structured_content is not None
    return dict(result.structured_content)


def shows_the_colours(picture: png.Picture) -> None:
    """Whether it is the page `/colours`, at its real size."""
    assert picture.width >= 800
    assert picture.height >= 400
    assert picture.at(10, 10) == BLUE
    assert picture.at(101, 51) == RED
    assert picture.at(299, 199) == RED
    assert picture.at(301, 201) == BLUE


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.req("S002-modes-01")
async def test_the_official_mcp_client_works(live_hub: LiveHub, site: Site, mode: str) -> None:
    async with live_hub.mcp(mode) as client:
        assert client.protocol_version == ERAS[mode]
        assert {tool.name for tool in (await client.list_tools()).tools} >= FIRST_TOOLS

        opened = await data(client, "browser_open_tab", url=f"{site.url}/colours")
        tab_id = opened["tabId"]
        assert (opened["url"], opened["title"], opened["httpStatus"]) == (f"{site.url}/colours", "Colours", 200)

        shot = await client.call_tool("browser_screenshot_tab", {"tabId": tab_id})
        (image, *_) = shot.content
        assert isinstance(image, ImageContent)
        assert image.mime_type == "image/png"
        shows_the_colours(png.read(base64.b64decode(image.data, validate=True)))

        ran = await data(
            client,
            "browser_execute_script",
            tabId=tab_id,
            code="document.title = args.title; return [document.title, location.pathname]",
            args={"title": "Written"},
        )
        assert ran["value"] == ["Written", "/colours"]

        await data(client, "browser_navigate_tab", tabId=tab_id, url=f"{site.url}/")
        read = await data(client, "browser_get_tab_content", tabId=tab_id)
        assert read["content"] == "Plain heading\n\nSome bold words and a link.\n\none\ntwo"
        marked = await data(client, "browser_get_tab_content", tabId=tab_id, format="markdown")
        assert marked["content"] == (
            f"# Plain heading\n\nSome **bold** words and [a link]({site.url}/other).\n\n- one\n- two"
        )
        assert (await data(client, "browser_close_tab", tabId=tab_id))["closed"] is True
        assert tab_id not in [tab["tabId"] for tab in (await data(client, "browser_list_tabs"))["tabs"]]


@pytest.mark.parametrize("mode", ERAS)
async def test_a_large_result_can_be_read_through_its_handle(live_hub: LiveHub, site: Site, mode: str) -> None:
    async with live_hub.mcp(mode, "/mcp") as client, live_hub.mcp(mode) as program:
        tab_id = (await data(program, "browser_open_tab", url=f"{site.url}/long"))["tabId"]
        cut = await client.call_tool("browser_get_page_html", {"tabId": tab_id, "maxLength": 2_000_000})
        shown = "".join(part.text for part in cut.content if isinstance(part, TextContent))
        assert "Paragraph 0 of the long page" in shown
        assert "Paragraph 19999" not in shown
        assert len(shown) < 150_000
        (handle,) = set(re.findall(r"r_[A-Za-z0-9_-]{10,}", shown))
        found = await client.call_tool("tabhub_read_result", {"handle": handle, "search": "Paragraph 19999 of"})
        assert "Paragraph 19999 of" in text(found)
        on = await client.call_tool("tabhub_read_result", {"handle": handle, "offset": 1_000_000})
        assert "of the long page" in text(on)
        await data(program, "browser_close_tab", tabId=tab_id)


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.req("S002-modes-02", "S002-gateway-01", "S002-gateway-03")
async def test_the_gateway_works_with_two_tools(live_hub: LiveHub, site: Site, mode: str) -> None:
    async with live_hub.mcp(mode, "/mcp/gateway?tools=structured") as client:

        async def call(name: str, **arguments: Any) -> CallToolResult:
            result = await client.call_tool("tabhub_call", {"name": name, "arguments": arguments})
            assert not result.is_error, text(result)
            return result

        assert [tool.name for tool in (await client.list_tools()).tools] == ["tabhub_list_tools", "tabhub_call"]
        found = await client.call_tool("tabhub_list_tools", {"query": "take a picture of a tab"})
        assert json.loads(text(found))["tools"][0]["name"].startswith("browser_screenshot_tab(")

        opened = (await call("browser_open_tab", url=f"{site.url}/colours")).structured_content
        assert opened is not None
        tab_id = opened["tabId"]
        image = (await call("browser_screenshot_tab", tabId=tab_id)).content[0]
        assert isinstance(image, ImageContent)
        shows_the_colours(png.read(base64.b64decode(image.data)))
        ran = await call("browser_execute_script", tabId=tab_id, code="return document.title")
        assert ran.structured_content is not None
        assert ran.structured_content["value"] == "Colours"
        await call("browser_close_tab", tabId=tab_id)


@pytest.mark.req("S002-modes-03")
async def test_the_rest_api_works(agent: Caller, site: Site) -> None:
    listed = (await agent.http.get("/tools")).json()
    assert {tool["name"] for tool in listed} >= FIRST_TOOLS
    await agent.open(f"{site.url}/colours")
    shot = await agent.call("browser_screenshot_tab")
    shows_the_colours(png.read(base64.b64decode(shot["content"][0]["data"])))
    assert await agent.run("return document.title") == "Colours"
    assert (await agent.get("browser_get_tab_content"))["content"] == ""


@pytest.mark.req("S002-modes-03")
def test_the_command_line_works(live_hub: LiveHub, site: Site) -> None:
    def call(name: str, **arguments: Any) -> Any:
        done = live_hub.tabhub("tool", "call", name, json.dumps(arguments), "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    assert "browser_screenshot_tab" in live_hub.tabhub("tool", "list").stdout
    schema = json.loads(live_hub.tabhub("tool", "schema", "browser_open_tab").stdout)
    assert "url" in json.dumps(schema)
    tab_id = call("browser_open_tab", url=f"{site.url}/")["structuredContent"]["tabId"]
    assert call("browser_execute_script", tabId=tab_id, code="return 6 * 7")["structuredContent"]["value"] == 42
    shown = live_hub.tabhub("tool", "call", "browser_get_tab_content", json.dumps({"tabId": tab_id}))
    assert "Some bold words" in shown.stdout
    assert call("browser_close_tab", tabId=tab_id)["structuredContent"]["closed"] is True
    wrong = live_hub.tabhub("tool", "call", "browser_open_tab", "{}")
    assert wrong.returncode != 0
    assert "url" in wrong.stderr


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.req("S002-modes-04", "S002-stdio-01")
async def test_the_stdio_bridge_works(live_hub: LiveHub, site: Site, mode: str) -> None:
    argv = ["-m", "tabhub", "start", "--stdio", "--as", AGENT, "--tools", "all,structured"]
    bridge = stdio_client(StdioServerParameters(command=sys.executable, args=argv, env=live_hub.env))
    async with Client(bridge, mode=mode) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} >= FIRST_TOOLS
        tab_id = (await data(client, "browser_open_tab", url=f"{site.url}/colours"))["tabId"]
        image = (await client.call_tool("browser_screenshot_tab", {"tabId": tab_id})).content[0]
        assert isinstance(image, ImageContent)
        shows_the_colours(png.read(base64.b64decode(image.data)))
        ran = await data(client, "browser_execute_script", tabId=tab_id, code="return document.title")
        assert ran["value"] == "Colours"
        await data(client, "browser_close_tab", tabId=tab_id)


async def test_screenshots_cover_the_full_page_one_element_or_a_smaller_size(agent: Caller, site: Site) -> None:
    await agent.open(f"{site.url}/colours")

    async def picture(**arguments: Any) -> png.Picture:
        shot = await agent.call("browser_screenshot_tab", **arguments)
        return png.read(base64.b64decode(shot["content"][0]["data"]))

    whole = await picture(fullPage=True)
    assert whole.height == 3000
    assert (whole.at(10, 2990), whole.at(150, 100)) == (BLUE, RED)
    element = await picture(selector="#red")
    assert (element.width, element.height) == (200, 150)
    assert {element.at(0, 0), element.at(199, 149), element.at(100, 75)} == {RED}
    small = await picture(scale=0.5)
    assert small.at(100, 60) == RED
    assert small.width in range(600, 700)
