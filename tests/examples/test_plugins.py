"""The example plugins load unchanged, and their own tests pass."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tabhub.plugins.discovery import load

_EXAMPLES = Path(__file__).resolve().parents[2] / "examples/plugins"


def test_the_npm_package_loads_and_passes_its_own_test() -> None:
    folder = _EXAMPLES / "opentabs-plugin-notes"
    plugin = load(folder, "local")
    assert plugin.problems == ()
    assert plugin.icon_svg is not None
    assert [tool.name for tool in plugin.tools] == ["list_notes", "add_note", "remove_note"]
    node = shutil.which("node")
    assert node is not None
    done = subprocess.run([node, "--test"], cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout


def test_the_python_plugin_loads_with_all_its_tools() -> None:
    plugin = load(_EXAMPLES / "timer", "local")
    assert [problem.partition(":")[0] for problem in plugin.problems] == ["it works on localhost, 127.0.0.1"]
    assert [tool.name for tool in plugin.tools] == ["read_timer", "set_timer", "wait_for_timer"]
    assert [tool.annotations for tool in plugin.tools][1] == {"idempotentHint": True}
