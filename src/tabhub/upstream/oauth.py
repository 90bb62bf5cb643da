"""Logging in to external servers that require it: OAuth 2.1 with the official SDK's flow.

Owns where the person is sent, the callback through the hub's own URL, and the file that stores a login, readable by
this user alone. Discovery, registration, PKCE and refreshing are the SDK's. No login starts unless a person asked for
this connection. Imports the SDK, so it is imported late.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthMetadata, OAuthToken
from pydantic import ValidationError

from tabhub.client_errors import HttpError
from tabhub.errors import LoginRequired
from tabhub.net.async_http import Bounds, Connections, Response
from tabhub.platform.files import write_atomic

if TYPE_CHECKING:
    from tabhub.upstream.login_callbacks import PendingLogins
    from tabhub.upstream.server_connection import ServerConnection

_OWN_HEADERS = ("host", "connection", "content-length", "transfer-encoding", "accept-encoding")
_STEP_TIMEOUT = 30.0
_BOUNDS = Bounds(max_body=1024 * 1024, connect=_STEP_TIMEOUT)


class _LoginTransport(httpx2.AsyncBaseTransport):
    """Sends the requests of the SDK's login over the checked connections to the server."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        headers = {name: value for name, value in request.headers.items() if name not in _OWN_HEADERS}
        headers["accept-encoding"] = "identity"
        body = await request.aread()
        try:
            sent = self._connections.request(request.method, str(request.url), headers, body or None, _BOUNDS)
            async with asyncio.timeout(_STEP_TIMEOUT), sent as response:
                return httpx2.Response(
                    response.status, headers=response.headers, content=await response.body(), request=request
                )
        except (HttpError, TimeoutError) as error:
            raise httpx2.TransportError(str(error) or "it took too long", request=request) from None


class Login:
    """The authorization of a server's requests: the stored login, or a new one if a person asked for it."""

    def __init__(self, provider: OAuthClientProvider, tokens: _TokenFile) -> None:
        self._provider = provider
        self._tokens = tokens
        self._headers: dict[str, str] | None = None

    async def headers(self) -> Mapping[str, str]:
        if self._headers is None:
            tokens = await self._tokens.get_tokens()
            self._headers = {"authorization": f"Bearer {tokens.access_token}"} if tokens is not None else {}
        return self._headers

    async def renew(self, url: str, sent: Mapping[str, str], refused: Response, connections: Connections) -> bool:
        """Refresh the token or log in. Returns whether a refused request can be sent again.

        The request itself is not the SDK's, because it would let one request at a time wait for its response.
        """
        request = httpx2.Request("POST", url, headers=sent)
        before = request.headers.get("authorization")
        response = httpx2.Response(refused.status, headers=refused.headers, request=request)
        flow = self._provider.async_auth_flow(request)
        try:
            async with httpx2.AsyncClient(transport=_LoginTransport(connections), trust_env=False) as client:
                step = await anext(flow)
                while step is not request or request.headers.get("authorization") == before:
                    step = await flow.asend(response if step is request else await client.send(step))
        except StopAsyncIteration:
            return False
        finally:
            await flow.aclose()
        self._headers = {"authorization": request.headers["authorization"]}
        return True


