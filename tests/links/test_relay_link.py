"""The hub as an agent of a relay: a real relay, a hub, and browsers that only speak the relay's protocol."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tabhub.config.setting_types import RelaySettings
from tabhub.config.settings import Config
from tabhub.errors import LinkLost, SetupError
from tabhub.limits import DEFAULTS
from tabhub.links.relay_link import RelayLink, relay_url
from tabhub.links.relays import read_token
from tabhub.wire.page_tools import ToolProgress
from tests.harness.fake_extension import FakeExtension, tab
from tests.harness.hub import RunningHub, running_hub
from tests.harness.process import ask_nobody, tabhub
from tests.harness.waiting import until
from tests.relay.independent import IndependentAgent, IndependentExtension
from tests.relay.world import RunningRelay, running_relay, token

STATE = {"browserId": "far-away", "browserName": "Far", "managed": True, "debugger": {"attached": []}}


class FarBrowser(IndependentExtension):
    """A browser that answers a hub's first requests; `answers` adds others."""

    def __init__(self, base: str, access: str, instance: str = "far", **state: Any) -> None:
        super().__init__(base, access, "Far 1", instanceId=instance)
        self.answers: dict[str, Any] = {"getState": {**STATE, **state}, "getTabs": {"tabs": [tab(7, active=True)]}}
        self.silent: set[str] = set()
        self.handle = self._handle

    def _handle(self, method: str, params: dict[str, Any]) -> Any:
        if method in self.silent:
            return None
        return self.answers.get(method, {})

    def asked(self, method: str) -> list[dict[str, Any]]:
        return [request for request in self.requests if request["method"] == method]


@asynccontextmanager
async def hub_at(tmp_path: Path, relay: RunningRelay, access: str, **settings: Any) -> AsyncIterator[RunningHub]:
    file = tmp_path / "relay.token"
    file.write_text(access)
    relays = [{"url": relay.url, "tokenFile": str(file)}]
    async with running_hub(tmp_path, relays=relays, **settings) as hub:
        yield hub


def remote(hub: RunningHub) -> list[RelayLink]:
    return [link for link in hub.hub.browsers.links() if isinstance(link, RelayLink)]


def tabs_reported(hub: RunningHub) -> bool:
    """Whether every remote browser has reported its tabs."""
    browsers = [facts for facts in hub.hub.browsers.status() if facts.get("relay")]
    return bool(browsers) and all(facts["extension"]["sentTabs"] for facts in browsers)


async def test_remote_browser_is_listed_with_its_tabs_next_to_local_ones(tmp_path: Path) -> None:
    async with running_relay() as relay, hub_at(tmp_path, relay, token()) as hub:
        async with FakeExtension(hub, "near", [tab(7)]), FarBrowser(relay.url, token()) as far:
            await until(lambda: tabs_reported(hub))
            (link,) = remote(hub)
            assert link.browser_id == far.extension_id
            assert len(hub.hub.browsers.book) == 2
            facts = hub.hub.relays.status() if hub.hub.relays is not None else []
            assert facts == [{"url": relay.url, "connected": True, "browsers": 1}]
            far.answers["closeTab"] = {"closed": True}
            assert await link.request("closeTab", {"tabId": 7}) == {"closed": True}
            (request,) = far.asked("closeTab")
            assert request["id"].startswith(f"{link.connection}:")
            await far.notify("tab.stateChanged", {"tabId": 8, "change": "created", "tab": tab(8)})
            await until(lambda: len(hub.hub.browsers.book) == 3)
        await until(lambda: not remote(hub))


async def test_remote_browser_counts_as_personal_and_its_panel_requests_are_refused(tmp_path: Path) -> None:
    async with running_relay() as relay, hub_at(tmp_path, relay, token()) as hub, FarBrowser(relay.url, token()) as far:
        await until(lambda: tabs_reported(hub))
        (link,) = remote(hub)
        assert not link.local
        assert not hub.hub.browsers.is_managed(link.browser_id)
        await far.notify("extension.hello", {"browserName": "Far", "managed": True})
        for method in ("config.setSkipPermissions", "config.set", "confirmation.response", "hub.pause"):
            await far.notify(method, {"skip": True, "id": "1", "decision": "allow_once"})
        await until(lambda: link.counts.refused == 4)
        assert not hub.hub.browsers.is_managed(link.browser_id)
        assert not hub.hub.settings.current.skip_permissions
        assert not any(method.startswith(("config.", "hub.", "plugin.install")) for method in link.handlers)


