"""The extension's manifest: the fixed id, the permissions, what its pages may reach, its icons."""

from __future__ import annotations

import base64
import hashlib
import struct
from typing import Any

import orjson
import pytest

from tests.extension.conftest import EXTENSION, EXTENSION_ID


@pytest.fixture(scope="module")
def manifest() -> dict[str, Any]:
    read: dict[str, Any] = orjson.loads((EXTENSION / "manifest.json").read_bytes())
    return read


@pytest.mark.req("B7")
def test_the_key_gives_the_id_the_hub_expects(manifest: dict[str, Any]) -> None:
    digest = hashlib.sha256(base64.b64decode(manifest["key"])).hexdigest()[:32]
    assert "".join(chr(ord("a") + int(digit, 16)) for digit in digest) == EXTENSION_ID


def test_the_manifest_requests_only_used_permissions(manifest: dict[str, Any]) -> None:
    assert manifest["manifest_version"] == 3
    assert manifest["permissions"] == [
        "tabs", "debugger", "alarms", "storage", "scripting", "tabGroups", "webNavigation",
        "history", "bookmarks", "sessions", "downloads", "cookies", "browsingData", "notifications", "sidePanel",
        "contextMenus",
    ]  # fmt: skip
    assert manifest["host_permissions"] == ["<all_urls>"]
    for way_in in ("externally_connectable", "web_accessible_resources", "content_scripts"):
        assert way_in not in manifest


def test_the_csp_allows_only_the_local_hub_and_relays_over_tls(manifest: dict[str, Any]) -> None:
    policy = manifest["content_security_policy"]["extension_pages"]
    rules = {rule.split()[0]: rule.split()[1:] for rule in policy.split("; ")}
    assert rules["default-src"] == ["'none'"]
    assert rules["script-src"] == ["'self'"]
    # a data: URL contains its data; pictures for notifications are read from there
    here = ["ws://127.0.0.1:*", "ws://localhost:*", "http://127.0.0.1:*", "http://localhost:*"]
    assert rules["connect-src"] == ["'self'", "data:", *here, "wss:"]
    assert not any("unsafe" in value for values in rules.values() for value in values)


@pytest.mark.parametrize("state", ["connected", "disconnected"])
@pytest.mark.parametrize("size", [16, 32, 48, 128])
def test_every_icon_has_its_size_and_its_source(state: str, size: int) -> None:
    image = (EXTENSION / "icons" / f"{state}-{size}.png").read_bytes()
    assert image.startswith(b"\x89PNG")
    assert struct.unpack(">II", image[16:24]) == (size, size)
    assert (EXTENSION / "icons" / f"{state}.svg").exists()


def test_no_settings_are_shipped() -> None:
    assert not (EXTENSION / "auth.json").exists()
