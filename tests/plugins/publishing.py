"""A package exactly as the OpenTabs build creates it and npm publishes it: its manifest and its `dist`."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from tests.plugins.packages import tarball

PACKAGE = "@opentabs-dev/opentabs-plugin-counter"
_HERE = Path(__file__).parent / "published"
_ICON = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"> <path d="M1 1h6v6z" fill="#{}"/> </svg>'
_ICONS = {
    "iconSvg": _ICON.format("E01E5A"),
    "iconInactiveSvg": _ICON.format("666666"),
    "iconDarkSvg": _ICON.format("36C5F0"),
    "iconDarkInactiveSvg": _ICON.format("999999"),
}


def _tool(name: str, icon: str, inputs: dict[str, Any], outputs: dict[str, Any]) -> dict[str, Any]:
    words = {"type": "object", "additionalProperties": False}
    return {
        "name": name,
        "displayName": name.replace("_", " ").title(),
        "description": f"The tool {name} of the counter.",
        "summary": name.replace("_", " "),
        "icon": icon,
        "group": "Counter",
        "input_schema": {**words, "properties": inputs, "required": list(inputs)},
        "output_schema": {**words, "properties": outputs, "required": list(outputs)},
    }


def published(version: str = "0.0.89", *, adapter: str | None = None, pre_script: bool = True) -> dict[str, str]:
    """The files of the package, as in `npm pack`."""
    script = (_HERE / "pre-script.js").read_text()
    digest = hashlib.sha256(script.rpartition("\n//#")[0].encode()).hexdigest()
    number, text = {"type": "integer", "minimum": -9007199254740991, "maximum": 9007199254740991}, {"type": "string"}
    tools = {
        "sdkVersion": "0.0.115",
        **_ICONS,
        **({"preScriptFile": "pre-script.iife.js", "preScriptHash": digest} if pre_script else {}),
        "tools": [
            _tool(
                "read_badge", "key", {}, {"badge": {"anyOf": [text, {"type": "null"}]}, "first": {"type": "boolean"}}
            ),
            _tool("count_up", "plus", {"to": number}, {"counted": number}),
            _tool("sell_out", "x", {}, {}),
        ],
    }
    manifest = {
        "name": PACKAGE,
        "description": "OpenTabs plugin for Counter",
        "publishConfig": {"access": "public"},
        "version": version,
        "type": "module",
        "main": "dist/adapter.iife.js",
        "keywords": ["opentabs-plugin", "opentabs", "mcp"],
        "opentabs": {
            "displayName": "Counter",
            "description": "OpenTabs plugin for Counter",
            "urlPatterns": ["*://127.0.0.1/*"],
            "excludePatterns": ["*://127.0.0.1/back/*"],
            "homepage": "https://counter.example",
            **({"preScript": "src/pre-script.ts"} if pre_script else {}),
            "iconSvg": _ICONS["iconSvg"],
            "iconDarkSvg": _ICONS["iconDarkSvg"],
        },
        "exports": {".": {"types": "./dist/index.d.ts", "import": "./dist/index.js"}},
        "types": "./dist/index.d.ts",
        "files": ["dist"],
        "scripts": {"build": "tsc && opentabs-plugin build", "prepare": "exit 1"},
        "peerDependencies": {"zod": "^4.0.0"},
        "dependencies": {"@opentabs-dev/plugin-sdk": "^0.0.115"},
        "license": "MIT",
    }
    built = adapter if adapter is not None else (_HERE / "adapter.js").read_text()
    return {
        "package.json": json.dumps(manifest, indent=2),
        "README.md": "# Counter\n",
        "dist/index.js": "export default undefined;\n",
        "dist/index.d.ts": "export {};\n",
        "dist/tools.json": json.dumps(tools, indent=2),
        "dist/adapter.iife.js": built,
        "dist/adapter.iife.js.map": '{"version":3,"sources":[],"mappings":""}',
        **({"dist/pre-script.iife.js": script, "dist/pre-script.iife.js.map": "{}"} if pre_script else {}),
    }


def packed(where: Path, version: str = "0.0.89", **more: Any) -> str:
    """The same files as an npm tarball."""
    where.write_bytes(tarball(published(version, **more)))
    return str(where)
