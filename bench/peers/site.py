"""The local pages: small ones, each with its own number, a form that counts its events, and long texts.

Owns what they serve and the record of what was fetched, by which a navigation is verified.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from bench.sites import PAGES

_STYLE = "body{font:15px sans-serif;margin:2em}nav a{margin-right:1em}#stamp{width:100%;height:9px}td{padding:2px 9px}"
_PICTURE = (
    b"<svg xmlns='http://www.w3.org/2000/svg' width='60' height='40'><rect width='60' height='40' fill='teal'/></svg>"
)
FORM = """<!doctype html><title>Form</title><h1>Form</h1><button id=go>Go on</button><p><input aria-label='First field'>
<script>
const seen = {clicks: 0, keys: 0, untrusted: 0};
const field = document.querySelector("input");
const note = (event, what) => { seen[what] += 1; seen.untrusted += !event.isTrusted; };
document.querySelector("button").addEventListener("click", (event) => note(event, "clicks"));
field.addEventListener("keydown", (event) => note(event, "keys"));
</script>"""
"""Counts clicks and keys, and events that did not come from the browser's input."""


def numbered(number: int) -> str:
    """A small page with a style sheet, a picture and a script variable of its own."""
    rows = "".join(f"<tr><td>Line {n}<td><a href='/page/{n}'>Page {n}</a><td>{n * number % 97}</tr>" for n in range(12))
    return (
        f"<!doctype html><title>Page {number}</title><link rel=stylesheet href=/style.css><nav><a href=/>Start</a>"
        f"<a href=/form>Form</a></nav><h1>Page {number}</h1><img alt=Picture src=/picture/{number}.svg>"
        f"<table>{rows}</table><button>Button {number}</button><script>window.pageNumber = {number}</script>"
    )


SHOT = """<!doctype html><title>Picture</title><style>body{font:15px sans-serif;margin:2em}</style>
<h1>Picture</h1>""" + "".join(
    f"<p>Paragraph {n}: a line of text, <a href='/page/{n}'>a link</a>.</p>" for n in range(9)
)
"""What pictures are taken of: some text on a background that the bench changes."""


class Site:
    """The running site."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.fetched: set[str] = set()
        """The paths that were requested."""

    def body(self, path: str) -> tuple[str, bytes]:
        """Content type and content of a path."""
        name, _, number = path.strip("/").partition("/")
        if name == "page":
            return "text/html", numbered(int(number)).encode()
        if name == "picture":
            return "image/svg+xml", _PICTURE
        if name == "style.css":
            return "text/css", _STYLE.encode()
        if name in PAGES:
            return "text/html", PAGES[name]().encode()
        return "text/html", {"form": FORM, "shot": SHOT}.get(name, "<!doctype html><title>Start</title>").encode()


@contextmanager
def serve() -> Iterator[Site]:
    """The site, on a port of its own, until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            kind, body = site.body(self.path)
            head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}; charset=utf-8\r\nCache-Control: no-store\r\n"
            site.fetched.add(self.path)
            self.wfile.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name the base class gives it
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    site = Site(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), name="site")
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
