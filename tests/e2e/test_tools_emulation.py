"""Emulation in a real browser: what the page and screenshots show, and when it ends."""

from __future__ import annotations

import base64
from typing import Any

from tests.e2e import png
from tests.e2e.live import Caller, DevTools, LiveHub
from tests.e2e.live_settings import without_approvals
from tests.e2e.site import Site
from tests.e2e.zoo import Zoo
from tests.harness.waiting import eventually, until_outside

SIZE = "return [innerWidth, innerHeight, devicePixelRatio, matchMedia('(pointer: coarse)').matches]"
BACKGROUND = "return getComputedStyle(document.body).backgroundColor"


async def colour(agent: Caller, x: int, y: int) -> tuple[int, int, int]:
    answer = await agent.call("browser_screenshot_tab")
    return png.read(base64.b64decode(answer["content"][0]["data"])).at(x, y)


async def in_frame(agent: Caller, code: str) -> Any:
    """The result of a script in the only cross-site frame."""
    return (await agent.get("browser_execute_script", code=code, frame="see_framed_styles"))["value"]


async def test_page_and_site_see_the_emulated_device(agent: Caller, zoo: Zoo) -> None:
    tab = await agent.open(zoo.at("see_styles.html"))
    before = await agent.run(SIZE)
    device = {"width": 390, "height": 844, "deviceScaleFactor": 3, "mobile": True, "userAgent": "Phone/1.0"}
    reply = await agent.get("browser_emulate_device", **device)
    assert reply["active"] == ["device 390 x 844 at 3, mobile, as Phone/1.0"]
    assert await agent.run(SIZE) == [390, 844, 3, True]
    shot = await agent.get("browser_screenshot_tab")
    assert (shot["width"], shot["height"]) == (1170, 2532)
    await agent.get("browser_navigate_tab", url=zoo.at("see_styles.html"))
    assert await agent.run("return navigator.userAgent") == "Phone/1.0"
    assert await in_frame(agent, "return navigator.userAgent") == "Phone/1.0"
    assert (await agent.get("browser_get_tab_info", tabId=tab))["active"] is False
    cleared = await agent.get("browser_clear_emulation")
    assert len(cleared["cleared"]) == 1
    assert await agent.run(SIZE) == before
    assert "Chrome" in await agent.run("return navigator.userAgent")
    assert (await agent.get("browser_clear_emulation"))["note"] == "Nothing was emulated."


async def test_media_features_reach_the_page_and_its_frames(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("see_styles.html"))
    reply = await guest.get("browser_set_media_features", features={"prefers-color-scheme": "dark"})
    assert reply["active"] == ["prefers-color-scheme: dark"]
    assert await guest.run(BACKGROUND) == "rgb(10, 10, 10)"
    assert await in_frame(guest, BACKGROUND) == "rgb(20, 20, 20)"
    listed = [{"name": "media", "value": "print"}, {"name": "prefers-reduced-motion", "value": "reduce"}]
    await guest.get("browser_set_media_features", features=listed)
    assert await guest.run(BACKGROUND) != "rgb(10, 10, 10)"
    assert await guest.run("return getComputedStyle(document.body).color") == "rgb(9, 9, 9)"
    assert await guest.run("return matchMedia('(prefers-reduced-motion: reduce)').matches")
    assert (await guest.get("browser_set_media_features", features={}))["active"] == []
    assert not await guest.run("return matchMedia('print').matches")


async def test_unknown_media_features_and_values_are_refused(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("see_styles.html"))
    wrong = await guest.fail("browser_set_media_features", features={"prefers-color-scheme": "pink"})
    assert "(prefers-color-scheme: pink)" in wrong["text"]
    assert "features" in (await guest.fail("browser_set_media_features", features={"prefers-colour": "dark"}))["text"]


async def test_a_page_with_permission_gets_the_position(agent: Caller, site: Site, devtools: DevTools) -> None:
    await agent.open(f"{site.url}/other")
    reply = await agent.get("browser_set_geolocation", latitude=48.2, longitude=16.37)
    assert reply["permission"] == "prompt"
    assert "the person is asked" in reply["note"]
    assert "in view" in reply["note"]
    await agent.open(f"{site.url}/other", active=True)
    async with devtools.connected() as wire:
        await wire.send("Browser.grantPermissions", origin=site.url, permissions=["geolocation"])
        reply = await agent.get("browser_set_geolocation", latitude=48.2, longitude=16.37, accuracy=5)
        assert (reply["permission"], "note" in reply) == ("granted", False)
        ask = "navigator.geolocation.getCurrentPosition(({coords}) => done(coords.toJSON()), failed)"
        place = await agent.run(f"return new Promise((done, failed) => {ask})")
        assert (place["latitude"], place["longitude"], place["accuracy"]) == (48.2, 16.37, 5)