class _TokenFile:
    """A login on disk (the SDK's TokenStorage); one made for another URL is ignored."""

    def __init__(self, path: Path, url: str, redirect: str, registered: OAuthClientInformationFull | None) -> None:
        self._path = path
        # Tokens given to one client are of no use to another.
        self._identity = {"url": url} | ({"clientId": registered.client_id} if registered is not None else {})
        self._redirect = redirect
        self._registered = registered
        self.provider: OAuthClientProvider | None = None

    def _read(self) -> dict[str, Any]:
        try:
            value = json.loads(self._path.read_bytes())
        except (OSError, ValueError):
            return {}
        fits = isinstance(value, dict) and all(value.get(key) == expected for key, expected in self._identity.items())
        return value if fits else {}

    async def _write(self, **changes: Any) -> None:
        value = {**self._read(), **self._identity, **changes}
        self._path.parent.mkdir(mode=0o700, exist_ok=True)
        await asyncio.to_thread(write_atomic, self._path, json.dumps(value))

    async def get_tokens(self) -> OAuthToken | None:
        """The tokens; also restores their expiry and the metadata needed to refresh them."""
        token_file = self._read()
        try:
            tokens = OAuthToken.model_validate(token_file["tokens"])
            if self.provider is not None:
                self.provider.context.token_expiry_time = token_file.get("expires")
                if token_file.get("metadata"):
                    self.provider.context.oauth_metadata = OAuthMetadata.model_validate(token_file["metadata"])
        except (KeyError, ValidationError):
            return None
        return tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        metadata = self.provider.context.oauth_metadata if self.provider is not None else None
        await self._write(
            tokens=tokens.model_dump(mode="json", exclude_none=True),
            expires=None if tokens.expires_in is None else time.time() + tokens.expires_in,
            metadata=metadata.model_dump(mode="json", exclude_none=True) if metadata is not None else None,
        )

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """The registered client. One with another redirect URL can still refresh tokens, but not log in."""
        if self._registered is not None:
            return self._registered
        token_file = self._read()
        try:
            known = OAuthClientInformationFull.model_validate(token_file["client"])
        except (KeyError, ValidationError):
            return None
        return known if self.redirects_here or (token_file.get("tokens") or {}).get("refresh_token") else None

    @property
    def redirects_here(self) -> bool:
        """Whether a login of the registered client comes back to this hub."""
        return self._registered is not None or bool(self._read().get("redirect") == self._redirect)

    async def forget_client(self) -> None:
        """Register again at the next login."""
        await self._write(client=None, tokens=None)

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        known = client_info.model_dump(mode="json", exclude_none=True)
        await self._write(client=known, redirect=self._redirect)


def make_login(connection: ServerConnection, url: str, logins: PendingLogins, registered: Mapping[str, str]) -> Login:
    """`registered` is the OAuth client that the person registered; without it the hub registers itself."""
    metadata: dict[str, Any] = {
        "client_name": "Tabhub",
        "redirect_uris": [logins.redirect],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    }
    if "scope" in registered:
        metadata["scope"] = registered["scope"]
    known = None
    if "clientId" in registered:
        secret = registered.get("clientSecret")
        by = {"client_secret": secret, "token_endpoint_auth_method": "client_secret_basic"} if secret else {}
        known = OAuthClientInformationFull.model_validate({**metadata, "client_id": registered["clientId"], **by})
    token_file = _TokenFile(logins.file(connection.server.id), url, logins.redirect, known)
    waiting: list[str] = []

    async def redirect(login_url: str) -> None:
        state = parse_qs(urlsplit(login_url).query).get("state", [""])[0]
        if not connection.can_prompt_login or urlsplit(login_url).scheme not in ("http", "https") or not state:
            raise LoginRequired(f"{connection.server.name} requires the person to log in.")
        if not token_file.redirects_here:
            # The hub was registered with another port, and the login would return to that one.
            await token_file.forget_client()
            raise LoginRequired(f"{connection.server.name} requires the hub to register again; log in once more.")
        logins.expect(state)
        waiting[:] = [state]
        connection.login_started(login_url)
        await logins.show(login_url)

    async def wait_for_callback() -> AuthorizationCodeResult:
        answer = await logins.wait(waiting[0])
        connection.login_answered()
        if "code" not in answer:
            why = answer.get("error_description") or answer.get("error") or "no code was returned"
            raise LoginRequired(f"The login at {connection.server.name} failed: {why[:200]}.")
        return AuthorizationCodeResult(code=answer["code"], state=answer.get("state"), iss=answer.get("iss"))

    provider = OAuthClientProvider(
        url, OAuthClientMetadata.model_validate(metadata), token_file, redirect, wait_for_callback
    )
    token_file.provider = provider
    return Login(provider, token_file)
