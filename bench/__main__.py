"""`python -m bench`: run all measurements, or the one that is named."""

from __future__ import annotations

import argparse
from pathlib import Path

from bench import (
    browser,
    calls,
    generator,
    hostile,
    hotspots,
    large_pages,
    matrix,
    pages,
    relay,
    relay_floods,
    start,
    upstream,
)
from bench.context import comparison as context
from bench.miniwob import run as miniwob
from bench.peers import comparison
from bench.peers.measures import MEASURES


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parts = parser.add_subparsers(dest="part", metavar="PART")
    one = parts.add_parser("calls", help="tool calls through the hub against the limit of its server stack")
    one.add_argument("--seconds", type=float, default=3.0, help="length of one run (default 3)")
    one.add_argument("--rounds", type=int, default=3, help="runs of each, interleaved (default 3)")
    one.add_argument("--connections", type=int, nargs="+", default=calls.CONNECTIONS, help="default 1 20 200")
    one.add_argument("--only-limit", action="store_true", help="leave the hub out")
    two = parts.add_parser("start", help="cold starts against `python -c pass`")
    two.add_argument("--rounds", type=int, default=15)
    three = parts.add_parser("generator", help="the load generator against a trivial server")
    three.add_argument("--seconds", type=float, default=2.0)
    four = parts.add_parser("profile", help="where the hub spends its time")
    four.add_argument("--case", choices=("mcp", "mcp-stateless", "rest"), default="mcp")
    four.add_argument("--mode", choices=("calls", "sample", "count"), default="calls")
    four.add_argument("--connections", type=int, default=20)
    four.add_argument("--seconds", type=float, default=5.0)
    five = parts.add_parser("pages", help="page tools in a real Chromium against the bare echo of its extension")
    five.add_argument("--pages", type=int, default=20, help="pages of each kind (default 20)")
    five.add_argument("--rounds", type=int, default=5, help="runs of echoes and calls, interleaved (default 5)")
    five.add_argument("--seconds", type=float, default=1.0, help="length of one run of calls (default 1)")
    six = parts.add_parser(
        "browser", help="the built-in tools in a real Chromium against the bare echo of its extension"
    )
    six.add_argument("--rounds", type=int, default=3, help="runs of each tool, interleaved (default 3)")
    six.add_argument("--seconds", type=float, default=1.5, help="length of one run (default 1.5)")
    seven = parts.add_parser("rows", help="the rows of the matrix that are measured: load, large values, faults")
    seven.add_argument("names", nargs="*", choices=[*matrix.ROWS, []], metavar="ROW", help=", ".join(matrix.ROWS))
    seven.add_argument("--seconds", type=float, help="length of L2 (default 300, and 120 of warm-up)")
    parts.add_parser("floods", help="calls of another user while one client of a relay sends as much as it can")
    eight = parts.add_parser("relay", help="forwarded calls against a bare echo, a second node, idle connections")
    eight.add_argument("--seconds", type=float, default=2.0, help="length of one run (default 2)")
    eight.add_argument("--rounds", type=int, default=5, help="runs of each, interleaved (default 5)")
    eight.add_argument("--agents", type=int, nargs="+", default=relay.AGENTS, help="default 1 32 200")
    eight.add_argument("--idle", type=int, default=2000, help="idle connections (default 2000)")
    nine = parts.add_parser("upstream", help="calls of external servers through the hub against direct ones")
    nine.add_argument("--rounds", type=int, default=10, help="runs of each, interleaved (default 10)")
    nine.add_argument("--calls", type=int, default=50, help="calls of one run (default 50)")
    large_part = parts.add_parser("large-pages", help="the first search and snapshot of pages of thousands of rows")
    large_part.add_argument("--rounds", type=int, default=5, help="loads of each page (default 5)")
    hostile_part = parts.add_parser("hostile", help="what hostile input and very many tools cost, against parsing JSON")
    hostile_part.add_argument("--rounds", type=int, default=7, help="runs of each, interleaved (default 7)")
    peers = parts.add_parser("peers", help="Tabhub next to Playwright MCP and Chrome DevTools MCP, on the same pages")
    peers.add_argument("--rounds", type=int, default=5, help="rounds in which each server has its turn (default 5)")
    peers.add_argument("--seconds", type=float, default=0.7, help="length of one turn (default 0.7)")
    peers.add_argument("--starts", type=int, default=5, help="starts of each server (default 5, 0 for none)")
    peers.add_argument("--only", nargs="+", default=[], choices=[one.name for one in MEASURES], metavar="MEASURE")
    web = parts.add_parser("miniwob", help="the tasks of MiniWoB++ with Tabhub and with Playwright MCP")
    web.add_argument(
        "--tasks", dest="tasks_given", type=lambda text: text.split(","), default=[], help="a,b (default all)"
    )
    web.add_argument("--seeds", type=int, default=3, help="episodes of each task (default 3)")
    web.add_argument("--first", type=int, help="the first seed, where it is not one of the published ones")
    web.add_argument("--only", choices=("tabhub", "playwright"), help="one product")
    web.add_argument(
        "--file", type=Path, help="where results are kept and looked up (default bench/build/miniwob.jsonl)"
    )
    web.add_argument("--show", action="store_true", help="print each call with its answer")
    web.add_argument("--report", dest="report_only", action="store_true", help="run nothing, only write the table")
    context_part = parts.add_parser("context", help="tokens of catalogues and snapshots against other servers")
    context_part.add_argument("--only", nargs="+", metavar="PAGE", help="only these pages; the document is not written")
    options = vars(parser.parse_args())
    part = options.pop("part")
    if part == "calls":
        calls.main(**options)
    elif part == "start":
        start.main(**options)
    elif part == "generator":
        generator.main(**options)
    elif part == "pages":
        pages.main(**options)
    elif part == "browser":
        browser.main(**options)
    elif part == "upstream":
        upstream.main(**options)
    elif part == "context":
        context.main(**options)
    elif part == "hostile":
        hostile.main(**options)
    elif part == "large-pages":
        large_pages.main(**options)
    elif part == "rows":
        matrix.main(**options)
    elif part == "floods":
        relay_floods.main()
    elif part == "relay":
        relay.main(**options)
    elif part == "peers":
        comparison.main(**options)
    elif part == "miniwob":
        miniwob.main(**options)
    elif part == "profile":
        hotspots.main(**options)
    else:
        generator.main(seconds=2.0)
        calls.main(seconds=3.0, rounds=3)
        start.main(rounds=15)
        pages.main(pages=20, rounds=5, seconds=1.0)
        browser.main(rounds=3, seconds=1.5)
        comparison.main(rounds=5, seconds=0.7, starts=5)
        upstream.main(rounds=10)
        relay.main(seconds=2.0, rounds=5)
        hostile.main(rounds=7)
        large_pages.main(rounds=5)


if __name__ == "__main__":
    main()
