"""Secrets in real pages: what a login and checkout page holds, and named secrets that are typed into it."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.appsite import AppSite
from tests.e2e.live import Caller, LiveHub
from tests.e2e.zoo import Zoo

PAGE = "secrets.html"
PLANTED = re.compile(r"PLANT-[a-z]+-[0-9]{2}|(?<![0-9])(?:918273|7391|4827|078-05-1120)(?![0-9])|11/2031")
CARDS = ("4111111111111111", "5555555555554444", "4000056655665556")
SITE_KEY = "horse battery <staple> & 1"
TOTP_KEY = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"


def leaks(text: str) -> set[str]:
    """The planted values in a text. How long a call took may look like one."""
    text = re.sub(r'"durationMs":[0-9.]+', "", text)
    digits = re.sub(r"(?<=[0-9])[ +-](?=[0-9])", "", text)
    return {*PLANTED.findall(text), *(card for card in CARDS if card in digits)}


def set_secret(hub: LiveHub, name: str, value: str, *more: str) -> None:
    command = [sys.executable, "-m", "tabhub", "secret", "set", name, *more]
    done = subprocess.run(command, env=hub.env, input=value, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, done.stderr
    assert value not in done.stdout + done.stderr


@pytest.mark.req("B31")
async def test_no_reading_tool_gives_a_secret_of_the_page(
    guest: Caller, zoo: Zoo, live_hub: LiveHub, subtests: pytest.Subtests
) -> None:
    await guest.get("browser_enable_network_capture", tabId=await guest.visit(zoo.at("forms.html")))
    tab = await guest.visit(zoo.at(PAGE))
    assert leaks(json.dumps(await guest.get("browser_snapshot"))) == set()
    await guest.run("await window.ready; document.querySelector('#show').click(); phrase.type = 'text';")
    fields = "input, textarea, select, [contenteditable], button, output, span"
    reads: list[tuple[str, dict[str, Any]]] = [
        ("browser_snapshot", {}),
        ("browser_snapshot", {"interactiveOnly": True}),
        ("browser_query_elements", {"selector": fields, "attributes": ["value", "data-copy", "name"], "limit": 100}),
        ("browser_find", {"text": "Password"}),
        ("browser_find", {"text": "You wrote"}),
        ("browser_get_page_html", {}),
        ("browser_get_page_html", {"selector": "#password"}),
        ("browser_get_page_html", {"selector": "[name=recovery_code]"}),
        ("browser_get_tab_content", {}),
        ("browser_get_storage", {}),
        ("browser_get_storage", {"key": "access_token"}),
        ("browser_get_storage", {"storageType": "session"}),
        ("browser_get_console_logs", {}),
        ("browser_get_network_requests", {"withBodies": True}),
        ("browser_export_har", {}),
        ("browser_list_tabs", {}),
        ("browser_get_tab_info", {"tabId": tab}),
        ("browser_screenshot_tab", {"annotate": True, "scale": 0.1}),
        ("browser_type_text", {"selector": "#comment", "text": "!"}),
        ("browser_wait_for", {"selector": "#password"}),
    ]
    requests = (await guest.get("browser_get_network_requests"))["requests"]
    assert len([r for r in requests if r["url"].endswith("/echo")]) == 3
    reads += [("browser_get_network_request", {"requestId": request["id"]}) for request in requests]
    for name, args in reads:
        with subtests.test(name, args=args):
            answer = await guest.call(name, **args)
            assert not answer.get("isError"), answer
            assert leaks(json.dumps(answer, ensure_ascii=False)) == set()
    saved = await guest.get("browser_export_har", filePath="secrets.har", overwrite=True)
    for written in (Path(saved["filePath"]), live_hub.home / "audit.log", live_hub.home / "logs" / "hub.log"):
        with subtests.test(written.name):
            assert leaks(await asyncio.to_thread(written.read_text)) == set()


async def test_what_is_not_secret_is_still_read(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at(PAGE))
    shown = (await guest.get("browser_snapshot"))["snapshot"]
    assert 'textbox "Email"' in shown
    assert '"anna@shop.example"' in shown
    assert '"please ring"' in shown
    assert '"•••" (filled in)' in shown
    stored = (await guest.get("browser_get_storage"))["items"]
    assert {item["key"]: item["value"] for item in stored}["theme"] == "dark"
    html = (await guest.get("browser_get_page_html", selector="#comment"))["html"]
    assert 'value="please ring"' in html


async def test_a_field_that_was_a_password_stays_secret(guest: Caller, zoo: Zoo) -> None:
    """Also one that the page replaces by a text field of the same name."""
    await guest.visit(zoo.at(PAGE))
    await guest.get("browser_snapshot")
    await guest.run(
        "const old = document.querySelector('#password'); const field = document.createElement('input');"
        "field.id = 'password'; field.value = old.value; old.replaceWith(field);"
    )
    answer = await guest.get("browser_query_elements", selector="#password", attributes=["value"])
    assert answer["elements"][0]["attributes"] == {"value": "•••"}


async def test_a_screenshot_covers_what_secret_fields_show(guest: Caller, zoo: Zoo) -> None:
    """The picture of the field does not depend on its value, and the field is as before afterwards."""
    await guest.visit(zoo.at(PAGE))
    shots = []
    for value in ("iiii", "WWWW"):
        await guest.run("document.querySelector('#f3').value = args.value", args={"value": value})
        answer = await guest.call("browser_screenshot_tab", selector="#f3")
        shots.append(answer["content"][0]["data"])
    assert shots[0] == shots[1]
    assert await guest.run("return document.querySelector('#f3').getAttribute('style')") is None


async def test_a_secret_is_not_typed_into_a_code_editor(guest: Caller, apps: AppSite, live_hub: LiveHub) -> None:
    set_secret(live_hub, "editor", SITE_KEY, "--site", apps.url)
    await guest.visit(apps.at("monaco"))
    for how in ({}, {"insert": True}):
        failed = await guest.fail("browser_type_text", selector="#editor", text="{{secret:editor}}", **how)
        assert "code editor" in failed["text"]
    assert await guest.run("return model()") == ""


async def test_a_named_secret_is_typed_on_its_site_and_shown_nowhere(
    guest: Caller, zoo: Zoo, live_hub: LiveHub, subtests: pytest.Subtests
) -> None:
    set_secret(live_hub, "shop", SITE_KEY, "--site", zoo.url)
    set_secret(live_hub, "shop-code", TOTP_KEY, "--totp", "--site", zoo.url)
    await guest.visit(zoo.at(PAGE))
    typed = await guest.call("browser_type_text", selector="#password", text="{{secret:shop}}", clear=True)
    filled = await guest.call(
        "browser_fill_form",
        fields=[
            {"selector": "#comment", "value": "{{secret:shop}}"},
            {"selector": "#f1", "value": "{{totp:shop-code}}"},
        ],
    )
    recovery = {"selector": "[name=recovery_code]", "clear": True, "insert": True}
    step = {"action": "type", "text": "x {{secret:shop}}", **recovery}
    acted = await guest.call("browser_act", actions=[step])
    assert not any(answer.get("isError") for answer in (typed, filled, acted)), (typed, filled, acted)
    held = (
        "return ['#password', '#comment', '[name=recovery_code]', '#f1'].map((at) => document.querySelector(at).value)"
    )
    checked = await guest.run(
        f"const [a, b, c, code] = (() => {{ {held} }})();"
        "return [a === args.key, b === args.key, c === `x ${args.key}`, /^[0-9]{6}$/.test(code)]",
        args={"key": SITE_KEY},
    )
    assert checked == [True, True, True, True]
    code = await guest.run("return document.querySelector('#f1').value")
    assert code == "•••"  # as the field would show it
    await guest.run(
        "document.title = comment.value; console.log(comment.value); fetch('/x?q=' + encodeURIComponent(comment.value))"
    )
    reads: list[tuple[str, dict[str, Any]]] = [
        ("browser_snapshot", {}),
        ("browser_query_elements", {"selector": "input", "attributes": ["value"]}),
        ("browser_get_page_html", {}),
        ("browser_execute_script", {"code": held}),
        ("browser_get_console_logs", {}),
        ("browser_get_network_requests", {}),
        ("browser_export_har", {}),
        ("browser_list_tabs", {}),
        ("browser_get_connection_status", {}),
    ]
    for name, args in reads:
        with subtests.test(name):
            answer = json.dumps(await guest.call(name, **args), ensure_ascii=False)
            assert "battery" not in answer
    assert "battery" not in json.dumps([typed, filled, acted])
    status = await guest.get("browser_get_connection_status")
    listed = {entry["placeholder"]: entry["sites"] for entry in status["hub"]["secrets"]}
    assert listed["{{secret:shop}}"] == [zoo.url]
    assert "{{totp:shop-code}}" in listed


async def test_a_named_secret_is_refused_elsewhere(
    guest: Caller, zoo: Zoo, live_hub: LiveHub, subtests: pytest.Subtests
) -> None:
    set_secret(live_hub, "elsewhere", SITE_KEY, "--site", zoo.elsewhere)
    await guest.visit(zoo.at(PAGE))
    before = "return document.querySelector('#comment').value"
    refused: list[tuple[str, dict[str, Any], str]] = [
        ("browser_type_text", {"selector": "#comment", "text": "{{secret:elsewhere}}"}, "may not be used on"),
        ("browser_type_text", {"selector": "#comment", "text": "{{secret:nobody}}"}, "There is no secret"),
        ("browser_type_text", {"selector": "#comment", "text": "{{totp:elsewhere}}"}, "There is no secret"),
        (
            "browser_fill_form",
            {"fields": [{"selector": "#month", "value": "{{secret:elsewhere}}"}]},
            "not a text field",
        ),
        ("browser_navigate_tab", {"url": zoo.at("{{secret:elsewhere}}")}, "placeholder"),
        ("browser_execute_script", {"code": "return '{{secret:elsewhere}}'"}, "placeholder"),
        ("browser_type_text", {"selector": "{{secret:elsewhere}}", "text": "x"}, "placeholder"),
        ("browser_press_key", {"key": "{{secret:elsewhere}}"}, "placeholder"),
        ("browser_act", {"actions": [{"action": "click", "text": "{{secret:elsewhere}}"}]}, "placeholder"),
    ]
    for name, args, expected in refused:
        with subtests.test(name, args=args):
            assert expected in (await guest.fail(name, **args))["text"]
    assert await guest.run(before) == "please ring"


async def test_a_secret_goes_into_the_frame_of_its_site_only(guest: Caller, zoo: Zoo, live_hub: LiveHub) -> None:
    """The field's own document counts, not the page around it."""
    set_secret(live_hub, "inner", SITE_KEY, "--site", zoo.elsewhere)
    await guest.visit(zoo.at(PAGE))
    snapshot = (await guest.get("browser_snapshot"))["snapshot"]
    ref = re.search(r'textbox "Card" \[ref=(f[0-9]+e[0-9]+)', snapshot)
    assert ref is not None, snapshot
    answer = await guest.call("browser_type_text", ref=ref[1], text="{{secret:inner}}", clear=True)
    assert not answer.get("isError"), answer
    length = await guest.run("return document.querySelector('input').value.length", frame="secrets_inner.html")
    assert length == len(SITE_KEY)


async def test_a_code_fills_fields_of_one_digit_each(guest: Caller, zoo: Zoo, live_hub: LiveHub) -> None:
    set_secret(live_hub, "digits", TOTP_KEY, "--totp", "--site", zoo.url)
    await guest.visit(zoo.at("forms.html"))
    await guest.run(
        "document.body.innerHTML = Array.from({length: 6}, (_, n) => `<input id=d${n} maxlength=1>`).join('');"
        "document.body.oninput = ({target}) => target.nextElementSibling?.focus();"
    )
    await guest.get("browser_type_text", selector="#d0", text="{{totp:digits}}")
    filled = await guest.run(
        "return [...document.querySelectorAll('input')].filter((f) => /^[0-9]$/.test(f.value)).length"
    )
    assert filled == 6
