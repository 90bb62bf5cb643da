"""The web site of the page tools' tests: pages from the folder pages, and the npm packages they use."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.extension.conftest import Site

PAGES = Path(__file__).parent / "pages"
PACKAGES = Path(__file__).parents[2] / "node_modules"
TYPES = {".html": "text/html", ".js": "text/javascript", ".mjs": "text/javascript"}


class PageSite(Site):
    """Files at 127.0.0.1 and, as another origin, at localhost."""

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                path = head.decode().split(" ")[1].split("?")[0]
                kind, _, name = path[1:].partition("/")
                folder = {"pages": PAGES, "npm": PACKAGES}.get(kind)
                file = folder / name if folder else None
                found = file is not None and file.is_file()
                body = file.read_bytes() if file is not None and found else b""
                content = TYPES.get(Path(path).suffix, "text/plain")
                writer.write(
                    f"HTTP/1.1 {'200 OK' if found else '404 Not Found'}\r\nContent-Type: {content}\r\n"
                    f"Content-Length: {len(body)}\r\n\r\n".encode()
                    + body
                )
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self._open.discard(writer)
            writer.close()
