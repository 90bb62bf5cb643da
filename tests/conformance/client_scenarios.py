"""What the hub does with the server of a client scenario: add it, log in, call its tools.

The complete hub is the client under test: records, pool, logins, engine. Only the person and the agent are simulated.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Mapping
from typing import Any

import httpx2

from tabhub.core.sessions import Session
from tabhub.errors import LoginRequired, TabhubError
from tests.harness.hub import RunningHub
from tests.harness.waiting import until

_numbers = itertools.count(1)
_PATIENCE = 100.0
_LOGINS = 3
_SAMPLES: dict[str, Any] = {"string": "text", "integer": 5, "number": 3, "boolean": True, "array": [], "object": {}}


class Caller:
    """An agent whose client accepts every elicitation with its defaults (calls.protocols.Caller)."""

    via = "mcp"
    answers = None
    structured = True

    def __init__(self) -> None:
        self.session = Session("scenario", "handle", "conformance", 0.0, 0.0)
        self.params: dict[str, Any] = {}
        self.answers = None

    def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Ignored."""

    def log(self, level: str, logger: str, data: Any) -> None:
        """Ignored."""

    def can(self, capability: str) -> bool:
        return True

    async def ask(self, tool: str, questions: dict[str, tuple[str, dict[str, Any]]]) -> dict[str, dict[str, Any]]:
        """Accept with the proposed values."""
        return {key: _answer(method, params) for key, (method, params) in questions.items()}


def _answer(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    if method == "sampling/createMessage":
        return {"role": "assistant", "content": {"type": "text", "text": "Paris"}, "model": "none"}
    if method == "roots/list":
        return {"roots": []}
    fields = params.get("requestedSchema", {}).get("properties", {})
    content = {name: field["default"] if "default" in field else sample(field) for name, field in fields.items()}
    required = params.get("requestedSchema", {}).get("required", [])
    kept = {name: value for name, value in content.items() if "default" in fields[name] or name in required}
    return {"action": "accept", "content": kept}


def sample(schema: Mapping[str, Any]) -> Any:
    """A value that matches a simple schema."""
    kind = schema.get("type", "string")
    return schema["enum"][0] if "enum" in schema else _SAMPLES[kind if isinstance(kind, str) else kind[0]]


async def play(hub: RunningHub, given: Mapping[str, Any]) -> None:
    """Run one scenario; raises if the hub could not connect."""
    name = f"s{next(_numbers)}"
    upstream = hub.hub.upstream
    async with (
        httpx2.AsyncClient(verify=False, follow_redirects=True, timeout=_PATIENCE) as person,
        asyncio.timeout(_PATIENCE),
    ):
        watch = asyncio.ensure_future(_log_in(hub, name, person))
        try:
            context = given["context"]
            known = {"clientId": context.get("client_id"), "clientSecret": context.get("client_secret")}
            oauth = {"oauth": known} if all(known.values()) else {}
            await upstream.add({name: {"url": given["url"], **oauth}})
            await _settled(hub, name)
            for tool, arguments in _calls(hub, name, given["context"]):
                await _call(hub, name, tool, arguments)
        finally:
            watch.cancel()
            await asyncio.gather(watch, return_exceptions=True)
            await upstream.remove(name)


async def _log_in(hub: RunningHub, name: str, person: httpx2.AsyncClient) -> None:
    """Follow the hub's login links as a person would."""
    seen: set[str | None] = {None}

    def address() -> str | None:
        connection = hub.hub.upstream.pool.get(name)
        return connection.login_url if connection is not None else None

    while True:
        await until(lambda: address() not in seen, _PATIENCE)
        seen.add(asked := address())
        if asked is not None:
            with contextlib.suppress(httpx2.HTTPError):
                await person.get(asked)


async def _settled(hub: RunningHub, name: str) -> None:
    def over() -> bool:
        connection = hub.hub.upstream.pool.get(name)
        if connection is None or connection.state == "ready":
            return True
        if connection.state == "waiting" or (connection.state == "login" and connection.login_url is None):
            raise RuntimeError(f"{connection.state}: {connection.error}")
        return False

    await until(over, _PATIENCE)


def _calls(hub: RunningHub, name: str, context: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The calls that the scenario names, or one call of each tool."""
    tools = {t["tool"]: t["name"] for t in hub.hub.upstream.describe(hub.hub.upstream.get(name))["tools"]}
    if "toolCalls" in context:  # an agent omits arguments without a value, because few schemas accept null
        return [
            (tools[call["name"]], {key: value for key, value in call["arguments"].items() if value is not None})
            for call in context["toolCalls"]
        ]
    cached = {tool["name"]: tool for tool in hub.hub.upstream.get(name).cached_tools}
    return [
        (full, {key: sample(value) for key, value in cached[own]["inputSchema"].get("properties", {}).items()})
        for own, full in tools.items()
    ]


async def _call(hub: RunningHub, name: str, tool: str, arguments: dict[str, Any]) -> None:
    for _ in range(_LOGINS):
        try:
            await hub.hub.engine.call(Caller(), tool, dict(arguments))
        except LoginRequired:
            await hub.hub.upstream.refresh(name)  # as a person would do then
        except TabhubError:
            return  # how the server answers is up to the scenario
        else:
            return
