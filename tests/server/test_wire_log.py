"""The log of messages with a browser has no secrets."""

from __future__ import annotations

import logging

import pytest

from tabhub.server.wire_log import MessageLog
from tabhub.trust.value_mask import ValueMask


def test_messages_are_logged_without_secrets_and_passed_on_unchanged(caplog: pytest.LogCaptureFixture) -> None:
    mask = ValueMask()
    mask.add("shop", 'hunter "22"')
    received: list[bytes] = []
    message = rb'{"text":"hunter \"22\"","password":"p4ss","pin":"1234","key":"hub-secret-1"}'
    with caplog.at_level(logging.INFO, "tabhub.messages"):
        MessageLog("chrome-1", "hub-secret-1", mask).pass_on("to", received.append, message)
    assert received == [message]
    (line,) = caplog.messages
    assert "[secret shop]" in line
    assert not any(secret in line for secret in ("hunter", "p4ss", "1234", "hub-secret"))
