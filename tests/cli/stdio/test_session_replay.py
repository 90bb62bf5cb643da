"""Replaying a session to a new hub."""

from __future__ import annotations

from tabhub.cli.stdio.session_replay import SessionReplay


def test_log_level_and_current_subscriptions_are_replayed() -> None:
    replay = SessionReplay(b"{}")
    assert list(replay.requests()) == []
    for method, params in (
        ("logging/setLevel", b'{"level":"info"}'),
        ("resources/subscribe", b'{"uri":"a:1"}'),
        ("resources/subscribe", b'{"uri":"a:2"}'),
        ("resources/unsubscribe", b'{ "uri": "a:1" }'),
        ("resources/unsubscribe", b"{}"),
        ("logging/setLevel", b'{"level":"error"}'),
        ("tools/list", b"{}"),
    ):
        replay.record(method, params)
    assert list(replay.requests()) == [
        ("logging/setLevel", b'{"level":"error"}'),
        ("resources/subscribe", b'{"uri":"a:2"}'),
    ]
