"""Start the fake extension. Owns what it sends when it connects and how it replies; fake_extension.c is its loop.

It is written in C so that it is not the bottleneck: it replies in a few microseconds, a browser in milliseconds.
"""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

from bench.build import program
from bench.processes import ROOT, Child

BROWSER_ID = "bench-browser"
TABS = (7, 8, 9)
"""One tab for each kind of call, so that sessions do not compete for one."""
MARKER = "fake-extension-answer"
_SCRIPT = {"result": {"type": "string", "value": MARKER}}
_NO_FIELDS = {"result": {"type": "object", "value": {"values": [], "go": False, "frames": False}}}
_RESULTS: dict[str, dict[str, Any]] = {
    "tabhubKit ??=": {"result": {"type": "boolean", "value": True}},
    "tabhubKit.begin(": {"result": {"type": "object", "value": ["0123456789abcdef", "e"]}},
    "secretsBeforeScript": {**_SCRIPT, "ahead": [_NO_FIELDS]},
    "Page.getFrameTree": {"frameTree": {"frame": {"id": "F", "url": "https://site.example/"}}},
    "Page.createIsolatedWorld": {"executionContextId": 7},
    "secretsRead": _NO_FIELDS,
    "": _SCRIPT,
}
"""What a page without secret fields answers, by a text of the request."""


def start(port: int, key: str, where: Path) -> Child:
    """Connect one to the server on that port, and wait until it is accepted."""
    opening = where / "opening.ndjson"
    opening.write_text("".join(json.dumps(message, separators=(",", ":")) + "\n" for message in _opening()))
    log = where / f"extension-{port}.log"
    results = [part for text, result in _RESULTS.items() for part in (text, json.dumps(result, separators=(",", ":")))]
    command = [str(program("fake_extension")), str(port), key, BROWSER_ID, _origin(), str(opening), *results]
    child = Child(command, log=log)
    child.wait_until(lambda: "connected" in log.read_text(), "the fake extension")
    return child


def _opening() -> list[dict[str, Any]]:
    hello = {
        "browserId": BROWSER_ID,
        "browserName": "Chromium",
        "browserVersion": "156.0.0.0",
        "extensionVersion": "0.1.0",
        "platform": "linux",
    }
    sync = {"tabs": [_tab(tab, index) for index, tab in enumerate(TABS)], "plugins": {}, "debugger": {"attached": []}}
    return [
        {"jsonrpc": "2.0", "method": "extension.hello", "params": hello},
        {"jsonrpc": "2.0", "method": "tab.syncAll", "params": sync},
    ]


def _tab(tab_id: int, index: int) -> dict[str, Any]:
    return {
        "tabId": tab_id,
        "url": f"https://site{tab_id}.example/",
        "title": f"Site {tab_id}",
        "active": index == 0,
        "windowId": 1,
        "windowFocused": True,
        "index": index,
        "status": "complete",
        "pinned": False,
        "incognito": False,
        "groupId": -1,
        "discarded": False,
        "audible": False,
        "lastAccessed": 1_700_000_000_000 + index,
    }


def _origin() -> str:
    """The origin of our extension, derived from its manifest's key: the only one the hub accepts."""
    manifest = ROOT / "extension" / "manifest.json"
    key = json.loads(manifest.read_text()).get("key") if manifest.exists() else None
    if key is None:
        return ""
    digest = hashlib.sha256(base64.b64decode(key)).hexdigest()[:32]
    return "chrome-extension://" + "".join(chr(ord("a") + int(digit, 16)) for digit in digest)
