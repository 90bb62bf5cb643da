"""A plugin in a Python package: installed by pip into the hub's environment, discovered, used, and removed with it."""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from tests.harness.agent import client
from tests.harness.fake_extension import FakeExtension, tab
from tests.harness.process import hub_process, tabhub

_PLUGIN = '''
from tabhub.plugins.author import define

plugin = define(
    name="tally",
    display_name="Tally",
    description="Counts.",
    url_patterns=["https://tally.example/*"],
    page="page.js",
    version="2.1.0",
)


@plugin.tool(properties={"by": {"type": "integer"}}, read_only=True)
def count() -> None:
    """Count up."""
'''
_PAGE = "plugin({ tools: { count: ({ by }) => ({ counted: by }) } });\n"


def wheel(folder: Path) -> Path:
    """A wheel with modules, data, and metadata with an entry point."""
    info = "tabhub_plugin_tally-2.1.0.dist-info"
    files = {
        "tally_plugin/__init__.py": _PLUGIN,
        "tally_plugin/page.js": _PAGE,
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: tabhub-plugin-tally\nVersion: 2.1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "[tabhub.plugins]\ntally = tally_plugin:plugin\n",
    }
    lines = [f"{name},sha256={_digest(text)},{len(text.encode())}" for name, text in files.items()]
    files[f"{info}/RECORD"] = "\n".join([*lines, f"{info}/RECORD,,", ""])
    made = folder / "tabhub_plugin_tally-2.1.0-py3-none-any.whl"
    with zipfile.ZipFile(made, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return made


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A separate environment with Tabhub, used by the commands of this test; returns its Python."""
    place = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True, timeout=60)
    python = place / "bin/python"
    (packages,) = place.glob("lib/python*/site-packages")
    ours = sysconfig.get_path("purelib")
    (packages / "tabhub_under_test.pth").write_text(f"import site; site.addsitedir({ours!r})\n")
    monkeypatch.setattr(sys, "executable", str(python))
    return python


def pip(python: Path, *words: str) -> None:
    """Run pip for another environment, without network."""
    command = [
        str(Path(sys.prefix) / "bin/python"),
        "-m",
        "pip",
        "--python",
        str(python),
        "--disable-pip-version-check",
    ]
    done = subprocess.run([*command, *words], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


async def test_a_plugin_comes_and_goes_with_its_pip_package(tmp_path: Path, environment: Path) -> None:
    pip(environment, "install", "--no-index", "--no-deps", str(wheel(tmp_path)))
    home = tmp_path / "home"
    listing = await tabhub(home, "plugin", "list")
    output, errors = await listing.communicate()
    assert b"tally" in output, (output, errors)
    async with hub_process(home) as hub, client(hub) as http:
        (facts,) = (await http.get("/health")).json()["pluginDetails"]
        assert (facts["name"], facts["version"], facts["source"]) == ("tally", "2.1.0", "python")
        async with FakeExtension(hub, tabs=[tab(7, "https://tally.example/")]) as browser:
            (plugin,) = (await browser.next_notification("sync.full"))["params"]["plugins"]
            adapter = (hub.home.extension / plugin["adapterFile"]).read_text()
            assert _PAGE in adapter
            browser.handlers["tool.dispatch"] = lambda params: {"output": {"counted": params["input"]["by"]}}
            answer = (await http.post("/tools/tally_count/call", json={"by": 3})).json()
            assert answer["structuredContent"] == {"counted": 3}
            pip(environment, "uninstall", "--yes", "tabhub-plugin-tally")
            assert (await http.post("/reload")).json()["plugins"] == 0
            assert (await browser.next_request("plugin.uninstall"))["params"] == {"name": "tally"}
