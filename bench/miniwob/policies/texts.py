"""Reading and typing: forms, tables, arithmetic, editors, a terminal."""

from __future__ import annotations

import operator
import re

from bench.miniwob.actions import click, keys, press, wheel, write
from bench.miniwob.actions import enter as enter_keys
from bench.miniwob.policies.registry import button, spot, target, task
from bench.miniwob.products.base import Product
from bench.miniwob.view import View


@task("enter-text", "enter-text-dynamic")
async def enter(p: Product, v: View) -> None:
    (text,) = v.find(r'Enter "(.*?)" into the text field')
    await p.do(write(v.one("textbox"), text), click(button(v)))


@task("enter-text-2")
async def enter_in_case(p: Product, v: View) -> None:
    text, case = v.find(r'Type "(.*?)" in all (upper|lower) case')
    await p.do(write(v.one("textbox"), text.upper() if case == "upper" else text.lower()), click(button(v)))


@task("enter-password")
async def enter_twice(p: Product, v: View) -> None:
    (text,) = v.find(r'the password "(.*?)" into')
    await p.do(*(write(field, text) for field in v.all("textbox")[:2]), click(button(v)))


@task("login-user")
async def log_in(p: Product, v: View) -> None:
    user, password = v.find(r'username "(.*?)" and the password "(.*?)" into')
    name, secret = v.all("textbox")[:2]
    await p.do(write(name, user), write(secret, password), click(button(v, "Login")))


@task("login-user-popup")
async def log_in_past_popup(p: Product, v: View) -> None:
    user, password = v.find(r'username "(.*?)" and the password "(.*?)" into')
    seen = v
    for nth, text in enumerate((user, password)):
        await p.do(click(seen.one("textbox", nth=nth)))
        seen = await p.view()
        if cancel := seen.all("button", "Cancel"):
            await p.do(click(cancel[0]))
            seen = await p.view()
        await p.do(write(seen.one("textbox", nth=nth), text))
        seen = await p.view()
    await p.do(click(seen.one("button", "OK")))


@task("read-table", "read-table-2")
async def read_table(p: Product, v: View) -> None:
    labels = [(node.name or node.text).removesuffix(":") for node in v.nodes if (node.name or node.text).endswith(":")]
    asked = re.search(r"the value of (.*?) into", v.text)
    wanted = [asked[1]] if asked else [label for label in labels if label in _TABLE][:2]
    fields = v.all("textbox")
    await p.do(*(write(field, _cell(v, key)) for field, key in zip(fields, wanted, strict=False)), click(button(v)))


_TABLE = ("Color", "First name", "Last name", "Country", "Gender", "Language", "Year of Birth", "Religion")


def _cell(v: View, key: str) -> str:
    """The cell beside a key; a row is shown as cells or as one line."""
    for at, node in enumerate(v.nodes):
        words = node.name or node.text
        if node.role == "row" and words.startswith(f"{key} | "):
            return words.removeprefix(f"{key} | ")
        if node.role == "cell" and words == key:
            after = v.nodes[at + 1]
            return after.name or after.text
    raise LookupError(f"there is no row {key!r}")


@task("find-word")
async def find_word(p: Product, v: View) -> None:
    nth, paragraph = v.find(r'Find the (\d+)\w\w word in the paragraph, .* press "Submit"\. (.*?) Submit')
    word = re.sub(r"[^A-Za-z]", "", paragraph.split()[int(nth) - 1])
    await p.do(write(v.one("textbox"), word), click(button(v)))


_OPERATORS = {"+": operator.add, "-": operator.sub, "x": operator.mul}


@task("simple-arithmetic")
async def arithmetic(p: Product, v: View) -> None:
    one, sign, other = v.find(r"(-?\d+) ([-+x]) (-?\d+) =")
    await p.do(write(v.one("textbox"), str(_OPERATORS[sign](int(one), int(other)))), click(button(v)))


@task("simple-algebra")
async def algebra(p: Product, v: View) -> None:
    one, sign, other, result = v.find(r"(x|\d+) ([-+]) (x|\d+) = (-?\d+)")
    answer = next(
        n
        for n in range(-200, 300)
        if _OPERATORS[sign](n if one == "x" else int(one), n if other == "x" else int(other)) == int(result)
    )
    await p.do(write(v.one("textbox"), str(answer)), click(button(v)))


