"""A server on a plain HTTP socket that records its requests; it uses no SDK and speaks only revision 2025-03-26."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

REVISION = "2025-03-26"
_PAGE = 2


@dataclass(frozen=True, slots=True)
class ReceivedRequest:
    """One HTTP request."""

    verb: str
    headers: dict[str, str]
    """By name in lower case."""
    body: dict[str, Any] = field(default_factory=dict)

    @property
    def method(self) -> str:
        """The message's method, or the verb of a request without one."""
        return str(self.body.get("method", self.verb))


class Recorder:
    """Lists its tools two per page; answers a call with its own name and the tool's, and `fails` with an error."""

    def __init__(self, name: str, *tools: str) -> None:
        self.name = name
        self.tools = list(tools)
        self.received: list[ReceivedRequest] = []
        self.sessions: list[str] = []
        self.moved_to: str | None = None
        """The path that all other paths redirect to."""
        recorder = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if recorder.moved_to is not None and self.path != recorder.moved_to:
                    self._send(307, None, {"Location": recorder.moved_to})
                    return
                headers = {name.lower(): value for name, value in self.headers.items()}
                recorder.received.append(ReceivedRequest("POST", headers, body))
                status, answer, more = recorder.answer(body, headers.get("mcp-session-id"))
                self._send(status, answer, more)

            def do_GET(self) -> None:
                recorder.received.append(
                    ReceivedRequest("GET", {name.lower(): value for name, value in self.headers.items()})
                )
                recorder.stream()
                self._send(405, None, {"Allow": "POST, DELETE"})

            def do_DELETE(self) -> None:
                recorder.received.append(
                    ReceivedRequest("DELETE", {name.lower(): value for name, value in self.headers.items()})
                )
                self._send(200, None, {})

            def _send(self, status: int, answer: dict[str, Any] | None, more: dict[str, str]) -> None:
                data = b"" if answer is None else json.dumps({"jsonrpc": "2.0", **answer}).encode()
                self.send_response(status)
                for key, value in {"Content-Type": "application/json", **more}.items():
                    self.send_header(key, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                """Log nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/mcp"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def methods(self) -> list[str]:
        """The methods sent by POST, in order."""
        return [each.method for each in self.received if each.verb == "POST"]

    def forget(self) -> None:
        """Discard all sessions, as after a restart."""
        self.sessions.clear()

    def stream(self) -> None:
        """A stream of the server's own messages is requested; it offers none."""

    def answer(self, body: dict[str, Any], session: str | None) -> tuple[int, dict[str, Any] | None, dict[str, str]]:
        """The status, the message and the headers of an answer."""
        method, ident, params = body["method"], body.get("id"), body.get("params") or {}
        if method == "initialize":
            self.sessions.append(f"session-{len(self.received)}")
            about = {"protocolVersion": REVISION, "capabilities": {"tools": {}}}
            info = {"name": self.name, "version": "1"}
            return 200, {"id": ident, "result": {**about, "serverInfo": info}}, {"Mcp-Session-Id": self.sessions[-1]}
        if session not in self.sessions:
            missing = {"code": -32000, "message": "No session: initialize comes first."}
            return 400 if session is None else 404, {"id": ident, "error": missing}, {}
        if ident is None:
            return 202, None, {}
        if method == "tools/list":
            at = int(params.get("cursor", 0))
            listed = [
                {"name": name, "description": f"The tool {name}.", "inputSchema": {"type": "object"}}
                for name in self.tools[at : at + _PAGE]
            ]
            more = {"nextCursor": str(at + _PAGE)} if at + _PAGE < len(self.tools) else {}
            return 200, {"id": ident, "result": {"tools": listed, **more}}, {}
        if method == "tools/call" and params["name"] == "fails":
            return 200, {"id": ident, "error": {"code": -32000, "message": "Out of stock."}}, {}
        if method == "tools/call":
            content_block = {"type": "text", "text": f"{self.name}: {params['name']}"}
            return 200, {"id": ident, "result": {"content": [content_block]}}, {}
        return 200, {"id": ident, "error": {"code": -32601, "message": f"No method {method}."}}, {}
