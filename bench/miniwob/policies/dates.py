"""Dates and times, in fields and calendars, and booking flights by them."""

from __future__ import annotations

import re

from bench.miniwob.actions import Action, click, enter, write
from bench.miniwob.policies.registry import button, target, task
from bench.miniwob.products.base import Product
from bench.miniwob.view import Node, View

_MONTHS = [
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
]
_FIELDS = "date time textbox"


@task("enter-date")
async def enter_date(p: Product, v: View) -> None:
    month, day, year = v.find(r"Enter (\d\d)/(\d\d)/(\d{4}) as the date")
    await p.do(write(v.one(_FIELDS), f"{year}-{month}-{day}"), click(button(v)))


@task("enter-time")
async def enter_time(p: Product, v: View) -> None:
    hour, minute, half = v.find(r"Enter (\d+):(\d\d)\s*([AP]M) as the time")
    hours = int(hour) % 12 + (12 if half == "PM" else 0)
    await p.do(write(v.one(_FIELDS), f"{hours:02}:{minute}"), click(button(v)))


@task("choose-date", "choose-date-easy", "choose-date-medium", "choose-date-nodelay")
async def choose_date(p: Product, v: View) -> None:
    month, day, _ = v.find(r"Select (\d\d)/(\d\d)/(\d{4}) as the date")
    await p.do(click(v.one("textbox")))
    await _pick(p, int(month), int(day))
    await p.do(click(button(v)))


async def _pick(p: Product, month: int, day: int) -> None:
    """Turn the months of a calendar back or forth, and click the day."""
    for _ in range(13):
        seen = await p.view()
        shown = _MONTHS.index(seen.find(rf"({'|'.join(_MONTHS)}) \d{{4}}")[0]) + 1
        if shown == month:
            await p.do(click(target(seen, str(day), "link clickable")))
            return
        await p.do(*[click("Prev" if shown > month else "Next")] * abs(shown - month))


@task("book-flight", "book-flight-nodelay")
async def book_flight(p: Product, v: View) -> None:
    by, start, end, month, day = v.find(r"Book the (\w+) one-way flight from: (.*?) to: (.*?) on (\d\d)/(\d\d)/\d{4}")
    for nth, place in enumerate((start, end)):
        await p.do(enter(v.one("textbox combobox", nth=nth), place))
        seen = await p.view()
        await p.do(click(_airport(seen, place)))
    fields = (await p.view()).all("textbox combobox")
    await p.do(click(fields[2]))
    await _pick(p, int(month), int(day))
    await p.do(click("Search"))
    seen = await p.view()
    await p.do(_best(seen, by))


def _airport(v: View, place: str) -> Node | str:
    """The suggestion that is meant: `City, ST (ABC)`."""
    found = [node for node in v.nodes if re.search(r"\([A-Z]{3}\)$", node.name or node.text) and node.role != "text"]
    exact = [node for node in found if f"({place})" in (node.name or node.text)]
    city = [node for node in found if (node.name or node.text).startswith(f"{place} (")]
    best = (exact or city or found)[0]
    return best if best.ref else (best.name or best.text)


def _best(v: View, by: str) -> Action:
    buttons = v.all("button", like=r"\$\d+")
    prices = [int(node.name.split("$")[1]) for node in buttons]
    times = [int(hours) * 60 + int(minutes) for hours, minutes in re.findall(r"(\d+)h (\d+)m", v.text)]
    values = prices if by == "cheapest" else times
    return click(buttons[values.index(min(values))])
