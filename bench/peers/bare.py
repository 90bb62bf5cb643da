"""The browser alone: the commands of its own protocol over one WebSocket, which is what a server at least needs."""

from __future__ import annotations

import base64
import json
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from websockets.sync.client import connect

from bench.peers.connections import Answer, Failed

_READY = 20.0


class Bare:
    """A headless Chromium with one page."""

    def __init__(self, browser: str, *, profile: Path, log: Path, switches: tuple[str, ...]) -> None:
        port_file = profile / "DevToolsActivePort"
        port_file.unlink(missing_ok=True)
        with log.open("ab") as out:
            self.process = subprocess.Popen(
                [browser, *switches, f"--user-data-dir={profile}", "--remote-debugging-port=0", "about:blank"],
                stdout=out,
                stderr=out,
            )
        end = time.monotonic() + _READY
        while not (port_file.exists() and port_file.read_text().count("\n")):
            if time.monotonic() > end or self.process.poll() is not None:
                raise Failed(f"the browser did not start; see {log}")
            time.sleep(0.005)
        port, path = port_file.read_text().split()
        self._socket = connect(f"ws://127.0.0.1:{port}{path}", max_size=None, compression=None)
        self._number = 0
        self._session: str | None = None
        self._loaded = False
        targets = self._command("Target.getTargets", {})["targetInfos"]
        page = next(target["targetId"] for target in targets if target["type"] == "page")
        self._session = self._command("Target.attachToTarget", {"targetId": page, "flatten": True})["sessionId"]
        self._command("Page.enable", {})

    def set_viewport(self, width: int, height: int) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._command("Emulation.setDeviceMetricsOverride", size)

    def call(self, tool: str, arguments: Mapping[str, Any]) -> Answer:
        """One command; a navigation ends with the page's load event."""
        before = time.perf_counter()
        self._loaded = tool != "Page.navigate"
        result = self._command(tool, arguments)
        while not self._loaded:
            self._receive()
        ms = (time.perf_counter() - before) * 1000
        if "exceptionDetails" in result or "errorText" in result:
            raise Failed(f"{tool}: {json.dumps(result)[:300]}")
        image = result.get("data")
        if image is not None:
            base64.b64decode(image[:100])
        value = result.get("result", {}).get("value", result)
        return Answer(ms, value if isinstance(value, str) else json.dumps(value), image)

    def _command(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        self._number += 1
        there = {} if self._session is None else {"sessionId": self._session}
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": params, **there}))
        while (message := self._receive()).get("id") != self._number:
            pass
        if "error" in message:
            raise Failed(f"{method}: {message['error']}")
        result: dict[str, Any] = message["result"]
        return result

    def _receive(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(self._socket.recv())
        self._loaded = self._loaded or message.get("method") == "Page.loadEventFired"
        return message

    def close(self) -> None:
        self._socket.close()
        self.process.terminate()
        self.process.wait(10)
