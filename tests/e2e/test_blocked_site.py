"""A site that the person keeps agents off: nothing of it comes out of any tool, list, picture or notification."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import zlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tabhub.browser.families import FAMILIES
from tabhub.browser.tools.acting import batch
from tabhub.store import config_file
from tabhub.store.home import Home
from tests.e2e import png
from tests.e2e.blocked_site import COLOUR, HOST, SECRET, BlockedSite
from tests.e2e.live import LiveHub
from tests.e2e.surfaces import (
    SURFACES,
    Arguments,
    Call,
    Surface,
    at_a_relay,
    rest,
    with_session,
    without_session,
)
from tests.harness.agent import Agent, client
from tests.harness.hub import running_hub
from tests.harness.waiting import eventually
from tests.relay.world import token

SITES = {f"*.{HOST}": "block", f"ok.{HOST}": "act"}


@pytest.fixture(scope="module")
def sites() -> Iterator[BlockedSite]:
    site = BlockedSite()
    yield site
    site.stop()


async def keep_off(hub: LiveHub, sites: Any) -> None:
    """Set the site rules of the hub. Nothing else stops an agent while they hold."""
    config_file.set_at(Home(hub.home), ("sites",), sites)
    config_file.set_at(Home(hub.home), ("skipPermissions",), None if sites is None else True)
    async with client(hub) as http:
        answer = await http.post("/reload")
        assert answer.status_code == 200, answer.text


@dataclass(slots=True)
class World:
    """What was there before the site was blocked, and an agent that has seen it."""

    hub: LiveHub
    sites: BlockedSite
    agent: Agent
    bank: int = -1
    """A tab of the blocked site."""
    framed: int = -1
    """A tab of the other site, with frames of the blocked one."""
    used: int = -1
    """A tab that showed the blocked site before."""
    group: int = -1
    window: int = -1
    download: int = -1
    closed: str = ""
    handle: str = ""
    frame_ref: str = ""
    near: int = -1
    """The same as `framed`, but of a site that shares its process with the blocked one."""
    near_ref: str = ""
    tool: str = ""
    request: str = ""
    opened: list[int] = field(default_factory=list)

    async def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        answer: dict[str, Any] = (await self.agent.call(name, arguments))["result"]
        return answer

    async def run(self, name: str, arguments: Arguments) -> dict[str, Any]:
        return await self.call(name, **arguments)

    async def get(self, name: str, /, **arguments: Any) -> Any:
        answer = await self.call(name, **arguments)
        assert not answer.get("isError"), (name, answer)
        return answer["structuredContent"]

    async def open(self, url: str) -> int:
        tab_id: int = (await self.get("browser_open_tab", url=url))["tabId"]
        self.opened.append(tab_id)
        return tab_id

    async def open_frames(self, site: str) -> tuple[int, str]:
        """A page with frames of the blocked site, and the ref of a button in one of them."""
        tab_id = await self.open(f"{site}/framed")
        await self.get("browser_wait_for", tabId=tab_id, networkIdle=True)
        snapshot = await self.get("browser_snapshot", tabId=tab_id)
        assert snapshot["snapshot"].count(f"{SECRET} body") == 2, snapshot
        await self.get("browser_get_css_coverage", tabId=tab_id)
        return tab_id, re.findall(r"button \"Inside .*\[ref=(f[0-9]+e[0-9]+)", snapshot["snapshot"])[0]

    async def leave(self) -> None:
        """Close what was opened, also what the agent was not told of."""
        for tab in (await self.get("browser_list_tabs"))["tabs"]:
            if tab["tabId"] in self.opened or str(self.sites.port) in tab["url"]:
                await self.call("browser_close_tab", tabId=tab["tabId"])

    async def fill(self) -> None:
        """Have something of the site everywhere."""
        bank, shop = self.sites.bank, self.sites.shop
        self.used = await self.open(f"{bank}/{SECRET}-first")
        await self.get("browser_enable_network_capture", tabId=self.used)
        await self.get("browser_reload_tab", tabId=self.used)
        seen = (await self.get("browser_get_network_requests", tabId=self.used))["requests"]
        self.request = next(each["id"] for each in seen if SECRET in each["url"])
        long = await self.get("browser_navigate_tab", tabId=self.used, url=f"{bank}/{SECRET}-big")
        assert long["ok"]
        text = json.dumps(await self.call("browser_get_page_html", tabId=self.used, maxLength=2_000_000))
        self.handle = re.findall(r"r_[A-Za-z0-9_-]{20}", text)[0]
        await self.get("browser_performance_trace", tabId=self.used, action="start")
        await self.get("browser_navigate_tab", tabId=self.used, url=f"{shop}/")
        closed = await self.open(f"{bank}/{SECRET}-closed")
        await self.get("browser_close_tab", tabId=closed)
        there = (await self.get("browser_get_recently_closed"))["closed"]
        self.closed = next(each["sessionId"] for each in there if SECRET in each.get("url", ""))
        await self.get("browser_create_bookmark", title=f"{SECRET} mark", url=f"{bank}/{SECRET}-mark")
        self.download = (await self.get("browser_download_file", url=f"{bank}/{SECRET}.bin"))["downloadId"]
        window = await self.get("browser_create_window", url=f"{bank}/{SECRET}-tab")
        self.bank, self.window = window["tabId"], window["window"]["windowId"]
        self.opened.append(self.bank)
        self.group = (await self.get("browser_create_tab_group", tabIds=[self.bank]))["groupId"]
        await self.get("browser_release_tab", tabId=self.bank)  # an agent may leave a tab of its own
        self.framed, self.frame_ref = await self.open_frames(shop)
        self.near, self.near_ref = await self.open_frames(self.sites.near)

        async def registered() -> list[str]:
            listed = await self.agent.request("tools/list")
            return [name for name in re.findall(r'"(website_tool_[^"]*)"', json.dumps(listed)) if SECRET in name]

        self.tool = (await eventually(registered))[0]


@pytest.fixture(scope="module")
async def world(live_hub: LiveHub, sites: BlockedSite) -> AsyncIterator[World]:
    async with Agent(live_hub) as agent:
        world = World(live_hub, sites, agent)
        before = await windows(world)
        await world.fill()
        await keep_off(live_hub, SITES)
        try:
            yield world
        finally:
            await keep_off(live_hub, None)
            await world.leave()
            for number in await windows(world) - before:
                await world.call("browser_close_window", windowId=number)


async def windows(world: World) -> set[int]:
    return {each["windowId"] for each in (await world.get("browser_list_windows"))["windows"]}


def leaks(answer: Any) -> bool:
    """Whether an answer tells anything of the site. A refusal may name the rule that the person set."""
    text = answer if isinstance(answer, str) else json.dumps(answer)
    for known in (f"*.{HOST}", f"ok.{HOST}"):
        text = text.replace(known, "")
    return SECRET in text or HOST in text or _shows_colour(answer)


def _shows_colour(answer: Any) -> bool:
    images = [part for part in answer.get("content", ()) if part["type"] == "image"] if isinstance(answer, dict) else []
    return any(_coloured(base64.b64decode(part["data"])) for part in images)


def _coloured(data: bytes) -> bool:
    picture = png.read(data)
    wanted = bytes(COLOUR)
    return any(
        picture.at(x, y) == COLOUR for y, row in enumerate(picture.rows) if wanted in row for x in range(picture.width)
    )


BATCHED: dict[str, Arguments] = {
    "click": {"selector": "#inside"},
    "type": {"selector": "#field", "text": "x"},
    "fill": {"fields": [{"selector": "#field", "value": "x"}]},
    "select": {"selector": "#choice", "value": "x"},
    "press": {"key": "Enter"},
    "hover": {"selector": "#inside"},
    "scroll": {},
    "wait": {"text": "Inside", "timeout": 100},
    "navigate": {"url": f"http://{HOST}/"},
    "drag": {"from": "#inside", "to": "#field"},
    "upload": {"selector": "#file", "paths": ["x.txt"]},
    "dialog": {"do": "accept"},
    "mouse": {"do": "click", "x": 5, "y": 5},
}
"""Every action of a batch."""


def at_the_site(w: World) -> dict[str, list[Arguments]]:
    """Calls that reach for the site itself: its tab, its URLs, what is known of it."""
    tab, bank = {"tabId": w.bank}, w.sites.bank
    url = f"{bank}/"
    named = {"selector": "#inside"}
    return {
        "browser_list_tabs": [{}],
        "browser_get_tab_info": [tab],
        "browser_open_tab": [{"url": url}],
        "browser_navigate_tab": [{"tabId": w.used, "url": url}, {**tab, "url": w.sites.shop}],
        "browser_go_back": [tab],
        "browser_go_forward": [tab],
        "browser_reload_tab": [tab],
        "browser_focus_tab": [tab],
        "browser_close_tab": [tab],
        "browser_list_tab_groups": [{}],
        "browser_create_tab_group": [{"tabIds": [w.bank]}],
        "browser_add_tabs_to_group": [{"groupId": w.group, "tabIds": [w.used]}],
        "browser_remove_tabs_from_group": [{"tabIds": [w.bank]}],
        "browser_update_tab_group": [{"groupId": w.group, "color": "red"}],
        "browser_list_tabs_in_group": [{"groupId": w.group}],
        "browser_list_windows": [{}],
        "browser_create_window": [{"url": url}],
        "browser_update_window": [{"windowId": w.window, "width": 700}],
        "browser_close_window": [{"windowId": w.window}],
        "browser_snapshot": [tab],
        "browser_find": [{**tab, "role": "button"}],
        "browser_query_elements": [{**tab, **named}],
        "browser_get_tab_content": [tab],
        "browser_get_page_html": [tab],
        "browser_screenshot_tab": [tab],
        "browser_save_pdf": [tab],
        "browser_get_element_styles": [{**tab, **named}],
        "browser_click_element": [{**tab, **named}],
        "browser_hover_element": [{**tab, **named}],
        "browser_type_text": [{**tab, "selector": "#field", "text": "x"}],
        "browser_press_key": [{**tab, "key": "Enter"}],
        "browser_fill_form": [{**tab, "fields": [{"selector": "#field", "value": "x"}]}],
        "browser_select_option": [{**tab, "selector": "#choice", "value": "x"}],
        "browser_scroll": [tab],
        "browser_drag": [{**tab, "from": "#inside", "to": "#field"}],
        "browser_upload_file": [{**tab, "selector": "#file", "paths": ["x.txt"]}],
        "browser_handle_dialog": [{**tab, "action": "accept"}],
        "browser_mouse": [{**tab, "action": "click", "x": 5, "y": 5}],
        "browser_act": [
            *(
                {**tab, "actions": [{"action": kind, **given}], "onError": "continue"}
                for kind, given in BATCHED.items()
            ),
            {"tabId": w.used, "actions": [{"action": "wait", "timeout": 1}, {"action": "navigate", "url": url}]},
        ],
        "browser_wait_for": [{**tab, "url": "nothing", "timeout": 100}],
        "browser_wait_for_element": [{**tab, "selector": "h1", "timeout": 100}],
        "browser_wait_for_response": [{**tab, "urlPattern": "http", "timeout": 100}],
        "browser_execute_script": [{**tab, "code": "return document.title"}],
        "browser_get_console_logs": [tab, {"tabId": w.used}],
        "browser_clear_console_logs": [tab],
        "browser_list_resources": [tab],
        "browser_get_resource_content": [{**tab, "url": "css"}],
        "browser_enable_network_capture": [tab],
        "browser_disable_network_capture": [tab],
        "browser_get_network_requests": [tab, {"tabId": w.used, "withBodies": True}, {"tabId": w.framed}],
        "browser_get_network_request": [
            {"tabId": w.used, "requestId": w.request},
            {"tabId": w.used, "requestId": "r0"},
        ],
        "browser_get_websocket_frames": [tab],
        "browser_export_har": [tab, {"tabId": w.used, "includeWebSocketFrames": True}, {"tabId": w.framed}],
        "browser_intercept_requests": [tab],
        "browser_fulfill_request": [{**tab, "requestId": "p1", "status": 200}],
        "browser_fail_request": [{**tab, "requestId": "p1"}],
        "browser_stop_intercepting": [tab],
        "browser_throttle_network": [{**tab, "preset": "slow-3g"}],
        "browser_clear_network_throttle": [tab],
        "browser_get_storage": [tab],
        "browser_set_storage": [{**tab, "storageType": "local", "key": "a", "value": "b"}],
        "browser_get_cookies": [{"url": url}, {"url": w.sites.shop}, {"url": w.sites.near}],
        "browser_set_cookie": [
            {"url": url, "name": "a", "value": "b"},
            {"url": w.sites.shop, "name": "a", "value": "b", "domain": HOST},
        ],
        "browser_delete_cookies": [
            {"url": url, "name": "a"},
            {"url": w.sites.near, "name": f"{SECRET}shared"},
            {"url": w.sites.near, "name": "none"},
        ],
        "browser_clear_site_data": [{"origin": bank}, {"origin": w.sites.near}],
        "browser_search_history": [{"query": ""}, {"query": "xq7"}],
        "browser_get_visits": [{"url": f"{bank}/x"}],
        "browser_get_recently_closed": [{}],
        "browser_restore_session": [{"sessionId": w.closed}, {"sessionId": "none"}],
        "browser_search_bookmarks": [{"query": "xq7"}],
        "browser_create_bookmark": [{"title": "x", "url": url}],
        "browser_list_bookmark_tree": [{}],
        "browser_download_file": [{"url": f"{bank}/x.bin"}, {"url": f"{w.sites.shop}/download"}],
        "browser_list_downloads": [{}, {"query": "xq7"}],
        "browser_get_download_status": [{"downloadId": w.download}, {"downloadId": 99_999}],
        "browser_emulate_device": [{**tab, "width": 300, "height": 300}],
        "browser_set_geolocation": [{**tab, "latitude": 1, "longitude": 1}],
        "browser_set_media_features": [{**tab, "features": {"media": "print"}}],
        "browser_emulate_vision_deficiency": [{**tab, "type": "none"}],
        "browser_clear_emulation": [tab],
        "browser_force_pseudo_state": [{**tab, **named, "pseudoClasses": ["hover"]}],
        "browser_get_css_coverage": [tab],
        "browser_performance_metrics": [tab],
        "browser_performance_trace": [{**tab, "action": "start"}],
        "browser_get_connection_status": [{}],
        "browser_list_sessions": [{}],
        "browser_release_tab": [tab],
        "browser_request_tab": [{**tab, "reason": "x"}],
        "browser_notify": [{"title": "x", "message": "x", "url": url}],
        "extension_reload": [],
        "extension_force_reconnect": [],
        "extension_get_state": [{}],
        "extension_get_logs": [{}],
        "extension_get_side_panel": [{}],
        "extension_check_adapter": [{"plugin": "none"}],
        "plugin_analyze_site": [{"url": url}, {"url": f"{w.sites.shop}/leave", "waitSeconds": 0, "keepOpen": True}],
        "plugin_list_tabs": [{}],
        "tabhub_read_result": [{"handle": w.handle}],
    }


def in_the_frame(tab_id: int, frame_ref: str) -> dict[str, list[Arguments]]:
    """Calls in a page of another site that reach for the frames of the blocked one."""
    tab = {"tabId": tab_id}
    inside, ref = {**tab, "selector": "#inside"}, {**tab, "ref": frame_ref}
    point = {"x": 150, "y": 150}
    return {
        "browser_get_tab_info": [tab],
        "browser_snapshot": [tab, {**tab, "changes": True}, ref, {**tab, "interactiveOnly": True}],
        "browser_find": [{**tab, "text": "Inside"}, {**tab, "role": "button"}],
        "browser_query_elements": [
            inside,
            {**tab, "selector": "*", "attributes": ["value"]},
            {**tab, "text": "Inside"},
        ],
        "browser_get_tab_content": [tab, {**tab, "format": "markdown"}, inside],
        "browser_get_page_html": [tab, inside, ref],
        "browser_screenshot_tab": [
            tab,
            {**tab, "fullPage": True},
            {**tab, "annotate": True},
            {**tab, "selector": "#frame"},
        ],
        "browser_get_element_styles": [inside, {**tab, "selector": "#outside"}],
        "browser_click_element": [inside, ref],
        "browser_hover_element": [inside],
        "browser_type_text": [{**tab, "selector": "#field", "text": "x"}],
        "browser_press_key": [{**inside, "key": "Enter"}],
        "browser_fill_form": [{**tab, "fields": [{"selector": "#field", "value": "x"}]}],
        "browser_select_option": [{**tab, "selector": "#choice", "value": "x"}],
        "browser_scroll": [inside],
        "browser_drag": [{**tab, "from": "#inside", "to": "#outside"}, {**tab, "from": point, "to": "#outside"}],
        "browser_mouse": [{**tab, "action": "click", **point}, {**tab, "action": "click", "x": 520, "y": 120}],
        "browser_act": [{**tab, "actions": [{"action": "mouse", "do": "click", **point}], "onError": "continue"}],
        "browser_wait_for": [{**inside, "timeout": 100}],
        "browser_wait_for_element": [{**inside, "timeout": 100}],
        "browser_wait_for_response": [{**tab, "urlPattern": "xq7", "timeout": 100}],
        "browser_execute_script": [
            {**tab, "code": "return document.body.innerText", "frame": frame}
            for frame in (1, 2, "xq7", "#frame", frame_ref)
        ],
        "browser_get_console_logs": [tab],
        "browser_list_resources": [tab],
        "browser_get_resource_content": [{**tab, "url": "css"}, {**tab, "url": "xq7"}],
        "browser_get_css_coverage": [tab],
        "browser_get_storage": [tab],
        "browser_force_pseudo_state": [{**inside, "pseudoClasses": ["hover"]}],
        "browser_performance_metrics": [tab],
    }


async def printed_colour(w: World, tab_id: int) -> bool:
    """Whether a PDF of the tab shows the blocked site's colour."""
    await w.get("browser_save_pdf", tabId=tab_id, filePath="framed.pdf", overwrite=True)
    streams = re.findall(rb"stream\r?\n(.*?)\r?\nendstream", files_of(w.hub)["framed.pdf"], re.DOTALL)
    drawn = [zlib.decompressobj().decompress(stream) for stream in streams if stream[:1] == b"x"]
    assert drawn
    return any(re.search(rb"\b1 0 1 rg\b", stream) for stream in drawn)


