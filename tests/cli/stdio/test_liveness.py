"""Detecting a hub that hangs."""

from __future__ import annotations

import json

import pytest

from tabhub.cli.stdio.liveness import MAX_SILENCE, PING, LivenessCheck
from tabhub.limits import Limits


@pytest.mark.req("S004-errors-03")
def test_hanging_hub_is_pinged_and_dead_after_the_call_timeout() -> None:
    assert MAX_SILENCE == Limits().call_timeout == 30
    liveness = LivenessCheck()
    assert liveness.check(100, waiting=True) is None
    assert liveness.deadline() == 115
    assert liveness.check(114.9, waiting=True) is None
    assert liveness.check(115, waiting=True) == "ping"
    assert liveness.check(116, waiting=True) is None, "only one ping"
    assert liveness.deadline() == 130
    assert liveness.check(130, waiting=True) == "dead"
    assert liveness.deadline() is None


def test_received_data_restarts_the_time() -> None:
    liveness = LivenessCheck()
    for now in range(0, 300, 15):
        assert liveness.check(now, waiting=True) in (None, "ping")
        liveness.received()
        assert liveness.check(now, waiting=True) is None


def test_hub_is_not_pinged_without_pending_requests() -> None:
    liveness = LivenessCheck()
    assert liveness.check(0, waiting=True) is None
    assert liveness.check(14, waiting=False) is None
    assert liveness.deadline() is None
    assert liveness.check(100, waiting=True) is None


def test_ping_is_a_line_of_the_bridge_protocol() -> None:
    assert json.loads(PING) == {"type": "PING", "id": "silence"}
    assert PING.endswith(b"\n")
