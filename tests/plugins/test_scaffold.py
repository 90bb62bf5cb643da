"""A new plugin works, and its own tests pass."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tabhub.errors import PluginError
from tabhub.plugins.scaffold import create


def test_new_npm_plugin_passes_its_own_tests(tmp_path: Path) -> None:
    plugin = create(tmp_path / "my-app", "my-app", "https://my.example.com/*", title='My "App"')
    assert (plugin.name, plugin.display_name, plugin.problems) == ("my-app", 'My "App"', ())
    assert [tool.name for tool in plugin.tools] == ["read_page", "find_text"]
    node = shutil.which("node")
    assert node is not None
    done = subprocess.run(
        [node, "--test"], cwd=tmp_path / "my-app", capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout


def test_new_python_plugin_passes_its_own_tests(tmp_path: Path) -> None:
    plugin = create(tmp_path / "snake", "snake", "https://s.example.com/*", python=True, title='"Sn"')
    assert (plugin.name, plugin.display_name, len(plugin.tools)) == ("snake", '"Sn"', 2)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path / "snake")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout


def test_nonempty_folder_and_invalid_pattern_are_rejected(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there/file").write_text("mine")
    with pytest.raises(PluginError, match="already exists and is not empty"):
        create(tmp_path / "there", "there", "https://my.example.com/*")
    with pytest.raises(PluginError, match="not a match pattern"):
        create(tmp_path / "new", "new", "my.example.com")
    with pytest.raises(PluginError, match="reserved"):
        create(tmp_path / "browser", "browser", "https://my.example.com/*")
    assert not (tmp_path / "new").exists()
