"""The extension at a relay: a real Chromium, a real relay node, and agents written from the protocol's specification
alone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection, serve

from tests.extension.conftest import EXTENSION_ID, Chromium, Site
from tests.extension.fakehub import FakeHub, Wire
from tests.extension.pluginbench import Bench
from tests.extension.test_panel_port import CONNECT
from tests.harness.waiting import until
from tests.relay.independent import IndependentAgent
from tests.relay.world import RunningRelay, running_relay, token

_CHANGES = 'window.received.filter((message) => message.method === "relay.changed").length'
_CHANGED = f"(async () => {{ while ({_CHANGES} <= %d) await window.next(); }})()"


class Ask:
    """A panel page: sends requests to the worker and receives its notifications, like the panel."""

    def __init__(self, run: Callable[[str], Awaitable[Any]]) -> None:
        self.evaluate = run

    async def __call__(self, method: str, /, **params: Any) -> Any:
        return await self.evaluate(f"ask('{method}', {json.dumps(params)})")

    async def changes(self) -> int:
        """How often it was notified of a change of the relay."""
        count: int = await self.evaluate(_CHANGES)
        return count

    async def changed(self, since: int) -> None:
        """Wait until it was notified more often."""
        await self.evaluate(_CHANGED % since)


@pytest.fixture(scope="module")
async def relay() -> AsyncIterator[RunningRelay]:
    async with running_relay() as relay:
        yield relay


@pytest.fixture
async def panel(wire: Wire, chromium: Chromium) -> AsyncIterator[Ask]:
    """A panel page that sends requests to the worker; returns the answer."""
    (chromium.extension / "panel" / "test.html").write_text("<!doctype html><title>Test</title>")
    async with chromium.page(f"chrome-extension://{EXTENSION_ID}/panel/test.html") as command:

        async def run(expression: str) -> Any:
            answer = await command("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
            assert "exceptionDetails" not in answer, answer
            return answer["result"].get("value")

        ask = Ask(run)
        await run(f"{{ {CONNECT} }}")
        yield ask
        await ask("relay.set", url="", token="", level="ask", sites=[], instead=False)


async def connected(panel: Ask, relay: RunningRelay, user: str = "ann", **more: Any) -> None:
    """Configure the relay like a person, and wait until the browser is connected."""
    answer = await panel("relay.set", url=relay.url, token=token(user), **more)
    assert "error" not in answer, answer
    await state(panel, lambda facts: facts["phase"] == "connected")


async def state(panel: Ask, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The relay's state, once it is as wanted."""
    async with asyncio.timeout(30):
        while True:
            before = await panel.changes()
            facts: dict[str, Any] = (await panel("relay.state"))["result"]
            if wanted(facts):
                return facts
            await panel.changed(before)


async def answered(panel: Ask, allow: bool) -> dict[str, Any]:
    """Answer the pending approval."""
    question: dict[str, Any] = (await state(panel, lambda facts: bool(facts["questions"])))["questions"][0]
    assert (await panel("relay.answer", id=question["id"], allow=allow))["result"] == {"known": True}
    return question


@pytest.mark.req("S003-extension-connection-01", "S003-extension-connection-03")
async def test_the_relay_authenticates_the_browser_which_also_serves_the_local_hub(
    relay: RunningRelay, panel: Ask, wire: Wire
) -> None:
    await connected(panel, relay)
    async with IndependentAgent(relay.url, token()) as agent:
        await agent.handshake()
        (listed,) = await agent.browsers()
        assert listed["name"].startswith("Chromium ")
        await agent.join(listed["id"])
        there = await agent.result("getTabs")
        assert there == await wire.ask("getTabs")
        facts = await state(panel, lambda facts: facts["agents"] == 1)
        assert (facts["user"], facts["hasToken"]) == ("ann", True)
        assert "token" not in facts
        assert relay.node.state.tables.counts.malformed == 0
        assert relay.node.state.tables.counts.foreign == 0


async def test_a_browser_that_reconnects_with_new_settings_is_not_shown_as_connected(
    relay: RunningRelay, panel: Ask
) -> None:
    await connected(panel, relay)
    changed = (await panel("relay.set", url=relay.url, token=token("bob")))["result"]
    assert changed["phase"] == "connecting"
    assert (await state(panel, lambda facts: facts["phase"] == "connected"))["user"] == "bob"


