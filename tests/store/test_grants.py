"""Grants on disk: private, shared with the command line, and never more than the maximum."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from tabhub.errors import SetupError
from tabhub.store.grants import GrantStore, listed, revoke
from tabhub.store.home import Home
from tabhub.trust.grants import Scope

CLICK = Scope("input", "https://shop.example")
OPEN = Scope("navigate", "https://shop.example")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def test_a_grant_is_stored_for_this_user_only_and_found_after_a_restart(home: Home) -> None:
    GrantStore(home, 10).add("ci", (CLICK, OPEN), "panel", 5.0)
    assert stat.S_IMODE(home.grants.stat().st_mode) == 0o600
    grants = GrantStore(home, 10).all()
    assert [(each.agent, each.kind, each.site, each.created) for each in grants] == [
        ("ci", "input", "https://shop.example", 5.0),
        ("ci", "navigate", "https://shop.example", 5.0),
    ]
    assert len({each.id for each in grants}) == 2


def test_an_equal_grant_replaces_the_one_before(home: Home) -> None:
    store = GrantStore(home, 10)
    store.add("ci", (CLICK,), "panel", 1.0)
    store.add("ci", (CLICK,), "terminal", 2.0)
    store.add(None, (CLICK,), "panel", 3.0)
    assert [(each.agent, each.approved_by) for each in store.all()] == [("ci", "terminal"), (None, "panel")]


def test_a_grant_that_another_process_revokes_no_longer_counts(home: Home) -> None:
    store = GrantStore(home, 10)
    store.add("ci", (CLICK, OPEN), "panel", 1.0)
    first, second = store.all()
    assert revoke(home, first.id) == first
    assert store.all() == (second,)
    store.forget(["navigate"])
    assert store.all() == ()
    with pytest.raises(SetupError, match="no grant"):
        revoke(home, first.id)


def test_the_oldest_grants_are_dropped_beyond_the_maximum(home: Home) -> None:
    store = GrantStore(home, 3)
    for number in range(5):
        store.add(f"agent{number}", (CLICK,), "panel", float(number))
    assert [each.agent for each in store.all()] == ["agent2", "agent3", "agent4"]


def test_a_broken_file_grants_nothing_and_is_kept(home: Home) -> None:
    home.ensure()
    home.grants.write_text('{"broken"')
    store = GrantStore(home, 10)
    assert store.all() == ()
    assert "broken" in str(store.error)
    with pytest.raises(SetupError):
        store.add("ci", (CLICK,), "panel", 1.0)
    assert home.grants.read_text() == '{"broken"'
    home.grants.unlink()
    assert listed(home) == []


def test_a_file_that_others_may_write_grants_nothing(home: Home) -> None:
    store = GrantStore(home, 10)
    store.add("ci", (CLICK,), "panel", 1.0)
    home.grants.chmod(0o666)
    assert GrantStore(home, 10).all() == ()
