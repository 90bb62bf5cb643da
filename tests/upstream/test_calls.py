"""Resources and prompts of external servers, forwarded to agents: official servers, read with the official client."""

from __future__ import annotations

import asyncio
import base64
import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client, ClientRequestContext
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.shared.uri_template import UriTemplate
from mcp.types import ElicitRequestParams, ElicitResult, PromptReference, ResourceTemplateReference

from tabhub.core.tools import Source
from tabhub.limits import Limits
from tabhub.upstream.resources import ResourceLists
from tests.harness.agent import Agent, client, message, stateless, streamed
from tests.harness.bridge_client import ENVELOPE, registered
from tests.harness.hub import RunningHub, running_hub
from tests.harness.panel import Panel
from tests.harness.ports import free_port
from tests.harness.waiting import until
from tests.upstream.servers import FIXTURES, python, python_http, state, text, typescript

MODES = ["legacy", "auto"]
Library = Callable[..., str]
"""Starts a server shared by several tests, and returns its URL."""
TODAY = "tabhub+mcp://lib/notes://today"
LIB = Source("upstream", "lib").setting


def stuck(kind: str) -> dict[str, Any]:
    return {"command": sys.executable, "args": [str(FIXTURES / "stuck.py"), kind]}


async def added(hub: RunningHub, **servers: Any) -> None:
    """Add servers, and wait until their lists have arrived."""
    await hub.hub.upstream.add(json.dumps(servers))
    for name in servers:
        await until(lambda name=name: bool(resources(hub, name).prompts))  # type: ignore[misc]


def resources(hub: RunningHub, name: str) -> Any:
    connection = hub.hub.upstream.pool.get(name)
    assert connection is not None
    return connection.resources.current


@asynccontextmanager
async def official(hub: RunningHub, mode: str, path: str = "/mcp", **more: Any) -> AsyncIterator[Client]:
    async with client(hub) as http:
        transport = streamable_http_client(f"{hub.url}{path}", http_client=http)
        async with Client(transport, mode=mode, **more) as connected:
            yield connected


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("way", ["stdio", "http", "sse", "stateless"])
async def test_resources_of_a_python_server_are_listed_and_read_in_both_eras(
    hub: RunningHub, library: Library, mode: str, way: str
) -> None:
    await added(hub, lib=python("library") if way == "stdio" else {"url": library(way)})
    async with official(hub, mode) as agent:
        capabilities = agent.server_capabilities
        assert capabilities.resources is not None
        assert capabilities.prompts is not None
        assert (capabilities.resources.list_changed, capabilities.prompts.list_changed) == (True, True)
        assert capabilities.resources.subscribe
        listed = {each.uri: each for each in (await agent.list_resources()).resources}
        assert listed[TODAY].title == "Today"
        assert listed[TODAY].description == "What is on today."
        (content,) = (await agent.read_resource(TODAY)).contents
        assert (content.uri, content.text) == (TODAY, "buy bread")  # type: ignore[union-attr]
        (picture,) = (await agent.read_resource("tabhub+mcp://lib/pictures://logo.png")).contents
        assert base64.b64decode(picture.blob).startswith(b"\x89PNG")  # type: ignore[union-attr]
        prompts = {each.name: each for each in (await agent.list_prompts()).prompts}
        assert [each.name for each in prompts["mcp__lib__review"].arguments or ()] == ["code", "style"]
        got = await agent.get_prompt("mcp__lib__review", {"code": "x = 1"})
        assert [each.role for each in got.messages] == ["user", "assistant", "user"]
        assert got.messages[0].content.text == "Review this, short: x = 1"  # type: ignore[union-attr]


@pytest.mark.parametrize("mode", MODES)
async def test_templates_are_expanded_by_the_client_and_completed_by_the_server(
    hub: RunningHub, library: Library, mode: str
) -> None:
    await added(hub, lib={"url": library()})
    async with official(hub, mode) as agent:
        listed = [each.uri_template for each in (await agent.list_resource_templates()).resource_templates]
        assert listed == ["tabhub+mcp://lib/notes://{day}/{topic}", "tabhub+mcp://lib/shelf://books{?author,year}"]
        filled = UriTemplate.parse(listed[0]).expand({"day": "a/b", "topic": "ü & ?"})
        (content,) = (await agent.read_resource(filled)).contents
        assert content.text == "ü & ? on a/b"  # type: ignore[union-attr]
        asked = UriTemplate.parse(listed[1]).expand({"author": "Ada"})
        assert (await agent.read_resource(asked)).contents[0].text == "books of Ada in any"  # type: ignore[union-attr]
        ref = ResourceTemplateReference(type="ref/resource", uri=listed[0])
        found = await agent.complete(ref, {"name": "day", "value": "s"})
        assert found.completion.values == ["short", "strict", "notes://{day}/{topic}"]
        prompt = PromptReference(type="ref/prompt", name="mcp__lib__review")
        found = await agent.complete(prompt, {"name": "style", "value": "lo"}, context_arguments={"code": "!"})
        assert found.completion.values == ["long!", "review"]


