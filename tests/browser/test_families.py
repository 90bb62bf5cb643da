"""The declarations of all built-in tools."""

from __future__ import annotations

import pytest

from tabhub.browser.families import SPECS
from tabhub.errors import InvalidArguments
from tests.browser.conftest import Bench

READING = ("list", "get", "find", "search", "snapshot", "query", "wait", "check", "screenshot", "save", "export")
"""How the names of read-only tools begin; some write files of the agent's."""
ALSO_READING = {"browser_performance_metrics"}
ACTS_ALL_THE_SAME = {"browser_get_css_coverage", "browser_clear_console_logs"}
"""Exceptions: coverage has to be switched on in the page; clearing hides messages only from the caller."""


def test_every_tool_has_texts_an_output_schema_and_all_four_annotations() -> None:
    for spec in SPECS:
        tool = spec.tool
        assert tool.title
        assert tool.description.endswith(".")
        assert tool.output_schema
        assert tool.output_schema["required"]
        assert set(tool.annotations) == {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
        assert tool.input_schema["additionalProperties"] is False


def test_tools_that_change_something_are_not_read_only() -> None:
    for spec in SPECS:
        name = spec.tool.name
        verb = name.split("_")[1]
        reads = (verb in READING or name in ALSO_READING) and name not in ACTS_ALL_THE_SAME
        if name not in ACTS_ALL_THE_SAME:
            assert spec.tool.read_only == reads, name
        if spec.tool.read_only:
            assert not spec.tool.annotations["destructiveHint"], name


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
