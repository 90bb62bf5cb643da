"""A web site with all kinds of traffic: JSON, redirects, failures, posts, binaries, streams and WebSockets, on two
origins."""

from __future__ import annotations

import gzip
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from websockets.sync.server import ServerConnection, serve

PAGES = Path(__file__).parent / "pages"
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63f8cfc0000003010100c9fe92ef"
    "0000000049454e44ae426082"
)


class NetSite:
    """The site at 127.0.0.1 and, as another origin, at localhost; its WebSocket echoes."""

    def __init__(self) -> None:
        site = self

        class Handler(_Handler):
            here = site

        self._server = _Server(("127.0.0.1", 0), Handler)
        self._sockets = serve(_echo, "127.0.0.1", 0)
        self.port: int = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.elsewhere = f"http://localhost:{self.port}"
        self.socket = f"ws://127.0.0.1:{self._sockets.socket.getsockname()[1]}/live"
        self.seen: list[tuple[str, str]] = []
        """Method and path of the requests that arrived."""
        self.release = threading.Event()
        """Releases pages that were requested with `?held`."""
        self._threads = [
            threading.Thread(target=self._server.serve_forever, args=(0.05,), name="netsite"),
            threading.Thread(target=self._sockets.serve_forever, name="netsite-ws"),
        ]
        for thread in self._threads:
            thread.start()

    def count(self, path: str) -> int:
        """How often a path was requested."""
        return sum(1 for _, asked in self.seen if asked == path)

    def stop(self) -> None:
        """Stop, and release held requests."""
        self.release.set()
        self._server.shutdown()
        self._sockets.shutdown()
        for thread in self._threads:
            thread.join()
        self._server.server_close()


def _echo(socket: ServerConnection) -> None:
    for message in socket:
        socket.send(message if isinstance(message, bytes) else f"echo {message}")


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A page that is closed aborts its requests; that is no error here."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    here: NetSite

    def do_GET(self) -> None:
        split = urlsplit(self.path)
        path, query = split.path, parse_qs(split.query)
        self.here.seen.append((self.command, path))
        if split.query:
            self.here.seen.append((self.command, self.path))
        if split.query == "held":
            self.here.release.wait(60)
        if path == "/api/missing":
            self._answer(404, '{"error":"no such thing"}', "application/json")
        elif path == "/api/moved":
            self._answer(302, "", "text/plain", Location="/api/items")
        elif path == "/api/items":
            self._answer(200, '{"items":[{"id":1,"name":"apple"},{"id":2,"name":"pear"}]}', "application/json")
        elif path == "/api/login":
            self._answer(
                200,
                '{"token": "abcdef123456", "user": "anna"}',
                "application/json",
                **{"Set-Cookie": "sid=s3cr3t-value"},
            )
        elif path == "/api/tagged":
            tag, known = '"v1"', self.headers.get("If-None-Match")
            same = known == tag
            headers = {"ETag": tag, "Cache-Control": "no-cache"}
            self._answer(304 if same else 200, "" if same else "tagged", "text/plain", **headers)
        elif path == "/api/packed":
            self._answer(200, gzip.compress(b"packed " * 1000), "text/plain", **{"Content-Encoding": "gzip"})
        elif path == "/api/big":
            self._answer(200, "x" * 3_000_000, "text/plain")
        elif path in (
            "/picture.png",
            "/favicon.ico",
        ):  # a missing icon would be logged in the console at an unpredictable time
            self._answer(200, PNG, "image/png")
        elif path == "/data.bin":
            self._answer(200, bytes(range(256)), "application/octet-stream")
        elif path == "/script.js":
            self._answer(200, "window.loaded = 'script';\nconsole.info('script ran');\n", "text/javascript")
        elif path == "/worker.js":
            self._answer(200, "console.log('from the worker'); fetch('/api/items?by=worker');", "text/javascript")
        elif path == "/style.css":
            self._answer(200, "body { color: rgb(1, 2, 3); }", "text/css")
        elif path == "/stream":
            self._stream()
        elif path == "/slow":
            time.sleep(float(query.get("s", ["0.3"])[0]))
            self._answer(200, "slow", "text/plain")
        else:
            self._page(path)

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length", "0"))
        body = self.rfile.read(length)
        self.here.seen.append((self.command, self.path))
        self._answer(201, f'{{"got":{len(body)}}}', "application/json")

    def _page(self, path: str) -> None:
        file = PAGES / f"{path.strip('/') or 'net_index'}.html"
        if not file.is_file():
            self._answer(404, f"<!doctype html><title>missing</title>{path}", "text/html")
            return
        values = {"SITE": self.here.url, "ELSEWHERE": self.here.elsewhere, "SOCKET": self.here.socket}
        text = file.read_text()
        for word, value in values.items():
            text = text.replace(f"@{word}@", value)
        self._answer(200, text, "text/html; charset=utf-8")

    def _stream(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for number in range(5):
            chunk = f"part {number}\n".encode()
            self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    def _answer(self, status: int, body: str | bytes, kind: str, **headers: str) -> None:
        data = body.encode() if isinstance(body, str) else body
        self.send_response(status)
        every = {"Content-Type": kind, "Cache-Control": "no-store", "Access-Control-Allow-Origin": "*", **headers}
        for name, value in every.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name the base class gives it
        """Log nothing."""
