"""What the MiniWoB++ benchmark reads from the products' answers, and how policies understand it; no browser."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from bench.miniwob.actions import click, drag, keys, press, wait, write
from bench.miniwob.episodes import PRODUCT_NAMES, Episode, load
from bench.miniwob.policies import POLICIES
from bench.miniwob.policies.choices import _worth
from bench.miniwob.policies.figures import Figure
from bench.miniwob.policies.mail import Order, understand
from bench.miniwob.policies.pointing import _slider_keys
from bench.miniwob.policies.registry import LEFT_OUT
from bench.miniwob.products.playwright import _calls
from bench.miniwob.products.tabhub import _step
from bench.miniwob.report import Total, paired, render
from bench.miniwob.view import Node, Point, View, parse_playwright, parse_tabhub

TABHUB = """page "Task" http://127.0.0.1/task?seed=1
"Enter \\"Rex\\" into the [ref=e9] field."
heading "Form" [level=2]
textbox "Name" [ref=e1 focused box=8,60,150,20] placeholder "Your name" = "Al\\"ba" (+3 characters)
list "Sizes" [ref=e2]
 listitem: "small"
 clickable [ref=e3 circle class=size colour=red nth=1/2]
button "Submit" [ref=e4 disabled]"""
PLAYWRIGHT = """### Page
- Page URL: http://127.0.0.1/task
### Snapshot
```yaml
- generic [active] [ref=e1]:
  - generic [ref=e2]:
    - text: Enter "
    - strong [ref=e3]: "Rex: 1"
    - 'heading "Form: a" [level=2] [ref=e4]'
    - textbox "Name" [ref=e5] [box=8,60,150,20]: Alba
    - textbox [ref=e6]:
      - /placeholder: From
    - generic [ref=e7] [cursor=pointer]: small
    - button "Submit" [disabled] [ref=e8]
```"""


def test_a_snapshot_of_tabhub_is_read_as_nodes() -> None:
    view = parse_tabhub(TABHUB)
    field = view.one("textbox", "Name")
    assert (field.ref, field.value, field.box, field.states) == ("e1", 'Al"ba', (8, 60, 150, 20), ("focused",))
    assert field.centre == Point(83, 70)
    assert view.text.startswith('Enter "Rex" into the [ref=e9] field. Form Name')
    assert [(node.role, node.text or node.fact("colour")) for node in view.within(view.one("list"))] == [
        ("listitem", "small"),
        ("clickable", "red"),
    ]
    assert view.one("button").states == ("disabled",)


def test_text_of_a_page_is_not_taken_for_a_ref() -> None:
    assert parse_tabhub(TABHUB).all(like="field")[0].ref == ""


def test_a_snapshot_of_playwright_is_read_as_nodes() -> None:
    view = parse_playwright(PLAYWRIGHT)
    assert (view.one("textbox", "Name").value, view.one("textbox", nth=1).fact("placeholder")) == ("Alba", "From")
    assert view.one("heading").name == "Form: a"
    assert view.one("strong").text == "Rex: 1"
    assert view.one("generic", "small").ref == "e7"
    assert view.one("button").states == ("disabled",)
    assert view.text == 'Enter " Rex: 1 Form: a Name Alba small Submit'


def test_an_answer_without_a_snapshot_is_an_empty_view() -> None:
    assert parse_playwright("### Result\nnothing") == View()
    with pytest.raises(LookupError, match="Submit is not on the page"):
        View().one("button", "Submit")


NODE = Node("textbox", "Name", "e1")


def test_one_action_is_one_step_of_tabhub() -> None:
    assert _step(click(NODE)) == ("click_element", {"ref": "e1"})
    assert _step(click("Save", 3)) == ("click_element", {"text": "Save", "count": 3})
    assert _step(click(Point(1, 2))) == ("mouse", {"do": "click", "x": 1, "y": 2})
    assert _step(write(NODE, "Rex")) == ("type_text", {"ref": "e1", "text": "Rex", "clear": True})
    assert _step(drag(NODE, Point(1, 2))) == ("drag", {"from": "e1", "to": {"x": 1, "y": 2}})
    assert _step(wait(1.5)) == ("wait_for", {"timeout": 1500})


def test_one_action_is_one_or_several_calls_of_playwright() -> None:
    assert _calls(click(NODE)) == [("browser_click", {"target": "e1"})]
    assert _calls(click("Save")) == [("browser_click", {"target": 'text="Save"'})]
    assert _calls(keys("ab")) == [("browser_press_key", {"key": "a"}), ("browser_press_key", {"key": "b"})]
    assert [name for name, _ in _calls(drag(Point(1, 2), Point(3, 4)))] == ["browser_mouse_drag_xy"]


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("Find the email by Ada and click the trash icon to delete it.", Order("delete", "Ada")),
        ("Find the email by Ada and click the star icon to mark it as important.", Order("star", "Ada")),
        ('Find the email by Ada and reply to them with the text "Ut sit".', Order("reply", "Ada", message="Ut sit")),
        ("Find the email by Ada and forward that email to Rex.", Order("forward", "Ada", "Rex")),
        ("Send Rex the information Ada sent to you.", Order("forward", "Ada", "Rex")),
        ("Rex wants the email you got from Ada.", Order("forward", "Ada", "Rex")),
        ("Forward Rex Ada's latest email.", Order("forward", "Ada", "Rex")),
        ("Find the email from Rex and forward it to Ada.", Order("forward", "Rex", "Ada")),
    ],
)
def test_orders_for_an_inbox_are_understood(text: str, order: Order) -> None:
    assert understand(text, ["Rex", "Ada"]) == order


@pytest.mark.parametrize(
    ("words", "fits"),
    [("large red digit", True), ("red item", True), ("7", True), ("small digit", False), ("letter", False)],
)
def test_a_figure_fits_a_description_or_not(words: str, fits: bool) -> None:
    assert Figure(Node("text"), "large", "red", "digit", "7").fits(words) is fits


def test_a_slider_is_set_with_few_keys() -> None:
    names = [action.given["key"] for action in _slider_keys(47, 0, 100)]
    assert names == ["Home", "PageUp", "PageUp", *["ArrowRight"] * 7]
    assert press("Home")[0].verb == "press"


def test_a_winning_move_is_the_best() -> None:
    board = "XX  OO   "
    assert max((at for at in range(9) if board[at] == " "), key=lambda at: _worth(board, at)) == 2


def test_every_page_has_a_policy_or_a_reason_but_not_both() -> None:
    assert not set(POLICIES) & set(LEFT_OUT)
    assert len(POLICIES) + len(LEFT_OUT) == 130


def episode(product: str, task: str, reward: float | None, tokens: int, seconds: float, error: str = "") -> Episode:
    return Episode(product, task, 101, reward, 2, seconds, tokens, tokens - 10, 4 * tokens, error)


def test_only_what_both_products_have_done_is_compared() -> None:
    ours, theirs = PRODUCT_NAMES.values()
    done = [episode(ours, "a", 1.0, 100, 0.1), episode(theirs, "a", 0.5, 400, 1.0), episode(ours, "b", 1.0, 1, 0.1)]
    by_product = paired(done)
    assert [one.task for one in by_product[ours]] == ["a"]
    assert Total.of(by_product[ours]).solved == 1
    text = render(done, 130, "2 cores")
    assert "| Tabhub to Playwright MCP |" in text
    assert "tokens, to Playwright MCP's: required at most 0.333333, measured 0.25: met" in text
    assert "| a " in text.split("not solved")[1]


def test_the_last_result_of_an_episode_counts(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    lines = [episode("Tabhub", "a", reward, 100, 0.1) for reward in (-1.0, 1.0)]
    file.write_text("".join(json.dumps(asdict(line)) + "\n" for line in lines))
    assert load(file) == [lines[1]]
