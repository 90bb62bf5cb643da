"""A hub that hangs: asked for a sign of life, and given up after the time a request has."""

from __future__ import annotations

import json

import pytest

from tabhub.cli.stdio.liveness import LONGEST, PING, Silence
from tabhub.limits import Limits


@pytest.mark.req("S004-errors-03")
def test_a_request_to_a_hub_that_hangs_ends_after_30_s_as_it_does_in_the_hub() -> None:
    assert LONGEST == Limits().call_timeout == 30
    silence = Silence()
    assert silence.look(100, waiting=True) is None
    assert silence.deadline() == 115
    assert silence.look(114.9, waiting=True) is None
    assert silence.look(115, waiting=True) == "ask"
    assert silence.look(116, waiting=True) is None, "once is enough"
    assert silence.deadline() == 130
    assert silence.look(130, waiting=True) == "gone"
    assert silence.deadline() is None


def test_a_sign_of_life_begins_the_time_anew() -> None:
    silence = Silence()
    for now in range(0, 300, 15):
        assert silence.look(now, waiting=True) in (None, "ask")
        silence.broken()
        assert silence.look(now, waiting=True) is None


def test_nothing_is_asked_while_nobody_waits() -> None:
    silence = Silence()
    assert silence.look(0, waiting=True) is None
    assert silence.look(14, waiting=False) is None
    assert silence.deadline() is None
    assert silence.look(100, waiting=True) is None


def test_what_is_asked_is_a_line_of_the_daemons_protocol() -> None:
    assert json.loads(PING) == {"type": "PING", "id": "silence"}
    assert PING.endswith(b"\n")
