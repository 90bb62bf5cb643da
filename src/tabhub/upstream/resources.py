"""Resources, resource templates and prompts of a server, listed while it is connected.

Owns which fields of these lists are used, their bounds, and when they are requested. A server whose lists fail or never
arrive keeps its tools, and the last known lists stay.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import orjson

from tabhub.core.definitions import checked_name, shown_annotations, shown_text
from tabhub.core.resources import KINDS, NO_RESOURCES, ListedItem, ListName, ServerResources
from tabhub.core.upstream_names import upstream_name
from tabhub.core.upstream_uris import LONGEST, resource_uri, template_uri
from tabhub.errors import BadInput, TabhubError
from tabhub.limits import Limits

if TYPE_CHECKING:
    from tabhub.upstream.sdk_session import SdkSession

log = logging.getLogger("tabhub.upstream")

_COMMON = ("name", "title", "description", "icons", "_meta")
_KEPT: Mapping[ListName, tuple[str, ...]] = {
    "resources": (*_COMMON, "uri", "mimeType", "size", "annotations"),
    "templates": (*_COMMON, "uriTemplate", "mimeType", "annotations"),
    "prompts": (*_COMMON, "arguments"),
}
_NAMED: Mapping[ListName, tuple[str, Callable[[str, str], str], int]] = {
    "resources": ("uri", resource_uri, LONGEST),
    "templates": ("uriTemplate", template_uri, LONGEST),
    "prompts": ("name", upstream_name, 500),
}
METHODS: Mapping[ListName, tuple[str, str]] = {
    "resources": ("resources/list", "resources"),
    "templates": ("resources/templates/list", "resourceTemplates"),
    "prompts": ("prompts/list", "prompts"),
}
"""The method that requests each list, and the key of the answer."""
_MAX_TEXT = 20_000
_TITLE = 200
_LARGEST = 32_000
_PROBLEMS = 5
_MIN_INTERVAL = 0.2
"""Seconds between two rounds: a server may say as often as it likes that a list has changed."""


def read_items(
    server: str, listing_name: ListName, listing: Iterable[Any], limits: Limits
) -> tuple[tuple[ListedItem, ...], list[str]]:
    """The usable items of a listing, and the problems of the others; of two with the same name the first is kept."""
    key, name_of, longest = _NAMED[listing_name]
    kept: dict[str, ListedItem] = {}
    problems: list[str] = []
    size = 0
    for raw in listing:
        own = raw.get(key) if isinstance(raw, Mapping) else None
        if not isinstance(raw, Mapping) or not isinstance(own, str) or not 0 < len(own) <= longest:
            problems.append(f"One of its {listing_name} has no usable {key} and was skipped.")
            continue
        if own in kept:
            continue
        if len(kept) >= limits.upstream_offers or size > limits.upstream_answer:
            problems.append(f"It lists more {listing_name} than the maximum; only {len(kept)} are used.")
            break
        try:
            entry = {**_clean_entry(raw, _KEPT[listing_name]), key: name_of(server, checked_name(own, key))}
            wire = orjson.dumps(entry)
        except BadInput as error:
            problems.append(f"{own[:100]!r} in its {listing_name} was skipped: {error.message}.")
            continue
        except (TypeError, ValueError) as error:  # numbers or texts that are no JSON for others
            problems.append(f"{own[:100]!r} in its {listing_name} was skipped: {error}.")
            continue
        if len(wire) > _LARGEST:
            problems.append(
                f"{own[:100]!r} in its {listing_name} was skipped: the entry is larger than {_LARGEST} bytes."
            )
            continue
        size += len(wire)
        kept[own] = ListedItem(entry[key], own, wire, _required_arguments(entry.get("arguments")))
    return tuple(kept.values()), problems[:_PROBLEMS]


def _clean_entry(raw: Mapping[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    """The fields that are passed on; BadInput if a name in them has hidden characters."""
    entry = shown_annotations({key: raw[key] for key in keys if raw.get(key) is not None})
    for key, most in (("name", _TITLE), ("title", _TITLE), ("description", _MAX_TEXT)):
        if isinstance(entry.get(key), str):
            entry[key] = shown_text(entry[key], most)
    arguments = raw.get("arguments")
    for argument in arguments if "arguments" in entry and isinstance(arguments, list) else ():
        if isinstance(argument, Mapping):
            checked_name(str(argument.get("name")), "argument")
    return entry


def _required_arguments(arguments: Any) -> tuple[str, ...]:
    listed = [each for each in arguments if isinstance(each, Mapping)] if isinstance(arguments, list) else []
    return tuple(str(each.get("name")) for each in listed if each.get("required") is True)


class ResourceLists:
    """The resources, templates and prompts of one server, kept up to date while it is connected."""

    def __init__(self, server: str, limits: Limits, changed: Callable[[], None]) -> None:
        self._server = server
        self._limits = limits
        self._changed = changed
        self._pending: set[ListName] = set()
        self._wake = asyncio.Event()
        self._problems: dict[ListName, tuple[str, ...]] = {}
        self.current: ServerResources = NO_RESOURCES

    @property
    def problems(self) -> tuple[str, ...]:
        return tuple(trouble for listing_name in METHODS for trouble in self._problems.get(listing_name, ()))

    def refresh(self, kind: str) -> None:
        if kind in KINDS:
            self._pending |= {"prompts"} if kind == "prompts" else {"resources", "templates"}
            self._wake.set()

    async def run(self, session: SdkSession) -> None:
        """Request the lists, and again whenever they change, for as long as the connection lasts."""
        self._pending = set(METHODS)
        while True:
            requested, self._pending = self._pending, set()
            self._wake.clear()
            for listing_name in METHODS:
                if listing_name in requested:
                    await self._list(session, listing_name)
            await asyncio.sleep(_MIN_INTERVAL)
            await self._wake.wait()

    async def _list(self, session: SdkSession, listing_name: ListName) -> None:
        try:
            async with asyncio.timeout(self._limits.upstream_connect):
                raw = await session.list_all(*METHODS[listing_name])
            found, problems = await asyncio.to_thread(read_items, self._server, listing_name, raw or (), self._limits)
        except Exception as error:  # noqa: BLE001 - whatever a server does, only this list fails
            reason = error.message if isinstance(error, TabhubError) else f"{type(error).__name__}: {str(error)[:300]}"
            if isinstance(error, TimeoutError):
                reason = f"no answer within {self._limits.upstream_connect:g} s"
            problem = f"Its {listing_name} are not known: {reason}"
            if self._problems.get(listing_name) != (problem,):
                log.warning("external server %s: %s", self._server, problem)
            self._problems[listing_name] = (problem,)
            return
        self._problems[listing_name] = tuple(problems)
        fresh = replace(self.current, **{listing_name: found})  # type: ignore[arg-type]
        if listing_name == "resources":
            fresh = replace(fresh, reads=raw is not None)
        if fresh != self.current:
            self.current = fresh
            self._changed()
