"""MCP over HTTP at a relay, with a real Chromium: two nodes in processes, NATS between them, the official client."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client import Client

from tests.e2e.pagesite import PageSite, prefix
from tests.e2e.site import Site
from tests.e2e.test_relay import Node, chromium_at, nodes
from tests.extension.conftest import EXTENSION_ID
from tests.harness.agent import PROGRAM
from tests.harness.process import tabhub
from tests.harness.waiting import eventually
from tests.relay.engines.httpworld import META, sdk
from tests.relay.natsd import nats_server
from tests.relay.world import token

_ASK = """(async () => {
  const port = chrome.runtime.connect({ name: "panel" });
  const answer = new Promise((done) => port.onMessage.addListener((m) => m.type === "answer" && done(m)));
  port.postMessage({ type: "ask", id: 1, method: %s, params: %s });
  const { result, error } = await answer;
  port.disconnect();
  return { result, error };
})()"""


class Person:
    """The person at the browser, who uses its panel."""

    def __init__(self, command: Callable[..., Awaitable[Any]]) -> None:
        self._command = command

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """A request of the panel to the extension."""
        expression = _ASK % (json.dumps(method), json.dumps(params))
        answer = await self._command("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        reply = answer["result"]["value"]
        assert "error" not in reply, reply
        result: dict[str, Any] = reply["result"]
        return result

    async def answer(self, *, allow: bool) -> dict[str, Any]:
        """Wait for an approval request, and answer it."""
        await eventually(self._asked)
        (question,) = (await self.ask("relay.state"))["questions"]
        assert (await self.ask("relay.answer", id=question["id"], allow=allow))["known"]
        return dict(question)

    async def _asked(self) -> bool:
        return bool((await self.ask("relay.state"))["questions"])


@dataclass(frozen=True, slots=True)
class World:
    """Ann's browser at the first node; agents connect to the second."""

    first: Node
    second: Node
    person: Person
    key: Path