@pytest.mark.req("S003-ids-08")
async def test_each_request_is_answered_under_its_id_and_unknown_ones_are_refused(
    relay: RunningRelay, panel: Ask
) -> None:
    await connected(panel, relay, level="act")
    async with IndependentAgent(relay.url, token()) as one, IndependentAgent(relay.url, token()) as other:
        await one.ready()
        await other.ready()
        answers = await asyncio.gather(
            *(agent.ask("getTabs", id=ident) for agent in (one, other) for ident in (7, "7", "a-b"))
        )
        assert [answer["id"] for answer in answers] == [7, "7", "a-b"] * 2
        assert (await one.error("extension.reload"))["code"] == -32601
        assert (await one.error("closeTab", {"tabId": "x"}))["code"] == -32602


async def test_agents_get_tab_changes_as_notifications_only(
    relay: RunningRelay, panel: Ask, wire: Wire, site: Site
) -> None:
    await connected(panel, relay)
    async with IndependentAgent(relay.url, token()) as agent:
        await agent.ready()
        assert {tab["tabId"] for tab in (await agent.notified("tab.syncAll"))["tabs"]}
        made = (await wire.ask("createTab", url=f"{site.url}/", waitUntil="load"))["tabId"]
        async with asyncio.timeout(30):
            while (await agent.notified("tab.stateChanged"))["tabId"] != made:
                pass
        await wire.ask("closeTab", tabId=made)


async def test_actions_need_one_approval_per_site_and_connection(
    relay: RunningRelay, panel: Ask, wire: Wire, site: Site
) -> None:
    made = (await wire.ask("createTab", url=f"{site.url}/", waitUntil="load"))["tabId"]
    await connected(panel, relay)
    async with IndependentAgent(relay.url, token()) as agent:
        await agent.ready()
        looking = {"tabId": made, "method": "Page.getLayoutMetrics"}
        assert await agent.result("forwardCDPCommand", looking)  # without an approval
        script = {"tabId": made, "method": "Runtime.evaluate", "params": {"expression": "document.title"}}
        first, second = await agent.begin("forwardCDPCommand", script), await agent.begin("forwardCDPCommand", script)
        question = await answered(panel, allow=True)
        assert question["site"] == site.url
        assert question["place"] == f"127.0.0.1:{relay.port}"
        for answer in (await first, await second):
            assert answer["result"]["result"]["value"] == "Home"
        assert (await agent.result("forwardCDPCommand", script))["result"]["value"] == "Home"
        opening = await agent.begin("createTab", {"url": "http://localhost:1/"})
        assert (await answered(panel, allow=False))["site"] == "http://localhost:1"
        assert "did not allow" in (await opening)["error"]["message"]
        assert "did not allow" in (await agent.error("createTab", {"url": "http://localhost:1/"}))["message"]
    async with IndependentAgent(relay.url, token()) as later:
        await later.ready()
        again = await later.begin("forwardCDPCommand", script)
        await answered(panel, allow=False)
        assert "did not allow" in (await again)["error"]["message"]
    await wire.ask("closeTab", tabId=made)


async def test_actions_can_be_off_or_without_approval(relay: RunningRelay, panel: Ask, wire: Wire, site: Site) -> None:
    await connected(panel, relay, level="read")
    async with IndependentAgent(relay.url, token()) as agent:
        await agent.ready()
        assert "may only look" in (await agent.error("createTab", {"url": site.url}))["message"]
        assert "may only look" in (await agent.error("getCookies", {"url": site.url}))["message"]
        for along in ("ahead", "follow"):
            looking = {"tabId": 1, "method": "Page.getLayoutMetrics", along: [{"method": "Input.insertText"}]}
            assert "may only look" in (await agent.error("forwardCDPCommand", looking))["message"]
        await panel("relay.set", level="act")
        made = (await agent.result("createTab", {"url": f"{site.url}/"}))["tabId"]
        await agent.result("closeTab", {"tabId": made})


async def test_events_go_to_their_subscribers(relay: RunningRelay, panel: Ask, wire: Wire, site: Site) -> None:
    made = (await wire.ask("createTab", url=f"{site.url}/", waitUntil="load"))["tabId"]
    await connected(panel, relay, level="act")
    async with IndependentAgent(relay.url, token()) as agent:
        await agent.ready()
        await wire.ask("subscribeCDPEvents", tabId=made, events=["Runtime.consoleAPICalled"])
        await wire.cdp(made, "Runtime.enable")
        await agent.result("subscribeCDPEvents", {"tabId": made, "events": ["Page.loadEventFired"]})
        await wire.cdp(made, "Page.enable")
        await wire.cdp(made, "Runtime.evaluate", expression="console.log('hub')")
        await wire.notified("cdp.event", tabId=made, method="Runtime.consoleAPICalled")
        at = len(wire.seen)
        await wire.ask("browser_navigate", tabId=made, url=f"{site.url}/other")
        assert (await agent.notified("cdp.event"))["method"] == "Page.loadEventFired"
        await wire.cdp(made, "Runtime.evaluate", expression="console.log('again')")
        await wire.notified("cdp.event", after=at, method="Runtime.consoleAPICalled")
        assert not [m for m in wire.seen[at:] if m.get("params", {}).get("method") == "Page.loadEventFired"]
    await wire.ask("closeTab", tabId=made)


