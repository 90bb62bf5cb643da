"""Tasks that are done with a few clicks."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable

from bench.miniwob.actions import click, wait, write
from bench.miniwob.policies.registry import button, target, task
from bench.miniwob.products.base import Product
from bench.miniwob.view import View


@task("click-test")
async def any_button(p: Product, v: View) -> None:
    await p.do(click(v.one("button")))


@task("click-test-2", "click-test-transfer", "click-button", "unicode-test")
async def named_button(p: Product, v: View) -> None:
    (name,) = v.find(r'Click (?:on the "|button )(.*?)(?:" button)?\.')
    await p.do(click(v.one("button", name)))


@task("click-button-sequence")
async def two_buttons(p: Product, v: View) -> None:
    await p.do(click(v.one("button", "ONE")), click(v.one("button", "TWO")))


@task("button-delay")
async def button_delay(p: Product, v: View) -> None:
    (seconds,) = v.find(r"wait (\d) seconds")
    await p.do(click(v.one("button", "ONE")), wait(float(seconds)), click(v.one("button", "TWO")))


@task("click-link")
async def link(p: Product, v: View) -> None:
    (name,) = v.find(r'link "(.*?)"')
    await p.do(click(target(v, name)))


@task("click-dialog", "click-dialog-2")
async def dialog(p: Product, v: View) -> None:
    (name,) = v.find(r'(?:clicking the|labeled) "(.*?)"')
    await p.do(click(v.one("button", "Close" if name == "x" else name)))


@task("focus-text")
async def focus(p: Product, v: View) -> None:
    await p.do(click(v.one("textbox")))


@task("focus-text-2")
async def focus_nth(p: Product, v: View) -> None:
    (nth,) = v.find(r"the (\d)")
    await p.do(click(v.one("textbox", nth=int(nth) - 1)))


@task("click-widget")
async def widget(p: Product, v: View) -> None:
    (kind,) = v.find(r'a "(.*?)" widget')
    if not kind.startswith("text"):
        await p.do(click(v.one(kind)))
        return
    seen = await p.view(boxes=True)
    fields = sorted(seen.all("textbox"), key=lambda node: node.box[3] if node.box else 0)
    await p.do(click(fields[-1 if kind == "textarea" else 0]))  # an area has room for several lines


@task("buy-ticket")
async def ticket(p: Product, v: View) -> None:
    (wanted,) = v.find(r"the (\w+ \w+(?: cost)?)\. ")
    times = [int(hours) * 60 + int(minutes) for hours, minutes in re.findall(r"(\d+)h (\d+)m", v.text)]
    buttons = v.all("button", like=r"\$\d+")
    prices = [int(node.name.split("$")[1]) for node in buttons]
    by = times if "duration" in wanted else prices
    best = (max if wanted.startswith(("longest", "most")) else min)(by)
    await p.do(click(buttons[by.index(best)]))


@task("odd-or-even")
async def odd_or_even(p: Product, v: View) -> None:
    rows = re.findall(r"Odd (-?\d+) Even", v.text)
    marks = [click(v.one("button", "Odd" if int(number) % 2 else "Even", nth=at)) for at, number in enumerate(rows)]
    await p.do(*marks, click(button(v)))


@task("generate-number")
async def generate(p: Product, v: View) -> None:
    kind, bound = v.find(r"(less than|greater than|odd|even)(?: (-?\d+))?")
    rules: dict[str, Callable[[int], bool]] = {
        "less than": lambda n: n < int(bound),
        "greater than": lambda n: n > int(bound),
        "odd": lambda n: n % 2 == 1,
        "even": lambda n: n % 2 == 0,
    }
    fits = rules[kind]
    while True:
        await p.do(click(v.one("button", "Generate")))
        seen = await p.view()
        (number,) = seen.find(r"submit\. (\d+) ")
        if fits(int(number)):
            await p.do(click(button(seen)))
            return


@task("guess-number")
async def guess(p: Product, v: View) -> None:
    low, high = 0, 9
    while True:
        middle = (low + high) // 2
        field = v.one("spinbutton")
        await p.do(write(field, str(middle)), click(button(v)))
        if low == high:
            return
        seen = await p.view()
        if "The number is lower" in seen.text:
            high = middle - 1
        elif "The number is higher" in seen.text:
            low = middle + 1
        else:
            return


@task("find-greatest")
async def greatest(p: Product, v: View) -> None:
    cards = [node for node in v.all("clickable generic", like=r"^\d+$") if node.ref]
    await p.do(click(max(cards, key=lambda node: int(node.name or node.text))), click(button(v)))


@task("stock-market")
async def stock(p: Product, v: View) -> None:
    (limit,) = v.find(r"less than \$([\d.]+\d)")
    buy = v.one("button", "Buy")
    seen = v
    while True:
        found = re.search(r"Stock price: ?\$([\d.]+)", seen.text)
        if found and float(found[1]) <= float(limit):
            await p.do(click(buy))
            return
        await asyncio.sleep(0.05)
        seen = await p.view()


@task("simon-says")
async def simon(p: Product, v: View) -> None:
    """Each button of the sequence lights up for a quarter of a second."""
    lit: list[int] = []
    before = -1
    quiet = 0
    for _ in range(80):
        if lit and quiet >= 12:
            break
        classes = [node.fact("class") for node in await p.elements("#area button", "class")]
        now = next((at for at, name in enumerate(classes) if "push" in name), -1)
        if now >= 0 and before < 0:
            lit.append(now)
        quiet = 0 if now >= 0 else quiet + 1
        before = now
        await asyncio.sleep(0.06)
    buttons = [node for node in v.all("button") if node.ref]
    await p.do(*(click(buttons[at]) for at in lit))
