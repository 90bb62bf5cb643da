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
    """The authorization of a server's requests: the stored login, or a new one if a person asked for it.

    It is also the SDK's storage of that login, a file; one made for another URL is ignored.
    """

    def __init__(
        self, connection: ServerConnection, url: str, logins: PendingLogins, registered: Mapping[str, str]
    ) -> None:
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
        self._connection = connection
        self._logins = logins
        self._path = logins.file(connection.server.id)
        self._identity = {"url": url}
        self._registered: OAuthClientInformationFull | None = None
        if "clientId" in registered:
            self._identity["clientId"] = registered["clientId"]  # tokens given to one client are of no use to another
            secret = registered.get("clientSecret")
            by = {"client_secret": secret, "token_endpoint_auth_method": "client_secret_basic"} if secret else {}
            self._registered = OAuthClientInformationFull.model_validate(
                {**metadata, "client_id": registered["clientId"], **by}
            )
        self._callback: asyncio.Future[dict[str, str]]
        """Of the login in progress."""
        self._headers: dict[str, str] | None = None
        self._provider = OAuthClientProvider(
            url, OAuthClientMetadata.model_validate(metadata), self, self._redirect, self._wait_for_callback
        )

    async def headers(self) -> Mapping[str, str]:
        if self._headers is None:
            tokens = await self.get_tokens()
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

    async def _redirect(self, login_url: str) -> None:
        name = self._connection.server.name
        state = parse_qs(urlsplit(login_url).query).get("state", [""])[0]
        if not self._connection.can_prompt_login or urlsplit(login_url).scheme not in ("http", "https") or not state:
            raise LoginRequired(f"{name} requires the person to log in.")
        if not self._redirects_here:
            # The hub was registered with another port, and the login would return to that one.
            await self._write(client=None, tokens=None)
            raise LoginRequired(f"{name} requires the hub to register again; log in once more.")
        self._callback = self._logins.expect(state)
        self._connection.login_started(login_url)
        await self._logins.show(login_url)

    async def _wait_for_callback(self) -> AuthorizationCodeResult:
        answer = await self._callback
        self._connection.login_answered()
        if "code" not in answer:
            why = answer.get("error_description") or answer.get("error") or "no code was returned"
            raise LoginRequired(f"The login at {self._connection.server.name} failed: {why[:200]}.")
        return AuthorizationCodeResult(code=answer["code"], state=answer.get("state"), iss=answer.get("iss"))

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
        stored = self._read()
        try:
            tokens = OAuthToken.model_validate(stored["tokens"])
            self._provider.context.token_expiry_time = stored.get("expires")
            if stored.get("metadata"):
                self._provider.context.oauth_metadata = OAuthMetadata.model_validate(stored["metadata"])
        except (KeyError, ValidationError):
            return None
        return tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        metadata = self._provider.context.oauth_metadata
        await self._write(
            tokens=tokens.model_dump(mode="json", exclude_none=True),
            expires=None if tokens.expires_in is None else time.time() + tokens.expires_in,
            metadata=metadata.model_dump(mode="json", exclude_none=True) if metadata is not None else None,
        )

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """The registered client. One with another redirect URL can still refresh tokens, but not log in."""
        if self._registered is not None:
            return self._registered
        stored = self._read()
        try:
            known = OAuthClientInformationFull.model_validate(stored["client"])
        except (KeyError, ValidationError):
            return None
        return known if self._redirects_here or (stored.get("tokens") or {}).get("refresh_token") else None

    @property
    def _redirects_here(self) -> bool:
        """Whether a login of the registered client comes back to this hub."""
        return self._registered is not None or bool(self._read().get("redirect") == self._logins.redirect)

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        known = client_info.model_dump(mode="json", exclude_none=True)
        await self._write(client=known, redirect=self._logins.redirect)
