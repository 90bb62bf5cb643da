"""Built-in tools on a page over plain HTTP, such as one of an intranet: it is no secure context."""

from __future__ import annotations

import pytest

from tests.e2e.live import Caller
from tests.e2e.zoo import Zoo


@pytest.mark.req("C6")
async def test_tools_read_act_and_capture_outside_secure_contexts(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("forms.html").replace("127.0.0.1", "intranet.test"))
    assert await guest.run("return isSecureContext") is False
    assert "Sign up" in (await guest.get("browser_snapshot"))["snapshot"]
    assert "Phone" in str((await guest.get("browser_find", text="Phone"))["elements"])
    fields = [{"selector": "[name=phone]", "value": "123"}, {"selector": "textarea", "value": "new words"}]
    filled = await guest.get("browser_fill_form", fields=fields)
    assert [field.get("value") for field in filled["fields"]] == ["123", "new words"]
    await guest.get("browser_click_element", text="I agree", role="checkbox")
    assert await guest.run("return document.querySelectorAll('[type=checkbox]')[0].checked") is False
    await guest.get("browser_type_text", selector="[type=search]", text="tea")
    assert await guest.run("return document.querySelector('[type=search]').value") == "tea"
    assert "Sign up" in (await guest.get("browser_get_tab_content"))["content"]
    assert (await guest.call("browser_screenshot_tab"))["content"][-1]["type"] in ("image", "text")
    await guest.get("browser_set_storage", storageType="local", key="a", value="1")
    assert (await guest.get("browser_get_storage"))["items"] == [{"key": "a", "value": "1"}]
    assert "need a page over https" in (await guest.fail("browser_get_storage", storageType="cache"))["text"]
    await guest.get("browser_wait_for", text="Sign up")
    await guest.get("browser_get_element_styles", selector="h1")
    await guest.get("browser_performance_metrics")
    await guest.get("browser_get_console_logs")