@pytest.mark.parametrize("mode", MODES)
async def test_resources_of_a_typescript_server_are_listed_with_those_of_another_server(
    hub: RunningHub, library: Library, mode: str
) -> None:
    async with typescript("simpleStreamableHttp", free_port()) as url:
        await added(hub, ts={"url": url}, lib={"url": library()})
        async with official(hub, mode, "/mcp/gateway") as agent:
            uris = {each.uri for each in (await agent.list_resources()).resources}
            assert {TODAY, "tabhub+mcp://ts/file:///example/file1.txt"} <= uris
            read = await agent.read_resource("tabhub+mcp://ts/https://example.com/greetings/default")
            assert read.contents[0].text == "Hello, world!"  # type: ignore[union-attr]
            got = await agent.get_prompt("mcp__ts__greeting-template", {"name": "Ada"})
            assert "Ada" in got.messages[0].content.text  # type: ignore[union-attr]
            # A server without completions receives no request for them.
            prompt = PromptReference(type="ref/prompt", name="mcp__ts__greeting-template")
            assert (await agent.complete(prompt, {"name": "name", "value": "A"})).completion.values == []


async def test_a_link_in_a_tools_result_is_unchanged_and_can_be_read(hub: RunningHub, library: Library) -> None:
    await added(hub, lib={"url": library()})
    async with Agent(hub) as agent:
        linked = (await agent.call("mcp__lib__pointer"))["result"]["content"][0]
        assert linked["uri"] == "notes://today"
        read = (await agent.request("resources/read", {"uri": linked["uri"]}))["result"]
        assert read == {"contents": [{"uri": "notes://today", "mimeType": "text/plain", "text": "buy bread"}]}
        await added(hub, other={"url": library()})
        several = (await agent.request("resources/read", {"uri": linked["uri"]}))["error"]
        assert several["code"] == -32002
        assert f"{TODAY}, tabhub+mcp://other/notes://today" in several["message"]


