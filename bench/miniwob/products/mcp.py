"""A client of an MCP server over HTTP that counts what an agent would send and read, and the time inside calls."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any, Self

import httpx2

_VERSION = "2025-06-18"
_ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


class ToolFailed(Exception):
    """A tool answered with an error."""


@dataclass(slots=True)
class Meter:
    """What the calls of one episode cost."""

    calls: int = 0
    seconds: float = 0.0
    written: str = ""
    """The names and arguments of all calls."""
    read: str = ""
    """The texts of all answers."""
    log: list[str] | None = None
    """Each call with its answer, if they are to be shown."""

    def add(self, name: str, arguments: dict[str, Any], answer: str, seconds: float) -> None:
        sent = f"{name} {json.dumps(arguments, ensure_ascii=False)}"
        self.calls += 1
        self.seconds += seconds
        self.written += f"{sent}\n"
        self.read += f"{answer}\n"
        if self.log is not None:
            self.log.append(f"> {sent}   [{1000 * seconds:.0f} ms]\n{answer}")


class Client:
    """One session with a server."""

    def __init__(self, url: str, headers: dict[str, str]) -> None:
        self._url = url
        self._headers = {**_ACCEPT, **headers}
        self._http = httpx2.AsyncClient(verify=False, timeout=120)
        self._id = 0
        self.meter = Meter()

    async def __aenter__(self) -> Self:
        about = {
            "protocolVersion": _VERSION,
            "capabilities": {},
            "clientInfo": {"name": "miniwob", "version": "1"},
        }
        answer, headers = await self._request("initialize", about)
        if "result" not in answer:
            raise SystemExit(f"error: {self._url} does not speak MCP: {answer}")
        self._headers |= {"Mcp-Session-Id": headers["mcp-session-id"], "MCP-Protocol-Version": _VERSION}
        body = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        await self._http.post(self._url, json=body, headers=self._headers)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def tools(self) -> list[dict[str, Any]]:
        answer, _ = await self._request("tools/list", {})
        listed: list[dict[str, Any]] = answer["result"]["tools"]
        return listed

    async def call(self, name: str, arguments: dict[str, Any]) -> str:
        """The text of the answer; ToolFailed if it is an error."""
        began = time.perf_counter()
        answer, _ = await self._request("tools/call", {"name": name, "arguments": arguments})
        seconds = time.perf_counter() - began
        result = answer.get("result") or {"isError": True, "content": [{"type": "text", "text": str(answer)}]}
        text = "\n".join(part["text"] for part in result["content"] if part.get("type") == "text")
        self.meter.add(name, arguments, text, seconds)
        if result.get("isError"):
            raise ToolFailed(text)
        return text

    async def _request(self, method: str, params: dict[str, Any]) -> tuple[dict[str, Any], httpx2.Headers]:
        self._id += 1
        body = {"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}
        response = await self._http.post(self._url, json=body, headers=self._headers)
        if response.status_code >= 400:
            raise SystemExit(f"error: {self._url} answers {response.status_code}: {response.text[:500]}")
        text = response.text
        if response.headers.get("content-type", "").startswith("text/event-stream"):
            data = [line[5:] for line in text.splitlines() if line.startswith("data:") and line[5:].strip()]
            text = next(one for one in data if json.loads(one).get("id") == self._id)
        answer: dict[str, Any] = json.loads(text)
        return answer, response.headers
