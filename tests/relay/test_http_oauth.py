"""The whole of OAuth at a relay: a client that knows only the address finds the login, gets a token and is served."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx2
from mcp.client import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

from tests.relay.authserver import AuthServer, auth_server
from tests.relay.httpworld import browser
from tests.relay.test_run import relay_process


class Wallet:
    """Where a client keeps what it was given; and its person, who logs in without a question."""

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
        async with httpx2.AsyncClient() as person:
            answer = await person.get(url)
        self._back = dict(httpx2.URL(answer.headers["location"]).params)

    async def came_back(self) -> AuthorizationCodeResult:
        return AuthorizationCodeResult(code=self._back["code"], state=self._back["state"], iss=self._back["iss"])


def relay_words(auth: AuthServer) -> tuple[str, ...]:
    return ("--jwks-url", f"{auth.url}/keys", "--issuer", auth.url, "--auth-server", auth.url)


async def test_a_client_that_knows_only_the_address_logs_in_and_goes_on_when_its_token_is_renewed(
    tmp_path: Path,
) -> None:
    with auth_server("ann", ttl=6) as auth:
        async with relay_process(tmp_path, *relay_words(auth)) as (ws, _):
            url, wallet = f"{ws.replace('ws', 'http', 1)}/mcp", Wallet()
            about = OAuthClientMetadata(
                redirect_uris=[AnyUrl("http://127.0.0.1:1/callback")], token_endpoint_auth_method="none"
            )
            login = OAuthClientProvider(url, about, wallet, wallet.log_in, wallet.came_back)
            async with (
                httpx2.AsyncClient(auth=login, timeout=30) as http,
                Client(streamable_http_client(url, http_client=http), mode="legacy") as client,
            ):
                assert auth.issued == 1
                assert wallet.tokens is not None
                auth.ttl = 600
                async with browser(ws, wallet.tokens.access_token) as far:
                    async with asyncio.timeout(10):
                        while (await client.call_tool("browser_list_tabs", {})).is_error:
                            pass  # as soon as the browser is there
                    assert far.user_id == "ann"
                async with asyncio.timeout(20):
                    while auth.issued == 1:  # the client asks for another when the first has ended
                        await client.call_tool("browser_get_connection_status", {})
                async with browser(ws, wallet.tokens.access_token) as far:
                    async with asyncio.timeout(10):
                        while (await client.call_tool("browser_close_tab", {"tabId": 7})).is_error:
                            pass  # in the same session, as soon as the browser is there
                    assert len(far.asked("closeTab")) == 1