async def leaking(call: Call, table: dict[str, list[Arguments]]) -> list[Any]:
    """The calls whose answers tell something of the site."""

    async def one(name: str, arguments: Arguments) -> Any:
        answer = await call(name, arguments)
        told = json.loads(json.dumps(answer).replace(name, ""))  # a page's tool has a name with the site in it
        return (name, arguments, answer) if leaks(told) else None

    calls = [one(name, arguments) for name, variants in table.items() for arguments in variants]
    return [found for found in await asyncio.gather(*calls) if found is not None]


def report(found: list[Any]) -> str:
    return "\n".join(f"{name} {arguments}: {json.dumps(answer)[:1500]}" for name, arguments, answer in found)


@pytest.mark.req("B25")
def test_every_tool_of_the_catalogue_is_tried() -> None:
    world: Any = World(None, BlockedSiteUrls(), None)  # type: ignore[arg-type]
    assert at_the_site(world).keys() == {name for names in FAMILIES.values() for name in names}
    tried = {tool.name for tool, _ in batch.tool_calls({"actions": [{"action": name} for name in BATCHED]})}
    assert tried == {spec.tool.name for spec in batch.ACTIONS}


class BlockedSiteUrls:
    """The URLs without a server."""

    bank, shop, near = f"http://{HOST}", "http://shop.localhost", f"http://ok.{HOST}"


