"""Fields that scripts make: lists to choose from, sliders, ranges, dates of segments. They take a value only from keys
and clicks, and whether they have taken it is read from what they show afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from functools import partial
from typing import Any, TypeVar

from tabhub.browser.actions import TrackedAction
from tabhub.browser.driver.cdp_values import parse_object
from tabhub.browser.elements import keys, pointer
from tabhub.browser.elements.element import ActionableElement, Element, poll_pause, wait_actionable
from tabhub.browser.elements.field_formats import read_date, read_time
from tabhub.browser.text_entry import type_keys
from tabhub.browser.tools.acting.click import click_until_it_lands
from tabhub.errors import CommandFailed

_MOST_STEPS = 1000
_ROUNDS = 4
_STILL = 0.5
"""Seconds without a change after which a list or field is taken as it is."""
_SHOWN_OPTIONS = 40
Facts = dict[str, Any]
T = TypeVar("T")


async def fill_list(
    action: TrackedAction, field: Mapping[str, Any], target: ActionableElement, values: Sequence[str], *, several: bool
) -> Facts:
    """Choose options of a list that opens below a field; one that takes any text keeps what no option fits."""
    for value in values:
        state = await _list_state(target.element)
        if value.casefold() in _folded(state.get("shown")) and (several or not state.get("typed")):
            continue
        others = set() if state.get("own") or not state.get("closed") else {each["ref"] for each in state["options"]}
        if target.kind == "combo":
            target = await wait_actionable(action.page, field, "field", all=True)
            await type_keys(action, target, value, clear=True, keep=False, progress=lambda *_: None)
        elif not state.get("expanded"):
            target = await wait_actionable(action.page, field, "field")
            await click_until_it_lands(action, field, need="field", target=target)
        state = await _offered(action, target.element, value, others)
        option = _option(state, value, others)
        if option is None:
            options = _of_field(state, others)
            if target.kind == "combo" and await _keeps(action, target.element, value):
                continue
            raise await _no_option(action, target, options, value)
        if not option.get("chosen") or not several:
            await click_until_it_lands(action, {"ref": option["ref"]})
        state = await _until(action, target.element, partial(_shows, value))
        if not _shows(value, state) and not action.page_left:
            shown = " ".join(state.get("shown") or []) or "nothing"
            raise CommandFailed(
                f"{target.element.label} did not take {value[:80]!r}: it shows {shown[:200]!r}.",
                hint="Take a browser_snapshot to see what its list offers now.",
            )
    state = await _list_state(target.element)
    if state.get("expanded") and not action.page_left:
        await _press(action, "escape")
    texts = [str(text) for text in state.get("shown") or []]
    return {"value": texts if several else " ".join(texts[:1])}


async def fill_range(action: TrackedAction, target: ActionableElement, value: str) -> Facts:
    """Set a range field; the last step is a key."""
    step = parse_object(await target.element.call("range_step", {"value": value}))
    if isinstance(key := step.get("key"), str):
        await _press(action, key)
    wanted = float(step["wanted"])

    async def read() -> float:
        return float(parse_object(await target.element.call("field_value", {})).get("value") or "nan")

    now = await _settled(action, read, lambda now: now == wanted)
    if now != wanted:
        raise _not_taken(target, value, f"{now:g}")
    return {"value": f"{now:g}"}


async def fill_slider(action: TrackedAction, target: ActionableElement, value: str) -> Facts:
    """Move a slider by its arrow keys."""
    state = await _slider(target.element)
    now, least, most = (state.get(name) for name in ("now", "least", "most"))
    try:
        wanted = float(value)
    except ValueError:
        wanted = float("nan")
    low, high = (0.0 if least is None else least), (100.0 if most is None else most)
    if now is None or not low <= wanted <= high:
        raise CommandFailed(
            f"{target.element.label} does not accept {value[:40]!r}.",
            hint=f"Expected: a number from {low:g} to {high:g}.",
        )
    await wait_actionable(action.page, {"ref": target.element.ref}, "key")
    step = 0.0
    for _ in range(_ROUNDS):
        if now == wanted or action.page_left:
            break
        up = now < wanted
        # The first key shows how far one goes.
        count = min(_MOST_STEPS, max(1, int(abs(wanted - now) / step + 1e-6))) if step else 1
        await _send(action, pointer.key_press(keys.NAMED["arrowright" if up else "arrowleft"]) * count)
        before, goal = now, now + (count * step if up else -count * step)
        reached = partial(_is, goal) if step else partial(_is_not, before)
        moved = await _settled(action, partial(_slider_value, target.element), reached)
        now = before if moved is None else moved
        if now == before or (step and abs(wanted - now) < step):
            break
        step = step or abs(now - before)
    text = str((await _slider(target.element)).get("text") or f"{now:g}")
    if now != wanted:
        raise CommandFailed(
            f"{target.element.label} is at {now:g}, not at {wanted:g}: that is as near as its keys go.",
            hint=f"It goes from {low:g} to {high:g} in steps of {step:g}." if step else "Its keys do not move it.",
        )
    return {"value": f"{now:g}"} | ({"text": text} if text and text != f"{now:g}" else {})


async def fill_segments(action: TrackedAction, target: ActionableElement, value: str) -> Facts:
    """Type a date or time into its segments, one by one."""
    segments = [each for each in await target.element.call("segments") or [] if each.get("kind")]
    parts = _parts_of(value, {str(each["kind"]) for each in segments})
    if parts is None:
        raise CommandFailed(
            f"{target.element.label} does not accept {value[:40]!r}.",
            hint=f"It has the parts {', '.join(str(each['kind']) for each in segments)}. Give a date as YYYY-MM-DD, a "
            "time as HH:MM, both as YYYY-MM-DDTHH:MM.",
        )
    for segment in segments:
        text = parts[str(segment["kind"])]
        await wait_actionable(action.page, {"ref": segment["ref"]}, "key")
        await _send(action, pointer.typing_events(text, tab_leaves=False))

    def taken(now: list[dict[str, Any]]) -> bool:
        numbers = {str(each["kind"]): each.get("now") for each in now}
        return all(numbers.get(kind) == int(text) for kind, text in parts.items() if kind in numbers and text.isdigit())

    async def read() -> list[dict[str, Any]]:
        return [each for each in await target.element.call("segments") or [] if each.get("kind")]

    now = await _settled(action, read, taken) or []
    shown = ", ".join(f"{each['kind']} {each['text']}" for each in now)
    if not taken(now):
        raise _not_taken(target, value, shown)
    return {"value": shown}


async def fill_segment(action: TrackedAction, target: ActionableElement, value: str) -> Facts:
    """Type into one segment."""
    await wait_actionable(action.page, {"ref": target.element.ref}, "key")
    await _send(action, pointer.typing_events(value, tab_leaves=False))

    def taken(state: dict[str, Any]) -> bool:
        return str(state.get("text")).casefold() == value.casefold() or (
            value.isdigit() and state.get("now") == int(value)
        )

    state = await _settled(action, lambda: _slider(target.element), taken) or {}
    if not taken(state):
        raise _not_taken(target, value, str(state.get("text")))
    return {"value": str(state.get("text"))}


def _parts_of(value: str, kinds: set[str]) -> dict[str, str] | None:
    """The text for each kind of segment; None if the value lacks one."""
    text = " ".join(value.split())
    day, clock = read_date(text), read_time(text)
    if day is None and clock is None:
        for separator in ("T", " ", ", "):
            head, found, tail = text.rpartition(separator)
            if found and (day := read_date(head.rstrip(","))) and (clock := read_time(tail)):
                break
    parts: dict[str, str] = {}
    if day is not None:
        parts |= {"year": f"{day.year:04}", "month": f"{day.month:02}", "day": f"{day.day:02}"}
    if clock is not None:
        half = "dayPeriod" in kinds
        hour = (clock.hour % 12 or 12) if half else clock.hour
        parts |= {"hour": f"{hour:02}", "minute": f"{clock.minute:02}", "second": f"{clock.second:02}"}
        parts |= {"dayPeriod": "p" if clock.hour >= 12 else "a"} if half else {}
    return parts if kinds and kinds <= parts.keys() else None


def _folded(texts: Any) -> list[str]:
    return [str(text).casefold() for text in texts or []]


def _of_field(state: Mapping[str, Any], others: Set[str]) -> list[dict[str, Any]]:
    """The options without those that another list showed before this one was opened."""
    return [each for each in state.get("options") or [] if each["ref"] not in others]


def _option(state: Mapping[str, Any], name: str, others: Set[str] = frozenset()) -> dict[str, Any] | None:
    options = [each for each in _of_field(state, others) if not each.get("disabled")]
    exact = [each for each in options if each["name"] == name]
    alike = exact or [each for each in options if each["name"].casefold() == name.casefold()]
    return alike[0] if alike else None


def _shows(name: str, state: Mapping[str, Any]) -> bool:
    option = _option(state, name)
    return name.casefold() in _folded(state.get("shown")) or bool(option and option.get("chosen"))


async def _offered(action: TrackedAction, element: Element, value: str, others: Set[str]) -> dict[str, Any]:
    """The state of a list once it offers the value, or offers something else and no longer changes."""
    loop = asyncio.get_running_loop()
    last: tuple[float, list[str], bool] = (loop.time(), [], False)

    def done(state: dict[str, Any]) -> bool:
        nonlocal last
        now, names, opened = (
            loop.time(),
            [each["ref"] for each in _of_field(state, others)],
            bool(state.get("expanded")),
        )
        if (names, opened) != last[1:]:
            last = (now, names, opened)
        # A list that is open and empty is still being loaded.
        still = now - last[0] >= _STILL and (bool(names) or not opened)
        return still or _option(state, value, others) is not None

    return await _until(action, element, done)


async def _keeps(action: TrackedAction, element: Element, value: str) -> bool:
    """Whether a field that no option fits keeps a text when the focus leaves it."""
    await action.tolerate_navigation(element.call("blur"))
    loop = asyncio.get_running_loop()
    until = loop.time() + _STILL
    state = await _until(action, element, lambda state: state.get("shown") != [value] or loop.time() >= until)
    return state.get("shown") == [value]


async def _no_option(
    action: TrackedAction, target: ActionableElement, options: Sequence[Mapping[str, Any]], value: str
) -> CommandFailed:
    if options and not action.page_left:
        await _press(action, "escape")
    offered = ", ".join(str(each["name"])[:80] for each in options[:_SHOWN_OPTIONS]) or "none"
    return CommandFailed(f"{target.element.label} has no option {value[:80]!r}.", hint=f"Its options: {offered}.")


def _not_taken(target: ActionableElement, value: str, now: str) -> CommandFailed:
    return CommandFailed(
        f"{target.element.label} did not take {value[:80]!r}: it holds {now[:200]!r}.",
        hint="The page changed it back; take a browser_snapshot to see what it accepts.",
    )


async def _list_state(element: Element) -> dict[str, Any]:
    return parse_object(await element.call("list_state"))


async def _slider(element: Element) -> dict[str, Any]:
    return parse_object(await element.call("slider_state"))


def _is(wanted: float, now: float | None) -> bool:
    return now == wanted


def _is_not(before: float, now: float | None) -> bool:
    return now != before


async def _slider_value(element: Element) -> float | None:
    now = (await _slider(element)).get("now")
    return float(now) if isinstance(now, int | float) else None


async def _until(action: TrackedAction, element: Element, reached: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    return await _settled(action, lambda: _list_state(element), reached) or {}


async def _settled(action: TrackedAction, read: Callable[[], Awaitable[T]], reached: Callable[[T], bool]) -> T | None:
    """Read until the page has reacted as expected, or no longer than an action waits for the page."""
    loop = asyncio.get_running_loop()
    until, attempt = loop.time() + action.page.browsers.limits.action_settle, 0
    while True:
        state = None if action.page_left else await action.tolerate_navigation(read())
        if state is None or reached(state) or loop.time() >= until:
            return state
        await asyncio.sleep(poll_pause(attempt))
        attempt += 1


async def _press(action: TrackedAction, key: str) -> None:
    await _send(action, pointer.key_press(keys.NAMED[key]))


async def _send(action: TrackedAction, events: list[pointer.Event]) -> None:
    if not action.page_left:
        await action.tolerate_navigation(pointer.send_events(action.page, events))
