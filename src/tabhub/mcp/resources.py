"""Resources and prompts of external servers, for every MCP endpoint: listed together, read and got one by one.

Owns what agents may request besides tools, and which part of an answer they see. A read runs in the engine like a call
of a read-only tool of that server: the same permissions, deadline, cancelling, budget and audit line.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import orjson

from tabhub.calls.engine import Engine
from tabhub.calls.protocols import Caller
from tabhub.core.registry import Entry
from tabhub.core.resource_subscriptions import Subscription
from tabhub.core.resources import (
    COMPLETE,
    GET,
    READ,
    SUBSCRIBE,
    ChangeKind,
    ListName,
    ResourceDirectory,
    ServerResources,
)
from tabhub.core.results.resource_results import as_blocks, completions, from_blocks
from tabhub.core.tools import CallContext, Source, Tool, ToolResult
from tabhub.core.upstream_uris import LONGEST, resource_uri
from tabhub.errors import InvalidParams, UnknownPrompt, UnknownResource, UpstreamError
from tabhub.mcp.subscriptions import ResourceSubscriber, ResourceSubscribers
from tabhub.upstream.calls import encode_result

if TYPE_CHECKING:
    from tabhub.calls.sources.upstream import Upstreams

log = logging.getLogger("tabhub.mcp")

LISTS: Mapping[str, ListName] = {
    "resources/list": "resources",
    "resources/templates/list": "templates",
    "prompts/list": "prompts",
}
PASSED = frozenset({READ, GET, COMPLETE})
"""Methods that a server answers."""
_WORDS = {
    READ: "Read a resource of {}",
    GET: "Get a prompt of {}",
    COMPLETE: "Complete an argument for {}",
    SUBSCRIBE: "Hear of changes of a resource of {}",
}
_NO_SUCH = (-32002, -32602)
"""Error codes of servers for what they do not have."""
_LONGEST_NAME = 1_000
_MOST_ARGUMENTS = 200


@dataclass(frozen=True, slots=True)
class Wanted:
    """A request that a server answers."""

    method: str
    server: str
    params: dict[str, Any]
    """With the server's own names."""
    asked: str
    """The name or URI, as the agent gave it."""

    @property
    def followed(self) -> Subscription:
        """The resource as a subscription."""
        return Subscription(self.server, self.params["uri"], self.asked)

    @property
    def prefixed(self) -> bool:
        """Whether the agent used the hub's name for a resource."""
        return self.method == READ and self.params["uri"] != self.asked


class _Whole(ToolResult):
    """An answer as it came; one that the engine cut is another object."""

    answer: dict[str, Any] = msgspec.field(default_factory=dict)


