"""When a node refuses new connections early."""

from __future__ import annotations

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from tabhub.errors import RelayRefused, TooManyConnections
from tabhub.limits import DEFAULTS
from tabhub.links.relay_browsers import least_delay
from tabhub.links.relay_link import relay_link
from tabhub.relay.overload import Overload
from tests.relay.independent import IndependentAgent
from tests.relay.world import running_relay, token


def test_a_node_that_is_behind_refuses_sooner() -> None:
    now, waiting = [100.0], [0]
    overload = Overload(lambda: now[0], lambda: waiting[0])

    def refused() -> bool:
        try:
            overload.check(1000)
        except TooManyConnections as error:
            return error.retry_after is not None
        return False

    waiting[0] = 999
    assert not refused()
    waiting[0] = 1000
    assert refused()
    waiting[0] = 100
    assert not refused()
    now[0] += 1.1  # since it last had a moment
    assert refused()
    waiting[0] = 99
    assert not refused()
    waiting[0] = 100
    overload.beat()
    assert not refused()


@pytest.mark.req("L10")
async def test_connections_beyond_what_can_be_served_are_refused_with_a_time_to_come_back() -> None:
    async with (
        running_relay(relay_unauthenticated=2) as relay,
        IndependentAgent(relay.url, token()) as agent,
        connect(f"{relay.url}/extension") as browser,
    ):
        await agent.handshake()  # it counts no longer
        async with connect(f"{relay.url}/mcp"):
            with pytest.raises(InvalidStatus) as refused:
                await connect(f"{relay.url}/mcp")
            assert refused.value.response.status_code == 503
            assert refused.value.response.headers["Retry-After"] == "5"
            with pytest.raises(RelayRefused) as told:  # a hub waits for that long
                async with relay_link(relay.url, token(), "relay", DEFAULTS):
                    pass
            assert least_delay(None, told.value) == 5.0
            assert await agent.browsers() == []
        await browser.close()


@pytest.mark.parametrize(("code", "least"), [(None, 0.0), (1006, 0.0), (1012, 0.0), (1013, 5.0), (4001, 15.0)])
def test_a_hub_waits_longer_after_codes_of_a_refusal(code: int | None, least: float) -> None:
    assert least_delay(code, None) == least