async def test_geolocation_unavailable_to_the_page_is_reported(agent: Caller) -> None:
    await agent.open("data:text/html,<title>opaque</title>")
    reply = await agent.get("browser_set_geolocation", latitude=1, longitude=2)
    assert reply["permission"] == "unavailable"


async def test_vision_deficiency_changes_the_rendering(guest: Caller, site: Site) -> None:
    await guest.visit(f"{site.url}/colours")
    assert await colour(guest, 150, 100) == (255, 0, 0)
    await guest.get("browser_emulate_vision_deficiency", type="achromatopsia")
    red, green, blue = await colour(guest, 150, 100)
    assert red == green == blue
    assert (await guest.get("browser_emulate_vision_deficiency", type="none"))["active"] == []
    assert await colour(guest, 150, 100) == (255, 0, 0)


async def test_a_forced_pseudo_state_applies_and_ends(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("see_styles.html"))
    look = "return getComputedStyle(document.querySelector('#box')).backgroundColor"
    assert await guest.run(look) == "rgb(255, 0, 0)"
    reply = await guest.get("browser_force_pseudo_state", selector="#box", pseudoClasses=["hover"])
    assert reply["pseudoClasses"] == ["hover"]
    assert await guest.run(look) == "rgb(0, 128, 0)"
    await guest.get("browser_force_pseudo_state", selector="#box", pseudoClasses=[])
    assert await guest.run(look) == "rgb(255, 0, 0)"
    await guest.get("browser_force_pseudo_state", selector="#inner", pseudoClasses=["hover"])
    inner = "return getComputedStyle(document.querySelector('#inner')).backgroundColor"
    assert await in_frame(guest, inner) == "rgb(0, 255, 255)"
    assert len((await guest.get("browser_clear_emulation"))["cleared"]) == 1
    assert await in_frame(guest, inner) == "rgb(255, 255, 0)"
    await guest.get("browser_force_pseudo_state", text="A card", pseudoClasses=["hover", "focus"])
    await guest.get("browser_navigate_tab", url=zoo.at("see_styles.html"))
    assert await guest.run(look) == "rgb(255, 0, 0)"
    assert (await guest.get("browser_clear_emulation"))["cleared"] == []
    await guest.get("browser_force_pseudo_state", selector="#box", pseudoClasses=["hover"])
    await guest.run("document.querySelector('#box').remove()")
    assert len((await guest.get("browser_clear_emulation"))["cleared"]) == 1


async def test_styles_include_the_matching_rules(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("see_styles.html"))
    reply = await guest.get("browser_get_element_styles", selector="#box")
    assert reply["computed"]["width"] == "200px"
    assert reply["computed"]["color"] == "rgb(1, 2, 3)"
    rules = {rule["selector"]: rule for rule in reply["rules"]}
    assert list(rules) == [".card", "#box", "style attribute"]
    assert rules[".card"]["source"] == f"{zoo.at('see_styles.css')}:1"
    assert rules["#box"]["properties"] == {"color": "rgb(1, 2, 3)", "--accent": "teal"}
    assert rules["style attribute"]["properties"] == {"padding": "4px"}
    some = await guest.get("browser_get_element_styles", selector="#box", properties=["paddingLeft", "--accent"])
    assert some["computed"] == {"padding-left": "4px", "--accent": "teal"}
    framed = await guest.get("browser_get_element_styles", selector="#inner", properties=["background-color"])
    assert framed["computed"] == {"background-color": "rgb(255, 255, 0)"}
    assert framed["rules"][-1]["selector"] == "#inner"


async def test_lost_emulation_is_reported(live_hub: LiveHub, agent: Caller, zoo: Zoo) -> None:
    tab = await agent.open(zoo.at("see_styles.html"))
    await agent.get("browser_emulate_device", width=300, height=300)
    with without_approvals(live_hub):
        await agent.get("extension_force_reconnect")
    reply = await agent.get("browser_screenshot_tab", tabId=tab)
    assert reply["width"] != 300
    assert reply["note"] == "No longer active, because the connection to the browser was lost: device 300 x 300."


async def test_emulation_ends_with_the_session(live_hub: LiveHub, agent: Caller, zoo: Zoo) -> None:
    tab = await agent.open(zoo.at("see_styles.html"))
    await agent.get("browser_release_tab", tabId=tab)
    others = live_hub.health()["mcpClients"]
    async with live_hub.mcp("legacy") as client:
        asked = {"tabId": tab, "width": 300, "height": 300}
        result = await client.call_tool("browser_emulate_device", asked)
        assert not result.is_error, result
    await until_outside(lambda: live_hub.health()["mcpClients"] <= others)

    async def resized() -> bool:
        return bool((await agent.run(SIZE, tabId=tab))[:2] != [300, 300])

    await eventually(resized)
