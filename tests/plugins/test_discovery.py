"""Finding plugins of every kind; a broken one affects no other."""

from __future__ import annotations

import textwrap
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from tabhub.config.settings import Config
from tabhub.plugins import discovery
from tabhub.plugins.discovery import Discovery
from tests.plugins.packages import folder, tool

_PYTHON = """
from tabhub.plugins.author import define
plugin = define(
    name="snake", display_name="Snake", description="d", url_patterns=["https://s.example/*"], page="page.js"
)

@plugin.tool(properties={"text": {"type": "string"}}, required=["text"], read_only=True)
def say() -> None:
    '''Says a text.'''
"""


def look(home: Path, **settings: object) -> discovery.Discovered:
    return Discovery(home / "plugins").look(Config.parse(settings))


def test_all_plugin_sources_are_searched(tmp_path: Path) -> None:
    folder(tmp_path / "one", "one")
    folder(tmp_path / "many/two", "two")
    folder(tmp_path / "many/three", "three")
    (tmp_path / "many/no-plugin").mkdir()
    folder(tmp_path / "plugins/four", "four")
    (tmp_path / "plugins/.new-123").mkdir()
    found = look(tmp_path, localPlugins=[str(tmp_path / "one")], localPluginDirs=[str(tmp_path / "many")])
    assert [(p.name, p.source) for p in found.plugins] == [
        ("one", "local"),
        ("three", "local"),
        ("two", "local"),
        ("four", "npm"),
    ]
    assert found.failures == ()
    assert set(found.watched) == {tmp_path / "one", tmp_path / "many/two", tmp_path / "many/three"}


def test_broken_plugin_is_reported_and_others_load(tmp_path: Path) -> None:
    folder(tmp_path / "plugins/good", "good")
    folder(tmp_path / "plugins/bad", "bad", urlPatterns=["nonsense"])
    (tmp_path / "bomb").mkdir()
    (tmp_path / "bomb/plugin.py").write_text("raise SystemExit('no')")
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty/plugin.py").write_text("")
    local = [str(tmp_path / name) for name in ("bomb", "empty", "gone")]
    found = look(tmp_path, localPlugins=local, localPluginDirs=[str(tmp_path / "nowhere")])
    assert [p.name for p in found.plugins] == ["good"]
    reasons = {Path(failure.path).name: failure.error for failure in found.failures}
    assert set(reasons) == {"bomb", "empty", "gone", "bad"}
    assert "SystemExit: no" in reasons["bomb"]
    assert "has no `plugin`" in reasons["empty"]
    assert "not a match pattern" in reasons["bad"]
    assert found.problems == (f"localPluginDirs: there is no folder {tmp_path / 'nowhere'}",)
    assert len(found.pending) == 3


def test_duplicate_name_is_reported_and_the_first_is_used(tmp_path: Path) -> None:
    mine = folder(tmp_path / "mine", "same", "2.0.0")
    folder(tmp_path / "plugins/same", "same", "1.0.0")
    found = look(tmp_path, localPlugins=[str(mine)])
    assert [(p.name, p.version) for p in found.plugins] == [("same", "2.0.0")]
    assert str(mine) in found.failures[0].error


def test_unchanged_plugins_are_not_reloaded(tmp_path: Path) -> None:
    made = folder(tmp_path / "one", "one")
    looking = Discovery(tmp_path / "plugins")
    config = Config.parse({"localPlugins": [str(made)]})
    first = looking.look(config).plugins[0]
    assert looking.look(config).plugins[0] is first
    folder(made, "one", tools=[tool("other_tool")])
    assert [each.name for each in looking.look(config).plugins[0].tools] == ["other_tool"]


def test_a_plugin_in_python_is_a_manifest_and_one_javascript_file(tmp_path: Path) -> None:
    made = tmp_path / "snake"
    made.mkdir()
    (made / "plugin.py").write_text(textwrap.dedent(_PYTHON))
    (made / "page.js").write_text("plugin({ tools: { say: ({ text }) => ({ said: text }) } });")
    looking, config = Discovery(tmp_path / "plugins"), Config.parse({"localPlugins": [str(made)]})
    plugin = looking.look(config).plugins[0]
    assert (plugin.name, plugin.source, plugin.tools[0].description) == ("snake", "local", "Says a text.")
    assert plugin.tools[0].annotations == {"readOnlyHint": True}
    assert plugin.tools[0].input_schema["required"] == ["text"]
    assert "({ said: text })" in plugin.adapter
    (made / "page.js").write_text("plugin({ tools: { say: () => ({ said: 'new' }) } });")
    assert "'new'" in looking.look(config).plugins[0].adapter
    (made / "page.js").unlink()
    assert "page file" in looking.look(config).failures[0].error


def test_python_packages_provide_plugins_by_entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "snake_package.py").write_text(textwrap.dedent(_PYTHON))
    (tmp_path / "page.js").write_text("plugin({ tools: { say: () => 1 } });")
    monkeypatch.syspath_prepend(str(tmp_path))
    points = [
        EntryPoint("snake", "snake_package:plugin", discovery.GROUP),
        EntryPoint("broken", "no_such_module_at_all:plugin", discovery.GROUP),
        EntryPoint("wrong", "snake_package:define", discovery.GROUP),
    ]
    monkeypatch.setattr(discovery, "entry_points", lambda group: points)
    found = look(tmp_path)
    assert [(p.name, p.source) for p in found.plugins] == [("snake", "python")]
    assert len(found.failures) == 2