async def test_browser_that_is_also_connected_directly_is_listed_once(tmp_path: Path) -> None:
    async with running_relay() as relay, hub_at(tmp_path, relay, token()) as hub, FarBrowser(relay.url, token()):
        await until(lambda: tabs_reported(hub))
        async with FakeExtension(hub, "far-away"):
            await until(lambda: [link.local for link in hub.hub.browsers.links()] == [True])
        await until(lambda: tabs_reported(hub))


@pytest.mark.req("S003-clients-02", "S003-clients-03")
@pytest.mark.parametrize("end", ["browser", "relay"])
async def test_call_fails_at_once_when_its_link_breaks_and_the_link_is_re_established(tmp_path: Path, end: str) -> None:
    # Neither a missing pong nor a deadline ends the call.
    slow = {"ping_interval": 600.0, "call_timeout": 300.0}
    async with (
        running_relay(relay_ping=600.0) as relay,
        hub_at(tmp_path, relay, token(), limits=slow) as hub,
    ):
        async with FarBrowser(relay.url, token()) as far:
            await until(lambda: tabs_reported(hub))
            far.silent.add("goBack")
            (link,) = remote(hub)
            call = link.request("goBack", {"tabId": 7})
            await until(lambda: bool(far.asked("goBack")))
            if end == "browser":
                far.ws.transport.abort()
            else:
                for connection in list(relay.server.connections):
                    connection.cancel()
            async with asyncio.timeout(30):
                with pytest.raises(LinkLost) as failed:
                    await call
            assert failed.value.outcome == "unknown"
        async with FarBrowser(relay.url, token()) as far:
            await until(lambda: tabs_reported(hub))
            assert remote(hub)[0].browser_id == far.extension_id
            assert not far.asked("goBack")  # at most once


async def test_two_agents_of_one_browser_get_progress_of_their_own_calls_only(tmp_path: Path) -> None:
    async with (
        running_relay() as relay,
        hub_at(tmp_path, relay, token()) as hub,
        FarBrowser(relay.url, token()) as far,
        IndependentAgent(relay.url, token()) as other,
    ):
        await until(lambda: tabs_reported(hub))
        await other.ready()
        (link,) = remote(hub)
        received: list[ToolProgress] = []
        link.handlers["tool.progress"] = lambda _, params: received.append(params)
        name = link.next_request_id
        assert name.startswith(f"{link.connection}:")
        await far.notify("tool.progress", {"dispatchId": f"{other.connection_id}:5", "progress": 1})
        await far.notify("tool.progress", {"dispatchId": "5", "progress": 2})
        await far.notify("tool.progress", {"dispatchId": name, "progress": 3})
        await until(lambda: bool(received))
        assert received == [ToolProgress(name.partition(":")[2], 3)]


async def test_browsers_of_other_users_are_not_listed(tmp_path: Path) -> None:
    async with (
        running_relay() as relay,
        hub_at(tmp_path, relay, token("ann")) as hub,
        FarBrowser(relay.url, token("bob"), "b") as foreign,
        FarBrowser(relay.url, token("ann"), "a") as own,
    ):
        await until(lambda: tabs_reported(hub))
        assert [link.browser_id for link in remote(hub)] == [own.extension_id]
        assert foreign.requests == []


async def test_token_replaced_in_its_file_is_used_without_reconnecting(tmp_path: Path) -> None:
    async with (
        running_relay() as relay,
        hub_at(tmp_path, relay, token(ident="first")) as hub,
        FarBrowser(relay.url, token()),
    ):
        await until(lambda: tabs_reported(hub))
        (link,) = remote(hub)
        (tmp_path / "relay.token").write_text(token(ident="second"))

        def all_new() -> bool:
            return {agent.claims and agent.claims.ids for agent in relay.node.state.tables.agents.values()} == {
                frozenset({"second"})
            }

        await until(all_new)
        assert remote(hub) == [link]
        assert link.closed is None


async def test_rejected_token_is_reported_and_a_new_one_is_used(tmp_path: Path) -> None:
    async with running_relay() as relay, hub_at(tmp_path, relay, token(ttl=-60)) as hub:
        relays = hub.hub.relays
        assert relays is not None
        await until(lambda: "Invalid token" in relays.status()[0].get("reason", ""))
        (tmp_path / "relay.token").write_text(token())
        await until(lambda: relays.status()[0]["connected"])


