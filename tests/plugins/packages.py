"""Plugins for tests: folders, tarballs, and a registry that serves them over real HTTP."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import tarfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlsplit

ADAPTER = "globalThis.__openTabs = {adapters: {NAME: {name: 'NAME', tools: []}}};"


def tool(name: str, **more: Any) -> dict[str, Any]:
    """A tool as in dist/tools.json."""
    return {
        "name": name,
        "displayName": name.replace("_", " ").title(),
        "description": f"Does {name}.",
        "icon": "star",
        "input_schema": {"type": "object", "properties": {"text": {"type": "string"}}, "additionalProperties": False},
        "output_schema": {"type": "object"},
        **more,
    }


def files(name: str = "demo", version: str = "1.0.0", **more: Any) -> dict[str, str]:
    """The files of a package; `more` goes into its `opentabs` part, except `tools` and `package`."""
    tools = more.pop("tools", [tool("read"), tool("act")])
    package = more.pop("package", f"opentabs-plugin-{name}")
    extra = more.pop("extra", {})
    adapter = more.pop("adapter", ADAPTER.replace("NAME", name))
    pre_script = more.pop("pre_script", None)
    own = {
        "displayName": name.title(),
        "description": f"The {name} site",
        "urlPatterns": [f"https://{name}.example/*"],
        **more,
    }
    manifest = {
        "name": package,
        "version": version,
        "main": "dist/adapter.iife.js",
        "scripts": {"preinstall": "touch ran", "install": "touch ran", "postinstall": "touch ran"},
        "opentabs": own,
    }
    return {
        "package.json": json.dumps(manifest),
        "dist/tools.json": json.dumps({"sdkVersion": "0.0.115", "tools": tools, **extra}),
        "dist/adapter.iife.js": adapter,
        **({"dist/pre-script.iife.js": pre_script} if pre_script is not None else {}),
    }


def folder(where: Path, name: str = "demo", version: str = "1.0.0", **more: Any) -> Path:
    """The same files in a folder, created or overwritten."""
    for path, text in files(name, version, **more).items():
        (where / path).parent.mkdir(parents=True, exist_ok=True)
        (where / path).write_text(text)
    return where


def tarball(content: dict[str, str], *odd: tarfile.TarInfo) -> bytes:
    """A .tgz as npm makes it."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as tar:
        for path, text in content.items():
            info = tarfile.TarInfo(f"package/{path}")
            info.size = len(text.encode())
            tar.addfile(info, io.BytesIO(text.encode()))
        for info in odd:
            tar.addfile(info, io.BytesIO(b"x" * info.size))
    return made.getvalue()


class NpmRegistry:
    """A registry on a local port."""

    def __init__(self) -> None:
        self.packages: dict[str, dict[str, bytes]] = {}
        self.spoilt: set[str] = set()
        """Tarballs that differ from the published ones."""
        self.asked: list[tuple[str, str | None]] = []
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                registry.asked.append((self.path, self.headers.get("Authorization")))
                status, body = registry.answer(self.path)
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Log nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def publish(self, name: str = "demo", version: str = "1.0.0", **more: Any) -> None:
        """Add a version of a plugin."""
        content = files(name, version, **more)
        package: str = json.loads(content["package.json"])["name"]
        self.packages.setdefault(package, {})[version] = tarball(content)

    def answer(self, path: str) -> tuple[int, bytes]:
        parts = urlsplit(path)
        if parts.path == "/-/v1/search":
            words = parse_qs(parts.query)["text"][0].split()[1:]
            found = [
                {"package": {"name": name, "version": list(versions)[-1], "description": f"About {name}"}}
                for name, versions in self.packages.items()
                if all(word in name for word in words)
            ]
            found.append({"package": {"name": "left-pad", "version": "1.0.0"}})
            return 200, json.dumps({"objects": found}).encode()
        if parts.path.startswith("/-/tarball/"):
            package, _, version = unquote(parts.path.removeprefix("/-/tarball/")).rpartition("/")
            data = self.packages[package][version]
            return 200, data[:-1] + b"!" if package in self.spoilt else data
        versions = self.packages.get(unquote(parts.path[1:]))
        if versions is None:
            return 404, b"{}"
        return 200, json.dumps(self._packument(unquote(parts.path[1:]), versions)).encode()

    def _packument(self, package: str, versions: dict[str, bytes]) -> dict[str, Any]:
        return {
            "name": package,
            "dist-tags": {"latest": list(versions)[-1]},
            "versions": {
                version: {
                    "dist": {
                        "tarball": f"{self.url}/-/tarball/{package}/{version}",
                        "integrity": f"sha512-{base64.b64encode(hashlib.sha512(data).digest()).decode()}",
                    }
                }
                for version, data in versions.items()
            },
        }
