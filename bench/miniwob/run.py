"""The command: which episodes are run, and when their results become the table."""

from __future__ import annotations

from pathlib import Path

import uvloop

from bench import report
from bench.miniwob import episodes
from bench.miniwob.policies import POLICIES
from bench.miniwob.policies.registry import LEFT_OUT
from bench.miniwob.report import render
from bench.miniwob.site import tasks


def main(
    *,
    tasks_given: list[str],
    seeds: int,
    first: int | None,
    only: str | None,
    file: Path | None,
    show: bool,
    report_only: bool,
) -> None:
    """Run what is missing, print the table, and write it if it is about all tasks and the published seeds."""
    pages = tasks()
    unknown = [name for name in tasks_given if name not in POLICIES]
    if unknown:
        raise SystemExit(f"error: there is no policy for {', '.join(unknown)}")
    missing = set(pages) - set(POLICIES) - set(LEFT_OUT)
    if missing:
        raise SystemExit(f"error: pages without a policy or a reason: {', '.join(sorted(missing))}")
    published = first is None and not tasks_given and only is None and file is None
    begin = episodes.SEEDS[0] if first is None else first
    chosen = tuple(range(begin, begin + seeds))
    where = file or episodes.RESULTS
    if not report_only:
        wanted = tasks_given or [name for name in pages if name in POLICIES]
        names = (only,) if only else tuple(episodes.PRODUCT_NAMES)
        uvloop.run(episodes.run(episodes.Plan(wanted, chosen, names, where, show)))
    text = render(episodes.load(where), len(pages), report.machine(), chosen)
    print(f"\n{text}\n")
    if published and chosen == episodes.SEEDS:
        report.write_section("miniwob", text)
