"""The example shop, served to this machine alone on a free port while the tour runs. Knows no hub and no tools."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tabhub.client_errors import CliError

_FIRST_PAGE = "index.html"


def packaged_shop() -> Path:
    """The shop as shipped: inside the installed package, or beside `src` in a checkout."""
    package = Path(__file__).resolve().parents[2]
    for place in (package / "_shop", package.parents[1] / "examples" / "shop"):
        if (place / _FIRST_PAGE).is_file():
            return place
    raise CliError(
        "The example shop is missing from this installation of tabhub.",
        "Install tabhub again; in a checkout, restore its examples folder.",
    )


@contextlib.contextmanager
def serve_shop(folder: Path) -> Iterator[str]:
    """Serve the shop on a free loopback port; yields its URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Files, directory=str(folder)))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Files(SimpleHTTPRequestHandler):
    """Serves files only: no listings, no log, no caching."""

    # Fixed, because with the machine's own table a browser may refuse to run scripts.
    extensions_map = {  # noqa: RUF012 - the base class's attribute
        ".html": "text/html; charset=utf-8",
        ".css": "text/css; charset=utf-8",
        ".js": "text/javascript; charset=utf-8",
        ".svg": "image/svg+xml",
        "": "application/octet-stream",
    }
    timeout = 30

    def end_headers(self) -> None:
        # Another run of the tour may have the same port and other files.
        self.send_header("Cache-Control", "no-store")
        super().end_headers()

    def list_directory(self, path: Any) -> None:
        self.send_error(404)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        pass
