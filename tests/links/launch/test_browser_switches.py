"""The switches that a managed browser is started with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tabhub.errors import SetupError
from tabhub.links.launch.browser_switches import command_line, parse_extra
from tabhub.links.launch.installed_browsers import FoundBrowser

CHROMIUM = FoundBrowser("Chromium", Path("/usr/bin/chromium"), branded=False)


def switches(**changes: Any) -> list[str]:
    values: dict[str, Any] = {
        "profile": Path("/home/p"),
        "extension": Path("/home/e"),
        "headless": False,
        "loading": "switch",
        "is_root": False,
        "has_small_shm": False,
    }
    return command_line(CHROMIUM, **(values | changes))


def test_the_browser_comes_first_and_an_empty_page_last() -> None:
    command = switches()
    assert command[0] == "/usr/bin/chromium"
    assert command[-1] == "about:blank"
    assert "--user-data-dir=/home/p" in command


def test_the_sandbox_is_off_only_for_root() -> None:
    assert "--no-sandbox" not in switches()
    assert "--no-sandbox" in switches(is_root=True)


def test_the_extension_is_loaded_by_switch_or_over_the_pipe() -> None:
    assert "--load-extension=/home/e" in switches()
    assert "--enable-unsafe-extension-debugging" not in switches()
    piped = switches(loading="pipe")
    assert "--enable-unsafe-extension-debugging" in piped
    assert not any(switch.startswith("--load-extension") for switch in piped)


def test_a_browser_is_headless_only_on_request() -> None:
    assert "--headless=new" not in switches()
    assert "--headless=new" in switches(headless=True)


def test_no_debugging_port_is_opened() -> None:
    assert "--remote-debugging-pipe" in switches()
    assert not any("debugging-port" in switch for switch in switches())


def test_disabled_features_of_the_person_are_added_to_ours() -> None:
    off = [s for s in switches(extra=["--disable-features=Mine", "--lang=fr"]) if s.startswith("--disable-features=")]
    assert len(off) == 1
    assert off[0].endswith(",Mine")
    assert "MediaRouter" in off[0]
    assert "--lang=fr" in switches(extra=["--lang=fr"])


def test_extra_switches_are_split_as_a_shell_does() -> None:
    assert parse_extra("--lang=fr '--user-agent=a b'") == ["--lang=fr", "--user-agent=a b"]
    assert parse_extra("") == []


@pytest.mark.parametrize(
    "text",
    ["--remote-debugging-port=9222", "--user-data-dir=/tmp/x", "--load-extension=/x", "https://example.com", "--", "'"],
)
def test_extra_switches_that_conflict_with_the_hub_are_refused(text: str) -> None:
    with pytest.raises(SetupError, match="TABHUB_BROWSER_ARGS") as caught:
        parse_extra(text)
    assert caught.value.hint
