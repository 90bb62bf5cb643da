"""Where placeholders for secrets may stand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tabhub.browser.secrets.text import SecretText, check_places
from tabhub.errors import InvalidArguments
from tabhub.store.home import Home
from tabhub.store.named_secrets import SecretStore
from tabhub.trust.value_mask import ValueMask

HERE = "{{secret:a}}"


def test_agents_are_given_names_and_sites_or_why_there_are_none(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    store = SecretStore(home, None)
    store.set("shop", "hunter-22", "secret", ("https://shop.example",), 1.0)
    store.set("plugin/notes/token", '"x"', "plugin", (), 1.0)
    text = SecretText(store, ValueMask(), lambda: 0.0)
    assert text.describe() == [{"placeholder": "{{secret:shop}}", "sites": ["https://shop.example"]}]
    (home.root / "secrets.json").write_text("{")
    assert "broken" in str(text.describe())


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("browser_type_text", {"selector": "#a", "text": HERE}),
        ("browser_fill_form", {"fields": [{"ref": "e1", "value": "1"}, {"ref": "e2", "value": f"x{HERE}"}]}),
        ("browser_act", {"actions": [{"action": "click", "ref": "e1"}, {"action": "type", "ref": "e1", "text": HERE}]}),
        ("browser_act", {"actions": [{"action": "fill", "fields": [{"ref": "e1", "value": HERE}]}]}),
        ("browser_navigate_tab", {"url": "https://a.example/{{name}}"}),
    ],
)
def test_text_for_fields_may_have_placeholders(tool: str, arguments: dict[str, Any]) -> None:
    check_places(tool, arguments)


@pytest.mark.parametrize(
    ("tool", "arguments", "place"),
    [
        ("browser_type_text", {"selector": HERE, "text": "a"}, "selector"),
        ("browser_type_text", {"label": HERE, "text": "a"}, "label"),
        ("browser_fill_form", {"fields": [{"text": HERE, "value": "a"}]}, "fields/0/text"),
        ("browser_fill_form", {"fields": [{"ref": "e1", "value": [HERE]}]}, "fields/0/value/0"),
        ("browser_act", {"actions": [{"action": "click", "text": HERE}]}, "actions/0/text"),
        ("browser_act", {"actions": [{"action": "select", "ref": "e1", "values": [HERE]}]}, "actions/0/values/0"),
        ("browser_act", {"actions": [{"action": "navigate", "url": HERE}]}, "actions/0/url"),
        ("browser_navigate_tab", {"url": f"https://a.example/?q={HERE}"}, "url"),
        ("browser_execute_script", {"code": "{{totp:a}}"}, "code"),
        ("website_tool_x", {"deep": [{"a": {"b": HERE}}]}, "deep/0/a/b"),
        ("mcp__x__y", {HERE: 1}, "a name"),
    ],
)
def test_a_placeholder_elsewhere_is_an_error(tool: str, arguments: dict[str, Any], place: str) -> None:
    with pytest.raises(InvalidArguments, match=f"{place} has a placeholder") as caught:
        check_places(tool, arguments)
    assert caught.value.outcome == "not_sent"
