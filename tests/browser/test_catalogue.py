"""What every built-in tool says of itself."""

from __future__ import annotations

import pytest

from tabhub.browser import SPECS
from tabhub.errors import InvalidArguments
from tests.browser.conftest import Bench

NAMES = {
    "browser_list_tabs",
    "browser_open_tab",
    "browser_close_tab",
    "browser_navigate_tab",
    "browser_get_tab_info",
    "browser_screenshot_tab",
    "browser_execute_script",
    "browser_get_tab_content",
    "browser_get_connection_status",
}


def test_the_first_tools_are_there() -> None:
    assert {spec.tool.name for spec in SPECS} == NAMES


def test_every_tool_has_words_a_result_schema_and_all_four_annotations() -> None:
    for spec in SPECS:
        tool = spec.tool
        assert tool.title
        assert tool.description.endswith(".")
        assert tool.output_schema
        assert tool.output_schema["required"]
        assert set(tool.annotations) == {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
        assert tool.input_schema["additionalProperties"] is False


def test_what_changes_things_does_not_call_itself_read_only() -> None:
    read_only = {spec.tool.name for spec in SPECS if spec.tool.read_only}
    assert read_only == {
        "browser_list_tabs",
        "browser_get_tab_info",
        "browser_get_tab_content",
        "browser_get_connection_status",
    }


@pytest.mark.parametrize(
    ("name", "args", "field"),
    [
        ("browser_open_tab", {}, "url"),
        ("browser_navigate_tab", {"url": 5}, "url"),
        ("browser_close_tab", {"tabId": "1"}, "tabId"),
        ("browser_close_tab", {"tabId": 1, "force": True}, "force"),
        ("browser_execute_script", {"code": ""}, "code"),
        ("browser_screenshot_tab", {"scale": 100}, "scale"),
        ("browser_screenshot_tab", {"format": "gif"}, "format"),
        ("browser_get_tab_content", {"maxLength": 0}, "maxLength"),
    ],
)
async def test_wrong_arguments_name_the_field_and_send_nothing(
    bench: Bench, name: str, args: dict[str, object], field: str
) -> None:
    with pytest.raises(InvalidArguments, match=field):
        await bench.result(name, **args)
    assert not bench.browser.sent