@pytest.mark.req("S003-auth-03")
def test_url_in_a_token_takes_precedence_over_the_settings(tmp_path: Path) -> None:
    file = tmp_path / "t"
    file.write_text(token(connection_url="wss://other.example/mcp"))
    assert read_token(RelaySettings("wss://relay.example", str(file))).url == "wss://other.example"
    file.write_text(token())
    assert read_token(RelaySettings("wss://relay.example/", str(file))).url == "wss://relay.example"
    file.write_text(token(connection_url="ws://other.example"))
    with pytest.raises(SetupError, match="unencrypted"):
        read_token(RelaySettings("wss://relay.example", str(file)))
    file.write_text("not a token")
    with pytest.raises(SetupError, match="not a JWT"):
        read_token(RelaySettings("wss://relay.example", str(file)))
    with pytest.raises(SetupError, match="cannot be read"):
        read_token(RelaySettings("wss://relay.example", str(tmp_path / "none")))


@pytest.mark.parametrize(
    "url", ["ws://relay.example", "http://relay.example", "wss://", "wss://a:b@c", "wss://x:y", "wss://[x"]
)
def test_invalid_or_unencrypted_relay_url_is_refused(url: str) -> None:
    with pytest.raises(SetupError):
        relay_url(url)


@pytest.mark.parametrize("url", ["ws://127.0.0.1:9", "ws://localhost:9/mcp", "ws://[::1]:9", "wss://r.example/team"])
def test_unencrypted_url_is_accepted_for_this_machine(url: str) -> None:
    assert relay_url(url) == url.removesuffix("/mcp")


@pytest.mark.req("S003-clients-01")
async def test_request_from_a_relay_is_not_answered_and_ids_are_integers() -> None:
    sent: list[bytes] = []
    link = RelayLink("ext-1", sent.append, lambda code, reason: None, DEFAULTS)
    link.feed(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "getState", "params": {}}))
    link.feed("{")
    assert sent == []
    assert (link.counts.refused, link.counts.malformed) == (1, 1)
    for _ in range(2):
        link.request("getTabs", {})
    assert [json.loads(data)["id"] for data in sent] == [1, 2]


async def test_hub_started_with_a_relay_option_connects_to_its_browsers(tmp_path: Path) -> None:
    file, access = tmp_path / "relay.token", token()
    file.write_text(access)
    home = tmp_path / "home"
    ask_nobody(home)
    async with running_relay() as relay, FarBrowser(relay.url, token()) as far:
        words = ("--port", "0", "--no-launch", "--relay", relay.url, "--token-file", str(file))
        process = await tabhub(home, "start", *words)
        try:
            assert process.stdout is not None
            async with asyncio.timeout(30):
                line = (await process.stdout.readline()).decode()
                await until(lambda: bool(far.asked("getTabs")))
            assert "is running on http://127.0.0.1:" in line
        finally:
            process.terminate()
            output, errors = await process.communicate()
        assert access.encode() not in output + errors
        assert access not in (home / "logs" / "hub.log").read_text()


@pytest.mark.parametrize(
    ("words", "code", "output"),
    [
        (("--relay", "wss://relay.example"), 2, "belong together"),
        (("--relay", "wss://relay.example", "--token-file", "/none/at/all"), 1, "cannot be read"),
        (("--relay", "ws://relay.example", "--token-file", "TOKEN"), 1, "unencrypted"),
    ],
)
async def test_start_with_an_unusable_relay_option_explains_why(
    tmp_path: Path, words: tuple[str, ...], code: int, output: str
) -> None:
    file = tmp_path / "relay.token"
    file.write_text(token())
    chosen = [str(file) if word == "TOKEN" else word for word in words]
    process = await tabhub(tmp_path / "home", "start", "--port", "0", "--no-launch", *chosen)
    _, errors = await process.communicate()
    assert process.returncode == code
    assert output in errors.decode()
    assert "Traceback" not in errors.decode()


def test_relays_in_the_configuration_are_validated_and_round_trip() -> None:
    one = {"url": "wss://relay.example", "tokenFile": "~/relay.token"}
    config = Config.parse({"relays": [one]})
    assert config.relays == (RelaySettings("wss://relay.example", "~/relay.token"),)
    assert config.values()["relays"] == [one]
    for wrong in ("wss://x", [{"url": "wss://x"}], [{**one, "url": "https://x"}], [{**one, "tokenFile": ""}], [1]):
        with pytest.raises(SetupError, match="relays"):
            Config.parse({"relays": wrong})