@pytest.mark.req("B25")
@pytest.mark.parametrize("surface", SURFACES)
async def test_no_tool_tells_anything_of_a_blocked_site_on_any_surface(world: World, surface: str) -> None:
    async with SURFACES[surface](world.hub) as call:
        assert await shown(call)
        found = await leaking(call, {**at_the_site(world), world.tool: [{}]})
        assert not found, report(found)


@pytest.mark.req("B25")
async def test_a_hub_whose_browser_is_at_a_relay_tells_nothing_of_a_blocked_site(world: World, tmp_path: Path) -> None:
    access = tmp_path / "token"
    access.write_text(token("ann"))
    async with (
        at_a_relay(world.hub, {}) as relay,
        running_hub(
            tmp_path, relays=[{"url": relay.ws, "tokenFile": str(access)}], sites=SITES, skipPermissions=True
        ) as hub,
        rest(hub) as call,
    ):
        await eventually(partial(shown, call))
        found = await leaking(call, {**at_the_site(world), world.tool: [{}]})
        assert not found, report(found)


@pytest.mark.req("B25")
@pytest.mark.parametrize("surface", [with_session, without_session])
async def test_agents_at_a_relay_are_told_nothing_of_a_blocked_site(world: World, surface: Surface) -> None:
    done: list[str] = []
    async with at_a_relay(world.hub, SITES) as relay, surface(relay.address()) as call:

        async def given_away(name: str, arguments: Arguments) -> dict[str, Any]:
            """The result, without the URLs and names that the agent itself has given."""
            text = json.dumps(result := await call(name, arguments))
            if name in CHANGING and not (result.get("isError") or "error" in result):
                done.append(name)
            for given in (world.sites.bank, world.sites.bank.removeprefix("http://"), f"{SECRET}shared", HOST):
                text = text.replace(given, "") if given in json.dumps(arguments) else text
            answer: dict[str, Any] = json.loads(text)
            return answer

        await eventually(partial(shown, call))
        found = await leaking(given_away, {**at_the_site(world), world.tool: [{}]})
        assert not found, report(found)
        assert done == []
        async with relay.agent() as agent:
            listed = json.dumps([await agent.request(f"{kind}/list") for kind in ("tools", "resources", "prompts")])
            assert not leaks(listed), listed


