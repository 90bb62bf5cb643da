"""Fields that React components make: what fill_form reports is what the app has taken."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from tests.e2e.appsite import AppSite
from tests.e2e.live import Caller
from tests.harness.waiting import becomes

FILL, SELECT = "browser_fill_form", "browser_select_option"
TAKEN: dict[str, tuple[str, Any, Any, Any]] = {
    "single select": ("#region", "east", "region", "East"),
    "several options of a select": ("#tags", ["urgent", "vip"], "tags", ["urgent", "vip"]),
    "filtered select": ("#area", "South", "area", "South"),
    "button with a list": (".react-aria-Select button", "Large", "size", "Large"),
    "combobox": (".react-aria-ComboBox input", "Bern", "city", "Bern"),
    "any text": ("input[aria-autocomplete]:not([aria-haspopup], [aria-controls], [class])", "Ulm", "town", "Ulm"),
    "slider": ("[role=slider]", "60", "level", 60),
    "slider downwards": ("[role=slider]", 5, "level", 5),
    "range": ("label > [type=range]", "61", "zoom", 61),
    "range to its end": ("label > [type=range]", "0", "zoom", 0),
    "range in percent": (".react-aria-Slider input", "80%", "volume", 80),
    "segmented date": (".react-aria-DateInput", "March 14, 2027", "date", "2027-03-14"),
    "native list of several": ("select[multiple]", ["green", "blue"], "colours", ["green", "blue"]),
}
NOT_TAKEN = {
    "no such option": ("#region", "Centre", "Its options: none"),
    "no such entry": (".react-aria-Select button", "Huge", "Small, Medium, Large"),
    "no such suggestion": (".react-aria-ComboBox input", "Atlantis", "has no option"),
    "between the steps": ("[role=slider]", "62", "in steps of 5"),
    "beyond the end": ("[role=slider]", "200", "a number from 0 to 100"),
    "not a number": ("label > [type=range]", "loud", "a number from 0 to 100"),
    "not a date": (".react-aria-DateInput", "soon", "YYYY-MM-DD"),
    "fixed by the app": ("input[value=x]", "new", "it still holds 'x'"),
    "a list for a text field": ("input[value=x]", ["a", "b"], "is not text"),
}


async def app(agent: Caller, name: str) -> Any:
    return (await agent.run("return app()"))[name]


@pytest.mark.req("A5")
async def test_a_filled_field_is_taken_by_the_app(guest: Caller, apps: AppSite, subtests: pytest.Subtests) -> None:
    await guest.visit(apps.at("widgets"))
    for case, (selector, value, name, expected) in TAKEN.items():
        with subtests.test(case):
            answer = await guest.get(FILL, fields=[{"selector": selector, "value": value}])
            assert answer["did"] == "Filled in 1 field"
            await becomes(partial(app, guest, name), expected)


@pytest.mark.req("A5")
async def test_a_value_that_the_app_does_not_take_is_not_filled_in(
    guest: Caller, apps: AppSite, subtests: pytest.Subtests
) -> None:
    await guest.visit(apps.at("widgets"))
    before = await guest.run("return app()")
    for case, (selector, value, told) in NOT_TAKEN.items():
        with subtests.test(case):
            assert told in (await guest.fail(FILL, fields=[{"selector": selector, "value": value}]))["text"]
    assert await guest.run("return app()") == before | {"level": 60}


async def test_the_value_that_a_widget_shows_is_reported(guest: Caller, apps: AppSite) -> None:
    await guest.visit(apps.at("widgets"))
    wanted = {"#tags": ["vip"], "#region": "West", "[role=slider]": "40", ".react-aria-DateInput": "2027-03-14"}
    fields = (await guest.get(FILL, fields=[{"selector": s, "value": v} for s, v in wanted.items()]))["fields"]
    assert [field["value"] for field in fields] == [["vip"], "West", "40", "month 3 \u2013 March, day 14, year 2027"]
    again = await guest.get(FILL, fields=[{"selector": "#tags", "value": ["vip", "later"]}])
    assert again["fields"][0]["value"] == ["vip", "later"]
    assert await app(guest, "tags") == ["vip", "later"]


async def test_the_label_of_a_segmented_date_names_all_its_parts(guest: Caller, apps: AppSite) -> None:
    await guest.visit(apps.at("widgets"))
    await guest.get(FILL, fields=[{"label": "Day of travel", "value": "2028-05-06"}])
    await becomes(partial(app, guest, "date"), "2028-05-06")
    await guest.get(FILL, fields=[{"label": "month, Day of travel", "value": "7"}])
    await becomes(partial(app, guest, "date"), "2028-07-06")


async def test_an_option_of_a_list_that_is_no_select_is_chosen(guest: Caller, apps: AppSite) -> None:
    await guest.visit(apps.at("widgets"))
    answer = await guest.get(SELECT, selector=".react-aria-Select button", label="Medium")
    assert (answer["value"], await app(guest, "size")) == ("Medium", "Medium")


WRAPPED = """
document.body.innerHTML = `<div style="position: relative; width: 0; height: 0; overflow: hidden">
  <select id=size style="position: absolute; left: -100%"><option>Small</option><option>Large</option></select></div>
  <span id=shown>Small</span><button id=order onclick="this.textContent = 'Ordered'">Order</button>
  <ul id=choices hidden style="position: absolute; inset: 0; margin: 0"><li>Small</li><li>Large</li></ul>`;
const [size, shown, choices] = ["size", "shown", "choices"].map((id) => document.getElementById(id));
size.addEventListener("focus", () => { choices.hidden = false; });
size.addEventListener("change", () => { shown.textContent = size.value; });
"""


async def test_choosing_in_a_select_behind_a_list_that_scripts_draw_does_not_open_that_list(
    guest: Caller, apps: AppSite
) -> None:
    await guest.visit(apps.at("widgets"))
    await guest.run(WRAPPED)
    assert (await guest.get(SELECT, selector="#size", label="Large"))["chosen"] == ["Large"]
    await guest.get("browser_click_element", selector="#order")
    assert await guest.run("return [shown.textContent, order.textContent]") == ["Large", "Ordered"]
