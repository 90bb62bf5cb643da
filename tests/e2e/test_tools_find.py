"""browser_find: elements by text and role in every frame, and the nearest matches when there are none."""

from __future__ import annotations

from typing import Any

from tests.e2e.live import Caller
from tests.e2e.zoo import Zoo


async def found(agent: Caller, **what: Any) -> list[tuple[str, str]]:
    return [(one["role"], one["name"]) for one in (await agent.get("browser_find", **what))["elements"]]


async def test_exact_matches_come_first_ignoring_case(guest: Caller, zoo: Zoo) -> None:
    await guest.read(zoo.at("forms.html"))
    assert await found(guest, text="send") == [
        ("button", "Send"),
        ("checkbox", "Send me news"),
        ("button", "Send now"),
    ]
    assert (await found(guest, text="  i   AGREE "))[0] == ("checkbox", "I agree")


async def test_role_and_text_narrow_the_search(guest: Caller, zoo: Zoo) -> None:
    await guest.read(zoo.at("forms.html"))
    assert await found(guest, role="radio") == [("radio", "Free"), ("radio", "Paid")]
    assert await found(guest, role="radio", text="paid") == [("radio", "Paid")]
    assert await found(guest, role="radio", limit=1) == [("radio", "Free")]


async def test_all_frames_and_shadow_roots_are_searched(guest: Caller, zoo: Zoo) -> None:
    await guest.read(zoo.at("frames.html"))
    buttons = await found(guest, role="button")
    assert {name for _, name in buttons} == {
        "Outer button",
        "Last button",
        "Inner button near",
        "Written button",
        "Far button",
        "Inner button back",
    }
    await guest.read(zoo.at("shadow.html"))
    assert await found(guest, text="Deep button") == [("button", "Deep button")]
    assert await found(guest, text="Closed link") == [("link", "Closed link")]


async def test_a_found_ref_can_be_used_in_a_snapshot(guest: Caller, zoo: Zoo) -> None:
    await guest.read(zoo.at("frames.html"))
    (one,) = (await guest.get("browser_find", text="Inner button back"))["elements"]
    assert one["visible"] is True
    seen = await guest.get("browser_snapshot", ref=one["ref"])
    assert seen["snapshot"] == f'button "Inner button back" [ref={one["ref"]}]'


async def test_matches_have_position_and_visibility(guest: Caller, zoo: Zoo) -> None:
    await guest.read(zoo.at("covered.html"))
    (hidden,) = (await guest.get("browser_find", text="Not displayed"))["elements"]
    assert hidden["visible"] is False
    await guest.read(zoo.at("forms.html"))
    agreed, *_ = (await guest.get("browser_find", text="I agree"))["elements"]
    assert agreed["where"] == 'form "Sign up"'
    assert agreed["states"] == "checked"


async def test_without_a_match_the_nearest_are_listed(guest: Caller, zoo: Zoo) -> None:
    await guest.read(zoo.at("forms.html"))
    answer = await guest.call("browser_find", text="Sent now")
    assert answer["structuredContent"]["elements"] == []
    assert any('button "Send now"' in one for one in answer["structuredContent"]["nearest"])
    assert "Give a text, a role" in (await guest.fail("browser_find"))["text"]


async def test_a_target_is_named_by_ref_selector_text_or_role(guest: Caller, zoo: Zoo) -> None:
    await guest.read(zoo.at("frames.html"))
    (one,) = (await guest.get("browser_find", text="Far button"))["elements"]
    for target in ({"ref": one["ref"]}, {"text": "far button"}, {"text": "Far button", "role": "button"}):
        assert (await guest.get("browser_get_tab_content", **target))["content"] == "Far button"
    await guest.read(zoo.at("shadow.html"))
    assert (await guest.get("browser_get_tab_content", selector=".deep"))["content"] == "Deep button"
    assert (await guest.get("browser_get_tab_content", selector="#secret"))["content"] == "Closed button"


async def test_a_missing_or_ambiguous_target_lists_candidates(guest: Caller, zoo: Zoo) -> None:
    await guest.read(zoo.at("frames.html"))
    several = await guest.fail("browser_get_tab_content", role="button")
    assert several["text"].startswith("2 elements match the role 'button'")
    assert 'button "Outer button" [' in several["text"]
    absent = await guest.fail("browser_get_tab_content", text="Outer botton")
    assert 'Nearest matches: button "Outer button" [' in absent["text"]
    assert "is not valid CSS" in (await guest.fail("browser_get_tab_content", selector="a["))["text"]
    assert "The ref f99e1 names nothing" in (await guest.fail("browser_get_tab_content", ref="f99e1"))["text"]
