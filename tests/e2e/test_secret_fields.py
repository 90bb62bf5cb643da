"""The values of secret fields in whatever a page repeats them: no tool that reads gives them, scripts included."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tabhub.browser.families import SPECS
from tests.e2e.live import Caller
from tests.e2e.zoo import Zoo

PAGE = "secret_echoes.html"
MARKER = re.compile(r"mk-[a-z]+-[0-9]{2}|(?<![0-9])(?:604815|4111111111111111)(?![0-9])")
READS: Mapping[str, list[dict[str, Any]]] = {
    "browser_snapshot": [{}, {"interactiveOnly": True}],
    "browser_find": [{"text": "You typed"}, {"text": "Recovery"}],
    "browser_query_elements": [
        {"selector": "input, textarea, div, p, iframe", "attributes": ["value", "data-note", "srcdoc"], "limit": 100}
    ],
    "browser_get_tab_content": [{}],
    "browser_get_page_html": [{}, {"selector": "#password"}],
    "browser_get_tab_info": [{}],
    "browser_screenshot_tab": [{"annotate": True, "scale": 0.1}],
    "browser_save_pdf": [{}],
    "browser_get_element_styles": [{"selector": "#styled"}],
    "browser_wait_for": [{"text": "You typed"}, {"selector": "#password"}],
    "browser_wait_for_element": [{"selector": "#said"}],
    "browser_get_console_logs": [{}],
    "browser_list_resources": [{}],
    "browser_get_network_requests": [{"withBodies": True}],
    "browser_export_har": [{}],
    "browser_get_storage": [{}, {"key": "draft"}, {"storageType": "session"}],
    "browser_get_websocket_frames": [{}],
    "browser_performance_metrics": [{}],
    "browser_list_tabs": [{}],
}
ELSEWHERE = {
    "browser_get_resource_content": "called with the URL of the page below",
    "browser_get_network_request": "called with each request below",
    "browser_wait_for_response": "waits for a request that is sent meanwhile; the body is that of a recorded request",
    "browser_performance_trace": "a file of its own: its text is masked like that of an archive",
    "browser_clear_console_logs": "returns no content",
    "browser_list_tab_groups": "reads no page",
    "browser_list_tabs_in_group": "as browser_list_tabs",
    "browser_list_windows": "reads no page",
    "browser_get_cookies": "cookies need an approval of their own (docs/security.md)",
    "browser_search_history": "the browser's history, which needs an approval of its own (docs/security.md)",
    "browser_get_visits": "likewise",
    "browser_get_recently_closed": "likewise",
    "browser_search_bookmarks": "likewise",
    "browser_list_bookmark_tree": "likewise",
    "browser_list_downloads": "likewise",
    "browser_get_download_status": "likewise",
    "browser_get_connection_status": "reads no page",
    "browser_list_sessions": "reads no page",
    "extension_get_state": "reads no page",
    "extension_get_logs": "reads no page",
    "extension_get_side_panel": "reads no page",
    "extension_check_adapter": "reads no page",
    "plugin_list_tabs": "reads no page",
}
SCRIPTS = {
    "a value": "return password.value",
    "all values": "return [...document.querySelectorAll('input, textarea')].map((field) => [field.id, field.value])",
    "an object": "return Object.fromEntries([...document.querySelectorAll('input')].map((f) => [f.value, f.id]))",
    "a number": "return { code: Number(code.value), more: [Number(code.value)] }",
    "a text with it": "return `It is ${fresh.value}, I think.`",
    "JSON": "return JSON.stringify({ a: password.value, b: { c: recovery.value } })",
    "a URL": "return new URL('/x?q=' + encodeURIComponent(password.value), location).href",
    "markup": "return document.body.innerHTML",
    "a card without spaces": "return card.value.replaceAll(' ', '')",
    "a map": "return new Map([[fresh.value, key.textContent]])",
    "what is rendered": "return document.body.innerText + getComputedStyle(styled, '::after').content",
    "the shadow tree": "return document.querySelector('x-box').shadowRoot.querySelector('input').value",
    "a frame": "return inner.contentDocument.querySelector('input').value",
    "a thrown text": "throw fresh.value",
    "a thrown error": "throw new Error(`bad ${fresh.value}`)",
    "a thrown object": "throw { note: fresh.value, n: Number(code.value) }",
    "storage": "return { ...localStorage, ...sessionStorage }",
    "a field that the script empties": "const had = fresh.value; fresh.value = ''; return had",
    "what was entered while it ran": "pin.value = ['mk', 'typed', '08'].join('-'); return pin.value",
    "the removed form": "const had = recovery.value; document.querySelector('form').remove(); return had",
    "what was entered and removed": "const f = fresh; f.value = 'mk-' + ['moved-09']; f.remove(); return f.value",
    "a password that it reveals": "password.type = 'text'; password.id = ''; return document.forms[0][0].value",
}


def leaks(answer: Any) -> set[str]:
    """The markers in an answer, pictures aside."""
    for item in answer.get("content", []):
        item.pop("data", None)
    text = re.sub(r"(?<=[0-9])[ +-](?=[0-9])", "", json.dumps(answer, ensure_ascii=False))
    return set(MARKER.findall(text))


def test_every_tool_that_reads_is_in_the_table() -> None:
    assert {spec.tool.name for spec in SPECS if spec.tool.read_only} | {"browser_performance_trace"} == {
        *READS,
        *ELSEWHERE,
    }


@pytest.mark.req("B31")
async def test_no_tool_gives_the_value_of_a_secret_field_wherever_the_page_repeats_it(
    guest: Caller, zoo: Zoo, subtests: pytest.Subtests
) -> None:
    await guest.get("browser_enable_network_capture", tabId=await guest.visit(zoo.at("forms.html")))
    await guest.visit(zoo.at(PAGE))
    await guest.get("browser_execute_script", code="await window.ready; document.title = `Hello ${fresh.value}`")
    requests = (await guest.get("browser_get_network_requests"))["requests"]
    assert len([request for request in requests if "/echo" in request["url"]]) == 3
    reads = [(name, args) for name, every in READS.items() for args in every]
    reads += [("browser_get_network_request", {"requestId": request["id"]}) for request in requests]
    reads += [("browser_get_resource_content", {"url": PAGE})]
    for name, args in reads:
        with subtests.test(name, args=args):
            answer = await guest.call(name, **args)
            assert not answer.get("isError"), answer
            assert leaks(answer) == set()
    saved = await guest.get("browser_export_har", filePath="fields.har", overwrite=True)
    assert not MARKER.search(Path(saved["filePath"]).read_text())  # noqa: ASYNC240 - a small file
    json.loads(Path(saved["filePath"]).read_text())  # noqa: ASYNC240


@pytest.mark.req("B31")
@pytest.mark.parametrize("code", SCRIPTS.values(), ids=SCRIPTS)
async def test_a_script_returns_no_value_of_a_secret_field(guest: Caller, zoo: Zoo, code: str) -> None:
    await guest.visit(zoo.at(PAGE))
    answer = await guest.call("browser_execute_script", code=code)
    assert leaks(answer) == set()
    shown = json.dumps(answer, ensure_ascii=False)
    assert "•••" in shown


async def test_the_first_script_in_a_page_returns_nothing_that_it_removes(guest: Caller, zoo: Zoo) -> None:
    """Its values are those of no page before, so that nothing but reading this one can mask them."""
    for number in ("20", "21"):
        await guest.visit(zoo.at(f"typed.html?mk-once-{number}"))
        assert await guest.run("const had = typed.value; typed.remove(); return `It was ${had}.`") == "It was •••."


async def test_a_dialog_does_not_show_the_value_of_a_secret_field(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("typed.html?mk-said-30"))
    answer = await guest.call("browser_execute_script", code="alert(`You typed ${typed.value}`)")
    assert answer["isError"]
    assert "You typed •••" in answer["content"][0]["text"]
    assert leaks(answer) == set()
    await guest.get("browser_handle_dialog", action="accept")


async def test_short_values_are_masked_where_they_are_the_whole_text_only(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at(PAGE))
    assert await guest.run("return [check.value, pin.value, Number(pin.value)]") == ["•••"] * 3
    assert await guest.run("return 'Room 7351, 604815x, 1604815'") == "Room 7351, •••x, 1604815"


async def test_what_is_not_in_a_secret_field_is_returned_unchanged(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at(PAGE))
    given = await guest.run("return [city.value, 604816, 1.5, { a: [null, true] }]")
    assert given == ["Oslo 604816", 604816, 1.5, {"a": [None, True]}]
