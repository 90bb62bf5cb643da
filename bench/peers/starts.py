"""How long servers take to start: to their first answer, and with a browser to the first script's result.

Owns the starts, one server after the other; each ends before the next begins. The folders were used before.
"""

from __future__ import annotations

import time
from pathlib import Path

from bench.peers.connections import Failed
from bench.peers.subjects import Kind, Subject, connect_http, hub_ready, spawn_hub, start_bare, start_peer
from bench.processes import free_port

READY = "to the first answer"
EVALUATED = "with its browser, to the first evaluate"


def start_times(
    where: Path, peers: list[Kind], size: tuple[int, int], rounds: int
) -> dict[str, dict[str, list[float]]]:
    """Milliseconds by what, then by server."""
    taken: dict[str, dict[str, list[float]]] = {READY: {}, EVALUATED: {}}
    folder = where / "starts"
    folder.mkdir()
    for number in range(rounds + 1):  # the first makes the folders
        for what, name, ms in _round(folder, peers, size):
            if number:
                taken[what].setdefault(name, []).append(ms)
        print(f"starts, round {number}", flush=True)
    return taken


def _round(where: Path, peers: list[Kind], size: tuple[int, int]) -> list[tuple[str, str, float]]:
    port = free_port()
    with spawn_hub(where, port, launch=False) as hub:
        found = [(READY, "Tabhub", hub.wait_until(lambda: hub_ready(port), "the hub") * 1000)]
    with spawn_hub(where, port, launch=True) as hub:
        hub.wait_until(lambda: hub_ready(port), "the hub")
        subject = connect_http(hub, where, port)
        _evaluate(subject)
        found.append((EVALUATED, "Tabhub", (time.perf_counter() - hub.started) * 1000))
    for kind in peers:
        before = time.perf_counter()
        subject = start_peer(kind, where, f"{size[0]}x{size[1]}")
        found.append((READY, kind.name, (time.perf_counter() - before) * 1000))
        _evaluate(subject)
        found.append((EVALUATED, kind.name, (time.perf_counter() - before) * 1000))
        subject.session.close()
    before = time.perf_counter()
    alone = start_bare(where, *size)
    _evaluate(alone)
    found.append((EVALUATED, alone.name, (time.perf_counter() - before) * 1000))
    alone.session.close()
    return found


def _evaluate(subject: Subject) -> None:
    answer = subject.session.call(*subject.dialect.evaluate("20 + 22"))
    if "42" not in answer.text:
        raise Failed(f"{subject.name}: {answer.text[:300]}")
