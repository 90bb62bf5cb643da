"""The tool search ranks the intended tool first, and an unknown name suggests the right one."""

from __future__ import annotations

import random
import weakref
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabhub.core.listing.search import ToolIndex, nearest
from tabhub.core.tools import Source, Tool

HERE = Path(__file__).parent


def make(name: str, description: str = "", parameters: str = "", *, title: str | None = None) -> Tool:
    plugin = name.split("_")[0]
    source = Source("browser", "browser") if plugin == "browser" else Source("plugin", plugin)
    properties = {key: {"type": "string"} for key in parameters.split(",") if key}
    return Tool(name, source, description, {"type": "object", "properties": properties}, title=title)


def read_catalogue() -> list[Tool]:
    lines = (HERE / "catalogue.txt").read_text(encoding="utf-8").splitlines()
    return [make(*line.split("|")) for line in lines]


CATALOGUE = read_catalogue()
INDEX = ToolIndex(CATALOGUE)


def names(query: str, index: ToolIndex = INDEX, plugin: str | None = None) -> list[str]:
    return [tool.name for tool in index.search(query, plugin=plugin)]


def test_typical_queries_find_the_tool_among_the_first_three() -> None:
    cases = [line.split("|") for line in (HERE / "queries.txt").read_text(encoding="utf-8").splitlines()]
    assert len(CATALOGUE) >= 300
    assert len(cases) >= 60
    known = {tool.name for tool in CATALOGUE}
    missed = []
    for query, expected in cases:
        wanted = set(expected.split(","))
        assert wanted <= known
        if not wanted & set(names(query)[:3]):
            missed.append((query, names(query)[:3]))
    assert len(missed) <= len(cases) // 10, missed


@pytest.mark.parametrize("tool", CATALOGUE[::7], ids=lambda tool: tool.name)
def test_a_full_name_ranks_first_in_any_spelling(tool: Tool) -> None:
    camel = "".join(part.capitalize() for part in tool.name.split("_"))
    for query in (tool.name, tool.name.upper(), tool.name.replace("_", "."), tool.name.replace("_", " "), camel):
        assert names(query)[0] == tool.name, query


def test_names_weigh_more_than_titles_than_descriptions_than_parameters() -> None:
    tools = [
        make("a_one", "Something else entirely.", "walrus"),
        make("a_two", "All about the walrus."),
        make("a_three", "Something else entirely.", title="Walrus"),
        make("a_walrus", "Something else entirely."),
        make("a_none", "Something else entirely."),
    ]
    assert names("walrus", ToolIndex(tools)) == ["a_walrus", "a_three", "a_two", "a_one"]


def test_parameter_descriptions_choices_and_nested_parameters_are_searched() -> None:
    schema = {
        "type": "object",
        "properties": {
            "how": {"type": "string", "description": "the marmalade to use", "enum": ["bitter", "quince"]},
            "rows": {"type": "array", "items": {"type": "object", "properties": {"teapot": {"type": "string"}}}},
        },
    }
    tools = [Tool("x_spread", Source("plugin", "x"), "Spreads.", schema), make("x_other")]
    index = ToolIndex(tools)
    assert names("marmalade", index) == names("quince", index) == names("teapot", index) == ["x_spread"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("navigation", "browser_navigate_tab"),
        ("downloading files", "browser_download_file"),
        ("categories", "shop_list_categories"),
        ("screens", "browser_screenshot_tab"),
        ("bookmrks", "browser_search_bookmarks"),
        ("spreadshet", "sheets_create_spreadsheet"),
        ("screen shot", "browser_screenshot_tab"),
        ("sendmessage", "slack_send_message"),
        ("ÉVÉNEMENT calendár", "calendar_list_calendars"),
    ],
)
def test_word_forms_prefixes_typos_joined_words_and_accents_match(query: str, expected: str) -> None:
    assert expected in names(query)[:6]


def test_chinese_descriptions_are_found_by_a_substring() -> None:
    tools = [make("x_a", "浏览器标签页截图"), make("x_b", "发送电子邮件给用户")]
    assert names("电子邮件", ToolIndex(tools)) == ["x_b"]


def test_a_plugin_narrows_the_search_by_key_kind_or_both() -> None:
    assert set(names("", plugin="jira")) == {tool.name for tool in CATALOGUE if tool.source.key == "jira"}
    assert names("", plugin="JIRA") == sorted(names("", plugin="plugin:jira"))
    assert all(name.startswith("browser_") for name in names("", plugin="browser"))
    found = names("send message", plugin="jira")
    assert all(name.startswith("jira_") for name in found)
    assert names("send message", plugin="nothing") == []


def test_no_query_lists_all_by_name_and_an_unknown_word_finds_nothing() -> None:
    assert names("") == names("   ") == sorted(tool.name for tool in CATALOGUE)
    assert names("qqqxxzzv") == []
    assert names("!?") == []


