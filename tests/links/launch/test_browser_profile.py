from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tabhub.errors import SetupError
from tabhub.links.launch.browser_profile import ProfileLock, free_profile, prepare_profile, remember_loaded
from tabhub.trust.guard import EXTENSION_ID


def test_the_persons_settings_in_the_profile_are_kept(tmp_path: Path) -> None:
    settings = tmp_path / "managed" / "profile" / "Default" / "Preferences"
    settings.parent.mkdir(parents=True)
    settings.write_text('{"browser": {"show_home_button": true}, "extensions": {"ui": {"other": 1}}}')
    prepare_profile(tmp_path / "managed" / "profile", "any")
    kept = json.loads(settings.read_text())
    assert kept == {
        "browser": {"show_home_button": True},
        "extensions": {"ui": {"other": 1, "developer_mode": True}, "pinned_extensions": [EXTENSION_ID]},
    }


def test_the_button_is_put_on_the_toolbar_once_and_may_be_taken_away_again(tmp_path: Path) -> None:
    settings = tmp_path / "profile" / "Default" / "Preferences"
    prepare_profile(tmp_path / "profile", "any")
    chosen = json.loads(settings.read_text())
    assert chosen["extensions"].pop("pinned_extensions") == [EXTENSION_ID]
    settings.write_text(json.dumps(chosen))
    prepare_profile(tmp_path / "profile", "any")
    assert "pinned_extensions" not in json.loads(settings.read_text())["extensions"]


async def test_a_process_that_is_not_the_profiles_browser_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "SingletonLock").symlink_to(f"{os.uname().nodename}-{os.getpid()}")
    await free_profile(tmp_path, grace=1)
    assert not (tmp_path / "SingletonLock").is_symlink()


def test_workers_are_forgotten_only_when_the_extension_changed(tmp_path: Path) -> None:
    profile = tmp_path / "profile"
    workers = profile / "Default" / "Service Worker"
    for name in ("Database", "ScriptCache", "CacheStorage"):
        (workers / name).mkdir(parents=True)
    remember_loaded(profile, "1+a")
    prepare_profile(profile, "1+a")
    assert {path.name for path in workers.iterdir()} == {"Database", "ScriptCache", "CacheStorage"}
    prepare_profile(profile, "1+b")
    assert {path.name for path in workers.iterdir()} == {"CacheStorage"}


def test_a_lock_is_for_one_and_can_be_handed_on(tmp_path: Path) -> None:
    first, second = ProfileLock(tmp_path / "profile"), ProfileLock(tmp_path / "profile")
    first.take()
    first.take()
    with pytest.raises(SetupError, match="Another hub"):
        second.take()
    first.release()
    second.take()
    second.release()


@pytest.mark.req("F11")
def test_a_profile_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(SetupError, match="cannot be used") as caught:
        ProfileLock(tmp_path / "file" / "profile").take()
    assert "TABHUB_HOME" in caught.value.text()
