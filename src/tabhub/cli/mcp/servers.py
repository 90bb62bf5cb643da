"""External servers as the command line reaches them: through the running hub, or on disk when none runs."""

from __future__ import annotations

import json
from typing import Any, Protocol

from tabhub.cli.hub.client import Hub, approver_headers, find_hub, request
from tabhub.cli.hub.http_errors import checked
from tabhub.client_errors import CliError

_TIMEOUT = 60.0


class Servers(Protocol):
    """What can be done with external servers."""

    def all(self) -> list[dict[str, Any]]: ...

    def get(self, name: str) -> dict[str, Any]: ...

    def add(self, given: Any) -> list[dict[str, Any]]: ...

    def set(self, name: str, *, enabled: bool | None = None, disabled: list[str] | None = None) -> dict[str, Any]: ...

    def refresh(self, name: str) -> dict[str, Any]: ...

    def remove(self, name: str) -> None: ...


def servers() -> Servers:
    hub = find_hub()
    return _Running(hub) if hub.pid is not None else _OnDisk()


class _Running:
    """Through the hub."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    def all(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = checked(self._hub, request(self._hub, "GET", "/upstream"))["servers"]
        return found

    def get(self, name: str) -> dict[str, Any]:
        return _named(self.all(), name)

    def add(self, given: Any) -> list[dict[str, Any]]:
        added: list[dict[str, Any]] = self._post("add", {"json": given})["servers"]
        return added

    def set(self, name: str, *, enabled: bool | None = None, disabled: list[str] | None = None) -> dict[str, Any]:
        changes = {"enabled": enabled, "disabledTools": disabled}
        facts: dict[str, Any] = self._post("set", {"name": name, **changes})["server"]
        return facts

    def refresh(self, name: str) -> dict[str, Any]:
        facts: dict[str, Any] = self._post("refresh", {"name": name})["server"]
        return facts

    def remove(self, name: str) -> None:
        self._post("remove", {"name": name})

    def _post(self, what: str, body: dict[str, Any]) -> Any:
        headers = approver_headers(self._hub)
        sent = json.dumps(body).encode()
        return checked(
            self._hub, request(self._hub, "POST", f"/upstream/{what}", body=sent, headers=headers, timeout=_TIMEOUT)
        )


class _OnDisk:
    """The records alone."""

    def __init__(self) -> None:
        from tabhub.store.home import Home
        from tabhub.store.upstream_servers import UpstreamStore

        home = Home.find()
        home.ensure()
        self._store = UpstreamStore(home.root / "mcp.json")

    def all(self) -> list[dict[str, Any]]:
        from tabhub.calls.sources.upstream import shown

        facts = [{**shown(server), "state": "off"} for server in self._store.load()]
        return sorted(facts, key=lambda each: str(each["name"]))

    def get(self, name: str) -> dict[str, Any]:
        return _named(self.all(), name)

    def add(self, given: Any) -> list[dict[str, Any]]:
        from tabhub.calls.sources.upstream import record
        from tabhub.upstream.config import read

        wanted = {each.name: each for each in read(given)}

        def change(before: Any) -> Any:
            known = {server.name: server for server in before}
            return list((known | {name: record(each, known.get(name)) for name, each in wanted.items()}).values())

        self._store.change(change)
        return [each for each in self.all() if each["name"] in wanted]

    def set(self, name: str, *, enabled: bool | None = None, disabled: list[str] | None = None) -> dict[str, Any]:
        from msgspec.structs import replace

        self.get(name)
        changes: dict[str, Any] = {} if enabled is None else {"enabled": enabled}
        changes |= {} if disabled is None else {"disabled_tools": tuple(disabled)}
        self._store.change(lambda before: [replace(s, **changes) if s.name == name else s for s in before])
        return self.get(name)

    def refresh(self, name: str) -> dict[str, Any]:
        self.get(name)
        raise CliError(
            "The hub is not running, and it is the hub that connects to servers.",
            "Start it with: tabhub start --background",
            exit_code=2,
        )

    def remove(self, name: str) -> None:
        self.get(name)
        self._store.change(lambda before: [server for server in before if server.name != name])


def _named(facts: list[dict[str, Any]], name: str) -> dict[str, Any]:
    for each in facts:
        if each["name"] == name:
            return each
    names = ", ".join(str(each["name"]) for each in facts[:30])
    raise CliError(
        f"There is no external server named {name!r}.",
        f"Servers: {names}." if names else "Add one: tabhub mcp add NAME URL",
    )
