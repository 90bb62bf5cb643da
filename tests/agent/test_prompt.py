"""The tools in the prompt: sections, the simple form of parameters, and the token budget."""

from __future__ import annotations

from typing import Any

import pytest

from tabhub.agent.prompt import FIND, ToolSelection, definition, describe_found, select_tools, system_prompt
from tabhub.core.results.tokens import estimate_tokens
from tabhub.core.tools import BROWSER, Source, Tool


def tool(name: str, words: str = "Does it.", required: tuple[str, ...] = (), **properties: Any) -> Tool:
    source = Source("upstream", name.split("__")[1]) if name.startswith("mcp__") else BROWSER
    return Tool(name, source, words, {"type": "object", "properties": properties, "required": list(required)})


WEATHER = tool(
    "mcp__weather__get_weather",
    "Get the weather of a city.",
    ("city",),
    city={"type": "string", "description": "Name of\n the city"},
    days={"type": "integer", "default": 1},
    units={"type": "string", "enum": ["C", "F"], "default": "C"},
    parts={"type": "array", "items": {"type": "string"}},
)
OPEN = tool("browser_open_tab", "Open a tab.", ("url",), url={"type": "string"})
TABS = tool("browser_list_tabs", "List the tabs.")
SECRETS = tool("mcp__vault__read", "[Disabled] Read a secret.")

GOLDEN = """## Built-in Tools

### browser_open_tab
Open a tab.
Parameters:
- url (string, required)

### browser_list_tabs
List the tabs.
No parameters.

## MCP Tools

### mcp__weather__get_weather
Get the weather of a city.
Parameters:
- city (string, required): Name of the city
- days (number, optional, default 1)
- units (string, optional, one of ["C", "F"], default "C")
- parts (array of string, optional)

## Disabled Tools

Do not use these tools: the person has disabled them.
- mcp__vault__read
"""


def prompt(*offers: Tool, room: int = 10_000) -> str:
    return system_prompt(select_tools(offers, room), xml=True)


ALL = (OPEN, WEATHER, SECRETS, TABS)


@pytest.mark.req("S001-prompt-01")
def test_external_tools_are_in_a_separate_section_after_the_built_in_ones() -> None:
    text = prompt(*ALL)
    assert text.endswith(GOLDEN)
    assert text.index("## Built-in Tools") < text.index("### browser_list_tabs") < text.index("\n## MCP Tools\n")
    assert "## MCP Tools" not in prompt(OPEN)


@pytest.mark.req("S001-prompt-02")
def test_each_tool_is_shown_with_prefixed_name_description_and_parameters() -> None:
    assert definition(WEATHER) == (
        "### mcp__weather__get_weather\n"
        "Get the weather of a city.\n"
        "Parameters:\n"
        "- city (string, required): Name of the city\n"
        "- days (number, optional, default 1)\n"
        '- units (string, optional, one of ["C", "F"], default "C")\n'
        "- parts (array of string, optional)"
    )
    assert definition(WEATHER) in prompt(*ALL)


@pytest.mark.req("S001-prompt-03")
def test_disabled_tools_are_listed_last_with_the_note_not_to_use_them() -> None:
    text = prompt(*ALL)
    assert text.endswith("Do not use these tools: the person has disabled them.\n- mcp__vault__read\n")
    assert "Read a secret." not in text
    assert prompt(OPEN).count("has disabled") == 0


def test_a_tool_marked_as_disabled_in_the_listing_is_disabled() -> None:
    assert select_tools([SECRETS, OPEN], 1_000) == ToolSelection((OPEN,), disabled=(SECRETS,))


def test_the_example_call_in_the_prompt_can_be_parsed() -> None:
    assert '<tool_calls>\n<invoke name="tool_name">\n<parameter name="parameter_name">value</parameter>' in prompt(*ALL)


def test_tools_that_do_not_fit_are_counted_and_can_be_found() -> None:
    many = [tool(f"mcp__s{n}__act", f"Water plant number {n}.", x={"type": "string"}) for n in range(300)]
    offers = [*many, OPEN, TABS]
    shelf = select_tools(offers, 1_000, first=frozenset({OPEN.name}))
    text = system_prompt(shelf, xml=True)
    assert OPEN in shelf.shown
    assert len(shelf.shown) + len(shelf.rest) == 302
    assert sum(estimate_tokens(definition(each)) for each in shelf.shown) <= 1_000
    assert estimate_tokens(text) < 2_000
    assert f"There are {len(shelf.rest)} more tools that are not listed: `{FIND}` finds them." in text
    assert f"### {FIND}" in text
    found = shelf.find("water plant 299")
    assert "mcp__s299__act" in [each.name for each in found]
    assert definition(found[0]) in describe_found("water plant 299", found)
    assert "No tool matches 'zzz'" in describe_found("zzz", shelf.find("zzz"))


def test_tool_over_budget_does_not_exclude_others() -> None:
    flood = tool("website_tool_evil_tab1_flood", "buy " * 5_000)
    shelf = select_tools([flood, OPEN, WEATHER], 1_000)
    assert (shelf.shown, shelf.rest) == ((OPEN, WEATHER), (flood,))


def test_found_tools_stay_in_the_prompt() -> None:
    many = [tool(f"browser_{n}", "w " * 100) for n in range(50)]
    assert "browser_49" not in [each.name for each in select_tools(many, 500).shown]
    assert "browser_49" in [each.name for each in select_tools(many, 500, first=frozenset({"browser_49"})).shown]


def test_native_calls_keep_tools_out_of_the_prompt() -> None:
    text = system_prompt(select_tools(ALL, 10_000), xml=False)
    assert "### " not in text
    assert "invoke" not in text
    assert text.endswith("- mcp__vault__read\n")
