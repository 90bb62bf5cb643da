"""What calls are in words: every built-in tool, elements, batches, tools of others, and what stays hidden."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given as generated
from hypothesis import strategies as st

from tabhub.browser.families import SPECS
from tabhub.trust.sentences.agents import agent_name
from tabhub.trust.sentences.elements import Elements, NamedElement, labelled, targets
from tabhub.trust.sentences.sentence import ToolWords, batch_phrase, doing, is_harmless, phrase, sentence, steps_of
from tabhub.trust.sentences.words import PHRASES

PAY = NamedElement("button", "Pay now")
AMOUNT = NamedElement("textbox", "Amount")


def own(name: str) -> ToolWords:
    return ToolWords(name, "", "browser", "")


def said(name: str, arguments: dict[str, Any], elements: Elements | None = None, **more: Any) -> str:
    return phrase(own(name), arguments, elements or {}, **more)


def test_every_built_in_tool_has_a_phrase_and_no_other_has_one() -> None:
    assert {spec.tool.name for spec in SPECS} | {"tabhub_read_result"} == set(PHRASES)


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.tool.name)
def test_a_phrase_reads_well_with_only_the_required_arguments(spec: Any) -> None:
    given = {"url": "https://a.example/", "key": "Enter", "paths": ["a.txt"], "name": "sid"}
    text = phrase(
        own(spec.tool.name), {name: given[name] for name in spec.tool.input_schema.get("required", ()) if name in given}
    )
    assert text == text.strip()
    assert "  " not in text
    assert doing(text).partition(" ")[0].endswith("ing")


@pytest.mark.parametrize(
    ("tool", "arguments", "elements", "expected"),
    [
        ("browser_click_element", {"ref": "e3"}, {"": PAY}, 'click "Pay now"'),
        ("browser_click_element", {"ref": "e3", "count": 2}, {"": PAY}, 'double-click "Pay now"'),
        ("browser_click_element", {"ref": "e3", "button": "right"}, {"": PAY}, 'right-click "Pay now"'),
        (
            "browser_click_element",
            {"ref": "e3"},
            {"": NamedElement("checkbox", "I agree")},
            'click the checkbox "I agree"',
        ),
        ("browser_click_element", {"ref": "e3"}, {"": NamedElement("image", "")}, "click an image without a name"),
        (
            "browser_click_element",
            {"text": "Pay now"},
            {"": NamedElement(problem="missing")},
            'click "Pay now" (not on the page now)',
        ),
        (
            "browser_click_element",
            {"ref": "e3"},
            {"": NamedElement(problem="unchecked")},
            "click element e3 (the page could not be checked)",
        ),
        ("browser_click_element", {"selector": "#pay"}, {}, "click element #pay"),
        ("browser_type_text", {"ref": "e4", "text": "4200"}, {"": AMOUNT}, 'type "4200" into "Amount"'),
        (
            "browser_type_text",
            {"ref": "e4", "text": "4200", "clear": True, "submit": True},
            {"": AMOUNT},
            'replace the text of "Amount" with "4200" and press Enter',
        ),
        ("browser_type_text", {"text": "hi"}, {}, 'type "hi" into the focused element'),
        ("browser_press_key", {"key": "Enter"}, {"": AMOUNT}, 'press Enter in "Amount"'),
        ("browser_select_option", {"ref": "e5", "value": "NO"}, {"": NamedElement("combobox", "Country")}, None),
        ("browser_select_option", {"label": "Country", "value": "NO"}, {}, 'choose "NO" in "Country"'),
        ("browser_select_option", {"ref": "e5", "label": "Norway"}, {}, 'choose "Norway" in element e5'),
        ("browser_navigate_tab", {"url": "https://a.example/b"}, {}, "go to https://a.example/b"),
        ("browser_open_tab", {"url": "https://a.example/"}, {}, "open https://a.example/ in a new tab"),
        ("browser_drag", {"from": "e3", "to": {"x": 1, "y": 2}}, {"from.": PAY}, 'drag "Pay now" to the point 1, 2'),
        ("browser_upload_file", {"ref": "e1", "paths": ["/home/a/cv.pdf"]}, {}, "upload cv.pdf to element e1"),
        ("browser_fill_form", {"fields": [{"label": "Name", "value": "Ann"}]}, {}, 'fill "Ann" into "Name"'),
    ],
)
def test_a_call_is_said_with_its_real_target(
    tool: str, arguments: dict[str, Any], elements: Elements, expected: str | None
) -> None:
    assert said(tool, arguments, elements) == (expected or 'choose "NO" in "Country"')


def test_what_is_typed_into_a_field_for_secrets_is_hidden() -> None:
    password = {"": NamedElement("textbox", "Log in with", secret=True)}
    assert (
        said("browser_type_text", {"ref": "e4", "text": "hunter2"}, password) == 'type a hidden text into "Log in with"'
    )
    # also where the field was not found, and its name says so
    assert "hunter2" not in said("browser_type_text", {"label": "Password", "text": "hunter2"})
    assert "4111" not in said("browser_type_text", {"ref": "e4", "text": "4111 1111 1111 1111"}, {"": AMOUNT})
    form = {"fields": [{"ref": "e1", "value": "ann"}, {"ref": "e2", "value": "hunter2"}]}
    elements = {"0.": NamedElement("textbox", "Name"), "1.": NamedElement("textbox", "PIN", secret=True)}
    assert steps_of(own("browser_fill_form"), form, [], elements) == ['"Name": "ann"', '"PIN": a hidden text']


def test_a_stored_secret_is_named_and_not_taken_for_one() -> None:
    text = said("browser_type_text", {"ref": "e4", "text": "{{secret:bank}}"}, {"": AMOUNT})
    assert text == 'type "[stored secret bank]" into "Amount"'


def test_the_private_form_has_neither_typed_texts_nor_the_ends_of_urls() -> None:
    assert (
        said("browser_type_text", {"ref": "e4", "text": "4200"}, {"": AMOUNT}, private=True)
        == 'type text into "Amount"'
    )
    url = {"url": "https://a.example/b?q=illness#x"}
    assert said("browser_navigate_tab", url, private=True) == "go to https://a.example/b"
    assert said("browser_search_history", {"query": "illness"}, private=True) == "search the browsing history"
    page = ToolWords("website_tool_x", "Search flights", "page", "fly.example")
    assert phrase(page, {"to": "Oslo"}, private=True) == 'use "Search flights" of fly.example'
    assert phrase(page, {"to": "Oslo", "adults": 2}) == 'use "Search flights" of fly.example with to "Oslo", adults 2'


def test_tools_of_others_are_said_by_their_title_or_their_name_as_words() -> None:
    tool = ToolWords("mcp__files__write_textFile", "", "upstream", "files")
    arguments: dict[str, Any] = {"path": "/a", "token": "s3cret", "lines": [1, 2], "more": True, "tabId": 4}
    assert phrase(tool, arguments) == (
        'use "write text file" of files with path "/a", token "[redacted]", lines (2 entries) and 1 more'
    )


def test_a_batch_is_numbered_steps_and_one_line_in_the_log() -> None:
    steps = [(own("browser_type_text"), {"ref": "e1", "text": "4200"}), (own("browser_click_element"), {"ref": "e2"})]
    elements = {"0/": AMOUNT, "1/": PAY}
    batch = own("browser_act")
    arguments: dict[str, Any] = {"actions": [{}, {}]}
    assert phrase(batch, arguments) == "do 2 things in the page"
    assert steps_of(batch, arguments, steps, elements) == ['type "4200" into "Amount"', 'click "Pay now"']
    assert batch_phrase(steps, private=True) == "do 2 things: type text into element e1, click element e2"
    assert batch_phrase(steps[1:], private=True) == "click element e2"
    assert batch_phrase(steps * 3, private=True).endswith(", and 3 more")


def test_targets_are_found_where_each_tool_has_them() -> None:
    def places(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return dict(targets(tool, arguments))

    assert places("browser_type_text", {"text": "no target"}) == {"": {}}
    assert places("browser_click_element", {"text": "Save", "role": "button"}) == {
        "": {"text": "Save", "role": "button"}
    }
    assert places("browser_select_option", {"ref": "e1", "label": "Norway"}) == {"": {"ref": "e1"}}
    assert places("browser_fill_form", {"fields": [{"label": "A", "value": 1}, "junk"]}) == {"0.": {"label": "A"}}
    assert places("browser_drag", {"from": "e1", "to": {"text": "Bin"}}) == {
        "from.": {"ref": "e1"},
        "to.": {"text": "Bin"},
    }


def test_names_of_elements_from_tools_labels() -> None:
    assert labelled('button "Pay \\"now\\"" [e12]') == NamedElement("button", 'Pay "now"')
    assert labelled("textbox [e3 name=q]") == NamedElement("textbox", "")
    assert labelled('link "cut of').role == "link"
    assert labelled('x "\\ud800" [e1]').name == ""


@pytest.mark.parametrize(
    ("client", "token", "name"),
    [
        ("claude-code 1.0.3", "claude-code", "Claude Code"),
        ("claude-code 1.0.3", None, "Claude Code"),
        ("Cursor 1.0", "laptop", "laptop (Cursor)"),
        ("Claude Code 2", "research-bot", "research-bot (Claude Code)"),
        ("raw 1", None, "raw"),
        ("", None, "An agent"),
        ("anything 3", "tabhub-panel", "The assistant"),
        ("anything 3", "tabhub-cli", "Command line"),
        ("evil\u202ename", "x", "x (evil\\u202ename)"),
    ],
)
def test_an_agent_is_named_by_its_token_and_by_what_it_calls_itself_where_that_differs(
    client: str, token: str | None, name: str
) -> None:
    assert agent_name(client, token) == name


def test_the_sentence_says_who_wants_to_do_what() -> None:
    assert sentence("Claude Code", 'click "Pay now"') == 'Claude Code wants to click "Pay now"'


@pytest.mark.parametrize(
    ("text", "now"),
    [
        ('click "Pay"', 'clicking "Pay"'),
        ("double-click it", "double-clicking it"),
        ("type text", "typing text"),
        ("put a tab", "putting a tab"),
        ("close the tab", "closing the tab"),
        ("run JavaScript", "running JavaScript"),
    ],
)
def test_a_running_call_is_said_as_what_happens_now(text: str, now: str) -> None:
    assert doing(text) == now


def test_only_what_changes_nothing_may_be_allowed_unseen() -> None:
    assert is_harmless("browser_scroll", read_only=False)
    assert is_harmless("browser_snapshot", read_only=True)
    for tool in ("browser_click_element", "browser_navigate_tab", "browser_execute_script", "browser_act"):
        assert not is_harmless(tool, read_only=False)
    assert not is_harmless("browser_get_cookies", read_only=True)
    assert not is_harmless("shop_read", read_only=True)


@generated(st.text(max_size=600), st.text(max_size=600))
def test_names_and_texts_of_pages_and_agents_stay_on_one_bounded_printable_line(name: str, text: str) -> None:
    shown = said("browser_type_text", {"ref": "e1", "text": text}, {"": NamedElement("textbox", name)})
    assert shown.isprintable()
    assert len(shown) <= 301
