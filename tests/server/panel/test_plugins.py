"""Plugins in the panel: over a link of the person's own extension, with a test registry."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tabhub.errors import InvalidParams, PluginError
from tabhub.links.extension import ExtensionLink
from tabhub.store.named_secrets import SecretStore
from tabhub.wire.extension_link import READERS
from tests.harness.hub import RunningHub, running_hub
from tests.plugins.packages import NpmRegistry, folder


@pytest.fixture
def registry() -> Iterator[NpmRegistry]:
    with NpmRegistry() as running:
        running.publish("demo", "1.0.0")
        yield running


@pytest.fixture
async def hub(registry: NpmRegistry, tmp_path: Path) -> AsyncIterator[RunningHub]:
    schema = {"name": {"type": "string", "label": "Name"}, "apiToken": {"type": "string", "label": "Token"}}
    local = folder(tmp_path / "local", "local", configSchema=schema)
    async with running_hub(tmp_path, pluginRegistry=registry.url, localPlugins=[str(local)]) as running:
        yield running


async def ask(hub: RunningHub, method: str, **params: Any) -> Any:
    link = ExtensionLink("panel", lambda _: None, lambda *_: None)
    answer = hub.hub.plugin_panel.methods()[method](link, READERS[method](params))
    return await answer if hasattr(answer, "__await__") else answer


def installed(hub: RunningHub) -> dict[str, str]:
    return {active.name: active.plugin.version for active in hub.hub.plugins.all()}


@pytest.mark.req("S002-ws-extension-12", "S002-ws-extension-13", "S002-ws-extension-15")
async def test_search_install_and_remove(hub: RunningHub) -> None:
    (found,) = (await ask(hub, "plugin.search", query="demo"))["results"]
    assert (found["package"], found["version"], found["installed"]) == ("opentabs-plugin-demo", "1.0.0", False)
    made = await ask(hub, "plugin.install", name="opentabs-plugin-demo")
    assert made == {"name": "demo", "package": "opentabs-plugin-demo", "version": "1.0.0"}
    assert installed(hub)["demo"] == "1.0.0"
    assert hub.hub.registry.by_name.get("demo_read") is not None
    assert (await ask(hub, "plugin.search", query="demo"))["results"][0]["installed"] is True
    await ask(hub, "plugin.remove", name="demo")
    assert "demo" not in installed(hub)
    assert hub.hub.registry.by_name.get("demo_read") is None


@pytest.mark.req("S002-ws-extension-14", "S002-ws-extension-16", "S002-ws-extension-17")
async def test_updates_and_removal_by_package(hub: RunningHub, registry: NpmRegistry) -> None:
    await ask(hub, "plugin.install", name="demo", version="1.0.0")
    assert await ask(hub, "plugin.checkUpdates") == {"updates": [], "problems": []}
    registry.publish("demo", "1.2.0")
    (update,) = (await ask(hub, "plugin.checkUpdates"))["updates"]
    assert (update["name"], update["version"], update["newest"]) == ("demo", "1.0.0", "1.2.0")
    assert (await ask(hub, "plugin.updateFromRegistry", name="demo"))["version"] == "1.2.0"
    assert installed(hub)["demo"] == "1.2.0"
    await ask(hub, "plugin.removeBySpecifier", specifier="opentabs-plugin-demo")
    assert "demo" not in installed(hub)


@pytest.mark.req("S002-ws-extension-11")
async def test_settings_are_set_and_secrets_not_shown(hub: RunningHub) -> None:
    answer = await ask(hub, "config.setPluginSettings", plugin="local", settings={"name": "x", "apiToken": "s3cret"})
    assert answer == {"settings": {"name": "x", "apiToken": "••••••••"}}
    (shown,) = hub.hub.plugin_panel.state()
    assert shown["settings"] == answer["settings"]
    assert shown["configSchema"]["apiToken"] == {"type": "string", "label": "Token", "secret": True}
    assert "s3cret" not in json.dumps(hub.hub.plugin_panel.state())
    store = SecretStore(hub.home, None)
    (kept,) = store.listed()
    assert (kept.name, store.value(kept)) == ("plugin/local/apiToken", '"s3cret"')
    written = [path.read_text("utf-8", "replace") for path in hub.home.root.rglob("*") if path.is_file()]
    assert not any("s3cret" in text for text in written)
    await ask(hub, "config.setPluginSettings", plugin="local", settings={"name": "y", "apiToken": "••••••••"})
    assert store.value(kept) == '"s3cret"'
    await ask(hub, "config.setPluginSettings", plugin="local", settings={"apiToken": None})
    assert store.listed() == []
    with pytest.raises(InvalidParams, match="no such setting"):
        await ask(hub, "config.setPluginSettings", plugin="local", settings={"nobody": 1})


async def test_secrets_in_the_config_file_of_an_earlier_version_are_moved(tmp_path: Path) -> None:
    schema = {"apiToken": {"type": "string", "label": "Token"}}
    local = folder(tmp_path / "local", "local", configSchema=schema)
    values = {"local": {"apiToken": "s3cret"}}
    async with running_hub(tmp_path, localPlugins=[str(local)], settings=values) as hub:
        (shown,) = hub.hub.plugin_panel.state()
        assert shown["settings"] == {"apiToken": "••••••••"}
        assert "s3cret" not in hub.home.config.read_text("utf-8")
        store = SecretStore(hub.home, None)
        assert [store.value(each) for each in store.listed()] == ['"s3cret"']


@pytest.mark.req("S002-ws-extension-18")
async def test_only_known_folders_are_opened(hub: RunningHub, tmp_path: Path) -> None:
    opened: list[Path] = []
    panel = replace(hub.hub.plugin_panel, open_folder=opened.append)
    link = ExtensionLink("panel", lambda _: None, lambda *_: None)
    panel.methods()["folder.open"](link, READERS["folder.open"]({"path": str(tmp_path / "local")}))
    assert opened == [tmp_path / "local"]
    for wrong in ("/etc", str(tmp_path / "local/../local"), str(tmp_path / "local/dist"), "", "a\nb", 5):
        with pytest.raises(InvalidParams):
            panel.methods()["folder.open"](link, READERS["folder.open"]({"path": wrong}))
    assert len(opened) == 1


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("plugin.install", {"name": "../../etc"}),
        ("plugin.install", {"name": "/tmp/x.tgz"}),
        ("plugin.install", {"name": "demo\r\nHost: x"}),
        ("plugin.install", {"name": "demo", "version": "1.0.0/../../x"}),
        ("plugin.install", {}),
        ("plugin.remove", {"name": ".."}),
        ("plugin.remove", {"name": "local"}),
        ("plugin.updateFromRegistry", {"name": 7}),
        ("plugin.removeBySpecifier", {"specifier": "opentabs-plugin-../../x"}),
        ("plugin.search", {"query": ["x"]}),
    ],
)
async def test_invalid_plugin_names_are_refused(hub: RunningHub, method: str, params: dict[str, Any]) -> None:
    with pytest.raises((InvalidParams, PluginError)):
        await ask(hub, method, **params)
    assert set(installed(hub)) == {"local"}
