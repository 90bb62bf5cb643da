"""OAuth at a relay: a client that knows only the URL finds the login, gets a token and is served."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import httpx2
from mcp.client import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

from tests.harness.waiting import eventually, until
from tests.relay.authserver import AuthServer, auth_server
from tests.relay.engines.httpworld import browser
from tests.relay.process import relay_process


class Wallet:
    """A client's token storage, and its person, who logs in automatically."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None
        self._back: dict[str, str] = {}

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info

    async def log_in(self, url: str) -> None:
        async with httpx2.AsyncClient(verify=False) as person:
            answer = await person.get(url)
        self._back = dict(httpx2.URL(answer.headers["location"]).params)

    async def came_back(self) -> AuthorizationCodeResult:
        return AuthorizationCodeResult(code=self._back["code"], state=self._back["state"], iss=self._back["iss"])


def relay_words(auth: AuthServer) -> tuple[str, ...]:
    return ("--jwks-url", f"{auth.url}/keys", "--issuer", auth.url, "--auth-server", auth.url)


async def test_a_client_with_only_the_url_logs_in_and_continues_with_a_renewed_token(
    tmp_path: Path,
) -> None:
    with auth_server("ann") as auth:
        auth.announced_ttl = 0  # the client requests another token each time
        async with relay_process(tmp_path, *relay_words(auth)) as (ws, _):
            url, wallet = f"{ws.replace('ws', 'http', 1)}/mcp", Wallet()
            about = OAuthClientMetadata(
                redirect_uris=[AnyUrl("http://127.0.0.1:1/callback")], token_endpoint_auth_method="none"
            )
            login = OAuthClientProvider(url, about, wallet, wallet.log_in, wallet.came_back)
            async with (
                httpx2.AsyncClient(verify=False, auth=login, timeout=30) as http,
                Client(streamable_http_client(url, http_client=http), mode="legacy") as client,
            ):

                async def succeeds(tool: str, arguments: dict[str, Any]) -> bool:
                    return not (await client.call_tool(tool, arguments)).is_error

                assert wallet.tokens is not None
                async with browser(ws, wallet.tokens.access_token) as far:
                    await eventually(lambda: succeeds("browser_list_tabs", {}))  # as soon as the browser is connected
                    assert far.user_id == "ann"
                auth.announced_ttl, auth.ttl, issued = None, 1, auth.issued
                await eventually(lambda: succeeds("browser_get_connection_status", {}))
                assert auth.issued > issued
                auth.ttl, issued, ends = 600, auth.issued, auth.ends
                await until(lambda: time.time() > ends)
                assert await succeeds("browser_get_connection_status", {})
                assert auth.issued > issued  # the client requested another token when the last one expired
                async with browser(ws, wallet.tokens.access_token) as far:
                    # In the same session, as soon as the browser is connected.
                    await eventually(lambda: succeeds("browser_close_tab", {"tabId": 7}))
                    assert len(far.asked("closeTab")) == 1
