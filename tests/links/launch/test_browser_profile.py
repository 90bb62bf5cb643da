"""The managed browser's profile: its lock, its settings and remains of dead hubs."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tabhub.errors import SetupError
from tabhub.links.launch.browser_profile import free_profile, prepare_profile, profile_lock, remember_loaded
from tabhub.trust.guard import EXTENSION_ID


def test_other_settings_in_the_profile_are_kept(tmp_path: Path) -> None:
    settings = tmp_path / "managed" / "profile" / "Default" / "Preferences"
    settings.parent.mkdir(parents=True)
    settings.write_text('{"browser": {"show_home_button": true}, "extensions": {"ui": {"other": 1}}}')
    prepare_profile(tmp_path / "managed" / "profile", "any")
    kept = json.loads(settings.read_text())
    assert kept == {
        "browser": {"show_home_button": True},
        "extensions": {"ui": {"other": 1, "developer_mode": True}, "pinned_extensions": [EXTENSION_ID]},
    }


def test_downloads_go_to_the_given_folder_whatever_was_set_before(tmp_path: Path) -> None:
    settings = tmp_path / "profile" / "Default" / "Preferences"
    settings.parent.mkdir(parents=True)
    settings.write_text('{"download": {"default_directory": "/elsewhere", "extensions_to_open": "pdf"}}')
    for _ in range(2):
        prepare_profile(tmp_path / "profile", "any", tmp_path / "files" / "downloads")
    kept = json.loads(settings.read_text())
    folder = str(tmp_path / "files" / "downloads")
    assert (kept["download"]["default_directory"], kept["savefile"]) == (folder, {"default_directory": folder})
    assert kept["download"]["extensions_to_open"] == "pdf"
    assert (tmp_path / "files" / "downloads").is_dir()


def test_the_button_is_pinned_once_and_may_be_removed(tmp_path: Path) -> None:
    settings = tmp_path / "profile" / "Default" / "Preferences"
    prepare_profile(tmp_path / "profile", "any")
    chosen = json.loads(settings.read_text())
    assert chosen["extensions"].pop("pinned_extensions") == [EXTENSION_ID]
    settings.write_text(json.dumps(chosen))
    prepare_profile(tmp_path / "profile", "any")
    assert "pinned_extensions" not in json.loads(settings.read_text())["extensions"]


async def test_a_process_that_is_not_the_browser_of_the_profile_is_not_ended(tmp_path: Path) -> None:
    (tmp_path / "SingletonLock").symlink_to(f"{os.uname().nodename}-{os.getpid()}")
    await free_profile(tmp_path, grace=1)
    assert not (tmp_path / "SingletonLock").is_symlink()


def test_the_worker_cache_is_removed_only_when_the_extension_changed(tmp_path: Path) -> None:
    profile = tmp_path / "profile"
    workers = profile / "Default" / "Service Worker"
    for name in ("Database", "ScriptCache", "CacheStorage"):
        (workers / name).mkdir(parents=True)
    remember_loaded(profile, "1+a")
    prepare_profile(profile, "1+a")
    assert {path.name for path in workers.iterdir()} == {"Database", "ScriptCache", "CacheStorage"}
    prepare_profile(profile, "1+b")
    assert {path.name for path in workers.iterdir()} == {"CacheStorage"}


def test_only_one_hub_at_a_time_holds_a_profile(tmp_path: Path) -> None:
    profile = tmp_path / "profile"
    with profile_lock(profile), pytest.raises(SetupError, match="Another hub"), profile_lock(profile):
        pass
    with profile_lock(profile):
        pass


@pytest.mark.req("F11")
def test_the_error_names_a_profile_that_cannot_be_created(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(SetupError, match="file/profile") as caught, profile_lock(tmp_path / "file" / "profile"):
        pass
    assert "TABHUB_HOME" in caught.value.text()
