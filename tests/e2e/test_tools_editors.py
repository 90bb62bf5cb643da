"""Text in real editors from npm: typed, inserted, filled in and read, compared with the editor's own text."""

from __future__ import annotations

import pytest

from tests.e2e.appsite import AppSite
from tests.e2e.live import Caller

TYPE, FILL, CONTENT, SNAPSHOT = "browser_type_text", "browser_fill_form", "browser_get_tab_content", "browser_snapshot"
CODE = 'for i in range(2):\n    if i:\n        print(i, "x")\n\nprint(i)'
CODE_EDITORS = ("monaco", "codemirror6", "codemirror5", "ace")
RICH_EDITORS = ("prosemirror", "quill", "lexical", "draft", "contenteditable")
FIELD = "#editor"


@pytest.fixture(scope="module", params=[*CODE_EDITORS, *RICH_EDITORS])
def editor(request: pytest.FixtureRequest) -> str:
    """Tests run editor by editor, each in one page."""
    name: str = request.param
    return name


async def load(agent: Caller, apps: AppSite, editor: str, text: str) -> None:
    await agent.read(apps.at(editor))
    await agent.run("document.activeElement.blur(); load(args.text)", args={"text": text})


@pytest.mark.req("A1")
async def test_inserted_text_is_in_the_editor_as_given(guest: Caller, apps: AppSite, editor: str) -> None:
    await load(guest, apps, editor, "old text")
    answer = await guest.get(TYPE, selector=FIELD, text=CODE, insert=True, clear=True)
    assert (await guest.run("return model()"), answer["value"]) == (CODE, CODE)
    assert "note" not in answer
    more = "\n".join(f"{' ' * (n % 3)}{n}" for n in range(30))
    await guest.get(TYPE, selector=FIELD, text=f"\n{more}", insert=True)
    assert await guest.run("return model()") == f"{CODE}\n{more}"


@pytest.mark.req("A1")
async def test_typed_lines_have_the_indentation_of_the_text(guest: Caller, apps: AppSite, editor: str) -> None:
    text = "for i in range(2):\n    if i:\n        run(i)\n\nrun(9)"
    await load(guest, apps, editor, "")
    answer = await guest.get(TYPE, selector=FIELD, text=text, clear=True)
    assert (await guest.run("return model()"), answer["value"]) == (text, text)


async def test_a_filled_editor_holds_the_new_text_only(guest: Caller, apps: AppSite, editor: str) -> None:
    await load(guest, apps, editor, "one {\n    two\n}\n")
    (field,) = (await guest.get(FILL, fields=[{"selector": FIELD, "value": CODE}]))["fields"]
    assert (await guest.run("return model()"), field["value"]) == (CODE, CODE)


async def test_text_without_a_target_goes_to_the_focused_editor(guest: Caller, apps: AppSite, editor: str) -> None:
    await load(guest, apps, editor, "")
    await guest.get(TYPE, selector=FIELD, text="a", clear=True)
    answer = await guest.get(TYPE, text="b c")
    assert (await guest.run("return model()"), answer["value"]) == ("ab c", "ab c")


@pytest.mark.req("A3")
@pytest.mark.parametrize("editor", CODE_EDITORS)
async def test_the_whole_text_of_a_code_editor_is_read(guest: Caller, apps: AppSite, editor: str) -> None:
    text = "\n".join(f"{'    ' * (n % 3)}line {n}" for n in range(2000))
    await load(guest, apps, editor, text)
    content = await guest.get(CONTENT, selector=FIELD)
    assert (content["content"], content["length"], content["remaining"]) == (text, len(text), 0)
    assert "note" not in content
    page = await guest.get(CONTENT)
    assert "\n    line 1\n        line 2\n" in page["content"]
    assert "only the lines in view" in page["note"]


async def test_an_editor_out_of_reach_says_that_it_shows_only_a_part(guest: Caller, apps: AppSite) -> None:
    await guest.visit(apps.at("monaco") + "?bundled")
    answer = await guest.get(TYPE, selector=FIELD, text=CODE, insert=True)
    assert await guest.run("return model()") == CODE
    drawn = "return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done())))"
    await guest.run(f"load(args.text); {drawn}", args={"text": "x\n" * 2000})
    assert "only the lines in view" in (await guest.get(CONTENT, selector=FIELD))["note"]
    assert "(the visible part)" in (await guest.get(SNAPSHOT))["snapshot"]
    answer = await guest.get(TYPE, selector=FIELD, text="y" * 2000, insert=True)
    assert "unknown" in answer.get("note", "unknown")


@pytest.mark.req("A1")
async def test_a_typed_line_break_is_enter_in_short_and_long_texts(guest: Caller, apps: AppSite) -> None:
    await guest.visit(apps.at("codemirror6"))
    # No words: an editor that offers completions takes Enter for one of them, as it does from a person who pauses.
    for text in ("1 + 2\n3 + 4", "\n".join(f"{n} + {n}" for n in range(40))):
        await guest.get(TYPE, selector=FIELD, text=text, clear=True)
        assert await guest.run("return [model(), executed.length]") == [text, 0]


@pytest.mark.req("A16")
async def test_a_change_by_the_editor_is_reported(guest: Caller, apps: AppSite) -> None:
    await guest.visit(apps.at("monaco"))
    answer = await guest.get(TYPE, selector=FIELD, text="function f() {\n  g();\n}")
    assert answer["value"] == await guest.run("return model()")
    assert "does not hold the text as it was given" in answer["note"]
