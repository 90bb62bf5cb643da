"""Finding the browsers of a machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from tabhub.errors import SetupError
from tabhub.links.launch.installed_browsers import FoundBrowser, find_browsers


def make_browser(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.fixture(autouse=True)
def no_fixed_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ignore the browsers of this machine."""
    runs = "tabhub.links.launch.installed_browsers._runs"
    monkeypatch.setattr(runs, lambda path: path.is_file() and not str(path).startswith(("/usr", "/opt", "/snap")))


def test_browsers_on_the_path_are_listed_in_order_of_preference(tmp_path: Path) -> None:
    chromium = make_browser(tmp_path / "chromium")
    chrome = make_browser(tmp_path / "google-chrome")
    brave = make_browser(tmp_path / "brave-browser")
    edge = make_browser(tmp_path / "microsoft-edge")
    assert find_browsers({"PATH": str(tmp_path)}, platform="linux") == [
        FoundBrowser("Chrome", chrome, branded=True),
        FoundBrowser("Chromium", chromium, branded=False),
        FoundBrowser("Edge", edge, branded=True),
        FoundBrowser("Brave", brave, branded=False),
    ]


def test_a_snap_is_the_last_resort(tmp_path: Path) -> None:
    snap = make_browser(tmp_path / "real" / "snap")
    (tmp_path / "chromium").symlink_to(snap)
    make_browser(tmp_path / "brave-browser")
    assert [b.name for b in find_browsers({"PATH": str(tmp_path)}, platform="linux")] == ["Brave", "Chromium"]


@pytest.mark.parametrize(
    ("platform", "env", "place", "name"),
    [
        ("darwin", "HOME", "Applications/Google Chrome.app/Contents/MacOS/Google Chrome", "Chrome"),
        ("darwin", "HOME", "Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge", "Edge"),
    ],
)
def test_browsers_of_macos(tmp_path: Path, platform: str, env: str, place: str, name: str) -> None:
    path = make_browser(tmp_path / place)
    found = find_browsers({env: str(tmp_path)}, platform=platform)
    assert [(b.name, b.path) for b in found] == [(name, path)]


@pytest.mark.parametrize("platform", ["linux", "darwin", "freebsd14"])
def test_the_error_for_no_browser_says_how_to_install_one(tmp_path: Path, platform: str) -> None:
    with pytest.raises(SetupError, match="No browser was found") as caught:
        find_browsers({"PATH": str(tmp_path)}, platform=platform)
    assert "Install one" in caught.value.text()
    assert "TABHUB_BROWSER" in caught.value.text()


def test_the_environment_selects_by_name(tmp_path: Path) -> None:
    make_browser(tmp_path / "google-chrome")
    chromium = make_browser(tmp_path / "chromium")
    env = {"PATH": str(tmp_path), "TABHUB_BROWSER": "Chromium"}
    assert find_browsers(env, platform="linux") == [FoundBrowser("Chromium", chromium, branded=False)]


@pytest.mark.parametrize(
    ("file", "name", "branded"),
    [("google-chrome-stable", "Chrome", True), ("msedge", "Edge", True), ("my-chromium-build", "Chromium", False)],
)
def test_the_environment_selects_by_path(tmp_path: Path, file: str, name: str, branded: bool) -> None:
    path = make_browser(tmp_path / "odd place" / file)
    env = {"PATH": "", "TABHUB_BROWSER": str(path)}
    assert find_browsers(env, platform="linux") == [FoundBrowser(name, path, branded)]


def test_the_error_for_an_unknown_selection_names_the_installed_browsers(tmp_path: Path) -> None:
    make_browser(tmp_path / "chromium")
    with pytest.raises(SetupError, match="'/nowhere/chrome'") as caught:
        find_browsers({"PATH": str(tmp_path), "TABHUB_BROWSER": "/nowhere/chrome"}, platform="linux")
    assert "(chromium)" in caught.value.text()
