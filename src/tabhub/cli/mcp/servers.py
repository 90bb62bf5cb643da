"""External servers as the command line reaches them: through the running hub, or on disk when none runs."""

from __future__ import annotations

from typing import Any

from tabhub.cli.hub.client import Hub, approver_headers, fetch, find_hub
from tabhub.client_errors import CliError

_TIMEOUT = 60.0


def servers() -> RunningServers | StoredServers:
    hub = find_hub()
    return RunningServers(hub) if hub.pid is not None else StoredServers()


class RunningServers:
    """Through the hub."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    def all(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = fetch("/upstream", hub=self._hub)["servers"]
        return found

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
        return fetch(f"/upstream/{what}", body, hub=self._hub, headers=headers, timeout=_TIMEOUT)


class StoredServers:
    """On disk, without a hub."""

    def __init__(self) -> None:
        from tabhub.store.home import Home
        from tabhub.store.upstream_servers import UpstreamStore

        home = Home.find()
        home.ensure()
        self._store = UpstreamStore(home.root / "mcp.json")

    def all(self) -> list[dict[str, Any]]:
        from tabhub.calls.sources.upstream import describe_record

        facts = [{**describe_record(server), "state": "off"} for server in self._store.load()]
        return sorted(facts, key=lambda each: str(each["name"]))

    def add(self, given: Any) -> list[dict[str, Any]]:
        from tabhub.calls.sources.upstream import merge
        from tabhub.upstream.config import read

        wanted = {each.name: each for each in read(given)}

        def change(before: Any) -> Any:
            known = {server.name: server for server in before}
            return list((known | {name: merge(each, known.get(name)) for name, each in wanted.items()}).values())

        self._store.change(change)
        return [each for each in self.all() if each["name"] in wanted]

    def set(self, name: str, *, enabled: bool | None = None, disabled: list[str] | None = None) -> dict[str, Any]:
        from msgspec.structs import replace

        find_server(self.all(), name)
        changes: dict[str, Any] = {} if enabled is None else {"enabled": enabled}
        changes |= {} if disabled is None else {"disabled_tools": tuple(disabled)}
        self._store.change(lambda before: [replace(s, **changes) if s.name == name else s for s in before])
        return find_server(self.all(), name)

    def refresh(self, name: str) -> dict[str, Any]:
        find_server(self.all(), name)
        raise CliError(
            "The hub is not running, and it is the hub that connects to servers.",
            "Start it with: tabhub start --background",
            exit_code=2,
        )

    def remove(self, name: str) -> None:
        find_server(self.all(), name)
        self._store.change(lambda before: [server for server in before if server.name != name])


def find_server(facts: list[dict[str, Any]], name: str) -> dict[str, Any]:
    for each in facts:
        if each["name"] == name:
            return each
    names = ", ".join(str(each["name"]) for each in facts[:30])
    raise CliError(
        f"There is no external server named {name!r}.",
        f"Servers: {names}." if names else "Add one: tabhub mcp add NAME URL",
    )
