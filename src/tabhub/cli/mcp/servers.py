"""External servers as the command line reaches them: through the running hub, or on disk when none runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from tabhub.calls.sources.upstream import describe_record, merge
from tabhub.cli.hub.client import fetch, find_hub
from tabhub.client_errors import CliError, UsageError
from tabhub.store.home import Home
from tabhub.store.upstream_servers import Server, UpstreamStore
from tabhub.upstream.config import read

_TIMEOUT = 60.0
Facts = list[dict[str, Any]]


def list_servers() -> Facts:
    hub = find_hub()
    if hub.pid is None:
        facts = [{**describe_record(server), "state": "off"} for server in _store().servers()]
        return sorted(facts, key=lambda server: str(server["name"]))
    servers: Facts = fetch("/upstream", hub=hub)["servers"]
    return servers


def change_servers(action: str, body: dict[str, Any]) -> Facts:
    """Add, set, refresh or remove servers, as the hub's route of that name does; returns those added or changed."""
    hub = find_hub()
    if hub.pid is None:
        return _change_stored(action, body)
    answer = fetch(f"/upstream/{action}", body, hub=hub, timeout=_TIMEOUT)
    servers: Facts = answer["servers"] if action == "add" else [answer.get("server")]
    return servers


def _store() -> UpstreamStore:
    home = Home.find()
    home.ensure()
    return UpstreamStore(home.root / "mcp.json")


def _change_stored(action: str, body: dict[str, Any]) -> Facts:
    store = _store()
    if action == "add":
        wanted = read(body["json"])

        def add(before: Sequence[Server]) -> list[Server]:
            known = {server.name: server for server in before}
            return list((known | {new.name: merge(new, known.get(new.name)) for new in wanted}).values())

        store.change(add)
        return [find_server(server.name) for server in wanted]
    name = body["name"]
    find_server(name)
    if action == "refresh":
        raise UsageError(
            "The hub is not running, and only the hub connects to servers.", "Start it with: tabhub start --background"
        )
    if action == "remove":
        store.change(lambda before: [server for server in before if server.name != name])
        return []
    changes: dict[str, Any] = {} if body.get("enabled") is None else {"enabled": body["enabled"]}
    changes |= {} if body.get("disabledTools") is None else {"disabled_tools": tuple(body["disabledTools"])}
    store.change(lambda before: [replace(s, **changes) if s.name == name else s for s in before])
    return [find_server(name)]


def find_server(name: str) -> dict[str, Any]:
    servers = list_servers()
    for server in servers:
        if server["name"] == name:
            return server
    names = ", ".join(str(server["name"]) for server in servers[:30])
    raise CliError(
        f"There is no external server named {name!r}.",
        f"Servers: {names}." if names else "Add one: tabhub mcp add NAME URL",
    )