@pytest.fixture(scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    folder = tmp_path_factory.mktemp("relay")
    (folder / "chromium").mkdir()
    async with (
        nats_server() as nats,
        nodes(folder, nats.url) as (first, second),
        chromium_at(folder / "chromium", first.url) as browser,
        browser.page(f"chrome-extension://{EXTENSION_ID}/panel/test.html") as command,
    ):
        yield World(first, second, Person(command), folder / "one" / "relay.key")


def http(node: Node) -> str:
    return f"http://127.0.0.1:{node.port}"


def program(node: Node, user: str, mode: str = "legacy") -> AbstractAsyncContextManager[Client]:
    """A user's client that gets all tools, and answers as data."""
    return sdk(http(node), token(user), mode, path=PROGRAM)


async def call(client: Client, name: str, /, **arguments: Any) -> dict[str, Any]:
    """A call that must succeed; returns its structured content."""
    answer = await client.call_tool(name, arguments)
    assert not answer.is_error, answer
    found: dict[str, Any] = answer.structured_content
    return found


async def fail(client: Client, name: str, /, **arguments: Any) -> str:
    """A call that must fail; returns its text."""
    answer = await client.call_tool(name, arguments)
    assert answer.is_error, answer
    text: str = answer.content[0].text  # type: ignore[union-attr]
    return text


async def connected(client: Client) -> bool:
    """Whether the client's user has a browser that answers."""
    return bool((await call(client, "browser_get_connection_status"))["connected"])


@pytest.mark.timeout(240)
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_an_mcp_client_with_a_token_uses_a_real_browser_on_another_node(
    world: World, site: Site, page_site: PageSite, mode: str
) -> None:
    async with program(world.second, "ann", mode) as ann:
        await eventually(lambda: connected(ann))
        names = {tool.name for tool in (await ann.list_tools()).tools}
        assert {"browser_open_tab", "browser_snapshot", "browser_execute_script"} <= names
        tab_id = (await call(ann, "browser_open_tab", url=f"{site.url}/stay"))["tabId"]
        seen = await ann.call_tool("browser_snapshot", {"tabId": tab_id})
        assert "textbox" in json.dumps(seen.structured_content)
        await call(ann, "browser_type_text", tabId=tab_id, selector="#field", text="typed over HTTP")
        script = {"tabId": tab_id, "code": "return field.value"}
        assert (await call(ann, "browser_execute_script", **script))["value"] == "typed over HTTP"
        await used_page_tools(ann, page_site)
        await the_person_decides(ann, world.person, script, page_site)
        await kept_from_bob(world.second, tab_id)
        await call(ann, "browser_close_tab", tabId=tab_id)


async def used_page_tools(ann: Client, page_site: PageSite) -> None:
    tab_id = (await call(ann, "browser_open_tab", url=f"{page_site.url}/pages/webmcp.html"))["tabId"]
    wanted = f"{prefix(page_site.url)}_tab1_add"

    async def listed() -> bool:
        return wanted in {tool.name for tool in (await ann.list_tools(cache_mode="refresh")).tools}

    await eventually(listed)
    assert "5" in str((await ann.call_tool(wanted, {"a": 2, "b": 3})).content)
    await call(ann, "browser_close_tab", tabId=tab_id)


async def the_person_decides(ann: Client, person: Person, script: dict[str, Any], page_site: PageSite) -> None:
    """The relay grants no permissions: the browser's gate decides."""
    await person.ask("relay.set", level="read")
    assert "may only look" in await fail(ann, "browser_execute_script", **script)
    assert (await call(ann, "browser_list_tabs"))["tabs"]
    await person.ask("relay.set", level="ask")
    under_way = asyncio.create_task(call(ann, "browser_execute_script", **script))
    question = await person.answer(allow=True)
    assert question["what"] == "act in the page"
    assert (await under_way)["value"] == "typed over HTTP"
    away = {"tabId": script["tabId"], "url": f"{page_site.elsewhere}/"}
    refused = asyncio.create_task(fail(ann, "browser_navigate_tab", **away))
    assert (await person.answer(allow=False))["site"] == page_site.elsewhere
    assert "did not allow it" in await refused
    await person.ask("relay.set", level="act")


async def kept_from_bob(node: Node, tab_id: int) -> None:
    """Another user's agent on the same node sees neither the browser nor its tabs."""
    async with program(node, "bob") as bob:
        assert not await connected(bob)
        output = await fail(bob, "browser_execute_script", tabId=tab_id, code="return 1")
        assert "no browser is connected" in output


@pytest.mark.timeout(120)
async def test_a_token_revoked_on_the_command_line_is_soon_refused(world: World, tmp_path: Path) -> None:
    access = token("carol")  # not ann's, which the other tests need
    headers = {"Authorization": f"Bearer {access}", "MCP-Protocol-Version": "2025-11-25"}
    async with httpx2.AsyncClient(verify=False, headers=headers, timeout=10) as client:
        for node in (world.first, world.second):
            assert (await client.post(f"{http(node)}/mcp", json={})).status_code != 401
        done = await tabhub(tmp_path, "relay", "token", "revoke", access, "--key-file", str(world.key))
        await done.communicate()
        assert done.returncode == os.EX_OK
        for node in (world.first, world.second):
            await eventually(partial(refused, client, node), 10)
            answer = await client.post(f"{http(node)}/mcp", json={})
            assert f'resource_metadata="{http(node)}{META}/mcp"' in answer.headers["www-authenticate"]


async def refused(client: httpx2.AsyncClient, node: Node) -> bool:
    return (await client.post(f"{http(node)}/mcp", json={})).status_code == 401


@pytest.mark.timeout(240)
async def test_killing_the_browsers_node_fails_calls_instead_of_hanging(world: World) -> None:
    """Runs last, because the node is not restarted."""
    agents = [program(world.second, "ann", mode) for mode in ("legacy", "auto")]
    async with agents[0] as legacy, agents[1] as stateless:
        for ann in (legacy, stateless):
            await eventually(partial(connected, ann))
        world.first.process.send_signal(signal.SIGKILL)
        for ann in (legacy, stateless):
            await eventually(partial(gone, ann))
            output = await fail(ann, "browser_open_tab", url="about:blank")
            assert "not_sent" in output
            assert "this relay's URL" in output


async def gone(client: Client) -> bool:
    """Whether none of the browsers that the client's user had is connected."""
    legs = (await call(client, "browser_get_connection_status"))["browsers"]
    return not any(browser["connected"] for browser in legs)