@task("multi-layouts", "multi-orderings")
async def search_film(p: Product, v: View) -> None:
    genre, director, year = v.find(r"Search for (\w+) movies directed by (\w+) from year (\d+)")
    fields = v.all("textbox")
    answers = {"Genre": genre, "Director": director, "Year": year, "Date": year}
    tail = v.text.split(f"year {year}", 1)[1]
    order = [answers[word] for word in re.findall(r"Genre|Director|Year|Date", tail)]
    name = next(name for name in ("Submit", "Go!", "Search") if re.search(rf"\b{re.escape(name)}", tail))
    await p.do(*(write(field, text) for field, text in zip(fields, order, strict=False)), click(button(v, name)))


@task("scroll-text")
async def last_word(p: Product, v: View) -> None:
    area, field = v.all("textbox")[:2]
    word = re.sub(r"[^A-Za-z0-9]", "", (await p.value(area)).split()[-1])
    await p.do(write(field, word), click(button(v)))


@task("copy-paste")
async def copy_paste(p: Product, v: View) -> None:
    filled, empty = sorted(v.all("textbox")[:2], key=lambda node: not node.value)
    await p.do(click(filled), *press("Control+a", "Control+c"), click(empty), *press("Control+v"), click(button(v)))


@task("copy-paste-2")
async def copy_paste_nth(p: Product, v: View) -> None:
    (nth,) = v.find(r"from the (\d)")
    fields = v.all("textbox")
    source, answer = fields[int(nth) - 1], fields[3]
    await p.do(click(source), *press("Control+a", "Control+c"), click(answer), *press("Control+v"), click(button(v)))


@task("sign-agreement")
async def sign(p: Product, v: View) -> None:
    signed = re.search(r'enter the name "(.*?)" then press "(.*?)"', v.text)
    if signed is None:
        await p.do(click(v.one("button", "Cancel")))
        return
    seen = await p.view(boxes=True)
    area, name = seen.all("textbox")[:2]
    await p.do(wheel(area.centre, 5000))
    await p.do(write(name, signed[1]), click(seen.one("button", signed[2])))


@task("highlight-text", "highlight-text-2")
async def highlight(p: Product, v: View) -> None:
    nth = re.search(r"in the (\d)\w\w paragraph", v.text)
    paragraphs = await p.elements("#randomText p" if nth else "#randomText")
    await p.do(click(paragraphs[int(nth[1]) - 1 if nth else 0].centre, 3), click(button(v)))


_STYLES = {"bold": "Control+b", "italics": "Control+i", "underlined": "Control+u"}


@task("text-editor")
async def text_editor(p: Product, v: View) -> None:
    word, kind, style = v.find(r"(?:give the text (\S+) the|(?:give|make) everything the) (style|color) (\w+)")
    editor = v.one("textbox paragraph")
    if word:
        before = (editor.value or editor.text or v.text.split("Submit")[0]).split(word)[0]
        steps = [*press("Control+Home"), *press("ArrowRight") * len(before), *press("Shift+ArrowRight") * len(word)]
    else:
        steps = [*press("Control+a")]
    if kind == "style":
        await p.do(click(editor), *steps, *press(_STYLES[style]), click(button(v)))
        return
    (picker,) = await p.elements(".ql-color .ql-picker-label")
    await p.do(click(editor), *steps, click(spot(picker)))
    colours = await p.elements(".ql-color .ql-picker-item", "data-value")
    wanted = next(node for node in colours if node.fact("data-value") == _COLOURS[style])
    await p.do(click(spot(wanted)), click(button(v)))


_COLOURS = {
    "red": "#e60000", "orange": "#ff9900", "yellow": "#ffff00", "green": "#008a00", "blue": "#0066cc",
    "purple": "#9933ff",
}  # fmt: skip


@task("terminal")
async def terminal(p: Product, v: View) -> None:
    wanted = re.search(r"the extension (\.[\w.]+)", v.text)
    await p.do(click("terminal"), keys("ls"), *press("Enter"))
    shown = (await p.view()).text.split("user$ ls", 1)[1]
    files = shown.split(" user$")[0].split()
    name = next(name for name in files if (name.endswith(wanted[1]) if wanted else "." not in name))
    await p.do(keys(f"rm {name}"), *press("Enter"))


@task("use-autocomplete", "use-autocomplete-nodelay")
async def autocomplete(p: Product, v: View) -> None:
    start, end = v.find(r'starts with "(.*?)"(?: and ends with "(.*?)")?')
    await p.do(enter_keys(v.one("textbox combobox"), start))
    seen = await p.view()
    options = [node for node in seen.nodes if (node.name or node.text).startswith(start) and node.role != "text"]
    chosen = next(node for node in options if (node.name or node.text).endswith(end or ""))
    await p.do(click(target(seen, chosen.name or chosen.text)), click(button(seen)))