@pytest.mark.parametrize("mode", MODES)
async def test_an_elicitation_of_a_prompt_reaches_the_person(hub: RunningHub, library: Library, mode: str) -> None:
    await added(hub, lib={"url": library()})

    async def human(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        assert params.message == "The external server lib asks: Who is there?"
        return ElicitResult(action="accept", content={"name": "Ada"})

    async with official(hub, mode, elicitation_callback=human) as agent:
        got = await agent.get_prompt("mcp__lib__greet")
        assert got.messages[0].content.text == "Say hello to Ada."  # type: ignore[union-attr]


async def test_changed_lists_are_announced_in_both_eras(hub: RunningHub) -> None:
    async with python_http("library", free_port()) as url, client(hub) as http, Agent(hub) as agent:
        await added(hub, local=python("library"), remote={"url": url})
        wanted = {"notifications": {"promptsListChanged": True, "resourcesListChanged": True, "nonsense": True}}
        body, headers = stateless("subscriptions/listen", wanted)
        listening = streamed(http, "POST", "/mcp", json=body, headers=headers)
        async with listening as modern, agent.listening() as legacy:
            agreed = (await modern.message())["params"]["notifications"]
            assert agreed == {"promptsListChanged": True, "resourcesListChanged": True}
            for name in ("local", "remote"):
                await agent.call(f"mcp__{name}__grow")
                for events in (modern, legacy):
                    received = {(await events.message())["method"] for _ in range(2)}
                    assert received == {f"notifications/{kind}/list_changed" for kind in ("resources", "prompts")}
                listed = (await agent.request("resources/list"))["result"]["resources"]
                assert f"tabhub+mcp://{name}/notes://grown" in {each["uri"] for each in listed}
                got = (await agent.request("prompts/get", {"name": f"mcp__{name}__grown"}))["result"]
                assert got["messages"][0]["content"]["text"] == "grown"


async def test_a_reconnecting_client_is_notified_of_changed_lists(hub: RunningHub, library: Library) -> None:
    await added(hub, lib={"url": library()})
    async with Agent(hub) as agent:
        await agent.request("prompts/list")
        await hub.hub.upstream.set("lib", enabled=False)
        async with agent.listening() as events:
            assert (await events.message())["method"] == "notifications/prompts/list_changed"


async def test_long_lists_are_paged_and_bounded(tmp_path: Path) -> None:
    limits = {"upstream_offers": 40, "list_page": 15}
    async with running_hub(tmp_path, limits=limits) as hub, official(hub, "auto") as agent:
        await added(hub, lib=python("library", "many", "100"))
        first = await agent.list_resources()
        assert (len(first.resources), first.ttl_ms, first.cache_scope) == (15, 1000, "private")
        found, cursor = list(first.resources), first.next_cursor
        while cursor is not None:
            page = await agent.list_resources(cursor=cursor)
            found, cursor = [*found, *page.resources], page.next_cursor
        assert len({each.uri for each in found}) == len(found) == 40
        facts = hub.hub.upstream.all()[0]
        assert facts["problems"] == ["It lists more resources than the maximum; only 40 are used."]
        assert (facts["resourceCount"], facts["templateCount"], facts["promptCount"]) == (40, 2, 2)
        # A resource that is not listed can be read nevertheless.
        read = await agent.read_resource("tabhub+mcp://lib/many://00099")
        assert read.contents[0].text == "this is many://00099"  # type: ignore[union-attr]


async def test_a_long_resource_is_truncated_with_a_handle_for_the_rest(hub: RunningHub, library: Library) -> None:
    await added(hub, lib={"url": library()})
    async with Agent(hub) as agent:
        read = (await agent.request("resources/read", {"uri": "tabhub+mcp://lib/long://book"}))["result"]
        assert len(json.dumps(read)) < 150_000
        assert {each["uri"] for each in read["contents"]} == {"tabhub+mcp://lib/long://book"}
        assert "This result is cut" in read["contents"][-1]["text"]
        handle = read["_meta"]["tabhub/result"]["handle"]
        more = await agent.call("tabhub_read_result", {"handle": handle, "search": "line 59999 "})
        assert "line 59999 of a long book" in more["result"]["structuredContent"]["text"]


@pytest.mark.req("B25")
async def test_nothing_of_a_blocked_site_is_read_through_a_server(tmp_path: Path, library: Library) -> None:
    bank = "https://www.bank.example/{account}"
    completion = {"ref": {"type": "ref/resource", "uri": bank}, "argument": {"name": "account", "value": "1"}}
    async with running_hub(tmp_path, sites={"*.bank.example": "block"}) as hub:
        await added(hub, lib={"url": library()})
        async with Agent(hub) as agent, Agent(hub, "/mcp/gateway") as gateway, client(hub) as http:
            for uri in (bank, f"tabhub+mcp://lib/{bank}"):
                for method, params in (
                    ("resources/read", {"uri": uri}),
                    ("resources/subscribe", {"uri": uri}),
                    ("completion/complete", completion),
                ):
                    for surface in (agent, gateway):
                        refused = (await surface.request(method, params))["error"]
                        assert "the person blocks agents on *.bank.example" in refused["message"], (method, uri)
                    if method != "resources/subscribe":
                        body, headers = stateless(method, params)
                        refused = (await http.post("/mcp", json=body, headers={**headers, "Mcp-Name": uri})).json()[
                            "error"
                        ]
                        assert "the person blocks agents on *.bank.example" in refused["message"], (method, uri)
            wanted = {"notifications": {"resourceSubscriptions": [f"tabhub+mcp://lib/{bank}", TODAY]}}
            body, headers = stateless("subscriptions/listen", wanted)
            async with streamed(http, "POST", "/mcp", json=body, headers=headers) as events:
                assert (await events.message())["params"]["notifications"] == {"resourceSubscriptions": [TODAY]}


async def test_each_read_and_get_is_in_the_audit_log(hub: RunningHub, library: Library) -> None:
    await added(hub, lib={"url": library()})
    async with Agent(hub) as agent:
        await agent.request("resources/read", {"uri": TODAY})
        await agent.request("resources/read", {"uri": "tabhub+mcp://lib/nothing://there"})
        await agent.request("prompts/get", {"name": "mcp__lib__review", "arguments": {"code": "x"}})
        lines = (await agent.http.get("/audit?plugin=lib")).json()
    seen = [(line["tool"], line["source"], line["success"]) for line in reversed(lines)]
    assert seen == [
        ("resources/read", "upstream:lib", True),
        ("resources/read", "upstream:lib", False),
        ("prompts/get", "upstream:lib", True),
    ]


async def test_invalid_requests_are_reported(hub: RunningHub, library: Library) -> None:
    await added(hub, lib={"url": library()})
    body, headers = stateless("resources/read", {"uri": "tabhub+mcp://lib/nothing://there"})
    async with Agent(hub) as agent, client(hub) as http:
        headers["Mcp-Name"] = body["params"]["uri"]
        modern = await http.post("/mcp", json=body, headers=headers)
        assert modern.status_code == 400
        assert modern.json()["error"]["code"] == -32602
        for method, params, code, words in (
            ("resources/read", {"uri": "tabhub+mcp://lib/nothing://there"}, -32002, "Unknown resource"),
            ("resources/read", {"uri": 7}, -32602, "`uri` must be a string"),
            ("resources/read", {"uri": "x" * 9000}, -32602, "`uri` must be a string"),
            ("resources/list", {"cursor": 7}, -32602, "`cursor` must be a string"),
            ("prompts/list", {"cursor": "????"}, -32602, "Start again without a cursor"),
            ("prompts/get", {"name": "mcp__lib__reviev"}, -32602, "Did you mean mcp__lib__review"),
            ("prompts/get", {"name": "mcp__lib__review"}, -32602, "needs the argument code"),
            ("prompts/get", {"name": "mcp__lib__review", "arguments": {"code": 1}}, -32602, "`arguments.code`"),
            ("prompts/get", {"name": "mcp__lib__review", "arguments": []}, -32602, "`arguments` must be an object"),
            ("completion/complete", {"ref": {"type": "ref/tool"}}, -32602, "`ref` must be an object"),
            ("completion/complete", {"ref": {"type": "ref/prompt"}}, -32602, "`argument`"),
            ("resources/subscribe", {}, -32602, "`uri`"),
        ):
            error = (await agent.request(method, params))["error"]
            assert error["code"] == code, error
            assert words in error["message"]


async def test_a_disabled_or_offline_server_lists_nothing_and_says_why(tmp_path: Path) -> None:
    port = free_port()
    quick = {"upstream_backoff": 0.1, "upstream_backoff_max": 0.2}
    async with running_hub(tmp_path, limits=quick) as hub, Agent(hub) as agent:
        async with python_http("library", port) as url:
            await added(hub, lib={"url": url})
        away = (await agent.request("resources/read", {"uri": TODAY}))["error"]
        assert away["code"] == -32016
        assert "outcome: not_sent" in away["message"]
        await until(lambda: state(hub, "lib") == "waiting")
        away = (await agent.request("resources/read", {"uri": TODAY}))["error"]
        assert "tabhub mcp refresh lib" in away["message"]
        assert (await agent.request("prompts/list"))["result"]["prompts"]  # known from an earlier connection
        await hub.hub.upstream.set("lib", enabled=False)
        for method, key in (
            ("resources/list", "resources"),
            ("resources/templates/list", "resourceTemplates"),
            ("prompts/list", "prompts"),
        ):
            assert (await agent.request(method))["result"] == {key: []}
        off = (await agent.request("resources/read", {"uri": TODAY}))["error"]
        assert "no external server that is on has it" in off["message"]
        await hub.hub.upstream.remove("lib")
        assert "no prompt named" in (await agent.request("prompts/get", {"name": "review"}))["error"]["message"]


async def test_failing_lists_affect_neither_tools_nor_other_servers(
    hub: RunningHub, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = ResourceLists.__init__

    def hasty(offers: ResourceLists, server: str, limits: Limits, changed: Callable[[], None]) -> None:
        made(offers, server, replace(limits, upstream_connect=0.5) if server == "hang" else limits, changed)

    monkeypatch.setattr(ResourceLists, "__init__", hasty)
    async with Agent(hub) as agent:
        broken = {kind: stuck(kind) for kind in ("hang", "fail", "odd")}
        await hub.hub.upstream.add(broken)
        await added(hub, lib={"url": library()})
        listed = (await agent.request("resources/list"))["result"]["resources"]
        assert TODAY in {each["uri"] for each in listed}
        for kind in broken:
            assert text((await agent.call(f"mcp__{kind}__work"))["result"]) == "done"
        await until(lambda: len(problems(hub, "hang")) == 3)
        assert problems(hub, "hang")[0] == "Its resources are not known: no answer within 0.5 s"
        assert "the shelf is empty-handed" in problems(hub, "fail")[0]
        assert problems(hub, "odd")[0] == "One of its resources has no usable uri and was skipped."
        assert "Its prompts are not known" in problems(hub, "odd")[1]
        assert [each.own for each in resources(hub, "odd").resources] == ["a://good"]
        assert {state(hub, kind) for kind in broken} == {"ready"}


def problems(hub: RunningHub, name: str) -> list[str]:
    facts = hub.hub.upstream.describe(hub.hub.upstream.get(name))
    found: list[str] = facts.get("problems", [])
    return found


async def test_a_read_times_out_and_can_be_cancelled(tmp_path: Path, library: Library) -> None:
    slow = {"uri": "tabhub+mcp://lib/slow://answer"}
    async with running_hub(tmp_path, limits={"call_timeout": 0.5}) as hub, Agent(hub) as agent:
        await added(hub, lib={"url": library()})
        late = (await agent.request("resources/read", slow))["error"]
        assert late["code"] == -32009
    async with running_hub(tmp_path) as hub, Agent(hub) as agent, client(hub) as http:
        await until(lambda: state(hub, "lib") == "ready")
        body = message("resources/read", slow)
        waiting = asyncio.ensure_future(agent.post(body))
        await until(lambda: len(hub.hub.engine.calls) == 1)
        await agent.notify("notifications/cancelled", {"requestId": body["id"]})
        assert not (await waiting).content
        body, headers = stateless("resources/read", slow)
        reading = asyncio.ensure_future(http.post("/mcp", json=body, headers=headers | {"Mcp-Name": slow["uri"]}))
        await until(lambda: len(hub.hub.engine.calls) == 1)
        reading.cancel()
        await until(lambda: len(hub.hub.engine.calls) == 0)
        assert (await agent.request("resources/read", {"uri": TODAY}))["result"]["contents"]


async def test_reads_are_under_the_servers_permission(tmp_path: Path, library: Library) -> None:
    async with running_hub(tmp_path, permissions=None) as hub, Panel(hub) as panel, Agent(hub) as agent:
        await added(hub, lib={"url": library()})

        def allow(level: str, tool: str | None = None) -> None:
            entry = {"permission": level} if tool is None else {"tools": {tool: level}}
            hub.home.config.write_text(json.dumps({"permissions": {LIB: entry}}))
            hub.hub.reload()

        assert "result" in await agent.request("resources/read", {"uri": TODAY})  # a read needs no approval
        allow("ask")
        asking = asyncio.ensure_future(agent.request("resources/read", {"uri": TODAY}))
        asked = await panel.decide("allow_once")
        assert asked["tool"] == "resources/read"
        assert "notes://today" in json.dumps(asked)
        assert "result" in await asking
        asking = asyncio.ensure_future(agent.request("prompts/get", {"name": "review", "arguments": {"code": "x"}}))
        await panel.decide("deny", "not now")
        assert "not now" in (await asking)["error"]["message"]
        allow("off", "prompts/get")
        refused = (await agent.request("prompts/get", {"name": "review", "arguments": {"code": "x"}}))["error"]
        assert refused["code"] == -32005
        assert f"permissions.{LIB}.tools.prompts/get auto" in refused["message"]
        assert (await agent.request("prompts/list"))["result"] == {"prompts": []}
        assert (await agent.request("resources/list"))["result"]["resources"]
        allow("off")
        assert (await agent.request("resources/list"))["result"] == {"resources": []}


@pytest.mark.parametrize("era", ["handshake", "stateless"])
async def test_the_bridge_socket_lists_and_reads_resources(hub: RunningHub, library: Library, era: str) -> None:
    await added(hub, lib={"url": library()})
    meta = {"_meta": ENVELOPE} if era == "stateless" else {}
    async with registered(hub) as bridge:
        if era == "handshake":
            assert "resources" in (await bridge.initialize())["capabilities"]
        listed = (await bridge.request("prompts/list", meta))["data"]
        assert [each["name"] for each in listed["prompts"]] == ["mcp__lib__greet", "mcp__lib__review"]
        assert ("ttlMs" in listed) == (era == "stateless")
        read = (await bridge.request("resources/read", {"uri": TODAY, **meta}))["data"]
        assert read["contents"][0]["text"] == "buy bread"
        assert (read.get("resultType"), read.get("cacheScope")) == (
            ("complete", "private") if era == "stateless" else (None, None)
        )
        wrong = await bridge.request("prompts/get", {"name": "nothing", **meta})
        assert wrong["error"]["code"] == -32602


async def test_the_official_client_raises_the_hubs_errors(hub: RunningHub, library: Library) -> None:
    await added(hub, lib={"url": library()})
    async with official(hub, "auto") as agent:
        with pytest.raises(MCPError, match="no prompt named"):
            await agent.get_prompt("mcp__other__thing")
