"""Tokens of catalogues and snapshots of Tabhub and its peers, and what the snapshots lack.

A snapshot is counted as an agent pays for it: all text of the default answer, and for the whole page also all that the
answer says to read on. The bench fails when an element is missing from Tabhub's whole page.
"""

from __future__ import annotations

import json
import re
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bench import report
from bench.context.apps import APPS
from bench.context.documents import DOCUMENTS, FOLDER, served
from bench.context.elements import TRUTH, listed, missing
from bench.peers.connections import Session
from bench.peers.subjects import Subject, available, connect_http, hub_ready, spawn_hub, start_peer
from bench.processes import free_port
from tabhub.core.results.tokens import estimate_tokens

TABHUB = "Tabhub"
PLAYWRIGHT = "Playwright"
SHARE = 0.5
"""Of Playwright's tokens, for a whole page."""
_PART = 400
"""Elements in one answer, which must not be cut."""
_HANDLE = re.compile(r'tabhub_read_result {"handle": "([\w-]+)"')
_NEXT = re.compile(r"next offset (\d+)")


@dataclass(frozen=True, slots=True)
class Cost:
    """What a snapshot costs and shows."""

    default: int
    whole: int
    calls: int
    shown: int
    """Elements in the default answer."""
    lost: list[tuple[str, str]]
    """Elements that are not in the whole page."""


@dataclass(slots=True)
class Page:
    """One page."""

    name: str
    nodes: int
    elements: int
    costs: dict[str, Cost]
    error: float
    """Of the hub's own estimate of its default answer, in percent."""