CHANGING = (
    *("browser_close_tab", "browser_close_window", "browser_restore_session", "browser_clear_site_data"),
    *("browser_create_tab_group", "browser_remove_tabs_from_group", "browser_set_cookie", "browser_open_tab"),
)
"""Tools that would change something of the site, in all calls of the table."""


async def shown(call: Call) -> bool:
    """Whether the tabs of the site that is not blocked are listed."""
    return "shop.localhost" in json.dumps(await call("browser_list_tabs", {}))


@pytest.mark.req("B25")
async def test_no_tool_tells_anything_of_a_blocked_site(world: World) -> None:
    table = at_the_site(world)
    found = await leaking(world.run, table)
    assert not found, report(found)
    cleared = await world.call("browser_clear_site_data", origin=world.sites.near, cookies=True)
    assert "may belong to a site that the person keeps agents off" in json.dumps(cleared)
    traced = await world.get("browser_performance_trace", tabId=world.used, action="stop", filePath="used.json")
    assert not leaks(traced)
    texts = files_of(world.hub)
    assert b"shop.localhost" in texts["used.json"]
    written = {name: data for name, data in texts.items() if not name.endswith(".bin")}  # downloads are the browser's
    assert not [name for name, data in written.items() if SECRET.encode() in data]


def files_of(hub: LiveHub) -> dict[str, bytes]:
    """What agents have saved."""
    return {path.name: path.read_bytes() for path in (hub.home / "files").rglob("*") if path.is_file()}


