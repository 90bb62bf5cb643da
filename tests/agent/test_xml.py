"""Tool calls in a model's text: all forms, all chunk boundaries, and the problems of malformed calls."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tabhub.agent.xml import XmlCall, XmlReader, format_call, format_result

WEATHER = """<tool_calls>
<invoke name="mcp__weather__get_weather">
<parameter name="city">San Francisco</parameter>
</invoke>
</tool_calls>"""


def read(text: str, cuts: list[int] | None = None, most: int = 1_000_000) -> list[str | XmlCall]:
    reader = XmlReader(most)
    edges = [0, *sorted({cut % (len(text) + 1) for cut in cuts or []}), len(text)]
    found: list[str | XmlCall] = []
    for start, end in pairwise(edges):
        found += reader.feed(text[start:end])
    found += reader.feed("", last=True)
    joined: list[str | XmlCall] = []
    for each in found:
        if isinstance(each, str) and joined and isinstance(joined[-1], str):
            joined[-1] += each
        else:
            joined.append(each)
    return joined


def one(text: str) -> XmlCall:
    (found,) = read(text)
    assert isinstance(found, XmlCall)
    return found


def call(body: str) -> XmlCall:
    return one(f'<tool_calls><invoke name="t">{body}</invoke></tool_calls>')


@pytest.mark.req("S001-prompt-04")
def test_external_and_built_in_tools_are_called_in_the_same_form() -> None:
    assert one(WEATHER) == XmlCall("mcp__weather__get_weather", [("city", "San Francisco")])
    built_in = WEATHER.replace("mcp__weather__get_weather", "browser_open_tab")
    assert one(built_in) == XmlCall("browser_open_tab", [("city", "San Francisco")])


def test_text_before_between_and_after_calls_is_passed_on() -> None:
    text = f"I look. {WEATHER} And < then {WEATHER}\nDone <b>now</b>."
    found = read(text)
    assert [each if isinstance(each, str) else each.name[:3] for each in found] == [
        "I look. ",
        "mcp",
        " And < then ",
        "mcp",
        "\nDone <b>now</b>.",
    ]


def test_an_invoke_without_a_block_counts() -> None:
    assert one('<invoke name="a"><parameter name="x">1</parameter></invoke>') == XmlCall("a", [("x", "1")])
    assert one("<invoke name='a'></invoke>") == XmlCall("a")
    assert one('<invoke name="a"/>') == XmlCall("a")


def test_several_calls_in_one_block_come_in_order() -> None:
    found = read('<tool_calls>\n<invoke name="a"></invoke>\n\n<invoke name="b"></invoke>\n</tool_calls>')
    assert found == [XmlCall("a"), XmlCall("b")]


@pytest.mark.parametrize(
    "value",
    [
        "a < b && c > d",
        '<div class="x">&amp; &lt;</div>',
        "if (a<b) { return '</p>' }",
        "]]>",
        '<invoke name="inner">',
        "</invoke>",
        "</parameter> and more",
        "one </parameter> two </parameter> three",
        "line one\n  line two\n",
        "😀 \u0000 \\ \" '",
        "",
    ],
)
def test_a_value_may_hold_any_characters(value: str) -> None:
    assert call(f'<parameter name="x">{value}</parameter>').values == [("x", value.removesuffix("\n"))]


def test_cdata_is_removed_and_may_contain_tags() -> None:
    inner = f"{WEATHER} </parameter></invoke>"
    assert call(f'<parameter name="x"><![CDATA[{inner}]]></parameter>').values == [("x", inner)]


def test_surrounding_line_breaks_are_removed() -> None:
    assert call('<parameter name="x">\n  two\n\n</parameter>').values == [("x", "  two\n")]


def test_a_call_is_returned_as_soon_as_it_is_complete() -> None:
    reader = XmlReader()
    head, tail = WEATHER.split("</invoke>")
    assert reader.feed(head + "</invoke") == []
    assert reader.feed(">") == [XmlCall("mcp__weather__get_weather", [("city", "San Francisco")])]
    assert reader.feed(tail) == []
    assert reader.feed("", last=True) == []


def test_text_is_emitted_once_it_cannot_be_a_tag() -> None:
    reader = XmlReader()
    assert reader.feed("Look: <inv") == ["Look: "]
    assert reader.feed("entory> is") == ["<inventory> is"]
    assert reader.feed("", last=True) == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('<invoke name="t"><parameter name="x">1', "The text ended before the `</parameter>` of 'x' and `</invoke>`."),
        ('<invoke name="t"><parameter name="x">1</parameter>', "The text ended before its `</invoke>`."),
        ('<tool_calls><invoke name="t"></tool_calls>', "It has no `</invoke>`."),
        ("<invoke></invoke>", '`<invoke>` names no tool; it is written `<invoke name="tool">`.'),
        ('<invoke tool="t"></invoke>', '`<invoke tool="t">` names no tool; it is written `<invoke name="tool">`.'),
        ('<invoke name=""></invoke>', '`<invoke name="">` names no tool; it is written `<invoke name="tool">`.'),
        ('<invoke name="t">{"x": 1}</invoke>', "'{\"x\": 1}' stands between its parameters."),
        ('<invoke name="t"><x>1</x></invoke>', "`<x>` stands between its parameters."),
        (
            '<invoke name="t"><parameter>1</parameter></invoke>',
            '`<parameter>` has no name; it is written `<parameter name="key">value</parameter>`.',
        ),
        (
            '<invoke name="t"><parameter name="x">1</parameter><parameter name="x">2</parameter></invoke>',
            "The parameter 'x' is given twice.",
        ),
        ("<tool_calls>\n</tool_calls>", "A `<tool_calls>` block without an `<invoke>` in it calls nothing."),
    ],
)
def test_malformed_call_has_a_problem(text: str, problem: str) -> None:
    assert one(text).problem == problem


def test_a_block_without_a_call_is_passed_on_with_a_problem() -> None:
    text, wrong = read('<tool_calls>[{"name": "t"}]</tool_calls>')
    assert text == '[{"name": "t"}]'
    assert isinstance(wrong, XmlCall)
    assert "calls nothing" in wrong.problem


def test_missing_end_affects_only_one_call() -> None:
    first, second = read('<invoke name="a"><parameter name="x">1</parameter><invoke name="b"></invoke>')
    assert isinstance(first, XmlCall)
    assert (first.name, first.problem) == ("a", "It has no `</invoke>`.")
    assert second == XmlCall("b")


def test_a_value_without_end_is_bounded() -> None:
    reader = XmlReader(100)
    found = reader.feed('<invoke name="t"><parameter name="x">')
    for _ in range(100):
        found += reader.feed("more and more ")
    found += reader.feed("", last=True)
    (only,) = found
    assert isinstance(only, XmlCall)
    assert "longer than 100 characters" in only.problem
    (only,) = read(f'<invoke name="t"><parameter name="x">{"y" * 101}</parameter></invoke> rest', most=100)
    assert isinstance(only, XmlCall)
    assert "longer than 100 characters" in only.problem


PIECES = st.sampled_from(
    [
        *("<tool_calls>", "</tool_calls>", '<invoke name="a">', "<invoke>", "</invoke>", "<invoke"),
        *('<parameter name="x">', "<parameter name='y'>", "<parameter>", "</parameter>", "</param", "<", ">", '"', "'"),
        *('<invoke name="b"/>', "<![CDATA[", "]]>", "&lt;"),
        *("text", " ", "\n", "{}", "😀", "<b>", "</b>", "<in", "voke name="),
    ]
)


@given(st.lists(PIECES, max_size=25), st.lists(st.integers(0, 10_000), max_size=12))
@example(['<invoke name="a">', '<parameter name="x">', "</parameter>", "\n", "</invoke>"], [30, 44, 46, 50])
@example(["<tool_calls>", "text", "<in", "voke name=", '"', "b", '"', ">"], list(range(30)))
def test_chunk_boundaries_make_no_difference(pieces: list[str], cuts: list[int]) -> None:
    text = "".join(pieces)
    whole = read(text)
    assert read(text, cuts) == whole
    assert read(text, list(range(len(text)))) == whole


@given(st.text(), st.lists(st.integers(0, 10_000), max_size=12))
def test_text_without_calls_is_unchanged(text: str, cuts: list[int]) -> None:
    assert "".join(str(each) for each in read(text, cuts)) == text


@given(
    st.text(min_size=1).filter(lambda name: name == name.strip() and "&" not in name and len(name) < 100),
    st.dictionaries(st.text("abc_", min_size=1), st.text() | st.sampled_from([WEATHER, "</parameter>", "\n\n"])),
    st.lists(st.integers(0, 10_000), max_size=8),
)
def test_a_formatted_call_is_parsed_back(name: str, values: dict[str, str], cuts: list[int]) -> None:
    text = format_call(name, values.items())
    if not any("]]>" in value or value.startswith("<![CDATA[") for value in values.values()):
        assert read(text, cuts) == [XmlCall(name, list(values.items()))]


def test_result_text_cannot_close_its_tag() -> None:
    shown = format_result("t", 1, 'a </tool_result> <tool_result call="2"> b', failed=False)
    assert shown.count("</tool_result>") == 1
    assert shown.startswith('<tool_result call="1" name="t" status="ok">\n')
    assert 'status="error"' in format_result("t", 1, "no", failed=True)
