"""The config file: changed key by key, always complete, and reloaded only if valid."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tabhub.errors import SetupError
from tabhub.store.config_file import ConfigFile, load, reset, set_value, show
from tabhub.store.home import Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    home.ensure()
    return home


def test_without_a_file_the_defaults_apply(home: Home) -> None:
    assert load(home).port == 9515
    assert not home.config.exists()


def test_setting_a_value_leaves_everything_else_unchanged(home: Home) -> None:
    home.config.write_text('{"mine": {"a": [1, 2]}, "permissions": {"slack": {"permission": "ask"}}}')
    config = set_value(home, "permissions.slack.tools.send", "off")
    assert config.permissions.plugins["slack"].tools == {"send": "off"}
    assert json.loads(home.config.read_text()) == {
        "mine": {"a": [1, 2]},
        "permissions": {"slack": {"permission": "ask", "tools": {"send": "off"}}},
    }
    assert home.config.stat().st_mode & 0o777 == 0o600
    assert load(home).problems == ("'mine' is not a setting and has no effect.",)


def test_show_gives_the_values_in_force_and_unknown_keys(home: Home) -> None:
    set_value(home, "limits.call_timeout", "60")
    values = json.loads(home.config.read_text()) | {"mine": 1}
    home.config.write_text(json.dumps(values))
    shown = show(home, {"PORT": "1234"})
    assert shown["limits"]["call_timeout"] == 60
    assert (shown["port"], shown["mine"], shown["auditArguments"]) == (1234, 1, False)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "It is empty"),
        ('{"port": 9600,\n  "launch"', "line 2 column"),
        ('{"port": 1, "port": 2}', "same key twice"),
        ("[]", "one JSON object"),
        ('{"port": NaN}', "Not valid JSON"),
        ('{"port": "x"}', "port must be a whole number"),
        ('{"limits": {"call_timeout": -1}}', "must not be negative"),
        ("[" * 100_000, "nested deeper"),
    ],
)
def test_a_broken_file_is_refused_with_position_and_hint(home: Home, text: str, message: str) -> None:
    home.config.write_text(text)
    for function in (load, lambda home: set_value(home, "launch", "always")):
        with pytest.raises(SetupError, match=message) as caught:
            function(home)
        assert "config.json" in caught.value.message
        assert "tabhub config reset" in str(caught.value.hint)
    assert home.config.read_text() == text


def test_a_file_that_others_may_write_is_refused(home: Home) -> None:
    set_value(home, "port", "9600")
    running = ConfigFile(home)
    home.config.write_text('{"skipPermissions": true}')
    home.config.chmod(0o666)
    with pytest.raises(SetupError, match="Other users may write to") as refused:
        load(home)
    assert f"chmod 600 {home.config}" in refused.value.text()
    config, problem = running.reload()
    assert config.port == 9600
    assert not config.skip_permissions
    assert "Other users may write to" in str(problem)
    home.config.chmod(0o664)  # as many systems' umask creates it, with a group of one
    assert load(home).skip_permissions


def test_setting_a_key_below_a_value_that_is_not_an_object_is_refused(home: Home) -> None:
    home.config.write_text('{"settings": {"jira": {"urls": "x"}}}')
    with pytest.raises(SetupError, match="'urls' is not an object") as caught:
        set_value(home, "settings.jira.urls.work", "y")
    assert caught.value.hint == "Remove it first: tabhub config reset settings.jira.urls"


def test_reset_of_a_key_leaves_no_empty_objects(home: Home) -> None:
    set_value(home, "permissions.slack.tools.send", "off")
    set_value(home, "limits.call_timeout", "5")
    set_value(home, "port", "9600")
    reset(home, "permissions.slack.tools.send")
    reset(home, "limits.callTimeout")
    assert json.loads(home.config.read_text()) == {"port": 9600}
    reset(home, "port")
    reset(home, "port")
    assert json.loads(home.config.read_text()) == {}


def test_unknown_keys_and_whole_sections_can_be_reset(home: Home) -> None:
    home.config.write_text('{"mine": 1, "limits": {"nope": 1, "callTimeout": 2}, "settings": {"a": {}}}')
    reset(home, "mine")
    reset(home, "limits.nope")
    reset(home, "limits.call_timeout")
    reset(home, "settings")
    assert json.loads(home.config.read_text()) == {}
    with pytest.raises(SetupError, match="is not a setting"):
        reset(home, "nothing")


def test_resetting_all_repairs_a_broken_file_and_keeps_a_backup(home: Home) -> None:
    home.config.write_text('{"port": ')
    assert reset(home).port == 9515
    assert json.loads(home.config.read_text()) == {}
    assert home.config.with_name("config.json.bak").read_text() == '{"port": '


@pytest.mark.req("F13")
def test_a_file_broken_at_run_time_leaves_the_last_valid_settings_in_force(home: Home) -> None:
    set_value(home, "permissions.default", "off")
    file = ConfigFile(home, {"PORT": "1234"})
    whole = home.config.read_text()
    for broken in ("", whole[:-5], whole.replace("off", "of"), "\0", "[]"):
        home.config.write_text(broken)
        config, error = file.reload()
        assert config.permissions.default == "off"
        assert error is not None
        assert "stay in force" in error
        assert file.error == error
    home.config.write_text(whole.replace("off", "ask"))
    config, error = file.reload()
    assert (config.permissions.default, config.port, error, file.error) == ("ask", 1234, None, None)


def test_deleting_the_file_at_run_time_does_not_lift_its_permissions(home: Home) -> None:
    set_value(home, "permissions.default", "off")
    file = ConfigFile(home)
    home.config.unlink()
    config, error = file.reload()
    assert config.permissions.default == "off"
    assert "was deleted" in str(error)
    reset(home)
    config, error = file.reload()
    assert (config.permissions.default, error) == (None, None)


def test_a_file_may_be_created_at_run_time(home: Home) -> None:
    file = ConfigFile(home)
    assert file.reload() == (load(home), None)
    set_value(home, "port", "9600")
    assert file.reload()[0].port == 9600


def test_a_hub_does_not_start_with_a_broken_file(home: Home) -> None:
    home.config.write_text("{")
    with pytest.raises(SetupError, match="broken"):
        ConfigFile(home)


KEYS = ["port", "limits.call_timeout", "permissions.slack.tools.a", "settings.jira.x"]
STEP = st.tuples(
    st.sampled_from(KEYS), st.sampled_from(["1", "off", "7000", "x", ""]), st.sampled_from([None, 0, 1, 5])
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=50)
@given(steps=st.lists(STEP, max_size=8))
def test_the_file_is_always_complete_and_valid_even_if_the_disk_fails(
    home: Home, steps: list[tuple[str, str, int | None]]
) -> None:
    home.config.unlink(missing_ok=True)
    real = os.write
    for key, text, room in steps:
        before = home.config.read_bytes() if home.config.exists() else None

        def write(fd: int, data: bytes, room: int | None = room) -> int:
            if room is None:
                return real(fd, data)
            if room == 0:
                raise OSError(28, "No space left on device")
            return real(fd, data[:room])

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "write", write)
            try:
                set_value(home, key, text)
            except SetupError:
                assert (home.config.read_bytes() if home.config.exists() else None) == before
        load(home)
    assert not list(home.root.glob(".*.tmp"))