async def test_what_concerns_one_agent_reaches_no_other(
    relay: RunningRelay, panel: Ask, hub: FakeHub, wire: Wire, chromium: Chromium, site: Site
) -> None:
    plugin = Bench(wire, chromium).plugin("relayed", "*://127.0.0.1/*")
    await connected(panel, relay, level="act", instead=True)
    async with asyncio.timeout(30):
        await wire.closed.wait()
    count = len(hub.wires)
    async with IndependentAgent(relay.url, token()) as one, IndependentAgent(relay.url, token()) as other:
        await one.ready()
        await other.ready()
        await one.send({"method": "sync.full", "params": {"plugins": [plugin]}})
        tab = (await one.result("createTab", {"url": f"{site.url}/", "waitUntil": "load"}))["tabId"]
        await plugin_ready(one, tab)
        await one.result("subscribeCDPEvents", {"tabId": tab, "events": ["Runtime.consoleAPICalled"]})
        await other.result("subscribeCDPEvents", {"tabId": tab, "events": ["Page.frameNavigated"]})
        for method in ("Runtime.enable", "Page.enable"):
            await one.result("forwardCDPCommand", {"tabId": tab, "method": method})
        logged = {"method": "Runtime.evaluate", "params": {"expression": "console.log('one')"}}
        await one.result("forwardCDPCommand", {"tabId": tab, **logged})
        assert (await one.notified("cdp.event"))["method"] == "Runtime.consoleAPICalled"
        call = {"plugin": "relayed", "tabId": tab, "dispatchId": "names the call of nobody else"}
        await one.result("tool.dispatch", {**call, "tool": "says", "input": {"lines": [["info", "secret"]]}})
        assert (await one.notified("plugin.log"))["entries"][0]["message"] == "secret"
        await one.result("tool.dispatch", {**call, "tool": "steps", "input": {"steps": [{"progress": 1}]}}, id=99)
        assert await one.notified("tool.progress") == {"dispatchId": f"{one.connection_id}:99", "progress": 1}
        forged = {
            **call,
            "dispatchId": f"{one.connection_id}:99",
            "tool": "steps",
            "input": {"steps": [{"progress": 2}]},
        }
        await other.result("tool.dispatch", forged)
        assert (await other.notified("tool.progress"))["progress"] == 2
        await other.send({"method": "sync.full", "params": {"plugins": []}})  # removes none but its own
        await other.result("browser_navigate", {"tabId": tab, "url": f"{site.url}/other"})
        assert (await other.notified("cdp.event"))["method"] == "Page.frameNavigated"
        await one.result("closeTab", {"tabId": tab})
        for agent, own in ((one, {"Runtime.consoleAPICalled"}), (other, {"Page.frameNavigated"})):
            while (await agent.notified("tab.stateChanged")).get("change") != "removed":
                pass
            events = [each["params"]["method"] for each in agent.received if each.get("method") == "cdp.event"]
            assert set(events) == own
        progress = [each["params"]["progress"] for each in one.received if each.get("method") == "tool.progress"]
        assert progress == [1]
        assert "plugin.log" not in {each.get("method") for each in other.received}
        assert [each["plugin"] for each in (await one.result("getAdapters"))["adapters"]] == ["relayed"]
        await one.send({"method": "sync.full", "params": {"plugins": []}})
    await panel("relay.set", instead=False)
    await hub.connection(count + 1)


async def test_the_code_of_plugins_is_approved_for_one_agent(relay: RunningRelay, panel: Ask, hub: FakeHub) -> None:
    count = len(hub.wires)
    await connected(panel, relay, level="ask", instead=True)
    async with IndependentAgent(relay.url, token()) as one, IndependentAgent(relay.url, token()) as other:
        for agent in (await one.ready(), await other.ready()):
            await agent.send({"method": "sync.full", "params": {"plugins": [{}]}})
            assert (await answered(panel, True))["what"] == "run the code of its plugins in your pages"
    await panel("relay.set", instead=False)
    await hub.connection(count + 1)


async def plugin_ready(agent: IndependentAgent, tab: int) -> None:
    async with asyncio.timeout(30):
        while {"tabId": tab, "ready": True} not in (await agent.notified("tab.stateChanged")).get("tabs", []):
            pass