@pytest.mark.req("B25")
@pytest.mark.parametrize("own_process", [True, False])
async def test_frames_of_a_blocked_site_are_left_out_and_cannot_be_used(world: World, own_process: bool) -> None:
    asked = len(world.sites.seen)
    tab_id, ref = (world.framed, world.frame_ref) if own_process else (world.near, world.near_ref)
    found = await leaking(world.run, in_the_frame(tab_id, ref))
    assert not found, report(found)
    snapshot = await world.get("browser_snapshot", tabId=tab_id)
    assert snapshot["note"] == "2 frames of the page are on a site that the person keeps agents off, and left out."
    assert not await printed_colour(world, tab_id)
    for how in ({}, {"fullPage": True}, {"annotate": True}):
        shot = await world.call("browser_screenshot_tab", tabId=tab_id, **how)
        assert "2 frames of the page are" in json.dumps(shot), how
        assert not _shows_colour(shot)
    for x in (150, 520):
        pressed = await world.call("browser_mouse", tabId=tab_id, action="click", x=x, y=150)
        assert "in a frame of a site that the person keeps agents off" in json.dumps(pressed)
    free = await world.call("browser_mouse", tabId=tab_id, action="move", x=20, y=20)
    assert not free.get("isError"), free
    await world.get("browser_execute_script", tabId=tab_id, code="document.getElementById('frame').focus()")
    typed = await world.call("browser_press_key", tabId=tab_id, key="Tab")
    assert "The focus is in a frame of a site" in json.dumps(typed)
    await world.get("browser_execute_script", tabId=tab_id, code="document.activeElement.blur()")
    assert not (await world.call("browser_press_key", tabId=tab_id, key="a")).get("isError")
    assert not [path for path in world.sites.seen[asked:] if "clicked" in path]


