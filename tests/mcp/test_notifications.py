"""Notifications of changed tools: rate-limited, and the last state is always notified."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest

from tabhub.core.listing.catalogue import Catalogue
from tabhub.core.registry import Entry, Registry
from tabhub.core.tools import CallContext, Source, Tool, ToolResult
from tabhub.limits import Limits
from tabhub.mcp.notifications import ListNotifier
from tests.harness.virtual_time import VirtualLoop

SITE = Source("page", "https://a.example")


@pytest.fixture
def loop() -> Iterator[VirtualLoop]:
    made = VirtualLoop()
    yield made
    made.close()


async def _never(ctx: CallContext, arguments: dict[str, Any]) -> ToolResult:
    raise AssertionError("nothing is run here")


class Listener:
    """An agent that lists the tools whenever it is notified of a change."""

    def __init__(self, loop: VirtualLoop, notices: ListNotifier, catalogue: Catalogue) -> None:
        self.notified: list[float] = []
        self.sees: list[str] = []
        self.ended = 0

        def changed(_kind: str) -> None:
            self.notified.append(loop.now)
            self.sees = [tool.name for tool in catalogue.tools()]

        def end() -> None:
            self.ended += 1

        self.open = notices.subscribe(changed, end, kinds=["tools"])


@pytest.mark.req("L8")
def test_500_updates_per_second_become_two_notifications_per_second_and_the_last_state_is_notified(
    loop: VirtualLoop,
) -> None:
    limits, registry = Limits(), Registry()
    notices, catalogue = ListNotifier(limits), Catalogue(registry, limits, lambda tool: False, mark=False)
    registry.on_change(partial(notices.changed, "tools"))
    agents = [Listener(loop, notices, catalogue) for _ in range(3)]
    with ExitStack() as stack:
        for agent in agents:
            stack.enter_context(agent.open)
        for number in range(5 * 500):
            tool = Tool(f"website_tool_n{number}", SITE, "")
            loop.act(lambda tool=tool: registry.replace(SITE, [Entry(tool, _never)]))  # type: ignore[misc]
            loop.run_for(1 / 500)
        loop.run_for(2)
        for agent in agents:
            gaps = [later - earlier for earlier, later in zip(agent.notified, agent.notified[1:], strict=False)]
            assert min(gaps) >= 0.5 - 1e-6
            assert 10 <= len(agent.notified) <= 12
            assert agent.sees == ["website_tool_n2499"]
        notified = len(agents[0].notified)
        loop.run_for(60)
        assert len(agents[0].notified) == notified


def test_a_single_change_is_notified_at_once(loop: VirtualLoop) -> None:
    notices = ListNotifier(Limits())
    notified: list[float] = []
    with notices.subscribe(lambda _: notified.append(loop.now), lambda: None):
        loop.act(partial(notices.changed, "tools"))
        assert notified == [loop.now]
        loop.run_for(10)
        loop.act(partial(notices.changed, "tools"))
        assert notified == [1000.0, 1010.0]


def test_only_current_subscribers_of_a_list_are_notified(loop: VirtualLoop) -> None:
    notices = ListNotifier(Limits())
    notified: list[str] = []
    with notices.subscribe(lambda _: notified.append("wants not"), lambda: notified.append("ended"), kinds=()):
        with notices.subscribe(lambda _: notified.append("left"), lambda: None):
            loop.act(partial(notices.changed, "tools"))
            loop.act(partial(notices.changed, "tools"))
        loop.run_for(10)
        assert notified == ["left"]
        loop.act(notices.close)
    assert notified == ["left", "ended"]
    loop.act(notices.close)
    assert notified == ["left", "ended"]


def test_a_rate_of_zero_means_no_limit(loop: VirtualLoop) -> None:
    notices = ListNotifier(Limits(list_changed_rate=0))
    notified: list[float] = []
    with notices.subscribe(lambda _: notified.append(loop.now), lambda: None):
        for _ in range(5):
            loop.act(partial(notices.changed, "tools"))
    assert len(notified) == 5


def test_each_list_has_its_own_rate_and_listeners(loop: VirtualLoop) -> None:
    notices = ListNotifier(Limits())
    all_of_it: list[str] = []
    prompts: list[str] = []
    with (
        notices.subscribe(all_of_it.append, lambda: None),
        notices.subscribe(prompts.append, lambda: None, kinds=["prompts"]),
    ):
        for kind in ("tools", "resources", "prompts", "prompts", "prompts"):
            loop.act(lambda kind=kind: notices.changed(kind))  # type: ignore[misc]
        assert all_of_it == ["tools", "resources", "prompts"]
        loop.run_for(1)
        assert all_of_it == ["tools", "resources", "prompts", "prompts"]
        assert prompts == ["prompts", "prompts"]
