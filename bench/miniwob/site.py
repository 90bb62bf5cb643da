"""The pages of MiniWoB++ on a local web server, which starts an episode with a seed and receives its reward.

Owns what is added to the pages: a script that begins the episode at once and reports the page's own reward when it
ends. Policies and products do not see it: the report goes over a WebSocket, as products wait for requests that an
action causes.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from websockets.sync.server import ServerConnection, serve

from bench.build import OUT

FOLDER = OUT / "pages" / "miniwob" / "html"
_LONGEST_S = 600
"""Instead of the 10 s after which most pages end an episode, as nobody's speed is in question."""
_START = """
(() => {
  const {seed} = core.QueryString;
  const [cover, end] = [core.startEpisode, core.endEpisode];
  const rewards = new WebSocket("ws://127.0.0.1:PORT");
  let begun = false;
  core.startEpisode = () => {
    cover();
    if (begun) return;
    begun = true;
    Math.seedrandom(seed);
    core.EPISODE_MAX_TIME = SECONDS * 1000;
    core.startEpisodeReal();
  };
  core.endEpisode = (...given) => {
    const running = core.EP_TIMER !== null;
    end(...given);
    const reward = {task: location.pathname, seed, raw: WOB_RAW_REWARD_GLOBAL, reason: WOB_REWARD_REASON};
    if (running) rewards.send(JSON.stringify(reward));
  };
})();
"""


def tasks(folder: Path = FOLDER) -> list[str]:
    """The names of all pages."""
    if not folder.is_dir():
        raise SystemExit("error: the pages of MiniWoB++ are not installed\nhint: scripts/setup bench")
    return sorted(path.stem for path in (folder / "miniwob").glob("*.html"))


@dataclass(slots=True)
class Rewards:
    """The rewards that pages have reported, by task and seed."""

    _given: dict[tuple[str, str], float] = field(default_factory=dict)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def put(self, report: dict[str, Any]) -> None:
        with self._changed:
            self._given[Path(report["task"]).stem, str(report["seed"])] = float(report["raw"])
            self._changed.notify_all()

    def take(self, task: str, seed: int, timeout: float) -> float | None:
        """The reward of an episode; None if it does not end in time."""
        key = (task, str(seed))
        with self._changed:
            self._changed.wait_for(lambda: key in self._given, timeout)
            return self._given.pop(key, None)


class _Handler(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, start: str, *given: Any, **named: Any) -> None:
        self._start = start
        super().__init__(*given, **named)

    def do_GET(self) -> None:
        if urlsplit(self.path).path != "/core/core.js":
            super().do_GET()
            return
        body = ((FOLDER / "core" / "core.js").read_text() + self._start).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/javascript; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name the base class gives it
        """Log nothing."""


@contextmanager
def site(rewards: Rewards) -> Iterator[str]:
    """Serve the pages; returns their origin."""

    def receive(connection: ServerConnection) -> None:
        for message in connection:
            rewards.put(json.loads(message))

    with serve(receive, "127.0.0.1", 0) as receiver:
        port = receiver.socket.getsockname()[1]
        start = _START.replace("SECONDS", str(_LONGEST_S)).replace("PORT", str(port))
        server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, start, directory=str(FOLDER)))
        server.daemon_threads = True
        threads = [
            threading.Thread(target=receiver.serve_forever, name="rewards"),
            threading.Thread(target=server.serve_forever, args=(0.05,), name="miniwob"),
        ]
        for thread in threads:
            thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            receiver.shutdown()
            server.shutdown()
            for thread in threads:
                thread.join()
            server.server_close()


def address(origin: str, task: str, seed: int) -> str:
    return f"{origin}/miniwob/{task}.html?seed={seed}"