@pytest.mark.req("B25")
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("browser_open_tab", {"url": "/leave"}),
        ("browser_navigate_tab", {"url": "/leave"}),
        ("browser_navigate_tab", {"url": "/leave", "waitUntil": "none"}),
        ("browser_create_window", {"url": "/leave"}),
        ("browser_click_element", {"selector": "#leave"}),
        ("browser_click_element", {"selector": "#open"}),
        ("browser_click_element", {"selector": "#send"}),
        ("browser_click_element", {"selector": "#script"}),
        ("browser_type_text", {"selector": "#outside", "text": "x", "submit": True}),
        ("browser_execute_script", {"code": "location.href = '/leave'; await new Promise(() => {})"}),
        ("browser_execute_script", {"code": "history.go(-1); await new Promise((done) => setTimeout(done, 300))"}),
        (
            "browser_act",
            {"actions": [{"action": "click", "selector": "#leave"}, {"action": "wait", "loadState": "load"}]},
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_whatever_leads_to_a_blocked_site_tells_nothing_of_it(
    world: World, name: str, arguments: Arguments
) -> None:
    tab_id = await world.open(f"{world.sites.shop}/")
    given = {**arguments, **({"url": world.sites.shop + arguments["url"]} if "url" in arguments else {})}
    if name not in ("browser_open_tab", "browser_create_window"):
        given["tabId"] = tab_id
    answer = await world.call(name, **given)
    assert not leaks(answer), answer
    table: dict[str, list[Arguments]] = {
        "browser_list_tabs": [{}],
        "browser_list_sessions": [{}],
        "browser_get_connection_status": [{}],
    }
    own = {
        name: [{"tabId": tab_id}] for name in ("browser_get_tab_info", "browser_snapshot", "browser_get_console_logs")
    }
    found = await leaking(world.run, table | own)
    assert not found, report(found)


@pytest.mark.req("B25")
async def test_scripts_of_an_agent_cannot_fetch_from_a_blocked_site(world: World) -> None:
    tab_id = await world.open(f"{world.sites.shop}/quiet")
    asked = len(world.sites.seen)
    code = f"return fetch('{world.sites.bank}/{SECRET}-api').then((got) => got.text(), () => 'failed')"
    redirected = "return fetch('/leave').then((got) => got.text(), () => 'failed')"
    for script in (code, redirected):
        assert (await world.get("browser_execute_script", tabId=tab_id, code=script))["value"] == "failed"
    assert world.sites.seen[asked:] == []


@pytest.mark.req("B25")
async def test_what_a_frame_of_a_blocked_site_shows_next_without_a_site_of_its_own_is_left_out(world: World) -> None:
    await keep_off(world.hub, None)
    try:
        tab_id = await world.open(f"{world.sites.shop}/files")
        await world.get("browser_wait_for", tabId=tab_id, networkIdle=True)
        assert SECRET in json.dumps(await world.call("browser_snapshot", tabId=tab_id))
    finally:
        await keep_off(world.hub, SITES)
    turned = "new Promise((done) => addEventListener('message', ({ data }) => done(data)))"
    code = f"const turned = {turned}; frames[0].postMessage('self', '*'); return await turned"
    assert (await world.get("browser_execute_script", tabId=tab_id, code=code))["value"] == "self"
    snapshot = await world.get("browser_snapshot", tabId=tab_id)
    assert "1 frame of the page is on a site" in snapshot["note"]
    for name in ("browser_snapshot", "browser_get_tab_content", "browser_screenshot_tab"):
        answer = await world.call(name, tabId=tab_id)
        assert not leaks(answer), answer


@pytest.mark.req("B25")
async def test_a_frame_of_a_blocked_site_that_does_not_answer_is_covered_and_cannot_be_used(world: World) -> None:
    await keep_off(world.hub, None)
    try:
        tab_id = await world.open(f"{world.sites.shop}/framed")
        await world.get("browser_wait_for", tabId=tab_id, networkIdle=True)
        assert _shows_colour(await world.call("browser_screenshot_tab", tabId=tab_id))
        await world.get("browser_execute_script", tabId=tab_id, code="frames[0].postMessage('stuck', '*')")

        async def stuck() -> bool:
            return any(path.endswith("-held") for path in world.sites.seen)

        assert await eventually(stuck)
    finally:
        await keep_off(world.hub, SITES)
    try:
        assert not _shows_colour(await world.call("browser_screenshot_tab", tabId=tab_id))
        pressed = await world.call("browser_mouse", tabId=tab_id, action="click", x=150, y=150)
        assert "in a frame of a site that the person keeps agents off" in json.dumps(pressed)
    finally:
        world.sites.gone.set()


@pytest.mark.req("B25")
async def test_no_list_of_tools_names_a_blocked_site(world: World) -> None:
    async with Agent(world.hub, "/mcp/gateway") as gateway, client(world.hub) as http:
        listed = [
            await world.agent.request("tools/list"),
            await gateway.call("tabhub_list_tools", {"limit": 500}),
            await gateway.call("tabhub_list_tools", {"query": SECRET}),
            await gateway.call("tabhub_list_tools", {"plugin": world.sites.bank}),
            await gateway.call("tabhub_call", {"name": f"{SECRET}_tool"[:-1], "arguments": {}}),
            (await http.get("/tools")).json(),
            await world.agent.request("resources/list"),
            await world.agent.request("prompts/list"),
            await gateway.call("tabhub_call", {"name": "browser_list_tabs", "arguments": {}}),
            (await http.post("/tools/browser_list_tabs/call", json={"arguments": {}})).json(),
        ]
        called = [await world.call(world.tool), (await http.post(f"/tools/{world.tool}/call", json={})).json()]
    for answer in listed:
        asked = json.dumps(answer).replace(f"{SECRET}_too'", "")  # the name that the agent gave
        assert not leaks(asked), asked[:2000]
    assert all("the person blocks agents" in json.dumps(answer) for answer in called), called


@pytest.mark.req("B25")
async def test_the_site_is_there_again_without_the_rule(world: World) -> None:
    await keep_off(world.hub, None)
    try:
        assert SECRET in json.dumps(await world.get("browser_snapshot", tabId=world.framed))
        assert SECRET in json.dumps(await world.get("browser_list_tabs"))
        assert _shows_colour(await world.call("browser_screenshot_tab", tabId=world.framed))
        for tab_id in (world.framed, world.near):
            assert await printed_colour(world, tab_id)
    finally:
        await keep_off(world.hub, SITES)
