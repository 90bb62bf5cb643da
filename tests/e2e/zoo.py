"""A site of the pages in `pages/`, on two origins: `{elsewhere}` in a page is the URL of the other one."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.site import Site

PAGES = Path(__file__).parent / "pages"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css",
    ".js": "text/javascript",
    ".pdf": "application/pdf",
    ".svg": "image/svg+xml",
}


_MODULES = Path(__file__).parents[2] / "node_modules"
_LIBRARIES = {
    "jquery.js": "jquery/dist/jquery.js",
    "jquery-ui.js": "jquery-ui/dist/jquery-ui.js",
    "sortable.js": "sortablejs/Sortable.js",
}


class Zoo(Site):
    """Serves `/pages/<file>`, and real libraries at `/libraries/<file>`."""

    def page(self, path: str) -> tuple[str | bytes, str] | None:
        """A file of the folder, filled in, or of a library."""
        if library := _LIBRARIES.get(path.removeprefix("/libraries/")):
            return (_MODULES / library).read_text("utf-8"), _TYPES[".js"]
        name = path.removeprefix("/pages/")
        file = PAGES / name
        if not path.startswith("/pages/") or "/" in name or not file.is_file():
            return None
        text = file.read_text("utf-8").replace("{elsewhere}", self.elsewhere).replace("{here}", self.url)
        return text, _TYPES.get(file.suffix, "text/plain")

    def at(self, name: str) -> str:
        """The URL of a page."""
        return f"{self.url}/pages/{name}"
