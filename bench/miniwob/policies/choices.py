"""Checkboxes, radio buttons, lists, and other things to pick."""

from __future__ import annotations

import re

from bench.miniwob.actions import Action, choose, click, write
from bench.miniwob.policies.registry import button, spot, task
from bench.miniwob.products.base import Product
from bench.miniwob.view import View

_ALIKE_WORDS = """
big large huge enormous gigantic
small tiny little mini petite
red scarlet crimson vermillion
happy cheerful joyful gleeful delighted
sad unhappy sorrowful miserable tragic
angry mad furious irritated
evil wicked immoral sinful corrupt depraved
wrong incorrect mistaken erroneous
real genuine actual
strange odd peculiar unusual weird
stop cease halt end finish
scared terrified panicked fearful frightened afraid
quiet calm peaceful serene mild
old aged archaic
love like adore favor
kill murder assassinate
keep retain preserve sustain maintain
hide conceal camouflage
hate despise loathe detest dislike
funny humorous amusing comical laughable
fat fleshy plump chubby
stupid dumb dull unwise
delicious savory delectable appetizing
cut slice carve chop
brave courageous fearless
begin start initiate launch
answer reply response
television televisions TV TVs
house home houses homes
fire flame fires flames
pig pork swine
rabbit rabbits bunny bunnies
car cars automobile automobiles vehicle vehicles
water
"""
_ALIKE = [set(line.split()) for line in _ALIKE_WORDS.split("\n") if line]
"""Words of one meaning."""


def _checked(v: View, names: list[str], roles: str = "checkbox radio") -> list[Action]:
    return [click(v.one(roles, name)) for name in names]


@task("click-checkboxes", "click-checkboxes-large", "click-checkboxes-transfer", "click-option")
async def check(p: Product, v: View) -> None:
    (wanted,) = v.find(r"Select (.*?) and click Submit")
    names = [] if wanted == "nothing" else wanted.split(", ")
    await p.do(*_checked(v, names), click(button(v)))


@task("click-checkboxes-soft")
async def check_alike(p: Product, v: View) -> None:
    (wanted,) = v.find(r"similar to (.*?) and click Submit")
    near = [meaning for meaning in _ALIKE if meaning & set(wanted.split(", "))]
    names = [node.name for node in v.all("checkbox") if any(node.name in meaning for meaning in near)]
    await p.do(*_checked(v, names), click(button(v)))


@task("choose-list", "click-scroll-list")
async def choose_from_list(p: Product, v: View) -> None:
    (wanted,) = v.find(r"Select (.*?) from the (?:scroll )?list")
    await p.do(choose(v.one("combobox listbox"), *wanted.split(", ")), click(button(v)))


@task("form-sequence-3")
async def choose_and_click(p: Product, v: View) -> None:
    wanted, name = v.find(r'Choose (.*?) from the dropdown, then click the button labeled "(.*?)"')
    await p.do(choose(v.one("combobox"), wanted), click(v.one("button", name)))


@task("form-sequence-2")
async def radio_and_text(p: Product, v: View) -> None:
    radio, number, field = v.find(r'the (\d)\w\w radio button and enter the number "(-?\d+)" into the (\d)')
    await p.do(
        click(v.one("radio", nth=int(radio) - 1)),
        write(v.one("textbox", nth=int(field) - 1), number),
        click(button(v)),
    )


_DIGITS = {
    "0": "0110 1001 1001 1001 1001 1001 0110",
    "1": "0010 0110 0010 0010 0010 0010 0010",
    "2": "0110 1001 1001 0010 0100 1000 1111",
    "3": "0110 1001 0001 0110 0001 1001 0110",
    "4": "1000 1010 1010 1111 0010 0010 0010",
    "5": "1111 1000 1000 1110 0001 1001 0110",
    "6": "0110 1001 1000 1110 1001 1001 0110",
    "7": "1111 1001 0001 0010 0010 0100 0100",
    "8": "0110 1001 1001 0110 1001 1001 0110",
    "9": "0110 1001 1001 0111 0001 1001 0110",
}
"""What the page's pictures of the digits show."""


@task("number-checkboxes")
async def draw_digit(p: Product, v: View) -> None:
    (digit,) = v.find(r'the number "(\d)"')
    boxes = v.all("checkbox")
    pattern = _DIGITS[digit].replace(" ", "")
    await p.do(*(click(boxes[at]) for at, dot in enumerate(pattern) if dot == "1"), click(button(v)))


@task("order-food")
async def order(p: Product, v: View) -> None:
    asked, menu = v.text.split(" Appetizers ", 1)
    dishes = menu.split("+")[:-1]
    adders = await p.elements(".food-order .add")
    by_kind = re.search(r"Order (\d) items that are ([\w-]+)", asked)
    if by_kind is not None:
        first = next(at for at, words in enumerate(dishes) if by_kind[2] in words)
        chosen = [first] * int(by_kind[1])
    else:
        (wanted,) = re.findall(r"Order one of each item: (.*)", asked)
        chosen = [at for at, words in enumerate(dishes) if any(name.strip() in words for name in wanted.split(","))]
    await p.do(*(click(spot(adders[at])) for at in chosen), click(button(v, "Order!")))


@task("tic-tac-toe")
async def tic_tac_toe(p: Product, v: View) -> None:
    while True:
        cells = await p.elements(".ttt-row span", "class")
        board = "".join({"mark-x": "X", "mark-o": "O"}.get(node.fact("class"), " ") for node in cells)
        if len(board) != 9 or " " not in board or _won(board, "X") or _won(board, "O"):
            return
        move = max((at for at in range(9) if board[at] == " "), key=lambda at: _worth(board, at))
        await p.do(click(spot(cells[move])))


_LINES = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]


def _won(board: str, mark: str) -> bool:
    return any(all(board[at] == mark for at in line) for line in _LINES)


def _put(board: str, at: int, mark: str) -> str:
    return board[:at] + mark + board[at + 1 :]


def _worth(board: str, at: int) -> float:
    """How good a move is against somebody who plays well half of the time."""
    return _after_own(_put(board, at, "X"))


def _after_own(board: str) -> float:
    """What is expected when it is the other's turn."""
    if _won(board, "X"):
        return 1.0
    free = [at for at in range(9) if board[at] == " "]
    if not free:
        return -0.5
    values = {at: _after_other(_put(board, at, "O")) for at in free}
    good = [at for at in free if _won(_put(board, at, "O"), "O")]
    good = good or [at for at in free if _won(_put(board, at, "X"), "X")] or free
    return 0.5 * sum(values.values()) / len(free) + 0.5 * sum(values[at] for at in good) / len(good)


def _after_other(board: str) -> float:
    if _won(board, "O"):
        return -0.75
    return max((_worth(board, at) for at in range(9) if board[at] == " "), default=-0.5)