class UpstreamResources:
    """Resources and prompts of all external servers."""

    def __init__(self, engine: Engine, is_off: Callable[[Tool], bool], upstream: Upstreams | None) -> None:
        """Without `upstream` there are no external servers, as at a relay."""
        self._engine = engine
        self._is_off = is_off
        self._upstream = upstream
        self._entries: dict[tuple[str, str], Entry] = {}
        self.following = ResourceSubscribers(
            engine.limits, upstream.subscriptions_changed if upstream is not None else lambda _server: None
        )
        self._before: list[tuple[ResourceSubscriber, Sequence[str]]] = []
        self.book = ResourceDirectory(
            engine.limits.list_page, lambda server, method: is_off(self._entry(server, method).tool)
        )
        if upstream is not None:
            upstream.share_with(self)

    def versions(self) -> dict[str, int]:
        """Counts the changes of each list."""
        return {"tools": self._engine.registry.version, **self.book.versions}

    def replace(self, server: str, resources: ServerResources) -> list[ChangeKind]:
        """Set what a server has. Returns the lists that changed."""
        return self.book.replace(server, resources)

    def resource_updated(self, server: str, uri: str) -> None:
        self.following.updated(server, uri)

    def subscribed_uris(self, server: str) -> frozenset[str]:
        return self.following.book.uris(server)

    def forget(self, server: str) -> None:
        """A server was removed."""
        for method in _WORDS:
            self._entries.pop((server, method), None)

    def page(self, method: str, params: Mapping[str, Any], *, stateless: bool) -> bytes:
        """One page of a list."""
        cursor = params.get("cursor")
        if cursor is not None and not isinstance(cursor, str):
            raise InvalidParams("`cursor` must be a string.")
        return self.book.page(LISTS[method], cursor, stateless=stateless)

    # what is asked for

    def find(self, method: str, params: Mapping[str, Any]) -> Wanted:
        """Which server answers a request; an error if it is invalid."""
        if method in (READ, SUBSCRIBE):
            uri = _text(params, "uri", LONGEST)
            server, own = self.book.resource(uri, self._servers())
            return Wanted(method, server, {"uri": own}, uri)
        if method == GET:
            name = _text(params, "name", _LONGEST_NAME)
            server, prompt = self.book.prompt(name)
            given = _texts(params, "arguments")
            if missing := [need for need in prompt.needs if need not in given]:
                raise InvalidParams(
                    f"The prompt {name[:200]} needs the argument {', '.join(missing)[:500]}, which is not there.",
                    hint="Nothing was sent. prompts/list says what each argument is.",
                )
            return Wanted(GET, server, {"name": prompt.own} | ({"arguments": given} if given else {}), name)
        return self._completion(params)

    def _completion(self, params: Mapping[str, Any]) -> Wanted:
        ref, argument, context = params.get("ref"), params.get("argument"), params.get("context")
        if not isinstance(ref, dict) or ref.get("type") not in ("ref/prompt", "ref/resource"):
            raise InvalidParams("`ref` must be an object with the type ref/prompt or ref/resource.")
        if not isinstance(argument, dict) or (context is not None and not isinstance(context, dict)):
            raise InvalidParams("`argument`, and `context` where it is given, must be objects.")
        if ref["type"] == "ref/prompt":
            asked = _text(ref, "name", _LONGEST_NAME)
            server, prompt = self.book.prompt(asked)
            meant = {"type": ref["type"], "name": prompt.own}
        else:
            asked = _text(ref, "uri", LONGEST)
            server, own = self.book.resource(asked, self._servers())
            meant = {"type": ref["type"], "uri": own}
        typed = {"name": _text(argument, "name", _LONGEST_NAME), "value": _text(argument, "value", LONGEST, least=0)}
        given = _texts(context or {}, "arguments")
        more = {"context": {"arguments": given}} if given else {}
        return Wanted(COMPLETE, server, {"ref": meant, "argument": typed, **more}, asked)

    def follow(self, follower: ResourceSubscriber, uris: Sequence[str]) -> list[str]:
        """Subscribe without asking the servers; returns the URIs that can be subscribed to."""
        honoured = []
        for uri in uris:
            try:
                wanted = self.find(SUBSCRIBE, {"uri": uri})
                if not self._is_off(self._entry(wanted.server, SUBSCRIBE).tool):
                    follower.add(wanted.followed)
                    honoured.append(uri)
            except (UnknownResource, InvalidParams) as error:
                log.info("a resource is not followed: %s", error.message)
        return honoured

    def follow_again(self, follower: ResourceSubscriber, uris: Sequence[str]) -> None:
        """Resume subscriptions from before a restart, once the servers are known."""
        if uris:
            self._before.append((follower, uris))

    def catch_up(self) -> None:
        """Resume what `follow_again` was given: the servers are known."""
        before, self._before = self._before, []
        for follower, uris in before:
            if not follower.closed:
                self.follow(follower, uris)

    def _servers(self) -> list[str]:
        return [] if self._upstream is None else self._upstream.enabled_servers()

    # the answer

    async def answer(self, caller: Caller, wanted: Wanted, *, stateless: bool) -> bytes:
        """The encoded result of a request."""
        entry = self._entry(wanted.server, wanted.method)
        result = await self._engine.call(caller, wanted.method, wanted.params, entry)
        if isinstance(result, _Whole):
            answer = result.answer
        else:
            answer = from_blocks(wanted.method, orjson.loads(result.payload), wanted.params.get("uri", ""))
        if wanted.method == READ:
            _cached(answer, stateless=stateless)
        if wanted.prefixed:
            for content in answer["contents"]:
                if isinstance(content.get("uri"), str):
                    content["uri"] = resource_uri(wanted.server, content["uri"])
        return encode_result(answer)

    def _entry(self, server: str, method: str) -> Entry:
        found = self._entries.get((server, method))
        if found is None:
            tool = Tool(
                method,
                Source("upstream", server),
                _WORDS[method].format(server) + ".",
                {"type": "object"},
                annotations={"readOnlyHint": True},
            )
            found = self._entries[server, method] = Entry(tool, partial(self._run, server, method))
        return found

    async def _run(self, server: str, method: str, ctx: CallContext, params: dict[str, Any]) -> ToolResult:
        upstream = self._upstream
        connection = upstream.pool.get(upstream.get(server).name) if upstream is not None else None
        if upstream is None or connection is None:  # it is being removed
            raise UpstreamError(f"The server {server} is just being changed.", hint="Ask again.")
        if method == COMPLETE:
            session = await connection.ready()
            if not session.supports_completions:
                return _Whole(b"{}", answer={"completion": {"values": []}})
            return _Whole(
                b"{}", answer=completions(await upstream.calls.request(connection, method, ctx, dict(params)))
            )
        if method == SUBSCRIBE:
            session = await connection.ready()
            if not session.supports_subscriptions:
                raise UpstreamError(
                    f"The server {server} does not tell of changes of its resources.", hint="Read it again when needed."
                )
            # In the stateless era one stream reports all; it is opened again when the set of subscriptions changes.
            if session.modern or params["uri"] in connection.subscriptions.subscribed:
                return _Whole(b"{}")
        try:
            answer = await upstream.calls.request(connection, method, ctx, dict(params))
        except UpstreamError as error:
            if (error.data or {}).get("upstream", {}).get("code") not in _NO_SUCH:
                raise
            if method == GET:
                raise UnknownPrompt(_ended(error), hint="Check the prompt's name and arguments.") from None
            uri = params["uri"][:1000]
            raise UnknownResource(_ended(error), hint="List the resources anew.", data={"uri": uri}) from None
        if method == SUBSCRIBE:
            connection.subscriptions.subscribed.add(params["uri"])
            return _Whole(b"{}")
        return _Whole(encode_result(as_blocks(method, answer)), answer=answer)


def _cached(answer: dict[str, Any], *, stateless: bool) -> None:
    """Cache hints are part of the stateless revision only; what a hub passes on is private."""
    ttl = answer.pop("ttlMs", 0)
    answer.pop("cacheScope", None)
    if stateless:
        answer |= {"ttlMs": ttl if isinstance(ttl, int) and ttl >= 0 else 0, "cacheScope": "private"}


def _ended(error: UpstreamError) -> str:
    return error.message.rstrip(". ") + "."


def _text(params: Mapping[str, Any], key: str, longest: int, least: int = 1) -> str:
    value = params.get(key)
    if not isinstance(value, str) or not least <= len(value) <= longest:
        raise InvalidParams(f"`{key}` must be a text of {least} to {longest} characters.")
    return value


def _texts(params: Mapping[str, Any], key: str) -> dict[str, str]:
    given = params.get(key)
    if given is None:
        return {}
    if not isinstance(given, dict) or len(given) > _MOST_ARGUMENTS:
        raise InvalidParams(f"`{key}` must be an object of at most {_MOST_ARGUMENTS} texts.")
    for name, value in given.items():
        if not isinstance(value, str):
            raise InvalidParams(f"`{key}.{name[:100]}` must be a text.")
    return given
