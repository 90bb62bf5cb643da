"""Adapters as files of the extension: their text, their names, and removal of old ones.

Owns the text around a plugin's script: settings before it, the hash after it. The hash covers both, so a change of
either makes a new adapter. Browsers inject these files; the hub does not run them.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tabhub.errors import SetupError
from tabhub.platform.files import write_atomic
from tabhub.plugins.model import Plugin
from tabhub.plugins.settings import Setup

FOLDER = "adapters"
_OWN_STAMP = re.compile(r'\.__adapterHash="[0-9a-f]{64}"')
_SOURCE_MAP = re.compile(r"\n?//# sourceMappingURL=[^\n]*\n?\s*\Z")
_OURS = re.compile(r"[a-z0-9-]+-[0-9a-f]{12}\.js")
_PLACEHOLDER = f'.__adapterHash="{"0" * 64}"'
_SETTINGS = (
    "(function(n,v,u){var o=globalThis.__openTabs||(globalThis.__openTabs={});var c=Object.assign({},v);"
    "for(var k in u){var a=Object.values(u[k]);"
    "c[k]=a.find(function(x){return new URL(x).host===location.host;})||a[0];}"
    "o.pluginConfigs=Object.assign({},o.pluginConfigs);o.pluginConfigs[n]=Object.freeze(c);o.pluginConfig=c;"
    "})(%s,%s,%s);"
)
"""`pluginConfig` is what the scripts of plugins read: the settings of the plugin whose script or tool begins to run."""
_STAMP = (
    "\n(function(){var o=globalThis.__openTabs,a=o&&o.adapters&&o.adapters[%s];if(!a)return;"
    'a.__adapterHash="%s";if(Array.isArray(a.tools)){a.tools.forEach(Object.freeze);Object.freeze(a.tools);}'
    "Object.freeze(a);Object.defineProperty(o.adapters,%s,"
    "{value:a,writable:false,configurable:false,enumerable:true});})();\n"
)


@dataclass(frozen=True, slots=True)
class Adapter:
    """A plugin's script as it is injected."""

    plugin: str
    hash: str
    text: str
    pre_script: str | None = None
    """Runs before the page's own scripts."""

    @property
    def file(self) -> str:
        """Path within the extension's folder."""
        return f"{FOLDER}/{self.plugin}-{self.hash[:12]}.js"

    @property
    def pre_file(self) -> str | None:
        if self.pre_script is None:
            return None
        digest = hashlib.sha256(self.pre_script.encode("utf-8", "replace")).hexdigest()
        return f"{FOLDER}/{self.plugin}-prescript-{digest[:12]}.js"

    def files(self) -> dict[str, str]:
        pre_script = {self.pre_file: self.pre_script} if self.pre_file and self.pre_script is not None else {}
        return {self.file: self.text, **pre_script}


def compose(plugin: Plugin, setup: Setup) -> Adapter:
    body = _OWN_STAMP.sub(_PLACEHOLDER, _SOURCE_MAP.sub("", plugin.adapter))
    urls = {f.key: setup.values[f.key] for f in plugin.fields if f.kind == "url" and f.key in setup.values}
    plain = {key: value for key, value in setup.values.items() if key not in urls}
    before = _SETTINGS % (json.dumps(plugin.name), json.dumps(plain), json.dumps(urls)) if plain or urls else ""
    digest = hashlib.sha256(f"{plugin.name}\0{before}\0{body}".encode("utf-8", "replace")).hexdigest()
    if _PLACEHOLDER in body:
        text = before + body.replace(_PLACEHOLDER, f'.__adapterHash="{digest}"') + "\n"
    else:
        name = json.dumps(plugin.name)
        text = before + body + _STAMP % (name, digest, name)
    before_page = _SOURCE_MAP.sub("", plugin.pre_script) if plugin.pre_script is not None else None
    return Adapter(plugin.name, digest, text, before_page)


def write(extension_folders: Iterable[Path], adapters: Iterable[Adapter]) -> None:
    """Replace the adapters in every extension folder; each file is written atomically."""
    wanted = {Path(file).name: text for adapter in adapters for file, text in adapter.files().items()}
    for extension in extension_folders:
        if not (extension / "manifest.json").is_file():
            continue
        folder = extension / FOLDER
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            there = {path.name for path in folder.iterdir()}
            for name in wanted.keys() - there:  # a name contains the hash of its text
                write_atomic(folder / name, wanted[name])
            for name in there - wanted.keys():
                if _OURS.fullmatch(name):
                    (folder / name).unlink(missing_ok=True)
        except OSError as error:
            raise SetupError(
                f"Plugin scripts could not be written to {folder}: {error.strerror or error}.",
                hint="Make the folder writable and see that the disk has room; then: tabhub plugin list",
            ) from error
