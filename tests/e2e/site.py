"""A small web site for the tests: pages of many kinds, and counters of what pages really did."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

PLAIN = """<!doctype html><title>Plain page</title><body style="margin:0">
<h1>Plain heading</h1><p>Some <b>bold</b> words and <a href="/other">a link</a>.</p>
<ul><li>one</li><li>two</li></ul><p style="display:none">hidden words</p>"""
COLOURS = """<!doctype html><title>Colours</title><body style="margin:0;background:#00f">
<div id="red" style="position:absolute;left:100px;top:50px;width:200px;height:150px;background:#f00"></div>
<div style="height:3000px"></div>"""
LONG = "<!doctype html><title>Long</title>" + "".join(
    f"<p>Paragraph {n} of the long page: the quick brown fox jumps over the lazy dog.</p>" for n in range(20_000)
)
STAY = """<!doctype html><title>Stay</title><input id="field">
<script>addEventListener("beforeunload", (event) => { event.preventDefault(); });</script>"""
SOON = """<!doctype html><title>Soon</title><script>setTimeout(() => location.replace("/other"), 50)</script>"""
_CSP = {"Content-Security-Policy": "default-src 'none'; script-src 'none'; connect-src 'none'"}

PAGES: dict[str, tuple[str, dict[str, str]]] = {
    "/": (PLAIN, {}),
    "/other": ("<!doctype html><title>Other page</title><p>other words</p>", {}),
    "/colours": (COLOURS, {}),
    "/strict": ("<!doctype html><title>Strict page</title><h1>strict words</h1>", _CSP),
    "/long": (LONG, {}),
    "/stay": (STAY, {}),
    "/soon": (SOON, {}),
    "/login": (PLAIN, {"Set-Cookie": "member=anna; HttpOnly"}),
    "/logout": (PLAIN, {"Set-Cookie": "member=; Max-Age=0"}),
    "/file": ("bytes", {"Content-Type": "application/octet-stream", "Content-Disposition": "attachment"}),
}
PAGES["/pay"] = ("<!doctype html><title>Pay</title><form action=/paid><input id=to name=to><input id=sum name=sum>", {})
_STATUSES = {"/missing": 404, "/broken": 500}


class Site:
    """The site at 127.0.0.1 and, as another origin, at localhost."""

    cached_paths: tuple[str, ...] = ()
    """Prefixes of paths whose pages may be cached."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._hits: Counter[str] = Counter()
        self.release = threading.Event()
        """Releases `/held`."""
        site = self

        class Handler(_Handler):
            here = site

        self._server = _Server(("127.0.0.1", 0), Handler)
        self.port: int = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.elsewhere = f"http://localhost:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name="site")
        self._thread.start()

    def stop(self) -> None:
        """Stop, and release held requests."""
        self.release.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def page(self, path: str) -> tuple[str | bytes, str] | None:
        """A page of a subclass, and its type."""
        return None

    def hit(self, path: str) -> None:
        with self._changed:
            self._hits[path] += 1
            self._changed.notify_all()

    def count(self, path: str) -> int:
        """How often a path was requested."""
        with self._changed:
            return self._hits[path]

    async def asked(self, path: str, times: int = 1) -> None:
        """Wait until a path was requested this often."""

        def wait() -> bool:
            with self._changed:
                return self._changed.wait_for(lambda: self._hits[path] >= times, timeout=30)

        assert await asyncio.to_thread(wait), f"{path} was asked for {self.count(path)} times, not {times}"


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A page that is closed aborts its requests; that is no error here."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    here: Site

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        self.here.hit(path)
        if path == "/held":
            self.here.release.wait(30)
        own = self.here.page(path)
        if own is not None:
            kept = {"Cache-Control": "max-age=3600"} if path.startswith(self.here.cached_paths) else {}
            self._answer(200, own[0], {"Content-Type": own[1]} | kept)
        elif path == "/moved":
            self._answer(302, "", {"Location": "/other"})
        elif path == "/nothing":
            self._answer(204, "", {})
        elif path == "/me":
            self._answer(200, self.headers.get("Cookie", ""), {"Content-Type": "text/plain"})
        elif path == "/framed":
            frame = f"{self.here.elsewhere}/other"
            self._answer(200, f"<!doctype html><title>Framed</title><p>outer</p><iframe src='{frame}'></iframe>", {})
        elif path == "/news":
            self._answer(
                200, f"<!doctype html><title>News</title><a id=more href='{self.here.elsewhere}/pay'>more</a>", {}
            )
        elif path.startswith("/hit/"):
            self._answer(200, "counted", {"Access-Control-Allow-Origin": "*"})
        else:
            body, headers = PAGES.get(path, (f"<!doctype html><title>{path}</title><p>{path}</p>", {}))
            self._answer(_STATUSES.get(path, 200), body, headers)

    def _answer(self, status: int, body: str | bytes, headers: dict[str, str]) -> None:
        data = body.encode() if isinstance(body, str) else body
        self.send_response(status)
        for name, value in (
            {"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store"} | headers
        ).items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name the base class gives it
        """Log nothing."""
