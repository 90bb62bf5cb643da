"""Two users at one relay: on every path, another user's resources look as if they did not exist."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.harness.agent import Agent, message
from tests.harness.fake_extension import tab
from tests.relay.engines.httpworld import HttpRelay, browser, http_relay
from tests.relay.independent import IndependentAgent
from tests.relay.world import token

_LIST = message("tools/list")


def error_text(answer: dict[str, Any], name: str) -> Any:
    """The error of an answer, without the requested name."""
    assert answer["result"]["isError"], answer
    return json.loads(json.dumps(answer["result"]).replace(name, "*"))


async def same(agent: Agent, tool: str, key: str, names: tuple[str, str], **more: Any) -> None:
    """Whether a tool gives the same error for two names that do not exist."""
    foreign, absent = [error_text(await agent.call(tool, {key: name, **more}), name) for name in names]
    assert foreign == absent


async def sessions(relay: HttpRelay, bob: Agent, names: tuple[str, str]) -> None:
    """A session is known to its own user only, whatever is requested."""
    for method in ("POST", "GET", "DELETE"):
        answers: list[httpx2.Response] = []
        for name in names:
            headers = {**bob.headers, "Mcp-Session-Id": name}
            answers.append(await bob.http.request(method, "/mcp", json=_LIST, headers=headers))
        assert [answer.status_code for answer in answers] == [404, 404]
        assert answers[0].content == answers[1].content


async def browsers(relay: HttpRelay, bob: Agent, foreign: str) -> None:
    """So is a browser: over WebSocket, and over HTTP."""
    absent = "ext-d1cdb70b-b20a-46ed-8fa7-7597a0f2837a"
    async with IndependentAgent(relay.ws, token("bob")) as agent, IndependentAgent(relay.ws, token("ann")) as ann:
        await agent.ready()
        await ann.ready()
        assert foreign not in json.dumps(await agent.browsers())
        wrong = "conn-00000000-0000-4000-8000-000000000000"
        there = [await agent.error("getTabs", connectionId=name) for name in (ann.connection_id, wrong)]
        assert there[0] == there[1]
        await agent.result("disconnect")
        refused = [await agent.error("connect", {"extension_id": name}) for name in (foreign, absent)]
        assert refused[0] == refused[1]
        assert refused[0]["message"] == "Extension not found or not accessible"
    await same(bob, "browser_open_tab", "browserId", (foreign, absent), url="about:blank")


async def audit(relay: HttpRelay, bob: Agent, file: Path) -> None:
    """The audit log of one user's calls is available at no URL, for no token."""
    written = await asyncio.to_thread(file.read_text)
    assert written.count('"ann') >= 2  # both of her calls are recorded
    nowhere = await bob.http.get("/there/is/nothing")
    for path in ("/audit", "/audit?user=ann", "/sessions", "/results", f"/{file.name}"):
        answer = await bob.http.get(path)
        assert (answer.status_code, answer.content) == (nowhere.status_code, nowhere.content) == (404, nowhere.content)
    tools = [tool["name"] for tool in (await bob.request("tools/list"))["result"]["tools"]]
    assert not [name for name in tools if "audit" in name]


@pytest.mark.req("B13")
async def test_resources_of_another_user_look_like_missing_ones(tmp_path: Path) -> None:
    file = tmp_path / "audit.ndjson"
    async with (
        http_relay(audit_file=file) as relay,
        browser(relay.ws, token("ann")) as anns,
        browser(relay.ws, token("bob"), "bobs"),
    ):
        anns.answers["getTabs"] = {"tabs": [tab(n, title="x" * 8000) for n in range(7, 200)]}
        async with relay.agent(token("ann")) as ann, relay.agent(token("bob")) as bob:
            shown = json.dumps((await ann.call("browser_list_tabs"))["result"])
            handle = shown[shown.index("r_") :][:22]
            assert not (await ann.call("tabhub_read_result", {"handle": handle}))["result"].get("isError")
            assert not (await bob.call("browser_list_tabs"))["result"].get("isError")
            await same(bob, "tabhub_read_result", "handle", (handle, "r_" + "y" * 20))
            await sessions(relay, bob, (ann.headers["Mcp-Session-Id"], "0" * 32))
            await browsers(relay, bob, anns.extension_id)
            await audit(relay, bob, file)
            assert not (await ann.call("tabhub_read_result", {"handle": handle}))["result"].get("isError")
        assert not anns.asked("createTab")
