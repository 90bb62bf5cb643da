"""`tabhub plugin`, as a person runs it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tabhub.plugins.settings import MASK
from tests.cli.conftest import Run
from tests.cli.fake_http_hub import FakeHub
from tests.plugins.packages import NpmRegistry, files, folder, tarball

_SCHEMA = {
    "site": {"type": "url", "label": "Site"},
    "limit": {"type": "number", "label": "Limit"},
    "apiToken": {"type": "string", "label": "Token"},
}


@pytest.fixture
def registry(home: Path) -> Iterator[NpmRegistry]:
    with NpmRegistry() as running:
        (home / "config.json").write_text(json.dumps({"pluginRegistry": running.url}))
        yield running


def test_search_install_list_update_and_remove(registry: NpmRegistry, tabhub: Run) -> None:
    registry.publish("demo", "1.0.0", package="@opentabs-dev/opentabs-plugin-demo")
    found = json.loads(tabhub("plugin", "search", "demo", "--json").stdout)
    assert [each["name"] for each in found] == ["demo"]
    done = tabhub("plugin", "install", "demo")
    assert done.returncode == 0, done.stderr
    assert "Installed Demo 1.0.0 with 2 tools." in done.stdout
    assert "becomes active when the hub starts" in done.stdout
    assert "(installed)" in tabhub("plugin", "search", "demo").stdout
    (listed,) = json.loads(tabhub("plugin", "list", "--json").stdout)["plugins"]
    assert (listed["name"], listed["version"], listed["source"]) == ("demo", "1.0.0", "npm")
    assert "up to date" in tabhub("plugin", "update").stdout
    registry.publish("demo", "1.1.0", package="@opentabs-dev/opentabs-plugin-demo")
    assert tabhub("plugin", "update", "--check").stdout == "demo  1.0.0 -> 1.1.0\n"
    assert "demo: 1.0.0 -> 1.1.0" in tabhub("plugin", "update").stdout
    assert "Removed demo" in tabhub("plugin", "remove", "demo").stdout
    assert "No plugins." in tabhub("plugin", "list").stdout


def test_install_reloads_a_running_hub(registry: NpmRegistry, tabhub: Run, hub: FakeHub) -> None:
    registry.publish("demo")
    hub.answer("POST /reload", {"ok": True, "plugins": 1, "durationMs": 1})
    assert "It is active now." in tabhub("plugin", "install", "demo").stdout


def test_a_tarball_needs_no_registry(tmp_path: Path, tabhub: Run) -> None:
    (tmp_path / "demo.tgz").write_bytes(tarball(files()))
    assert tabhub("plugin", "install", str(tmp_path / "demo.tgz")).returncode == 0
    done = tabhub("plugin", "install", "slack", PATH="")
    assert done.returncode == 1
    assert "No npm registry is configured" in done.stderr
    assert "tabhub config set pluginRegistry" in done.stderr


def test_failed_plugin_is_listed_with_the_reason(tmp_path: Path, home: Path, tabhub: Run) -> None:
    bad = folder(tmp_path / "bad", "bad", urlPatterns=["<all_urls>"])
    (home / "config.json").write_text(json.dumps({"localPlugins": [str(bad)]}))
    done = tabhub("plugin", "list")
    assert f"{bad}: bad: urlPatterns" in done.stderr
    assert "every site" in done.stderr
    assert "There is no plugin named 'bda'" in tabhub("plugin", "inspect", "bda").stderr


def test_settings_are_shown_set_and_checked(tmp_path: Path, home: Path, tabhub: Run) -> None:
    made = folder(tmp_path / "p", configSchema=_SCHEMA)
    (home / "config.json").write_text(json.dumps({"localPlugins": [str(made)]}))
    words = ("site.work=https://a.example", "site.home=https://b.example", "limit=5", "apiToken=s3cret")
    done = tabhub("plugin", "configure", "demo", *words)
    assert done.returncode == 0, done.stderr
    assert "work = https://a.example" in done.stdout
    assert "s3cret" not in done.stdout
    stored = json.loads((home / "config.json").read_text())["settings"]["demo"]
    sites = {"work": "https://a.example", "home": "https://b.example"}
    assert stored == {"site": sites, "limit": 5, "apiToken": MASK}, "the secret is in the store"
    assert tabhub("plugin", "configure", "demo", "site.home=", "limit=").returncode == 0
    stored = json.loads((home / "config.json").read_text())["settings"]["demo"]
    assert stored == {"site": {"work": "https://a.example"}, "apiToken": MASK}
    wrong = tabhub("plugin", "configure", "demo", "limit=many", "unknown=1")
    assert wrong.returncode == 1
    assert "limit: it must be a number" in wrong.stderr
    assert "unknown: Demo has no such setting" in wrong.stderr


def test_a_running_hub_checks_and_stores_settings(tmp_path: Path, home: Path, tabhub: Run, hub: FakeHub) -> None:
    made = folder(tmp_path / "p", configSchema=_SCHEMA)
    (home / "config.json").write_text(json.dumps({"localPlugins": [str(made)]}))
    hub.answer("POST /plugin-settings", {"ok": True, "settings": {}})
    assert tabhub("plugin", "configure", "demo", "limit=5").returncode == 0
    assert "settings" not in json.loads((home / "config.json").read_text())


def test_create_inspect_and_local_use(tmp_path: Path, home: Path, tabhub: Run) -> None:
    where = tmp_path / "mine"
    done = tabhub("plugin", "create", "my-app", "--url", "https://my.example.com/*", "--dir", str(where))
    assert done.returncode == 0, done.stderr
    assert "node --test" in done.stdout
    shown = json.loads(tabhub("plugin", "inspect", str(where), "--json").stdout)
    assert [tool["name"] for tool in shown["tools"]] == ["my-app_read_page", "my-app_find_text"]
    (home / "config.json").write_text(json.dumps({"localPlugins": [str(where)]}))
    assert "my-app_find_text" in tabhub("plugin", "inspect", "my-app").stdout
    assert "Its folder remains" in tabhub("plugin", "remove", "my-app").stdout
    assert where.is_dir()
    assert json.loads((home / "config.json").read_text())["localPlugins"] == []


def test_dev_without_a_hub_leaves_no_trace(tmp_path: Path, home: Path, tabhub: Run) -> None:
    done = tabhub("plugin", "dev", str(folder(tmp_path / "p")))
    assert done.returncode == 2
    assert "The hub is not running" in done.stderr
    assert json.loads((home / "config.json").read_text())["localPlugins"] == []


def test_dev_in_a_folder_without_a_plugin_explains_what_to_do(tmp_path: Path, tabhub: Run) -> None:
    done = tabhub("plugin", "dev", str(tmp_path / "none"))
    assert done.returncode == 1
    assert "hint: Name the folder of a plugin." in done.stderr


def test_dev_uses_a_folder_and_reports_each_save(tmp_path: Path, home: Path, env: dict[str, str], hub: FakeHub) -> None:
    hub.answer("POST /reload", {"ok": True, "plugins": 1, "durationMs": 1})
    made = folder(tmp_path / "p")
    command = [sys.executable, "-u", "-m", "tabhub", "plugin", "dev", str(made)]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        try:
            assert "Demo is in use, with 2 tools" in process.stdout.readline()
            assert "Stop with Ctrl+C" in process.stdout.readline()
            assert json.loads((home / "config.json").read_text())["localPlugins"] == [str(made)]
            (tmp_path / "new").write_text(files("demo", "2.0.0")["package.json"])
            (tmp_path / "new").replace(made / "package.json")
            assert "loaded demo 2.0.0: 2 tools" in process.stdout.readline()
            (made / "dist/tools.json").unlink()
            assert "tools.json is missing" in process.stdout.readline()
            process.send_signal(signal.SIGINT)
            assert process.wait(20) == 0
        finally:
            process.kill()
    assert json.loads((home / "config.json").read_text())["localPlugins"] == []
