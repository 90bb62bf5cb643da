"""MCP over HTTP at a relay: authentication, refusals, and what a client with a token can do."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken, ProtectedResourceMetadata
from mcp.types import TextContent
from pydantic import AnyUrl
from websockets.asyncio.client import connect

from tabhub.cli import main
from tabhub.relay.revocations import Revocations, append
from tabhub.trust.guard import EXTENSION_ORIGIN
from tests.harness.agent import ACCEPT, message, stateless
from tests.harness.waiting import until
from tests.relay.engines.httpworld import META, HttpRelay, browser, http_relay, sdk
from tests.relay.independent import IndependentAgent
from tests.relay.world import SECRET, other_signature, token

INITIALIZE = message(
    "initialize",
    {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}},
)
LIST = message("tools/list")
PAGE_TOOLS: dict[str, Any] = {
    "tabId": 7,
    "frameId": 0,
    "documentId": "d1",
    "origin": "https://example.com",
    "url": "https://example.com/",
    "title": "Shop",
    "capabilities": {},
    "tools": [{"name": "add", "description": "Adds.", "inputSchema": {"type": "object"}}],
}


@pytest.fixture
async def relay() -> AsyncIterator[HttpRelay]:
    async with http_relay(auth_servers=("https://login.example.com",)) as running:
        yield running


def signed(**claims: Any) -> str:
    """A token with claims that differ from a valid one."""
    now = int(time.time())
    good = {"sub": "ann", "aud": "tabhub-relay", "exp": now + 600, "iat": now, "jti": str(uuid.uuid4())}
    return jwt.encode({k: v for k, v in {**good, **claims}.items() if v is not None}, SECRET, "HS256")


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_official_client_with_a_token_reaches_its_users_browser(relay: HttpRelay, mode: str) -> None:
    async with browser(relay.ws) as far, sdk(relay.url, token(), mode) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert {"browser_snapshot", "browser_open_tab", "browser_list_tabs", "tabhub_read_result"} <= names
        listed = await client.call_tool("browser_list_tabs", {})
        assert isinstance(text := listed.content[0], TextContent)
        assert [line[:2] for line in text.text.splitlines()[1:]] == ["7 "]
        assert not (await client.call_tool("browser_close_tab", {"tabId": 7})).is_error
        (closed,) = far.asked("closeTab")
        assert closed["params"]["tabId"] == 7


async def test_websocket_and_http_share_the_url(relay: HttpRelay) -> None:
    async with browser(relay.ws), IndependentAgent(relay.ws, token()) as agent, sdk(relay.url, token()) as client:
        await agent.ready()
        assert (await agent.result("getTabs"))["tabs"]
        assert not (await client.call_tool("browser_list_tabs", {})).is_error


async def test_files_of_the_relay_cannot_be_read_or_written(relay: HttpRelay) -> None:
    async with browser(relay.ws), sdk(relay.url, token()) as client:
        tools = (await client.list_tools()).tools
        assert "filePath" not in json.dumps([tool.model_dump(mode="json", exclude={"output_schema"}) for tool in tools])
        assert not {"browser_upload_file", "browser_save_pdf", "browser_performance_trace"} & {t.name for t in tools}
        refused = await client.call_tool("browser_screenshot_tab", {"tabId": 7, "filePath": "shot.png"})
        assert refused.is_error
        upload = {"action": "upload", "selector": "input", "paths": ["/etc/passwd"]}
        acted = await client.call_tool("browser_act", {"tabId": 7, "actions": [upload]})
        assert acted.is_error
        assert "neither read nor written" in acted.content[0].text  # type: ignore[union-attr]


async def test_there_are_no_resources_or_prompts(relay: HttpRelay) -> None:
    async with relay.agent() as agent:
        for method, key in (("resources/list", "resources"), ("prompts/list", "prompts")):
            assert (await agent.request(method))["result"][key] == []
        for method, params in (
            ("resources/read", {"uri": "mcp://x/y"}),
            ("prompts/get", {"name": "x"}),
        ):
            assert (await agent.request(method, params))["error"]["code"] < 0


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ("", None),
        ("Bearer nonsense", "invalid_token"),
        ("Basic YTpi", "invalid_token"),
        (f"Bearer {signed(exp=int(time.time()) - 60)}", "invalid_token"),
        (f"Bearer {signed(aud='another')}", "invalid_token"),
        (f"Bearer {signed(sub=None)}", "invalid_token"),
        (f"Bearer {jwt.encode({'sub': 'ann'}, 'z' * 64, 'HS256')}", "invalid_token"),
    ],
    ids=["none", "no JWT", "another scheme", "expired", "another audience", "no user", "another key"],
)
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
async def test_without_a_valid_token_the_response_says_where_to_get_one(
    relay: HttpRelay, given: str, error: str | None, method: str
) -> None:
    headers = {**ACCEPT, **({"Authorization": given} if given else {})}
    async with relay.client("") as http:
        answer = await http.request(method, "/mcp", json=INITIALIZE, headers=headers)
        assert answer.status_code == 401
        challenge = answer.headers["www-authenticate"]
        assert challenge.startswith(f'Bearer resource_metadata="{relay.url}{META}/mcp"')
        assert (f'error="{error}"' in challenge) if error else ("error=" not in challenge)
        assert answer.json()["error"]["code"] == -32002
        assert "token" in answer.json()["error"]["message"]
        assert given[7:] not in answer.text or not given
    assert not len(relay.http.engines)


async def test_a_revoked_token_is_refused_and_its_sessions_end(relay: HttpRelay) -> None:
    access = token(ident="stolen")
    async with browser(relay.ws) as far, relay.agent(access) as agent:
        far.silent.add("goBack")
        async with agent.listening() as stream:
            call = agent.http.build_request(
                "POST",
                "/mcp",
                json=message("tools/call", {"name": "browser_go_back", "arguments": {"tabId": 7}}),
                headers=agent.headers,
            )
            under_way = asyncio.create_task(agent.http.send(call))
            await until(lambda: bool(far.asked("goBack")))
            relay.relay.node.tokens_revoked([f"stolen {int(time.time()) + 600}"])
            answer = (await asyncio.wait_for(under_way, 30)).json()
            assert answer["result"]["_meta"]["tabhub/error"]["outcome"] == "unknown"
            await asyncio.wait_for(stream.rest(), 30)  # it ends
        await until(lambda: not relay.engines())
        refused = await agent.post(LIST)
        assert refused.status_code == 401


async def test_an_expired_token_ends_requests_and_a_newer_one_continues_the_session(relay: HttpRelay) -> None:
    async with browser(relay.ws) as far, relay.agent(token(ttl=2)) as agent:
        async with agent.listening() as stream:
            assert (await agent.post(LIST)).status_code == 200
            await asyncio.wait_for(stream.rest(), 30)  # it ends
        (engine,) = relay.engines()
        assert engine.links.paused
        assert not relay.relay.node.state.tables.agents
        assert (await agent.post(LIST)).status_code == 401
        agent.http.headers["Authorization"] = f"Bearer {token('bob')}"
        assert (await agent.post(LIST)).status_code == 404
        agent.http.headers["Authorization"] = f"Bearer {token()}"
        assert (await agent.post(LIST)).status_code == 200
        async with agent.listening() as stream:
            await far.notify("browser/registerTools", PAGE_TOOLS)
            assert (await stream.message())["method"] == "notifications/tools/list_changed"
        assert not (await agent.call("browser_close_tab", {"tabId": 7}))["result"].get("isError")
        assert len(far.asked("closeTab")) == 1
        assert relay.engines() == [engine]


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "chrome-extension://" + "a" * 32, "http://127.0.0.1:1"]
)
@pytest.mark.parametrize("path", ["/mcp", META, f"{META}/mcp"])
async def test_web_pages_and_other_extensions_are_refused(relay: HttpRelay, origin: str, path: str) -> None:
    async with relay.client() as http:
        method = "POST" if path == "/mcp" else "GET"
        answer = await http.request(method, path, json=INITIALIZE, headers={**ACCEPT, "Origin": origin})
        assert answer.status_code == 403
        own = {**ACCEPT, "Origin": EXTENSION_ORIGIN.decode()}
        assert (await http.request(method, path, json=INITIALIZE, headers=own)).status_code == 200


async def test_a_foreign_host_is_refused(relay: HttpRelay) -> None:
    async with relay.client() as http:
        for path in ("/mcp", META):
            assert (await http.get(path, headers={"Host": "evil.example"})).status_code == 403


async def test_with_a_public_url_only_its_host_is_accepted() -> None:
    async with http_relay(public_url="https://relay.example.com") as relay, relay.client("") as http:
        found = await http.get(META)
        assert found.json()["resource"] == "https://relay.example.com/mcp"
        refused = await http.post("/mcp", json=INITIALIZE)
        expected = f'resource_metadata="https://relay.example.com{META}/mcp"'
        assert expected in refused.headers["www-authenticate"]


async def test_ambiguous_headers_are_refused(relay: HttpRelay) -> None:
    access = token()
    async with relay.client("") as http:
        for name in ("Authorization", "Mcp-Session-Id"):
            doubled = [(name, f"Bearer {access}"), (name, f"Bearer {token('bob')}"), *ACCEPT.items()]
            answer = await http.post("/mcp", json=INITIALIZE, headers=doubled)
            assert answer.status_code == 400, answer.text


@pytest.mark.parametrize("path", [META, f"{META}/mcp"])
async def test_the_metadata_names_the_resource_and_the_token_issuers(relay: HttpRelay, path: str) -> None:
    async with relay.client("") as http:
        found = await http.get(path)
        assert found.json() == {
            "resource": f"{relay.url}/mcp",
            "authorization_servers": ["https://login.example.com"],
            "bearer_methods_supported": ["header"],
            "resource_name": "Tabhub relay",
        }
        assert found.headers["content-type"] == "application/json"
        ProtectedResourceMetadata.model_validate(found.json())
        assert (await http.post(path)).status_code == 405


async def test_without_an_authorization_server_none_is_named() -> None:
    async with http_relay() as relay, relay.client("") as http:
        assert "authorization_servers" not in (await http.get(META)).json()


class _Storage:
    """Stores nothing."""

    async def get_tokens(self) -> OAuthToken | None:
        return None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        raise AssertionError(tokens)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        raise AssertionError(client_info)


async def test_the_official_oauth_client_finds_the_authorization_server(relay: HttpRelay) -> None:
    provider = OAuthClientProvider(
        f"{relay.url}/mcp", OAuthClientMetadata(redirect_uris=[AnyUrl("http://127.0.0.1/callback")]), _Storage()
    )
    asked: list[str] = []
    async with relay.client("") as http:
        flow = provider.async_auth_flow(http.build_request("POST", "/mcp", json=INITIALIZE, headers=ACCEPT))
        request = await anext(flow)
        while request.url.host == "127.0.0.1":
            asked.append(request.url.path)
            request = await flow.asend(await http.send(request))
        await flow.aclose()
    assert asked == ["/mcp", f"{META}/mcp"]
    assert request.url.host == "login.example.com"
    assert request.url.path == "/.well-known/oauth-authorization-server"


async def test_invalid_requests_are_refused_as_in_mcp(relay: HttpRelay) -> None:
    async with relay.client() as http:
        assert (await http.post("/mcp", content=b"{", headers=ACCEPT)).json()["error"]["code"] == -32700
        assert (await http.post("/mcp", json=LIST, headers=ACCEPT)).status_code == 400
        assert (await http.put("/mcp", json=LIST, headers=ACCEPT)).status_code == 405
        big = b" " * (relay.relay.node.limits.max_body + 1)
        assert (await http.post("/mcp", content=big, headers=ACCEPT)).status_code == 413
    async with connect(f"{relay.ws}/mcp"):
        pass  # WebSockets still work


async def test_requests_of_a_user_are_limited() -> None:
    async with http_relay(relay_user_rate=20) as relay, relay.client() as http:
        body, headers = stateless("tools/list")
        answers = [await http.post("/mcp", json=body, headers=headers) for _ in range(30)]
        assert answers[0].status_code == 200
        assert answers[-1].status_code == 429
        assert int(answers[-1].headers["retry-after"]) > 0
        assert relay.relay.node.state.tables.counts.rate_limited


async def test_the_audit_line_of_a_call_names_the_user_and_no_arguments(tmp_path: Path) -> None:
    file = tmp_path / "audit.log"
    async with http_relay(audit_file=file) as relay, browser(relay.ws), sdk(relay.url, token()) as client:
        await client.call_tool("browser_list_tabs", {})
        await client.call_tool("browser_close_tab", {"tabId": 12345})
        first, second = (json.loads(line) for line in file.read_text().splitlines())
    assert (first["tool"], first["success"], first["tokenName"], first["via"]) == (
        "browser_list_tabs",
        True,
        "ann",
        "mcp",
    )
    assert (second["tool"], second["success"]) == ("browser_close_tab", False)
    assert "12345" not in json.dumps({**second, "error": ""})


@pytest.mark.req("B10")
@pytest.mark.parametrize("written_by", ["this version", "version 0.1"])
async def test_a_revoked_token_stays_revoked_with_its_other_signature(tmp_path: Path, written_by: str) -> None:
    private = ec.generate_private_key(ec.SECP256R1())
    public = private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    exp = int(time.time()) + 600
    access = jwt.encode({"sub": "ann", "aud": "tabhub-relay", "exp": exp}, private, algorithm="ES256")
    twin = other_signature(access)
    file = tmp_path / "revoked"
    async with http_relay(key=public.decode(), revocations=Revocations(file)) as relay:
        async with relay.agent(access) as one, relay.agent(twin) as two:
            assert (await one.post(LIST)).status_code == 200
            assert (await two.post(LIST)).status_code == 200
            assert len(relay.engines()) == 1
            if written_by == "this version":
                assert main(["relay", "token", "revoke", access, "--revoked-file", str(file)]) == 0
            else:
                append(file, f"sha256-{hashlib.sha256(access.encode()).hexdigest()}", exp)
            await until(lambda: not relay.engines())
            assert [(await each.post(LIST)).status_code for each in (one, two)] == [401, 401]
        for each in (access, twin):
            async with IndependentAgent(relay.ws, each) as agent:
                await agent.error("mcp_handshake", {"accessToken": each})
                assert (await agent.closed())[0] == 4001


@pytest.mark.req("B22")
async def test_wrong_tokens_are_rate_limited_by_address_and_valid_ones_never() -> None:
    async with http_relay(auth_failure_rate=3) as relay, relay.client("") as http, relay.client() as good:
        wrong = {**ACCEPT, "Authorization": "Bearer x"}
        answers = [await http.post("/mcp", json=INITIALIZE, headers=wrong) for _ in range(5)]
        assert [answer.status_code for answer in answers] == [401, 401, 401, 429, 429]
        assert 0 < int(answers[-1].headers["retry-after"]) <= 60
        assert answers[-1].headers["connection"] == "close"
        assert relay.relay.node.state.tables.counts.auth_failed == 3
        assert (await http.post("/mcp", json=INITIALIZE, headers=ACCEPT)).status_code == 401  # how to get a token
        assert (await good.post("/mcp", json=INITIALIZE, headers=ACCEPT)).status_code == 200


async def test_behind_a_proxy_wrong_tokens_are_counted_by_the_address_that_it_reports() -> None:
    async with http_relay(auth_failure_rate=1, behind_proxy=True) as relay, relay.client("") as http:

        async def status(forwarded: str) -> int:
            headers = {**ACCEPT, "Authorization": "Bearer x", "X-Forwarded-For": forwarded}
            return (await http.post("/mcp", json=INITIALIZE, headers=headers)).status_code

        assert [await status("203.0.113.9"), await status("203.0.113.9")] == [401, 429]
        # What the client itself sends comes first, what the proxy adds last.
        assert [await status("198.51.100.1, 203.0.113.9"), await status("203.0.113.9, 198.51.100.1")] == [429, 401]
        one_network = [await status("2001:db8::1"), await status("2001:db8::2")]
        assert [*one_network, await status("2001:db8:0:1::1")] == [401, 429, 401]
        assert [await status("x"), await status("y")] == [401, 429]
