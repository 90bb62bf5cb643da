"""A site of real editors and widgets from npm: `/apps/<name>` is a page with the bundle of `apps/<name>.js`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.e2e.site import Site

ROOT = Path(__file__).parents[2]
ESBUILD = ROOT / "node_modules" / ".bin" / "esbuild"
APPS = Path(__file__).parent / "apps"
_TYPES = {".js": "text/javascript", ".css": "text/css"}
_PAGE = """<!doctype html><meta charset=utf-8><title>{name}</title>
<link rel=stylesheet href={name}.css><style>#editor {{ width: 700px; height: 300px; border: 1px solid }}</style>
<div id=editor></div><script src={name}.js></script>"""


class AppSite(Site):
    """Serves the bundles, which are made once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        sources = sorted(str(path) for path in APPS.iterdir())
        options = ["--bundle", "--define:global=globalThis", '--define:process.env.NODE_ENV="production"']
        subprocess.run(
            [
                ROOT / "node_modules" / ".bin" / "esbuild",
                *sources,
                *options,
                "--loader:.ttf=dataurl",
                f"--outdir={folder}",
            ],
            env={**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"},
            check=True,
            capture_output=True,
        )
        super().__init__()

    def page(self, path: str) -> tuple[str | bytes, str] | None:
        folder, _, name = path.removeprefix("/").partition("/")
        if folder != "apps" or "/" in name:
            return None
        if (file := self._folder / name).is_file():
            return file.read_bytes(), _TYPES[file.suffix]
        if (self._folder / f"{name}.js").is_file():
            return _PAGE.format(name=name), "text/html; charset=utf-8"
        return None

    def at(self, name: str) -> str:
        """The URL of a page."""
        return f"{self.url}/apps/{name}"
