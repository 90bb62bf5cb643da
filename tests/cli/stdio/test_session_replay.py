"""What another hub is told of a client that it does not know."""

from __future__ import annotations

from tabhub.cli.stdio.session_replay import Introduction


def test_the_level_and_what_is_still_followed_are_told_again() -> None:
    told = Introduction(b"{}")
    assert list(told.requests()) == []
    for method, params in (
        ("logging/setLevel", b'{"level":"info"}'),
        ("resources/subscribe", b'{"uri":"a:1"}'),
        ("resources/subscribe", b'{"uri":"a:2"}'),
        ("resources/unsubscribe", b'{ "uri": "a:1" }'),
        ("resources/unsubscribe", b"{}"),
        ("logging/setLevel", b'{"level":"error"}'),
        ("tools/list", b"{}"),
    ):
        told.agreed(method, params)
    assert list(told.requests()) == [
        ("logging/setLevel", b'{"level":"error"}'),
        ("resources/subscribe", b'{"uri":"a:2"}'),
    ]