def counter() -> Callable[[str], int]:
    """Counts tokens of o200k_base exactly."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the package opens its own tables in a deprecated way
        import bpe_openai  # type: ignore[import-untyped]

    encoding = bpe_openai.get_encoding("o200k_base")
    return lambda text: len(encoding.encode_ordinary(text))


def _ask(subject: Subject, tool: str, arguments: dict[str, Any]) -> str:
    """The text of an answer, as an agent is shown it."""
    assert isinstance(subject.session, Session)
    _, result = subject.session.request("tools/call", {"name": tool, "arguments": arguments})
    text = "\n".join(part["text"] for part in result["content"] if part["type"] == "text")
    if result.get("isError"):
        raise SystemExit(f"error: {subject.name}: {tool}: {text[:500]}")
    if "structuredContent" in result and text not in ("", json.dumps(result["structuredContent"])):
        return text
    return text or json.dumps(result["structuredContent"])


def whole_page(subject: Subject, first: str) -> Iterator[str]:
    """The default answer, and everything it says to read on."""
    yield first
    handle = _HANDLE.search(first)
    offset: int | None = 0 if handle is not None else None
    while handle is not None and offset is not None:
        part = _ask(subject, "tabhub_read_result", {"handle": handle[1], "offset": offset, "limit": 80_000})
        yield part
        following = _NEXT.search(part)
        offset = int(following[1]) if following else None


def cost(subject: Subject, truth: list[tuple[str, str]], count: Callable[[str], int]) -> tuple[Cost, str]:
    first = _ask(subject, *subject.dialect.snapshot)
    parts = list(whole_page(subject, first))
    names = subject.name == TABHUB
    lost = missing(truth, listed("\n".join(parts), subject.name), names=names)
    shown = len(truth) - len(missing(truth, listed(first, subject.name), names=names))
    return Cost(count(first), sum(map(count, parts)), len(parts), shown, lost), first


def _measure(subjects: list[Subject], url: str, name: str, count: Callable[[str], int]) -> Page:
    own, *peers = subjects
    _ask(own, *own.dialect.navigate(url))
    truth = _truth(own)
    nodes = _decoded(_ask(own, "browser_execute_script", {"code": "return document.querySelectorAll('*').length"}))
    costs: dict[str, Cost] = {}
    costs[own.name], first = cost(own, truth, count)
    for peer in peers:
        _ask(peer, *peer.dialect.navigate(url))
        costs[peer.name], _ = cost(peer, truth, count)
    error = (estimate_tokens(first) / count(first) - 1) * 100
    return Page(name, nodes, len(truth), costs, error)


def _truth(subject: Subject) -> list[tuple[str, str]]:
    """What a person can act on in the page, by kind and name."""
    truth: list[tuple[str, str]] = []
    while True:
        arguments = {"code": TRUTH, "args": {"from": len(truth), "most": _PART}}
        part = _decoded(_ask(subject, "browser_execute_script", arguments))
        truth += [(kind, name) for kind, name in part]
        if len(part) < _PART:
            return truth


def _decoded(answer: str) -> Any:
    """The value that a script returned."""
    value = json.loads(answer)
    value = value["value"] if isinstance(value, dict) else value
    return json.loads(value) if isinstance(value, str) else value


@contextmanager
def _running(where: Path) -> Iterator[tuple[list[Subject], list[str]]]:
    kinds, reasons = available()
    with ExitStack() as stack:
        port = free_port()
        hub = stack.enter_context(spawn_hub(where, port, launch=True))
        hub.wait_until(lambda: hub_ready(port), "the hub")
        found = [connect_http(hub, where, port)]
        stack.callback(found[0].session.close)
        hub.wait_until(partial(_has_browser, found[0]), "the browser", timeout=60)
        for kind in kinds:
            if kind.name != "Playwright lean":  # has the same tools and snapshots
                found.append(start_peer(kind, where, "1280x720"))
                stack.callback(found[-1].session.close)
        yield found, reasons


def _has_browser(subject: Subject) -> bool:
    try:
        _ask(subject, "browser_execute_script", {"code": "return 1"})
    except SystemExit:
        return False
    return True


def _catalogue(subject: Subject, count: Callable[[str], int]) -> tuple[str, ...]:
    """Tools, and the tokens of their definitions: all that is sent, and what every client shows its model."""
    assert isinstance(subject.session, Session)
    tools: list[dict[str, Any]] = []
    cursor: dict[str, Any] = {}
    while True:
        _, listing = subject.session.request("tools/list", cursor)
        tools += listing["tools"]
        if "nextCursor" not in listing:
            break
        cursor = {"cursor": listing["nextCursor"]}
    shown = [{key: tool[key] for key in ("name", "description", "inputSchema") if key in tool} for tool in tools]
    sizes = (count(json.dumps(each, ensure_ascii=False, separators=(",", ":"))) for each in (tools, shown))
    return (subject.name, str(len(tools)), *(f"{size:,}" for size in sizes))


def main(*, only: list[str] | None = None) -> None:
    """Measure, print, and write the section of docs/performance.md."""
    count = counter()
    with (
        tempfile.TemporaryDirectory(prefix="tabhub-bench-", ignore_cleanup_errors=True) as where,
        served() as urls,
        _running(Path(where)) as (subjects, reasons),
    ):
        if len(urls) < len(DOCUMENTS):
            reasons.append(f"Pages of documentation are left out: {FOLDER} lacks them (scripts/setup bench).")
        catalogues = [_catalogue(subject, count) for subject in subjects]
        pages = []
        for name, url in urls.items():
            if not only or name in only:
                pages.append(_measure(subjects, url, name, count))
                print(_line(pages[-1]), flush=True)
    text = render(catalogues, pages, reasons)
    print(f"\n{text}\n")
    if not only:
        report.write_section("context", text)
    if lost := {page.name: page.costs[TABHUB].lost for page in pages if page.costs[TABHUB].lost}:
        raise SystemExit(f"error: elements are missing in Tabhub's snapshots: {json.dumps(lost)[:2000]}")


def _line(page: Page) -> str:
    found = (f"{name} {one.default:,}/{one.whole:,} ({len(one.lost)} lost)" for name, one in page.costs.items())
    return f"{page.name}: {page.elements} elements; {', '.join(found)}"


def render(catalogues: list[tuple[str, ...]], pages: list[Page], reasons: list[str]) -> str:
    """The tables and the verdicts."""
    names = [name for name, *_ in catalogues]
    rows = []
    for page in pages:
        own = page.costs[TABHUB]
        cells = [
            page.name,
            f"{page.nodes:,}",
            f"{page.elements:,}",
            f"{own.default:,}",
            f"{own.shown:,}",
            str(own.calls),
        ]
        cells += [f"{page.costs[name].whole:,}" for name in names]
        cells += [str(len(page.costs[name].lost)) for name in names]
        rows.append(cells)
    head = ["page", "nodes", "elements", "default", "shown", "calls", *names, *(f"{name} lost" for name in names)]
    cut = [page for page in pages if page.costs[TABHUB].calls > 1]
    wanted = [
        report.verdict("elements lost", sum(len(page.costs[TABHUB].lost) for page in pages), 0, at_least=False),
        report.verdict(
            "estimate of tokens, largest error in %", max(abs(page.error) for page in pages), 5, at_least=False
        ),
    ]
    if cut:
        used = min(page.costs[TABHUB].default for page in cut) / 25_000
        wanted.append(report.verdict("share of the budget that a cut answer uses", used, 0.9, at_least=True))
    if PLAYWRIGHT in names:
        shares = {page.name: page.costs[TABHUB].whole / page.costs[PLAYWRIGHT].whole for page in pages}
        for what, apps in (("documentation", False), ("generated pages of apps", True)):
            if of_kind := [share for name, share in shares.items() if (name in APPS) is apps]:
                title = f"whole page, tokens to Playwright's, largest, {what}"
                wanted.append(report.verdict(title, max(of_kind), SHARE, at_least=False))
    notes = (
        "Tokens of o200k_base. *default* is Tabhub's default answer, *shown* the elements in it, *calls* what the "
        "whole page takes; the columns with the servers' names are the whole page, and *lost* the visible links, "
        "buttons and fields that it lacks. For Tabhub they are compared by name, for the others only counted, because "
        f"a name may be in the children. {' '.join(reasons)}"
    )
    return "\n\n".join(
        [
            "Catalogues:",
            report.table(("", "tools", "tokens", "of names, descriptions, input schemas"), catalogues),
            "Snapshots:",
            report.table(head, rows),
            notes,
            "\n".join(wanted),
        ]
    )