def test_stop_words_alone_do_not_fail() -> None:
    assert isinstance(names("what is the"), list)


def test_ties_are_broken_by_name() -> None:
    tools = [make(f"x_{letter}_thing", "Same words.") for letter in "dbca"]
    expected = ["x_a_thing", "x_b_thing", "x_c_thing", "x_d_thing"]
    assert names("thing", ToolIndex(tools)) == expected
    assert names("thing", ToolIndex(reversed(tools))) == expected


@given(
    st.lists(st.tuples(st.sets(st.integers(0, 59), max_size=40), st.integers(0, 60)), min_size=1, max_size=6),
    st.randoms(use_true_random=False),
)
@settings(max_examples=40)
def test_an_index_after_changes_ranks_as_one_built_at_once(
    changes: list[tuple[set[int], int]], shuffle: random.Random
) -> None:
    pool = CATALOGUE[90:150]
    index = ToolIndex()
    for chosen, steps in changes:
        tools = [pool[at] for at in chosen]
        shuffle.shuffle(tools)
        index.change(tools)
        index.advance(steps)
    index.advance(len(pool) * 2)
    assert index.complete
    at_once = ToolIndex(sorted(tools, key=lambda tool: tool.name))
    for query in ("send message", "create an issue", "channl", "list", "cal", ""):
        assert names(query, index) == names(query, at_once)
    assert index._vocabulary == at_once._vocabulary == sorted(index._postings)


def test_a_step_adds_or_removes_at_most_the_number_of_tools_asked_for() -> None:
    index = ToolIndex(CATALOGUE[:10])
    index.change(CATALOGUE[8:20])  # eight to remove, ten to add
    complete = []
    for _ in range(6):
        index.advance(3)
        complete.append(index.complete)
    assert complete == [False] * 5 + [True]
    assert [tool.name for tool in index.search("")] == sorted(tool.name for tool in CATALOGUE[8:20])


def test_a_new_tool_replaces_one_of_the_same_name() -> None:
    old, new = make("x_thing", "About apples."), make("x_thing", "About pears.")
    index = ToolIndex([old])
    index.change([new])
    index.advance(2)
    assert names("apples", index) == []
    assert index.search("pears") == [new]


def test_an_index_does_not_keep_tools_that_are_used_nowhere_else() -> None:
    kept, closed = make("x_kept", "About apples."), make("x_closed", "About apples.")
    index = ToolIndex([kept, closed])
    watch = weakref.ref(closed)
    del closed
    assert watch() is None
    assert index.search("apples") == index.search("") == [kept]
    index.change([kept])
    index.advance(1)
    assert index.complete


def test_a_tool_is_found_in_a_large_catalogue() -> None:
    shuffle = random.Random(3)
    words = [word for tool in CATALOGUE for word in tool.description.split()]
    many = [make(f"site{i % 500}_tab{i}_thing", " ".join(shuffle.choices(words, k=12))) for i in range(2_000)]
    index = ToolIndex([*many, *CATALOGUE])
    assert names("take a screenshot of the tab", index)[0] == "browser_screenshot_tab"
    assert names("tab", index)


@given(st.text(max_size=400))
@settings(max_examples=150)
def test_any_query_and_any_unknown_name_has_a_result(text: str) -> None:
    assert set(names(text)) <= {tool.name for tool in CATALOGUE}
    assert len(nearest(text, [tool.name for tool in CATALOGUE])) <= 3


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("slack__send_message", "slack_send_message"),
        ("slack-send-message", "slack_send_message"),
        ("slackSendMessage", "slack_send_message"),
        ("send_message", "slack_send_message"),
        ("slack_send_mesage", "slack_send_message"),
        ("browser_click", "browser_click_element"),
        ("browser_screenshot", "browser_screenshot_tab"),
        ("browser_take_screenshot", "browser_screenshot_tab"),
        ("brwser_screnshot", "browser_screenshot_tab"),
        ("mcp__tabhub__browser_click_element", "browser_click_element"),
        ("browser_navigate", "browser_navigate_tab"),
        ("github_create_pr", "github_create_pull_request"),
        ("gmail_send_mail", "gmail_send_email"),
        ("jira_createIssue", "jira_create_issue"),
    ],
)
def test_an_unknown_name_suggests_the_right_one_first(wrong: str, right: str) -> None:
    assert nearest(wrong, [tool.name for tool in CATALOGUE])[0] == right


def test_a_name_unlike_all_others_suggests_nothing() -> None:
    assert nearest("totally_unknown_thing", [tool.name for tool in CATALOGUE]) == []
    assert nearest("", ["a_b"]) == []
    assert nearest("slack_send", [tool.name for tool in CATALOGUE], limit=1) == ["slack_send_message"]
