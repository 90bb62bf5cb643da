"""What is measured of each server, and how it is verified that it happened.

A measure prepares its page, makes calls until its time is over, and checks: a result that is wrong ends the run.
"""

from __future__ import annotations

import base64
import json
import re
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count

from bench.peers.connections import Answer, Failed
from bench.peers.dialects import BARE, find_ref
from bench.peers.site import Site
from bench.peers.subjects import Subject

_LEAST = 3
"""Calls in a round, however slow they are."""
_MOST = 150
_PAUSE = 0.08
"""Seconds between actions, in which an agent would think: pages react to an action after it was answered."""
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_numbers = count(1)


@dataclass(slots=True)
class Run:
    """One round of one measure with one server."""

    subject: Subject
    site: Site
    seconds: float
    viewport: tuple[int, int]
    times: list[float] = field(default_factory=list)
    calls: int = 0

    def call(self, what: tuple[str, dict[str, object]], *, timed: bool = True) -> Answer:
        answer = self.subject.session.call(*what)
        if timed:
            self.times.append(answer.ms)
        return answer

    def evaluate(self, expression: str) -> str:
        return self.call(self.subject.dialect.evaluate(expression), timed=False).text

    def go(self, path: str) -> None:
        self.call(self.subject.dialect.navigate(f"{self.site.origin}{path}"), timed=False)

    def element(self, name: str) -> str:
        snapshot = self.call(self.subject.dialect.snapshot, timed=False).text
        return find_ref(self.subject.dialect, snapshot, name)

    def repeat(self) -> Iterator[int]:
        """Numbers, until the time is over."""
        end = time.perf_counter() + self.seconds
        for done in range(_MOST):
            if done >= _LEAST and time.perf_counter() > end:
                return
            self.calls += 1
            yield next(_numbers)

    def require(self, holds: bool, what: str, answer: str) -> None:
        if not holds:
            raise Failed(f"{self.subject.name}: {what}; the answer was {answer[:600]}")


def list_tabs(run: Run) -> None:
    path = f"/page/{next(_numbers)}"
    run.go(path)
    for _ in run.repeat():
        answer = run.call(run.subject.dialect.list_tabs)
        run.require(path in answer.text, f"the list lacks {path}", answer.text)


def evaluate(run: Run) -> None:
    number = next(_numbers)
    run.go(f"/page/{number}")
    for each in run.repeat():
        answer = run.call(run.subject.dialect.evaluate(f"`${{pageNumber}} and ${{{each} * 3}}`"))
        run.require(f"{number} and {each * 3}" in answer.text, "the script gave another value", answer.text)


def click(run: Run, pause: float = _PAUSE) -> None:
    run.go("/form")
    button = run.element("Go on")
    for _ in run.repeat():
        time.sleep(pause)
        run.call(run.subject.dialect.click(button))
    seen = run.evaluate("`clicks ${seen.clicks}, untrusted ${seen.untrusted}`")
    run.require(f"clicks {run.calls}, untrusted 0" in seen, f"the page should have seen {run.calls} clicks", seen)


def click_at_once(run: Run) -> None:
    """Without pauses, so that each click comes while the page may still react to the one before."""
    click(run, 0.0)


def type_text(run: Run) -> None:
    """Ten characters a call; the page counts the keys, and the field holds all texts, or the last one."""
    run.go("/form")
    the_field = run.element("First field")
    texts = []
    for each in run.repeat():
        texts.append("".join(_LETTERS[(each * 7 + at * 3) % 26] for at in range(10)))
        time.sleep(_PAUSE)
        run.call(run.subject.dialect.type_text(the_field, texts[-1]))
    seen = run.evaluate("`value ${field.value}, keys ${seen.keys}, untrusted ${seen.untrusted}`")
    value = texts[-1] if run.subject.dialect.replaces else "".join(texts)
    keys = re.search(r"keys (\d+), untrusted 0", seen)
    run.require(f"value {value}," in seen, "the field should hold the typed text", seen)
    run.require(keys is not None and int(keys[1]) >= 10 * run.calls, "each character should be a key", seen)


