"""A site that agents are kept off, full of marks, and one that they may use, which leads to it and embeds it.

Every mark contains SECRET, the blocked site's host contains HOST. The sites tell each other by the Host header.
"""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

HOST = "xq7bank.localhost"
SECRET = "xq7secret"
COLOUR = (255, 0, 255)
"""The colour of the blocked site's pages."""

_BLOCKED = f"""<!doctype html><title>{SECRET} title</title>
<link rel="stylesheet" href="/{SECRET}.css">
<style>body, h1 {{ background: rgb{COLOUR}; margin: 0; print-color-adjust: exact }}</style>
<h1>{SECRET} body</h1>
<button id="inside" onclick="fetch('/{SECRET}-clicked')">Inside {SECRET}</button>
<input id="field" aria-label="Inside field {SECRET}" value="{SECRET} value">
<select id="choice"><option>{SECRET} option</option></select><input type="file" id="file">
<script>
  localStorage.setItem("{SECRET}-key", "{SECRET}-stored");
  console.log("{SECRET} console");
  fetch("/{SECRET}-api");
  document.modelContext?.registerTool({{
    name: "{SECRET}_tool", description: "{SECRET} tool", execute: async () => "{SECRET} result" }});
  addEventListener("message", ({{ data }}) => {{
    if (data === "self") {{
      location = "data:text/html,<h1>{SECRET} self</h1><script>parent.postMessage('self', '*')</" + "script>";
      return;
    }}
    if (data === "stuck") {{
      const asks = new XMLHttpRequest();
      asks.open("GET", "/{SECRET}-held", false);
      asks.send();
    }}
    if (data !== "blob" && data !== "data") return;
    const made = data === "blob" ? URL.createObjectURL(new Blob(["{SECRET} made"])) : "data:text/plain,{SECRET}";
    Object.assign(document.createElement("a"), {{ download: "{SECRET}.txt", href: made }}).click();
  }});
  if (location.hash === "#alert") setTimeout(() => alert("{SECRET} alert"), 0);
</script>"""
_BIG = f"<!doctype html><title>{SECRET}</title>" + f"<p>{SECRET} filler.</p>" * 4_000
_SHOP = """<!doctype html><title>Shop</title><h1>Shop</h1><a id="leave" href="/leave">Leave</a>
<button id="open" onclick="open('/leave')">Open</button>
<form action="/leave"><input id="outside" aria-label="Outside"><button id="send">Send</button></form>
<button id="script" onclick="location.href = '/leave'">Script</button>"""
_FRAMED = """<!doctype html><title>Framed</title><body style="margin:0;background:#fff"><h1>Framed shop</h1>
<style>iframe { position: absolute; top: 100px; border: 0; }</style>
<iframe id="frame" src="/leave" style="left:100px;width:300px;height:200px"></iframe>
<iframe id="nested" src="/around" style="left:500px;width:200px;height:150px"></iframe><p id="outside">Outside</p>"""
_AROUND = """<!doctype html><title>Around</title><body style="margin:0"><iframe src="/leave"></iframe>"""
_FILES = """<!doctype html><title>Files</title><a id="link" href="/download">Get</a>
<button id="script">Save</button><script>
  const made = Object.assign(document.createElement("a"), { download: "x", href: "/download" });
  document.getElementById("script").onclick = () => made.click();
</script>
<button id="blob" onclick="frames[0].postMessage('blob', '*')">Blob</button>
<button id="data" onclick="frames[0].postMessage('data', '*')">Data</button>
<a id="slow" href="/download?slow">Slow</a><a id="own" href="/own.bin">Own</a><iframe src="/leave"></iframe>"""
_PAGES = {
    "/": _SHOP,
    "/framed": _FRAMED,
    "/around": _AROUND,
    "/files": _FILES,
    "/quiet": "<!doctype html><title>Quiet</title>Quiet",
}


_ATTACHED = {"Content-Type": "application/octet-stream", "Content-Disposition": "attachment"}


class BlockedSite:
    """Both sites, on one port."""

    def __init__(self) -> None:
        site = self

        class Handler(_Handler):
            here = site

        self._server = _Server(("127.0.0.1", 0), Handler)
        self.port: int = self._server.server_address[1]
        self.bank = f"http://{HOST}:{self.port}"
        self.shop = f"http://shop.localhost:{self.port}"
        self.near = f"http://ok.{HOST}:{self.port}"
        """Of the same domain as the blocked site, which is the same site to a browser, but not blocked."""
        self.gone = threading.Event()
        """Ends slow downloads, of which half is sent, and the wait of pages that are stuck."""
        self.seen: list[str] = []
        """The paths that the blocked site was asked for."""
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name="blocked-site")
        self._thread.start()

    def stop(self) -> None:
        self.gone.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A page that goes away cuts its requests; that is no error here."""


class _Handler(BaseHTTPRequestHandler):
    here: BlockedSite

    def do_GET(self) -> None:
        if str(self.headers["Host"]).startswith(HOST):
            self._bank()
        elif self.path.startswith(("/leave", "/download")):
            slow = "-slow" if self.path.endswith("slow") else ""
            to = f"{SECRET}{slow}.bin" if self.path.startswith("/download") else f"{SECRET}-path"
            self._send(302, "", Location=f"{self.here.bank}/{to}")
        elif self.path == "/own.bin":
            self._send(200, "own", **_ATTACHED)
        else:
            self._send(200, _PAGES.get(self.path, ""))

    def _bank(self) -> None:
        self.here.seen.append(self.path)
        if self.path.endswith("-held"):
            self.here.gone.wait()
        if self.path.endswith(".bin"):
            slow = self.path.endswith("-slow.bin")
            length = {"Content-Length": "200000"} if slow else {}
            self._send(200, SECRET * (10_000 if slow else 1), **_ATTACHED, **length)
            if slow:
                self.here.gone.wait()
        elif self.path.endswith((".css", "-api", "-clicked")):
            kind = "text/css" if self.path.endswith(".css") else "text/plain"
            self._send(200, f".{SECRET} {{ color: red }}", **{"Content-Type": kind, "Access-Control-Allow-Origin": "*"})
        else:
            body = _BIG if self.path.endswith("-big") else _BLOCKED
            self._send(200, body, Link=f"</{SECRET}>; rel=x")

    def _send(self, status: int, body: str, **more: Any) -> None:
        data = body.encode()
        self.send_response(status)
        if SECRET in body:
            self.send_header("Set-Cookie", f"{SECRET}cookie={SECRET}value; HttpOnly")
            self.send_header("Set-Cookie", f"{SECRET}shared={SECRET}value; Domain={HOST}")
        for name, value in {"Content-Type": "text/html", "Content-Length": str(len(data)), **more}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name in the base class
        """Requests are not printed."""
