"""The extension's connection: it reconnects, there is at most one, and its state is shown."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from tests.extension.conftest import EXTENSION_ID, SECRET, Chromium
from tests.extension.fakehub import FakeHub, Wire
from tests.harness.waiting import eventually


@pytest.fixture(autouse=True)
async def one_socket_at_a_time(hub: FakeHub) -> AsyncIterator[None]:
    yield
    assert hub.most_at_once <= 1


@pytest.fixture(scope="module", autouse=True)
async def quiet(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[FakeHub, Wire, float]]:
    """A second browser, idle from the beginning; its hub, its connection, and when its worker started."""
    hub = FakeHub()
    await hub.listen()
    browser = Chromium(tmp_path_factory.mktemp("quiet"), hub)
    await browser.start()
    wire = await hub.connection(1)
    yield hub, wire, (await wire.ask("getState"))["startedAt"]
    await browser.stop()
    await hub.stop()


@pytest.mark.req("F2")
async def test_a_stopped_worker_restarts_with_the_next_tab_event(hub: FakeHub, chromium: Chromium, wire: Wire) -> None:
    browser = wire.protocols[2]
    for _ in range(20):
        seen = len(hub.wires)
        before = hub.wires[-1]
        await chromium.stop_worker()
        await before.closed.wait()
        made = await chromium.devtools("Target.createTarget", url="about:blank", background=True)
        back = await hub.connection(seen + 1)
        assert back.protocols[2] == browser
        tabs = [t["tabId"] for t in (await back.ask("getTabs"))["tabs"]]
        assert len(tabs) == len(set(tabs))
        await chromium.devtools("Target.closeTarget", targetId=made["targetId"])


@pytest.mark.req("F2")
async def test_a_stopped_worker_restarts_by_its_alarm(hub: FakeHub, chromium: Chromium, wire: Wire) -> None:
    seen = len(hub.wires)
    async with chromium.page(POPUP) as page:
        alarm = await until(page, f"chrome.alarms.get({ALARM!r})", "found => Boolean(found)")
        assert alarm["periodInMinutes"] == 0.5
        # The same alarm, only sooner.
        await page("Runtime.evaluate", expression=f"chrome.alarms.create({ALARM!r}, {{ periodInMinutes: 0.02 }})")
    before = hub.wires[-1]
    await chromium.stop_worker()
    await before.closed.wait()
    await hub.connection(seen + 1)
    async with chromium.page(POPUP) as page:
        await page("Runtime.evaluate", expression=f"chrome.alarms.create({ALARM!r}, {{ periodInMinutes: 0.5 }})")


async def test_debuggers_of_a_stopped_worker_are_detached_and_can_attach_again(
    hub: FakeHub, chromium: Chromium, wire: Wire
) -> None:
    tab = (await wire.ask("createTab"))["tabId"]
    await wire.cdp(tab, "Runtime.evaluate", expression="1")
    seen = len(hub.wires)
    await chromium.stop_worker()
    await chromium.devtools("Target.createTarget", url="about:blank", background=True)
    back = await hub.connection(seen + 1)
    assert (await back.ask("getState"))["debugger"] == {"attached": []}
    assert (await back.cdp(tab, "Runtime.evaluate", expression="1+1"))["result"]["value"] == 2
    await back.ask("closeTab", tabId=tab)


async def test_the_extension_reconnects_after_a_restart_and_with_a_new_secret(
    hub: FakeHub, chromium: Chromium, wire: Wire
) -> None:
    seen = len(hub.wires)
    await hub.stop()
    assert "No hub answers" in await popup_says(chromium, "No hub answers")
    hub.secret = "ab" * 32
    chromium.write_auth(hub.port, secret=hub.secret, debuggerIdleMs=1500)
    await hub.listen()
    back = await hub.connection(seen + 1)
    assert back.protocols[1] == "ab" * 32
    hub.secret = SECRET
    chromium.write_auth(hub.port, debuggerIdleMs=1500)
    await back.socket.close(4001, "secret rotated")
    again = await hub.connection(seen + 2)
    assert again.protocols[1] == SECRET


async def test_the_extension_reconnects_after_a_shutdown(hub: FakeHub, wire: Wire) -> None:
    """The delay is tested with a virtual clock, in clock/link.test.mjs."""
    seen = len(hub.wires)
    await wire.socket.close(4004, "shutting down")
    await hub.connection(seen + 1)


async def test_a_refusing_hub_is_distinguished_from_a_missing_one(hub: FakeHub, chromium: Chromium, wire: Wire) -> None:
    seen = len(hub.wires)
    hub.refuses = True
    await wire.socket.close(4001, "secret rotated")
    assert "refuses this browser" in await popup_says(chromium, "refuses this browser")
    hub.refuses = False
    await hub.connection(seen + 1)


async def test_a_program_on_the_hubs_port_without_the_secret_gets_neither_the_secret_nor_the_browser(
    hub: FakeHub, chromium: Chromium, wire: Wire
) -> None:
    seen, port = len(hub.wires), hub.port
    # The last one relays the messages of the hub from another port.
    for secret, proved in ((None, port), ("00" * 32, port), (SECRET, port + 1)):
        hub.secret, hub.port = secret, proved
        before = len(hub.asked)
        await hub.wires[-1].socket.close(4004, "shutting down")
        assert "does not know the key" in await popup_says(chromium, "does not know the key")
        asked = hub.asked[before:]
        assert asked
        assert all(request.path.startswith("/health?challenge=") for request in asked)
        assert SECRET not in str([(request.path, request.headers) for request in asked])
        hub.secret, hub.port = SECRET, port
        await hub.connection(seen := seen + 1)


@pytest.mark.req("S002-reload-04")
async def test_the_hub_can_reload_the_extension(hub: FakeHub, wire: Wire) -> None:
    seen = len(hub.wires)
    await wire.notify("extension.reload")
    back = await hub.connection(seen + 1)
    assert back.protocols == wire.protocols


async def test_without_settings_it_waits_for_setup_and_then_connects(
    hub: FakeHub, chromium: Chromium, wire: Wire
) -> None:
    seen = len(hub.wires)
    (chromium.extension / "auth.json").write_text('{"secret": "short"}')
    await wire.socket.close(4004, "shutting down")
    assert "secret is not 64 hex digits" in await popup_says(chromium, "Waiting for setup")
    (chromium.extension / "auth.json").unlink()
    assert "auth.json is missing" in await popup_says(chromium, "auth.json is missing")
    chromium.write_auth(hub.port)
    await hub.connection(seen + 1)
    assert "Connected" in await popup_says(chromium, "Connected")


@pytest.mark.req("F8")
async def test_a_replaced_browser_does_not_reconnect_at_once(hub: FakeHub, chromium: Chromium, wire: Wire) -> None:
    seen, asked = len(hub.wires), len(hub.asked)
    await wire.socket.close(4000, "replaced")
    # Neither opening the popup nor a restarted worker shortens the pause.
    assert "with the same id has connected" in await popup_says(chromium, "with the same id has connected")
    await chromium.stop_worker()
    assert "with the same id has connected" in await popup_says(chromium, "with the same id has connected")
    assert len(hub.asked) == asked
    # The length of the pause is tested with a virtual clock, in clock/link.test.mjs; here it ends at once.
    async with chromium.page(POPUP) as page:
        await page("Runtime.evaluate", expression="chrome.storage.session.remove('notBefore')", awaitPromise=True)
    await chromium.stop_worker()
    await chromium.devtools("Target.createTarget", url="about:blank", background=True)
    await hub.connection(seen + 1)


@pytest.mark.req("F3")
async def test_a_hub_that_answers_no_ping_causes_a_reconnect(hub: FakeHub, chromium: Chromium, wire: Wire) -> None:
    seen = len(hub.wires)
    chromium.write_auth(hub.port, pingMs=400)
    await wire.socket.close(4004, "shutting down")
    deaf = await hub.connection(seen + 1)
    await deaf.notified("ping")
    await deaf.notified("ping", after=len(deaf.seen))
    deaf.answers_pings = False
    await deaf.closed.wait()
    assert deaf.socket.close_code == 4005
    chromium.write_auth(hub.port)
    back = await hub.connection(seen + 2)
    assert "did not answer a ping" in (await back.notified("log"))["message"]


async def test_the_toolbar_button_shows_the_state(hub: FakeHub, chromium: Chromium, wire: Wire) -> None:
    seen = len(hub.wires)
    async with chromium.page(POPUP) as page:
        assert await button(page, "connected to") == ["", f"Tabhub: connected to 127.0.0.1:{hub.port}"]
        await hub.stop()
        badge, title = await button(page, "No hub answers")
        assert badge == "!"
        assert title.startswith("Tabhub: not connected\nNo hub answers at 127.0.0.1:")
        await hub.listen()
        await hub.connection(seen + 1)
        assert (await button(page, "connected to"))[0] == ""


@pytest.mark.req("S002-ws-extension-20")
async def test_pings_alone_keep_the_worker_and_its_connection_alive_beyond_the_browsers_limit(
    quiet: tuple[FakeHub, Wire, float],
) -> None:
    """An idle worker is stopped after 30 s; the second ping arrives 40 s after the last message. The only test that
    waits for a limit of the browser itself. Most of the time passes during the tests before this one."""
    hub, wire, started = quiet
    since = 0
    for _ in range(2):
        ping = await wire.next(lambda message: message.get("method") == "ping", after=since)
        since = wire.seen.index(ping, since) + 1
    assert (await wire.ask("getState"))["startedAt"] == started
    assert len(hub.wires) == 1
    assert not wire.closed.is_set()


POPUP = f"chrome-extension://{EXTENSION_ID}/panel/popup.html"
ALARM = "tabhub.revive"


async def button(page: Callable[..., Awaitable[Any]], wanted: str) -> list[str]:
    """Badge and tooltip of the toolbar button, once the tooltip contains the text."""
    look = "Promise.all([chrome.action.getBadgeText({}), chrome.action.getTitle({})])"
    return list(await until(page, look, f"found => found[1].includes({wanted!r})"))


async def popup_says(chromium: Chromium, wanted: str) -> str:
    """The text of the popup once it contains the text."""
    async with chromium.page(POPUP) as page:
        return str(await until(page, "document.body.innerText", f"found => found.includes({wanted!r})"))


async def until(page: Callable[..., Awaitable[Any]], look: str, enough: str) -> Any:
    """The value of an expression in a page once it is sufficient."""
    script = f"(async () => {{ const found = await ({look}); return ({enough})(found) ? [found] : []; }})()"

    async def looked() -> list[Any]:  # not in the page: timers of a background page fire once a second
        answer = await page("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        found: list[Any] = answer["result"]["value"]
        return found

    return (await eventually(looked))[0]
