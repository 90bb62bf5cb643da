"""The pages that snapshots are taken of: documentation as real sites have it, and generated pages like those of apps.

Owns where they are and serving them. The documents are unpacked by `scripts/setup bench`.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from bench.context.apps import APPS
from bench.processes import ROOT

FOLDER = ROOT / "bench" / "build" / "documents" / "usr" / "share" / "doc"
PYTHON, POSTGRES = "python3.11/html", "postgresql-doc-15/html"
DOCUMENTS = {
    "Python functions": f"{PYTHON}/library/functions.html",
    "Python asyncio-task": f"{PYTHON}/library/asyncio-task.html",
    "Python index": f"{PYTHON}/index.html",
    "Python search": f"{PYTHON}/search.html",
    "PostgreSQL select": f"{POSTGRES}/sql-select.html",
    "Python stdtypes": f"{PYTHON}/library/stdtypes.html",
    "Python os": f"{PYTHON}/library/os.html",
    "PostgreSQL bookindex": f"{POSTGRES}/bookindex.html",
    "PostgreSQL psql": f"{POSTGRES}/app-psql.html",
    "Node.js fs": "nodejs/api/fs.html",
    "Node.js crypto": "nodejs/api/crypto.html",
    "Django querysets": "python-django-doc/html/ref/models/querysets.html",
    "Django admin": "python-django-doc/html/ref/contrib/admin/index.html",
    "git config": "git-doc/git-config.html",
    "Sphinx configuration": "sphinx-doc/html/usage/configuration.html",
}


@contextmanager
def served() -> Iterator[dict[str, str]]:
    """The URLs of the pages by name; without the documents only those of the generated ones."""

    class Handler(SimpleHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            name = self.path.rpartition("/app/")[2]
            if self.path.startswith("/app/") and name in APPS:
                body = APPS[name]().encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            else:
                super().do_GET()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name the base class gives it
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(FOLDER)))
    server.daemon_threads = True
    origin = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), name="documents")
    thread.start()
    try:
        found = {name: f"{origin}/{path}" for name, path in DOCUMENTS.items() if (FOLDER / path).exists()}
        yield found | {name: f"{origin}/app/{name}" for name in APPS}
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
