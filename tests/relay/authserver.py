"""A small OAuth authorization server, like a team's identity provider: it registers clients and signs JWTs."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import ec


class AuthServer:
    """One server; every client is logged in as `user`, and gets tokens that last `ttl` seconds.

    `announced_ttl` is the lifetime announced to clients, by which they renew tokens.
    """

    def __init__(self, user: str, ttl: float) -> None:
        self.user = user
        self.ttl = ttl
        self.announced_ttl: float | None = None
        """None for the real lifetime."""
        self.issued = 0
        self.ends = 0.0
        """Expiry of the last token, as a timestamp."""
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._codes: dict[str, dict[str, str]] = {}
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        self._http.shutdown()
        self._http.server_close()

    def get(self, path: str, query: dict[str, str]) -> tuple[int, dict[str, str], Any]:
        if path == "/.well-known/oauth-authorization-server":
            return 200, {}, self._metadata()
        if path == "/keys":
            public = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(self._key.public_key()))
            return 200, {}, {"keys": [{**public, "kid": "one", "use": "sig", "alg": "ES256"}]}
        if path == "/authorize":
            code = secrets.token_hex(8)
            self._codes[code] = query
            back = urlencode({"code": code, "state": query["state"], "iss": self.url})
            return 302, {"Location": f"{query['redirect_uri']}?{back}"}, {}
        return 404, {}, {}

    def post(self, path: str, body: bytes) -> tuple[int, dict[str, str], Any]:
        if path == "/register":
            return 201, {}, {**json.loads(body), "client_id": "client-1"}
        given = {name: values[0] for name, values in parse_qs(body.decode()).items()}
        if given.get("grant_type") == "authorization_code":
            asked = self._codes.pop(given["code"])
            digest = hashlib.sha256(given["code_verifier"].encode()).digest()
            if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != asked["code_challenge"]:
                return 400, {}, {"error": "invalid_grant"}
        return 200, {}, self._token()

    def _token(self) -> dict[str, Any]:
        self.issued += 1
        now = time.time()
        self.ends = now + self.ttl
        claims = {"iss": self.url, "sub": self.user, "aud": "tabhub-relay", "iat": int(now), "exp": self.ends}
        token = jwt.encode({**claims, "jti": f"token-{self.issued}"}, self._key, "ES256", headers={"kid": "one"})
        lasts = int(self.ttl if self.announced_ttl is None else self.announced_ttl)
        return {"access_token": token, "token_type": "Bearer", "expires_in": lasts, "refresh_token": "again"}

    def _metadata(self) -> dict[str, Any]:
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "registration_endpoint": f"{self.url}/register",
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
        }

    def _handler(server: AuthServer) -> type[BaseHTTPRequestHandler]:  # noqa: N805 - `self` is the handler's below
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                query = {name: values[0] for name, values in parse_qs(parts.query).items()}
                self._answer(*server.get(parts.path, query))

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                self._answer(*server.post(urlsplit(self.path).path, body))

            def _answer(self, status: int, headers: dict[str, str], value: Any) -> None:
                body = json.dumps(value).encode()
                self.send_response(status)
                for name, text in {"Content-Type": "application/json", "Content-Length": len(body), **headers}.items():
                    self.send_header(name, str(text))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name the base class gives it
                """Log nothing."""

        return Handler


@contextmanager
def auth_server(user: str = "ann", ttl: float = 600) -> Iterator[AuthServer]:
    """A server while the block runs."""
    server = AuthServer(user, ttl)
    try:
        yield server
    finally:
        server.stop()