async def test_the_browser_reconnects_with_the_same_id_and_a_new_token(relay: RunningRelay, panel: Ask) -> None:
    await connected(panel, relay)
    browsers = relay.node.state.tables.browsers
    before, old = {b.ident for b in browsers.values()}, set(browsers)
    for connection in list(relay.server.connections):
        connection.cancel()
    await until(lambda: any(b.user is not None and client not in old for client, b in browsers.items()), 15)
    assert {b.ident for b in browsers.values()} == before
    await panel("relay.set", token=token("bob"))
    await state(panel, lambda facts: facts["user"] == "bob" and facts["phase"] == "connected")
    (browser,) = browsers.values()
    assert browser.ident not in before


async def test_a_refused_token_and_unsafe_settings_are_reported(relay: RunningRelay, panel: Ask) -> None:
    for wrong in (
        {"url": "ws://relay.example"},
        {"url": "https://relay.example"},
        {"level": "always"},
        {"token": "a b"},
    ):
        assert "error" in await panel("relay.set", **wrong)
    clear = token(connection_url="ws://relay.example")
    assert "Use wss" in (await panel("relay.set", url=relay.url, token=clear))["error"]["message"]
    await panel("relay.set", url=relay.url, token=token(ttl=-60))
    facts = await state(panel, lambda facts: facts["phase"] == "waiting")
    assert "refused the token" in facts["reason"]


async def test_relay_only_disconnects_the_local_hub_until_it_is_turned_off(
    relay: RunningRelay, panel: Ask, hub: FakeHub, wire: Wire
) -> None:
    await connected(panel, relay, instead=True)
    async with asyncio.timeout(30):
        await wire.closed.wait()
    count = len(hub.wires)
    async with IndependentAgent(relay.url, token()) as agent:
        await agent.ready()
        assert (await agent.result("getTabs"))["tabs"]
    await panel("relay.set", instead=False)
    await hub.connection(count + 1)


@pytest.mark.req(
    "S003-principles-02",
    "S003-principles-06",
    "S003-ids-04",
    "S003-ids-07",
    "S003-extension-connection-05",
    "S003-extensions-01",
    "S003-extensions-05",
)
async def test_nothing_is_sent_before_authentication_and_ids_identify_the_sender(panel: Ask) -> None:
    received_messages: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    came: asyncio.Future[ServerConnection] = asyncio.get_running_loop().create_future()

    async def relay(socket: ServerConnection) -> None:
        if not came.done():
            came.set_result(socket)
        async for text in socket:
            received_messages.put_nowait(json.loads(text))

    async def ask(**message: Any) -> dict[str, Any]:
        """Send a request, and return the next message that is not a notification."""
        await socket.send(json.dumps({"jsonrpc": "2.0", "params": {}, **message}))
        while "id" not in (answer := await asyncio.wait_for(received_messages.get(), 30)):
            assert set(answer) == {"jsonrpc", "method", "params"}
        return answer

    async with serve(relay, "127.0.0.1", 0) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        access = token()
        await panel("relay.set", url=f"ws://127.0.0.1:{port}", token=access, level="act")
        socket = await asyncio.wait_for(came, 30)
        assert received_messages.empty()
        shown = await ask(id="proxy:1", method="authenticate")
        assert shown["id"] == "proxy:1"
        assert shown["result"]["accessToken"] == access
        assert set(shown["result"]) == {"name", "accessToken", "instanceId"}
        for method, params in (
            ("authenticated", {"user_id": "ann", "extension_id": "ext-1"}),
            ("status", {"connected": True, "peer_count": 1, "timestamp": "now"}),
            ("unheard-of", {}),
        ):
            await socket.send(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}))
        forwarded = await ask(id="conn-a:1", method="getTabs")
        assert forwarded["id"] == "conn-a:1"
        assert forwarded["result"]["tabs"]
        for ident, method in (
            (5, "getTabs"),
            ("proxy:2", "getTabs"),
            ("conn-a:2", "authenticate"),
            (6, "authenticate"),
        ):
            refused = await ask(id=ident, method=method)
            assert (refused["id"], refused["error"]["code"]) == (ident, -32601)
        await panel("relay.set", url="", token="")


async def test_messages_reserved_for_the_local_hub_are_refused_from_agents(relay: RunningRelay, panel: Ask) -> None:
    await connected(panel, relay, level="act")
    async with IndependentAgent(relay.url, token()) as agent:
        await agent.ready()
        for method in ("extension.reload", "pages.settings", "agents.marks", "confirmation.done", "relay.set"):
            await agent.send({"method": method, "params": {"allowedOrigins": [], "url": "", "token": ""}})
        assert (await agent.result("getTabs"))["tabs"]
    await state(panel, lambda facts: facts["phase"] == "connected" and facts["agents"] == 0)
