"""The two servers that are compared, each with its own fake extension: the hub and the limit.

Owns starting them and waiting until they are ready, not the load.
"""

from __future__ import annotations

import http.client
import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench import extension
from bench.processes import Child, answers, free_port
from tabhub.store import extension_key
from tabhub.store.home import Home
from tabhub.store.tokens import client_token

TOOL = "browser_execute_script"
AGENT = "bench"


@dataclass(frozen=True, slots=True)
class Server:
    """A running server with a fake extension connected."""

    port: int
    token: str
    """An agent's."""
    child: Child
    extension: Child
    ready_seconds: float
    home: Path


def agent_token(home: Path) -> str:
    """The token of the benchmark's agent."""
    return client_token(Home(home), AGENT, time.time())[0]


def start_hub(home: Path, port: int, *, launcher: Sequence[str] = ("-m", "tabhub")) -> tuple[Child, float]:
    """Start a hub with a temporary home; also returns the seconds until /health answered."""
    if not (home / "config.json").exists():
        # The fake browser counts as a person's own, where acting needs approval, and nobody is there to approve.
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        (home / "config.json").write_text(json.dumps({"permissions": {"default": "auto"}, "dataflow": "off"}))
    command = [sys.executable, *launcher, "start", "--no-launch", "--port", str(port)]
    child = Child(command, log=home.with_suffix(".log"), env={"TABHUB_HOME": str(home), "PYTHONUNBUFFERED": "1"})
    return child, child.wait_until(lambda: answers(port, "/health"), "the hub")


@contextmanager
def hub(where: Path, *, launcher: Sequence[str] = ("-m", "tabhub")) -> Iterator[Server]:
    """A hub with a fake extension, able to run tools."""
    home, port = where / "home", free_port()
    child, seconds = start_hub(home, port, launcher=launcher)
    with child:
        token = agent_token(home)
        with extension.start(port, extension_key.read(Home(home)), where) as browser:
            _first_call(child, port, token)
            yield Server(port, token, child, browser, seconds, home)


@contextmanager
def limit(where: Path) -> Iterator[Server]:
    """The pass-through with a fake extension."""
    port = free_port()
    with Child([sys.executable, "-m", "bench.limit", str(port)], log=where / "limit.log") as child:
        # Without an extension it answers 503; any answer is enough here.
        seconds = child.wait_until(lambda: _listens(port), "the limit")
        with extension.start(port, "0" * 64, where) as browser:
            yield Server(port, "0" * 64, child, browser, seconds, where)


def call(port: int, token: str, tab_id: int) -> str:
    """One REST call of the measured tool; returns the text of the answer."""
    body = json.dumps({"arguments": {"tabId": tab_id, "code": "return 1"}})
    status, _, text = post(port, f"/tools/{TOOL}/call", body, {"Authorization": f"Bearer {token}"})
    return f"{status} {text}"


def post(port: int, path: str, body: str, headers: dict[str, str]) -> tuple[int, dict[str, str], str]:
    """One POST on a new connection: status, headers (lower case) and text."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("POST", path, body, {"Content-Type": "application/json", **headers})
        answer = connection.getresponse()
        found = {name.lower(): value for name, value in answer.getheaders()}
        return answer.status, found, answer.read().decode(errors="replace")
    finally:
        connection.close()


def _first_call(child: Child, port: int, token: str) -> None:
    """Wait until the hub has processed the extension's messages; on timeout, show its last answer."""
    last = ""

    def works() -> bool:
        nonlocal last
        last = call(port, token, extension.TABS[2])
        return extension.MARKER in last

    try:
        child.wait_until(works, "the first call", 15)
    except SystemExit as error:
        raise SystemExit(f"{error}\nlast answer: {last}") from None


def _listens(port: int) -> bool:
    try:
        return post(port, "/", "{}", {})[0] == 503
    except OSError:
        return False
