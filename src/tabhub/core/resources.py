"""Resources, resource templates and prompts of external servers.

Owns the known ones, the names agents use for them, which server a name belongs to, and the pages of their listings. An
item is encoded once. It sends nothing to a server; which items are hidden is passed in.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import Literal

from tabhub.core.listing.pages import decode_cursor, encode_page
from tabhub.core.listing.search import nearest
from tabhub.core.upstream_names import PREFIX
from tabhub.core.upstream_uris import SCHEME, may_match_template, parse_resource_uri, resource_uri
from tabhub.errors import UnknownPrompt, UnknownResource

ChangeKind = Literal["resources", "prompts"]
ListName = Literal["resources", "templates", "prompts"]
KINDS: tuple[ChangeKind, ...] = ("resources", "prompts")
READ, GET, COMPLETE = "resources/read", "prompts/get", "completion/complete"
SUBSCRIBE, UNSUBSCRIBE = "resources/subscribe", "resources/unsubscribe"
_RESULT_NAMES = {"resources": "resources", "templates": "resourceTemplates", "prompts": "prompts"}
_KEY_PREFIXES = (SCHEME, PREFIX)
_MAX_SUGGESTED = 10


@dataclass(frozen=True, slots=True)
class ListedItem:
    """One item of a listing."""

    key: str
    """What agents call it: a prefixed name, URI or template."""
    own: str
    """What its server calls it."""
    wire: bytes
    """The encoded entry, spliced into answers."""
    needs: tuple[str, ...] = ()
    """The required arguments of a prompt."""


@dataclass(frozen=True, slots=True)
class ServerResources:
    """The resources, templates and prompts of one server."""

    resources: tuple[ListedItem, ...] = ()
    templates: tuple[ListedItem, ...] = ()
    prompts: tuple[ListedItem, ...] = ()
    reads: bool = False
    """Whether it supports reading; unlisted resources may be readable too."""

    def items(self, listing_name: ListName) -> tuple[ListedItem, ...]:
        found: tuple[ListedItem, ...] = getattr(self, listing_name)
        return found


NO_RESOURCES = ServerResources()
Hides = Callable[[str], bool]


def hides_nothing(server: str) -> bool:
    return False


class ResourceDirectory:
    """The resources, templates and prompts of all servers."""

    def __init__(self, page: int, hidden: Callable[[str, str], bool]) -> None:
        """`hidden` tells whether a server's entries that a method reaches are switched off."""
        self._size = max(page, 1)
        self._hidden = hidden
        self._servers: dict[str, ServerResources] = {}
        self.versions: dict[str, int] = dict.fromkeys(KINDS, 0)
        """Counts the changes of each kind."""

    def replace(self, server: str, resources: ServerResources) -> list[ChangeKind]:
        """Set everything of a server; returns the kinds whose listings changed."""
        before = self._servers.pop(server, NO_RESOURCES)
        if resources != NO_RESOURCES:
            self._servers[server] = resources
        changed: list[ChangeKind] = []
        if (before.resources, before.templates) != (resources.resources, resources.templates):
            changed.append("resources")
        if before.prompts != resources.prompts:
            changed.append("prompts")
        for kind in changed:
            self.versions[kind] += 1
        return changed

    def page(
        self, listing_name: ListName, cursor: str | None, *, stateless: bool, hides: Hides = hides_nothing
    ) -> bytes:
        """`hides` tells which servers an agent must not learn of."""
        rows = self._rows(listing_name, hides)
        after = None if cursor is None else decode_cursor(cursor, _KEY_PREFIXES)
        start = 0 if after is None else bisect_right(rows, after, key=attrgetter("key"))
        chunk = rows[start : start + self._size]
        last_key = chunk[-1].key if start + len(chunk) < len(rows) else None
        return encode_page(_RESULT_NAMES[listing_name], (row.wire for row in chunk), last_key, stateless=stateless)

    def _rows(self, listing_name: ListName, hides: Hides) -> list[ListedItem]:
        method = GET if listing_name == "prompts" else READ
        shown = (
            resources.items(listing_name)
            for server, resources in self._servers.items()
            if not self._hidden(server, method) and not hides(server)
        )
        return sorted((row for rows in shown for row in rows), key=attrgetter("key"))

    def prompt(self, name: str, hides: Hides = hides_nothing) -> tuple[str, ListedItem]:
        """A prompt and its server; the server's own name is accepted if only one server has it."""
        matches: list[tuple[str, ListedItem]] = []
        for server, resources in self._servers.items():
            if hides(server):
                continue
            for row in resources.prompts:
                if row.key == name:
                    return server, row
                if row.own == name:
                    matches.append((server, row))
        if len(matches) == 1:
            return matches[0]
        if matches:
            keys = ", ".join(sorted(row.key for _, row in matches)[:_MAX_SUGGESTED])
            raise UnknownPrompt(
                f"{len(matches)} servers have a prompt named {name[:200]!r}.", hint=f"Specify one: {keys}."
            )
        near = nearest(name[:200], [row.key for row in self._rows("prompts", hides)])
        hint = f"Did you mean {', '.join(near)}?" if near else "List the prompts to see what there is."
        raise UnknownPrompt(f"There is no prompt named {name[:200]!r}.", hint=hint, data={"nearest": near})

    def resource(self, uri: str, known: Iterable[str], hides: Hides = hides_nothing) -> tuple[str, str]:
        """Server and own URI of a resource or template; the own URI is accepted if only one server has it.

        `known` are all enabled servers, including those that have listed nothing yet.
        """
        if (parsed := parse_resource_uri(uri)) is not None and (server := _match_server(parsed[0], known)) is not None:
            return server, parsed[1]
        servers = [(server, its) for server, its in self._servers.items() if not hides(server)]
        listing = [server for server, its in servers if any(row.own == uri for row in (*its.resources, *its.templates))]
        fitting = [server for server, its in servers if any(may_match_template(row.own, uri) for row in its.templates)]
        reading = [server for server, its in servers if its.reads]
        for found in (listing, fitting, reading):
            if len(found) == 1:
                return found[0], uri
            if found:
                uris = ", ".join(resource_uri(server, uri[:200]) for server in sorted(found)[:_MAX_SUGGESTED])
                raise UnknownResource(
                    f"{len(found)} servers may have the resource {uri[:200]!r}.",
                    hint=f"Specify one: {uris}.",
                    data={"uri": uri[:1000]},
                )
        raise UnknownResource(
            f"There is no resource {uri[:200]!r}: no external server that is on has it.",
            hint="List the resources to see what there is.",
            data={"uri": uri[:1000]},
        )


def _match_server(word: str, known: Iterable[str]) -> str | None:
    """The server of that name; clients may have lower-cased the host of a URI."""
    names = list(known)
    if word in names:
        return word
    alike = [name for name in names if name.lower() == word.lower()]
    return alike[0] if len(alike) == 1 else None
