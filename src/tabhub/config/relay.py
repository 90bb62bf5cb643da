"""The `relays` of the config file: relays whose browsers the hub uses too."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RelaySettings:
    """A relay, and the file that holds the token for it."""

    url: str
    token_file: str

    def values(self) -> dict[str, str]:
        return {"url": self.url, "tokenFile": self.token_file}
