"""Console, resources and scripts in frames, in real Chromium, the tab in the background."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import live
from tests.e2e.live import Caller, DevTools
from tests.e2e.netsite import PNG, NetSite
from tests.harness.waiting import eventually, until_outside


@pytest.fixture(scope="module")
def net() -> Iterator[NetSite]:
    site = NetSite()
    yield site
    site.stop()


async def messages(agent: Caller, **more: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await agent.get("browser_get_console_logs", **more))["messages"]
    return found


async def settled(agent: Caller) -> list[dict[str, Any]]:
    """All messages of the net_console page, including uncaught errors and failed requests."""

    async def all_logged() -> list[dict[str, Any]] | None:
        output = await messages(agent)
        ends = {m["text"].partition("\n")[0] for m in output if m.get("source") == "exception"}
        missing = any(m.get("source") == "network" for m in output)
        return output if missing and len(ends) >= 2 else None

    return await eventually(all_logged)


async def test_messages_are_recorded_from_the_start_of_a_page(agent: Caller, net: NetSite) -> None:
    await agent.open(f"{net.url}/net_console")
    every = await settled(agent)
    output = {m["text"].partition("\n")[0]: m for m in every}
    assert output["a debug word"]["level"] == "debug"
    assert output['plain 42 {a: 1, b: Object} [1, "two"] null undefined true']["level"] == "log"
    assert output["Anna has 3 apples more"]["level"] == "info"
    assert output["careful"]["level"] == "warning"
    assert output["Error: handed over"]["level"] == "error"
    assert output["again and again"]["times"] == 5
    assert output["sums do not add up"]["level"] == "error"
    assert 'Map(1) {"k" => 1}' in next(text for text in output if text.startswith("Map"))
    caught = output["Uncaught TypeError: nobody caught me"]
    assert (caught["source"], caught["level"]) == ("exception", "error")
    assert "net_console" in caught["url"]
    assert any("not handled" in text for text in output)
    failed = {m["url"]: m["text"] for m in every if m.get("source") == "network"}
    assert "404" in failed[f"{net.url}/api/missing"]


async def test_levels_limit_and_clear(agent: Caller, net: NetSite) -> None:
    await agent.open(f"{net.url}/net_console")
    await settled(agent)
    assert {m["level"] for m in await messages(agent, level="warning")} == {"warning", "error"}
    answer = await agent.get("browser_get_console_logs", limit=2)
    assert len(answer["messages"]) == 2
    assert "older ones are left out" in answer["note"]
    assert await messages(agent, clear=True)
    assert await messages(agent) == []
    await agent.run("console.log('after')")
    assert [m["text"] for m in await messages(agent)] == ["after"]
    assert (await agent.get("browser_clear_console_logs"))["cleared"] == 1
    assert await messages(agent) == []


async def test_messages_survive_navigation_and_name_their_page(agent: Caller, net: NetSite) -> None:
    await agent.open(f"{net.url}/net_index")
    await agent.run("console.log('first page')")
    await agent.get("browser_navigate_tab", url=f"{net.url}/net_console")
    answer = await agent.call("browser_get_console_logs")
    pages = {m["text"]: m["page"] for m in answer["structuredContent"]["messages"]}
    assert pages["first page"] < pages["careful"]


async def open_as_person(agent: Caller, devtools: DevTools, url: str) -> int:
    """A tab that no agent has opened; it is listed before its page has loaded."""
    await devtools.open(url)

    async def there() -> int | None:
        tabs = (await agent.get("browser_list_tabs"))["tabs"]
        return next((tab["tabId"] for tab in tabs if tab["url"] == url), None)

    tab_id = await eventually(there)
    agent.opened.append(tab_id)
    return tab_id


async def test_messages_from_before_the_first_read_are_returned(
    agent: Caller, net: NetSite, devtools: DevTools
) -> None:
    asked = net.count("/api/missing")
    tab_id = await open_as_person(agent, devtools, f"{net.url}/net_console")
    # The page requests that after everything it logs at once.
    await until_outside(lambda: net.count("/api/missing") > asked)
    output = [m["text"] for m in await messages(agent, tabId=tab_id)]
    assert output.count("careful") == 1, output


async def test_messages_of_a_page_loaded_after_the_first_read_are_returned(
    agent: Caller, net: NetSite, devtools: DevTools
) -> None:
    tab_id = await open_as_person(agent, devtools, f"{net.url}/net_console?held")
    assert await messages(agent, tabId=tab_id) == []
    net.release.set()

    async def careful() -> list[str]:
        output = [m["text"] for m in await messages(agent, tabId=tab_id)]
        return [text for text in output if text == "careful"]

    assert await eventually(careful) == ["careful"]
    net.release.clear()


async def test_messages_of_cross_process_frames_and_workers_are_recorded(agent: Caller, net: NetSite) -> None:
    await agent.open(f"{net.url}/net_frames")
    await agent.run("await fetch('/api/items?again=1')", frame="near")
    await agent.run("await fetch('/api/items?again=2')", frame="far")
    await agent.run("new Worker('/worker.js')")

    async def all_logged() -> dict[str, dict[str, Any]] | None:
        output = {m["text"]: m for m in await messages(agent)}
        return output if "from the worker" in output else None

    output = await eventually(all_logged)
    assert "frame" not in output["inner speaks from 127.0.0.1"]
    assert output["inner speaks from localhost"]["frame"] is True
    assert "from the worker" in output
    urls = {r["url"] for r in (await agent.get("browser_get_network_requests", filter="/api/items?"))["requests"]}
    assert {f"{net.url}/api/items?again=1", f"{net.elsewhere}/api/items?again=2"} <= urls


async def test_a_flood_is_bounded_and_the_newest_messages_are_kept(guest: Caller, net: NetSite) -> None:
    await guest.visit(f"{net.url}/net_index")
    await guest.run("for (let i = 0; i < 3000; i += 1) console.log('n' + i, 'x'.repeat(20))")
    answer = await guest.get("browser_get_console_logs", limit=50)
    assert len(answer["messages"]) == 50
    assert answer["messages"][-1]["text"].startswith("n2999 ")
    assert "no longer kept" in answer["note"]
    await guest.run("console.log('y'.repeat(100000))")
    (last,) = await messages(guest, limit=1)
    assert len(last["text"]) < 5000
    assert "more characters" in last["text"]


async def test_a_script_runs_in_the_main_world_of_a_frame(
    guest: Caller, net: NetSite, subtests: pytest.Subtests
) -> None:
    await guest.read(f"{net.url}/net_frames")
    wheres: dict[int | str, str] = {
        0: "outer",
        1: "inner of 127.0.0.1",
        2: "inner of localhost",
        "near": "inner of 127.0.0.1",
        "far": "inner of localhost",
        "localhost": "inner of localhost",
    }
    for frame, where in wheres.items():
        with subtests.test(frame=frame):
            assert await guest.run("return [where, args.x]", frame=frame, args={"x": 1}) == [where, 1]


async def test_a_frame_is_found_by_the_ref_of_its_element(guest: Caller, net: NetSite) -> None:
    await guest.read(f"{net.url}/net_frames")
    for name, where in (("near", "inner of 127.0.0.1"), ("far", "inner of localhost")):
        found = await guest.get("browser_query_elements", selector=f"iframe[name={name}]", limit=1)
        assert await guest.run("return where", frame=found["elements"][0]["ref"]) == where


async def test_errors_in_frames_show_the_scripts_lines_and_a_missing_frame_lists_the_others(
    guest: Caller, net: NetSite
) -> None:
    await guest.read(f"{net.url}/net_frames")
    for frame in ("near", "far"):
        failed = await guest.fail("browser_execute_script", code="let a = 1;\nnope();", frame=frame)
        assert "ReferenceError" in failed["text"]
        assert "line 2" in failed["text"]
    missing = await guest.fail("browser_execute_script", code="return 1", frame="nowhere")
    assert "near" in missing["text"]
    assert net.elsewhere in missing["text"]
    assert "Frames there" in (await guest.fail("browser_execute_script", code="return 1", frame=9))["text"]
    assert "2 frames match" in (await guest.fail("browser_execute_script", code="return 1", frame="net_inner"))["text"]


async def test_resources_are_listed_and_read(guest: Caller, net: NetSite) -> None:
    await guest.read(f"{net.url}/net_index")
    listed = (await guest.get("browser_list_resources"))["resources"]
    kinds = {r["url"].removeprefix(net.url): r["type"] for r in listed}
    assert kinds["/script.js"] == "script"
    assert kinds["/style.css"] == "stylesheet"
    assert kinds["/picture.png"] == "image"
    assert kinds["/net_index"] == "document"
    only = (await guest.get("browser_list_resources", type="script"))["resources"]
    assert [r["type"] for r in only] == ["script"]
    assert "stylesheet" in (await guest.get("browser_list_resources", type="font"))["note"]
    script = await guest.get("browser_get_resource_content", url=f"{net.url}/script.js")
    assert script["content"].startswith("window.loaded = 'script'")
    cut = await guest.get("browser_get_resource_content", url="script.js", maxLength=6)
    assert (cut["content"], cut["length"]) == ("window", len(script["content"]))
    assert "left out" in cut["note"]
    picture = await guest.call("browser_get_resource_content", url=f"{net.url}/picture.png")
    assert picture["content"][0]["type"] == "image"
    assert base64.b64decode(picture["content"][0]["data"]) == PNG


async def test_an_unknown_resource_falls_back_to_the_network_record_or_lists_similar_ones(
    guest: Caller, net: NetSite
) -> None:
    await guest.visit(f"{net.url}/net_index")
    await guest.run("await (await fetch('/data.bin')).arrayBuffer(); await window.ready")
    items = await guest.get("browser_get_resource_content", url=f"{net.url}/api/items")
    assert '"apple"' in items["content"]
    data = await guest.get("browser_get_resource_content", url="data.bin")
    assert base64.b64decode(data["base64"]) == bytes(range(256))
    failed = await guest.fail("browser_get_resource_content", url=f"{net.url}/scrip.js")
    assert f"{net.url}/script.js" in failed["text"]


async def test_resources_of_cross_process_frames_are_included(guest: Caller, net: NetSite) -> None:
    await guest.read(f"{net.url}/net_frames")
    urls = {r["url"] for r in (await guest.get("browser_list_resources"))["resources"]}
    assert {f"{net.url}/net_inner", f"{net.elsewhere}/net_inner"} <= urls
    inner = await guest.get("browser_get_resource_content", url=f"{net.elsewhere}/net_inner")
    assert "inner speaks" in inner["content"]


async def test_messages_logged_while_a_tab_was_idle_are_returned_once(tmp_path: Path, net: NetSite) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "config.json").write_text('{"limits": {"debugger_idle": 1}}')
    hub = live.start(tmp_path)
    try:
        async with live.caller(hub) as agent:
            tab_id = await agent.open(f"{net.url}/net_index")
            await agent.run("console.log('early'); await window.ready")
            # Logged when the tab is no longer watched, and reported to the site.
            later = "setTimeout(() => { console.log('late'); fetch('/api/items?late=1'); }, 4000)"
            await agent.run(later)
            await until_outside(lambda: net.count("/api/items?late=1") == 1)
            output = [m["text"] for m in await messages(agent, tabId=tab_id)]
            assert output.count("early") == 1
            assert output.count("late") == 1
            assert "Nothing was recorded for" in (await agent.get("browser_get_network_requests"))["note"]
    finally:
        live.stop(hub)
