"""Sessions, bindings and leases over restarts of the hub, the extension and the browser."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Any, Self

import orjson
import pytest

from tests.harness.agent import Agent, client, message
from tests.harness.fake_extension import FakeExtension, tab
from tests.harness.hub import Address, RunningHub, running_hub
from tests.harness.process import hub_process
from tests.harness.waiting import until

SHOP = "https://shop.example/cart?secret=1"


async def act(agent: Agent, **arguments: Any) -> dict[str, Any]:
    answer: dict[str, Any] = (await agent.call("browser_execute_script", {"code": "return 1", **arguments}))["result"]
    return answer


async def tab_of(agent: Agent) -> int:
    info = (await agent.call("browser_get_tab_info"))["result"]
    tab_id: int = info["structuredContent"]["tabId"]
    return tab_id


class Again(Agent):
    """A client that continues its earlier session."""

    def __init__(self, hub: Address, before: Agent) -> None:
        super().__init__(hub, before.path, before.version)
        self.headers = before.headers

    async def __aenter__(self) -> Self:
        return self


def sessions(hub: RunningHub) -> dict[str, Any]:
    """The contents of the file."""
    saved: dict[str, Any] = orjson.loads((hub.home.root / "sessions.json").read_bytes())
    return saved


async def test_a_client_keeps_its_tab_lease_and_log_level_across_a_restart_of_the_hub(tmp_path: Path) -> None:
    tabs = [tab(7, SHOP), tab(8)]
    async with running_hub(tmp_path) as hub, FakeExtension(hub, tabs=tabs) as browser, Agent(hub) as one:
        mine = await tab_of(one)
        await act(one, tabId=7)
        await one.request("logging/setLevel", {"level": "error"})
        tabs = browser.tabs
    async with running_hub(tmp_path) as hub, Again(hub, one) as again, Agent(hub) as other:
        assert len(hub.hub.sessions) == 2
        early = asyncio.create_task(act(again))
        await until(lambda: len(hub.hub.engine.browser_wait.held_calls) == 1)
        async with FakeExtension(hub, tabs=tabs):
            assert not (await early).get("isError")
            assert await tab_of(again) == 7
            assert (await act(other, tabId=7))["_meta"]["tabhub/error"]["holder"]["client"] == "raw 1"
            assert (await act(other, tabId=mine))["isError"] is True
            (own,) = (await again.call("browser_list_sessions"))["result"]["structuredContent"]["sessions"]
            assert (own["ownTabs"], own["tabId"]) == ([mine], 7)
        mcp = hub.hub.mcp.handshake.sessions[one.headers["Mcp-Session-Id"]]
        assert (mcp.version, mcp.log_level) == ("2025-11-25", 4)
        async with again.listening() as events:
            assert (await events.message())["method"] == "notifications/tools/list_changed"


async def test_the_session_file_is_private_and_has_no_secrets_or_urls(tmp_path: Path) -> None:
    async with running_hub(tmp_path) as hub, FakeExtension(hub, tabs=[tab(7, SHOP)]), Agent(hub) as one:
        await act(one, tabId=7, code="return 'an argument'")
        await until(lambda: (hub.home.root / "sessions.json").exists() and bool(sessions(hub)["tabs"]))
        path = hub.home.root / "sessions.json"
        assert path.stat().st_mode & 0o777 == 0o600
        text = path.read_text()
        assert hub.extension_key not in text
        assert "secret=1" not in text
        assert "an argument" not in text
        assert sessions(hub)["tabs"][0]["origin"] == "https://shop.example"


async def test_a_tab_lost_before_a_restart_is_reported_once_after_it(tmp_path: Path) -> None:
    async with running_hub(tmp_path) as hub, FakeExtension(hub, tabs=[tab(7)]), Agent(hub) as one, client(hub) as http:
        await act(one, tabId=7)
        await http.post(f"/sessions/{one.headers['Mcp-Session-Id']}/release", json={"tabId": 7})
    async with running_hub(tmp_path) as hub, FakeExtension(hub, tabs=[tab(7)]), Again(hub, one) as again:
        assert "Tab 7, which this session was working in, was freed by the person" in str(await act(again))
    async with running_hub(tmp_path) as hub, FakeExtension(hub, tabs=[tab(7)]), Again(hub, one) as again:
        assert not (await act(again)).get("isError")


async def test_an_ended_session_is_not_restored(tmp_path: Path) -> None:
    async with running_hub(tmp_path) as hub, Agent(hub) as one:
        await one.http.delete("/mcp", headers=one.headers)
    async with running_hub(tmp_path) as hub, Again(hub, one) as again:
        assert (await again.post(message("ping"))).status_code == 404


async def test_script_sessions_and_handles_are_restored_too(tmp_path: Path) -> None:
    async with running_hub(tmp_path) as hub, FakeExtension(hub, tabs=[tab(7)]) as browser:
        async with client(hub, **{"Tabhub-Session": "me"}) as http:
            await http.post("/tools/browser_execute_script/call", json={"tabId": 7, "code": "1"})
        tabs = browser.tabs
    async with running_hub(tmp_path) as hub, FakeExtension(hub, tabs=tabs):
        async with client(hub, **{"Tabhub-Session": "me"}) as http:
            info = (await http.post("/tools/browser_get_tab_info/call", json={})).json()
        assert info["structuredContent"]["tabId"] == 7


async def test_a_kill_loses_at_most_the_last_second(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with hub_process(home) as hub, FakeExtension(hub, tabs=[tab(7)]), Agent(hub) as one:
        await act(one, tabId=7)
        file = home / "sessions.json"
        await until(lambda: file.exists() and bool(orjson.loads(file.read_bytes())["tabs"]), seconds=3)
        hub.process.send_signal(signal.SIGKILL)
        await hub.process.wait()
    async with hub_process(home) as hub, FakeExtension(hub, tabs=[tab(7)]), Again(hub, one) as again:
        assert await tab_of(again) == 7


async def test_another_page_with_the_tabs_old_id_is_not_matched(tmp_path: Path) -> None:
    async with running_hub(tmp_path) as hub, FakeExtension(hub, tabs=[tab(7, SHOP), tab(8)]), Agent(hub) as one:
        await act(one, tabId=7)
    other = [tab(7, "https://bank.example/"), tab(8)]
    async with running_hub(tmp_path) as hub, FakeExtension(hub, tabs=other), Again(hub, one) as again:
        assert "has been closed" in (await act(again))["content"][0]["text"]
        assert len(hub.hub.leases) == 0


async def test_tab_ids_of_two_browsers_are_kept_in_any_order_of_connection(tmp_path: Path) -> None:
    async with (
        running_hub(tmp_path) as hub,
        FakeExtension(hub, "a", [tab(7, "https://a.example/")]),
        FakeExtension(hub, "b", [tab(7, "https://b.example/")]),
        Agent(hub) as one,
        Agent(hub) as two,
    ):
        listed = (await one.call("browser_list_tabs"))["result"]["structuredContent"]["tabs"]
        numbers = {each["browserId"]: each["tabId"] for each in listed}
        await act(one, tabId=numbers["a"])
        await act(two, tabId=numbers["b"])
    async with (
        running_hub(tmp_path) as hub,
        FakeExtension(hub, "b", [tab(7, "https://b.example/")]),
        FakeExtension(hub, "a", [tab(7, "https://a.example/")]),
        Again(hub, one) as first,
        Again(hub, two) as second,
    ):
        assert [await tab_of(first), await tab_of(second)] == [numbers["a"], numbers["b"]]


@pytest.mark.parametrize("hub_too", [False, True])
async def test_after_a_restart_of_the_browser_the_tab_is_matched_by_its_url(tmp_path: Path, hub_too: bool) -> None:
    before, after = [tab(7, SHOP), tab(8)], [tab(107, SHOP), tab(108)]
    async with running_hub(tmp_path) as hub, Agent(hub) as one:
        async with FakeExtension(hub, tabs=before):
            await act(one, tabId=7)
        await until(lambda: not hub.hub.browsers.links())
        if not hub_too:
            async with FakeExtension(hub, tabs=after):
                assert await tab_of(one) == 107
                assert [lease.tab for lease in hub.hub.leases] == [107]
            return
    async with running_hub(tmp_path) as hub, FakeExtension(hub, tabs=after), Again(hub, one) as again:
        assert await tab_of(again) == 107


async def test_a_tab_closed_while_disconnected_is_not_matched_with_the_persons_tabs(tmp_path: Path) -> None:
    async with running_hub(tmp_path) as hub, Agent(hub) as one:
        async with FakeExtension(hub, tabs=[tab(7, SHOP), tab(8, SHOP)]):
            await act(one, tabId=7)
        await until(lambda: not hub.hub.browsers.links())
        async with FakeExtension(hub, tabs=[tab(8, SHOP)]):
            assert "has been closed" in (await act(one))["content"][0]["text"]


async def test_an_invalid_session_file_only_loses_the_sessions(tmp_path: Path) -> None:
    async with running_hub(tmp_path) as hub, Agent(hub) as one:
        pass
    (hub.home.root / "sessions.json").write_text('{"version": 1, "sessions": [{"id": 5}]}')
    async with running_hub(tmp_path) as hub, Again(hub, one) as again, Agent(hub) as fresh:
        assert (await again.post(message("ping"))).status_code == 404
        assert (await fresh.request("ping"))["result"] == {}
