"""Run the rows of the matrix that are measured, and write them to docs/performance.md.

Owns the list of rows and the section `rows`; rows.py, large_rows.py and fault_rows.py define what a row does.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Any

import uvloop

from bench import fault_rows, large_rows, report, rows, tool_cost
from bench.rows import Hub, Outcome

ON_A_HUB: dict[str, Callable[[Hub], Awaitable[Outcome]]] = {
    "L1": rows.l1,
    "L2": rows.l2,
    "L3": rows.l3,
    "L4": large_rows.l4,
    "L7": rows.l7,
    "F1": fault_rows.f1,
    "F9": fault_rows.f9,
}
"""Rows that each get their own hub."""
ALONE: dict[str, Callable[[], Coroutine[Any, Any, Outcome]]] = {
    "L5": large_rows.l5,
    "L9": tool_cost.l9,
    "F10": fault_rows.f10,
    "F14": fault_rows.f14,
    "F21": fault_rows.f21,
}
"""Rows that start what they need."""
ROWS = sorted({*ON_A_HUB, *ALONE}, key=lambda name: (name == "L2", name[0] != "L", int(name[1:])))
"""L2 comes last, because it takes minutes."""


async def _on_a_hub(row: Callable[[Hub], Awaitable[Outcome]], hub: Hub) -> Outcome:
    return await row(hub)


def run(name: str, seconds: float | None = None) -> Outcome:
    """Run one row; `seconds` shortens L2 and its warm-up."""
    if name in ALONE:
        return uvloop.run(ALONE[name]())
    row = ON_A_HUB[name]
    if name == "L2" and seconds is not None:
        row = partial(rows.l2, seconds=seconds, warm=seconds * 0.4)
    with rows.running() as hub:
        return uvloop.run(_on_a_hub(row, hub))


def main(names: Sequence[str] = (), seconds: float | None = None) -> None:
    """Measure, print, and write the section of docs/performance.md if all rows ran; exit code 1 if a bound is
    exceeded."""
    done = []
    for name in [row for row in ROWS if row in names or not names]:
        done.append(run(name, seconds))
        print(f"{done[-1].row}: {done[-1].did}", flush=True)
    lines = [
        [outcome.row, fact, f"{value:,g}", f"{most:,g}", "met" if value <= most else "NOT met"]
        for outcome in done
        for fact, value, most in (*outcome.checks, *outcome.figures)
    ]
    did = "\n".join(f"- {outcome.row}: {outcome.did}" for outcome in done)
    text = "\n\n".join((f"{report.machine()}.", did, report.table(["row", "what", "measured", "at most", ""], lines)))
    print(f"\n{text}\n")
    if not names:
        report.write_section("rows", text)
    sys.stdout.flush()
    if not all(outcome.met for outcome in done):
        raise SystemExit(1)
