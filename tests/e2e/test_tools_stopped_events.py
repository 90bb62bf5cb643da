"""Results of clicks and keys on pages that stop events; modal dialogs inside components."""

from __future__ import annotations

from tests.e2e.live import Caller
from tests.e2e.zoo import Zoo

KEEP = (
    "for (const type of ['keyup', 'click']) addEventListener(type, (event) => event.stopPropagation(), true);"
    "const box = Object.assign(document.createElement('input'), { type: 'checkbox', id: 'kept' });"
    "const field = Object.assign(document.createElement('input'), { id: 'typed' });"
    "document.body.replaceChildren(box, field)"
)


async def test_actions_report_results_on_pages_that_stop_events(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("act_buttons.html"))
    await guest.run(KEEP)
    assert (await guest.get("browser_click_element", selector="#kept"))["checked"] is True
    assert (await guest.get("browser_click_element", selector="#kept", count=2))["checked"] is True
    typed = await guest.get("browser_type_text", selector="#typed", text="hello", clear=True)
    assert typed["value"] == "hello"


async def test_the_result_includes_the_effect_of_the_last_key(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("act_buttons.html"))
    await guest.run(KEEP.replace("'keyup', 'click'", ""))
    await guest.run("document.querySelector('#typed').onkeyup = (event) => { event.target.value += '.'; }")
    typed = await guest.get("browser_type_text", selector="#typed", text="abc")
    assert typed["value"] == "a.b.c."
    await guest.run("document.querySelector('#typed').onkeyup = (event) => event.target.remove()")
    gone = await guest.get("browser_type_text", selector="#typed", text="x")
    assert "value" not in gone


async def test_a_modal_inside_a_component_hides_the_page_behind_it(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("act_buttons.html"))
    await guest.run(
        "const host = document.createElement('x-modal'); document.body.append(host);"
        "host.attachShadow({ mode: 'open' }).innerHTML = '<dialog><button>Only this</button></dialog>';"
        "host.shadowRoot.firstChild.showModal()"
    )
    seen = await guest.get("browser_snapshot")
    assert seen["elements"] == 1
    assert '"Only this"' in seen["snapshot"]
    assert "modal" in seen["note"]
