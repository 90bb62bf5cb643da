"""Adapters as files: their stamp and settings, and that the folder contains exactly those in use."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

from tabhub.links.launch.extension_files import extension_stamp, install_extension
from tabhub.plugins import adapters
from tabhub.plugins.manifest import read_package
from tabhub.plugins.model import Plugin
from tabhub.plugins.settings import resolve
from tests.plugins.packages import folder

_BUILT = (
    "(()=>{globalThis.__openTabs={adapters:{demo:{name:'demo',tools:[{name:'read'}]}}};})();"
    "(function(){var a=globalThis.__openTabs.adapters.demo;"
    'a.__adapterHash="%s";Object.freeze(a);})();\n//# sourceMappingURL=adapter.iife.js.map\n' % ("ab" * 32)
)
"""The end of a published plugin's build."""


def run(text: str, expression: str, host: str = "a.example") -> Any:
    """The value of an expression in a page with the adapter."""
    node = shutil.which("node")
    assert node is not None
    script = (
        f"globalThis.location={{host:{json.dumps(host)}}};\n{text}\nprocess.stdout.write(JSON.stringify({expression}))"
    )
    done = subprocess.run([node, "-e", script], capture_output=True, text=True, timeout=30, check=True)
    return json.loads(done.stdout)


def plugin(where: Path, **more: Any) -> Plugin:
    return read_package(folder(where, **more))


def test_an_adapter_is_stamped_and_frozen(tmp_path: Path) -> None:
    made = adapters.compose(plugin(tmp_path), resolve(plugin(tmp_path), {}))
    facts = "[__openTabs.adapters.demo.__adapterHash, Object.isFrozen(__openTabs.adapters.demo)]"
    assert run(made.text, facts) == [made.hash, True]
    assert made.file == f"adapters/demo-{made.hash[:12]}.js"


def test_the_stamp_of_a_built_adapter_is_the_hash_of_its_text(tmp_path: Path) -> None:
    built = plugin(tmp_path, adapter=_BUILT)
    made = adapters.compose(built, resolve(built, {}))
    assert run(made.text, "__openTabs.adapters.demo.__adapterHash") == made.hash
    assert "sourceMappingURL" not in made.text
    touched = plugin(tmp_path, adapter=_BUILT.replace("'read'", "'other'"))
    assert adapters.compose(touched, resolve(touched, {})).hash != made.hash


def test_a_page_finds_the_settings_of_its_own_instance(tmp_path: Path) -> None:
    schema = {"site": {"type": "url", "label": "Site"}, "name": {"type": "string", "label": "Name"}}
    own = plugin(tmp_path, configSchema=schema, adapter="globalThis.__openTabs.adapters={demo:{tools:[]}};")
    sites = {"work": "https://a.example/x", "home": "https://b.example"}
    made = adapters.compose(own, resolve(own, {"site": sites, "name": "</script>"}))
    config = "__openTabs.pluginConfig"
    assert run(made.text, config, "a.example") == {"name": "</script>", "site": "https://a.example/x"}
    assert run(made.text, config, "b.example") == {"name": "</script>", "site": "https://b.example"}
    assert adapters.compose(own, resolve(own, {"site": sites, "name": "x"})).hash != made.hash


def test_plugins_have_settings_of_their_own_and_no_secrets(tmp_path: Path) -> None:
    text = ""
    for name, value in (("one", "a"), ("two", "b")):
        schema = {
            "name": {"type": "string", "label": "Name"},
            "apiToken": {"type": "string", "label": "Token"},
            "level": {"type": "number", "label": "Level", "secret": True},
        }
        own = plugin(tmp_path / name, configSchema=schema, adapter=";")
        made = adapters.compose(replace(own, name=name), resolve(own, {"name": value, "apiToken": "sk-1", "level": 77}))
        assert "sk-1" not in made.text
        assert "77" not in made.text.partition("__adapterHash")[0]
        text += made.text
    assert run(text, "__openTabs.pluginConfigs") == {"one": {"name": "a"}, "two": {"name": "b"}}
    assert run(text, "__openTabs.pluginConfig") == {"name": "b"}


def test_the_folder_contains_exactly_the_adapters_in_use(tmp_path: Path) -> None:
    extension = install_extension(tmp_path / "extension", key="s" * 64, port=1)
    stamp = extension_stamp(extension)
    one = plugin(tmp_path / "p", adapter="1;")
    old = adapters.compose(one, resolve(one, {}))
    adapters.write([extension, tmp_path / "not there"], [old])
    assert (extension / old.file).read_text() == old.text
    assert (extension / old.file).stat().st_mode & 0o777 == 0o600
    two = plugin(tmp_path / "p", adapter="2;")
    new = adapters.compose(two, resolve(two, {}))
    adapters.write([extension], [new])
    assert [path.name for path in (extension / "adapters").iterdir()] == [Path(new.file).name]
    assert extension_stamp(extension) == stamp  # a browser need not reload the extension
    install_extension(extension, key="t" * 64, port=1)
    assert (extension / new.file).exists()


def test_pre_script_is_a_separate_file_removed_with_the_plugin(tmp_path: Path) -> None:
    extension = install_extension(tmp_path / "extension", key="s" * 64, port=1)
    made = plugin(tmp_path / "p", extra={"preScriptFile": "pre-script.iife.js"}, pre_script="before();")
    adapter = adapters.compose(made, resolve(made, {}))
    assert adapter.pre_file is not None
    assert adapter.pre_file.startswith("adapters/demo-prescript-")
    adapters.write([extension], [adapter])
    assert (extension / adapter.pre_file).read_text() == "before();"
    without = adapters.compose(plugin(tmp_path / "p2"), resolve(made, {}))
    assert (without.pre_file, without.hash) == (None, adapter.hash)
    adapters.write([extension], [without])
    assert [path.name for path in (extension / "adapters").iterdir()] == [Path(without.file).name]