def navigate(run: Run) -> None:
    """To a page with a style sheet and a picture, which are there when the call ends."""
    number = 0
    for number in run.repeat():
        answer = run.call(run.subject.dialect.navigate(f"{run.site.origin}/page/{number}"))
        needed = {f"/page/{number}", f"/picture/{number}.svg"}
        run.require(needed <= run.site.fetched, "the call ended before the page had loaded", answer.text)
    seen = run.evaluate("`page ${pageNumber}, ${document.readyState}`")
    run.require(f"page {number}, complete" in seen, "the tab should show the last page", seen)


def screenshot(run: Run) -> None:
    """Pictures of a page whose background changes before each; the first pixel must have the new colour."""
    run.go("/shot")
    for number in run.repeat():
        red, green, blue = 200 + number % 50, 255 - number % 70, 255 - number // 50 % 50
        run.evaluate(f"document.documentElement.style.background = 'rgb({red}, {green}, {blue})'")
        time.sleep(_PAUSE)
        answer = run.call(run.subject.dialect.screenshot)
        size, pixel = picture(answer.image)
        run.require(pixel == (red, green, blue), f"the picture should begin with {red}, {green}, {blue}", str(pixel))
        run.require(size == run.viewport, f"the picture should be {run.viewport}", str(size))


def first_snapshot(run: Run) -> None:
    """The first snapshot of a small page after navigating to it."""
    for number in run.repeat():
        run.go(f"/page/{number}")
        answer = run.call(run.subject.dialect.snapshot)
        run.require(f"Button {number}" in answer.text, f"the snapshot lacks Button {number}", answer.text)


def page_text(run: Run) -> None:
    """The text of a long article, or its beginning where the server limits an answer."""
    run.go("/article")
    for _ in run.repeat():
        answer = run.call(run.subject.dialect.text)
        run.require(len(answer.text) > 15_000 and "Harbour" in answer.text, "there should be text", answer.text)


@dataclass(frozen=True, slots=True)
class Measure:
    """One row of the table."""

    name: str
    run: Callable[[Run], None]
    target: float | None
    """The most that Tabhub's time may be, as a share of Playwright lean's."""
    of_browser: bool = False
    """Whether the browser alone can do it with one command."""


MEASURES = (
    Measure("list tabs", list_tabs, 0.04),
    Measure("evaluate", evaluate, 0.33, of_browser=True),
    Measure("click", click, 0.16),
    Measure("click, without pauses", click_at_once, None),
    Measure("type 10 keys", type_text, 0.32),
    Measure("navigate", navigate, 1.0, of_browser=True),
    Measure("screenshot", screenshot, 1.0, of_browser=True),
    Measure("first snapshot after navigation", first_snapshot, None),
    Measure("text of a long page", page_text, None, of_browser=True),
)


def measured(measure: Measure, subject: Subject) -> bool:
    return measure.of_browser or subject.dialect is not BARE


def picture(image: str | None) -> tuple[tuple[int, int], tuple[int, int, int]]:
    """Size and first pixel of a PNG. Whatever filter its first line has, the first pixel is stored as it is."""
    data = base64.b64decode(image or "")
    if data[:8] != b"\x89PNG\r\n\x1a\n":
        raise Failed(f"not a PNG: {data[:20]!r}")
    size = int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")
    begin = data.index(b"IDAT") + 4
    line = zlib.decompressobj().decompress(data[begin : begin + 2000], 4)
    return size, (line[1], line[2], line[3])


def viewport(subject: Subject) -> tuple[int, int]:
    """The size of a page in a tab of a server."""
    answer = subject.session.call(*subject.dialect.evaluate("`${innerWidth}x${innerHeight}`"))
    found = re.search(r"(\d+)x(\d+)", answer.text)
    if found is None:
        raise Failed(f"no size: {json.dumps(answer.text)[:300]}")
    return int(found[1]), int(found[2])
