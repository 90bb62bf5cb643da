"""A tool's result on the terminal: text as text, images and other bytes as files whose path is printed.

Owns how the kinds of MCP content are shown; it knows nothing of where the result came from.
"""

from __future__ import annotations

import json

from tabhub.cli.terminal import safe
from tabhub.client_errors import CliError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_ENDINGS = {
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/webp": ".webp",
    "image/gif": ".gif",
    "image/svg+xml": ".svg",
    "audio/wav": ".wav",
    "audio/mpeg": ".mp3",
    "application/pdf": ".pdf",
}


def show_result(result: dict[str, Any]) -> None:
    content = result.get("content")
    shown = 0
    for block in content if isinstance(content, list) else []:
        if isinstance(block, dict):
            shown += 1
            print(safe(_block(block)))
    if not shown and result.get("structuredContent") is not None:
        print(safe(json.dumps(result["structuredContent"], indent=2, ensure_ascii=False)))


def _block(block: dict[str, Any]) -> str:
    kind = block.get("type")
    if kind == "text":
        return str(block.get("text", ""))
    if kind in ("image", "audio"):
        return _save(block.get("data"), block.get("mimeType"))
    if kind == "resource" and isinstance(resource := block.get("resource"), dict):
        if "blob" in resource:
            return _save(resource["blob"], resource.get("mimeType"))
        return str(resource.get("text", resource.get("uri", "")))
    if kind == "resource_link":
        return str(block.get("uri", ""))
    return json.dumps(block, indent=2, ensure_ascii=False)


def _save(data: object, mime: object) -> str:
    """Write base64 data to a file only this user can read, and return its path."""
    import base64
    import tempfile

    try:
        raw = base64.b64decode(data if isinstance(data, str) else "", validate=True)
    except ValueError:
        raise CliError(
            "The tool's result holds an image that is not valid base64.", "`--json` prints it raw."
        ) from None
    ending = _ENDINGS.get(mime, ".bin") if isinstance(mime, str) else ".bin"
    with tempfile.NamedTemporaryFile(prefix="tabhub-", suffix=ending, delete=False) as file:
        file.write(raw)
    return file.name
