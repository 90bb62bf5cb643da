"""Resources and prompts of external servers and pages, for every MCP endpoint: listed together, requested one by one.

Owns what agents may request besides tools, and which part of an answer they see. A read runs in the engine like a call
of a read-only tool of that server: the same permissions, deadline, cancelling, budget and audit line.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import msgspec
import orjson

from tabhub.calls.engine import Engine
from tabhub.calls.protocols import Caller
from tabhub.core.listing.catalogue import HiddenFrom, nothing_hidden
from tabhub.core.registry import Entry
from tabhub.core.resources import COMPLETE, GET, READ, SUBSCRIBE, Hides, ListName, ResourceDirectory, hides_nothing
from tabhub.core.results.resource_results import as_blocks, completions, from_blocks
from tabhub.core.tools import CallContext, Source, Tool, ToolResult
from tabhub.core.upstream_uris import LONGEST, resource_uri
from tabhub.errors import CommandFailed, InvalidParams, UnknownPrompt, UnknownResource, UpstreamError
from tabhub.mcp.subscriptions import ResourceSubscriber, ResourceSubscribers, Subscription
from tabhub.upstream.calls import encode_result

if TYPE_CHECKING:
    from tabhub.calls.sources.page_resources import PageResources
    from tabhub.calls.sources.upstream import Upstreams

log = logging.getLogger("tabhub.mcp")

LISTS: Mapping[str, ListName] = {
    "resources/list": "resources",
    "resources/templates/list": "templates",
    "prompts/list": "prompts",
}
FORWARDED = frozenset({READ, GET, COMPLETE})
"""Methods that a server answers."""
_DESCRIPTIONS = {
    READ: "Read a resource of {}",
    GET: "Get a prompt of {}",
    COMPLETE: "Complete an argument for {}",
    SUBSCRIBE: "Subscribe to a resource of {}",
}
_NO_SUCH = (-32002, -32602)
"""Error codes of servers for what they do not have."""
_MAX_NAME = 1_000
_MAX_ARGUMENTS = 200


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
    def subscription(self) -> Subscription:
        return Subscription(self.server, self.params["uri"], self.asked)


class _Whole(ToolResult):
    """An answer as it came; one that the engine cut is another object."""

    answer: dict[str, Any] = msgspec.field(default_factory=dict)


@lru_cache(maxsize=1_000)
def request_tool(server: str, method: str) -> Tool:
    """The tool that a request for a server's resources or prompts is checked and recorded as."""
    return Tool(
        method,
        Source("upstream", server),
        _DESCRIPTIONS[method].format(server) + ".",
        {"type": "object"},
        annotations={"readOnlyHint": True},
    )


@lru_cache(maxsize=1_000)
def page_request_tool(origin: str, method: str) -> Tool:
    """The same for a page's, which is under the rules of its site like its tools."""
    description = f"{_DESCRIPTIONS[method].format(origin)}."
    return Tool(method, Source("page", origin), description, {"type": "object"}, annotations={"readOnlyHint": True})


@dataclass(eq=False)
class UpstreamResources:
    """Resources and prompts of all external servers."""

    engine: Engine
    is_off: Callable[[Tool], bool]
    directory: ResourceDirectory
    subscribers: ResourceSubscribers
    upstream: Upstreams | None
    """None where there are no external servers, as at a relay."""
    pages: PageResources | None = None
    hidden: HiddenFrom = nothing_hidden

    def versions(self) -> dict[str, int]:
        return {"tools": self.engine.registry.version, **self.directory.versions}

    def page(self, method: str, params: Mapping[str, Any], *, stateless: bool, agent: str | None) -> bytes:
        cursor = params.get("cursor")
        if cursor is not None and not isinstance(cursor, str):
            raise InvalidParams("`cursor` must be a string.")
        return self.directory.page(LISTS[method], cursor, stateless=stateless, hides=self._hides(agent))

    def _hides(self, agent: str | None) -> Hides:
        """Which pages an agent must not learn of."""
        hidden = self.hidden(agent)
        if hidden is None:
            return hides_nothing
        return lambda server: self._is_page(server) and hidden(page_request_tool(server, READ))

    def _is_page(self, server: str) -> bool:
        return self.pages is not None and server in self.pages.origins and server not in self._servers()

    def find(self, method: str, params: Mapping[str, Any], agent: str | None) -> Wanted:
        """Which server or page answers a request; an error if it is invalid."""
        hides = self._hides(agent)
        if method in (READ, SUBSCRIBE):
            uri = _text(params, "uri", LONGEST)
            server, own = self.directory.resource(uri, self._known(), hides)
            return Wanted(method, server, {"uri": own}, uri)
        if method == GET:
            name = _text(params, "name", _MAX_NAME)
            server, prompt = self.directory.prompt(name, hides)
            given = _texts(params, "arguments")
            if missing := [need for need in prompt.needs if need not in given]:
                raise InvalidParams(
                    f"The prompt {name[:200]} needs the argument {', '.join(missing)[:500]}, which is not there.",
                    hint="Nothing was sent. prompts/list says what each argument is.",
                )
            return Wanted(GET, server, {"name": prompt.own} | ({"arguments": given} if given else {}), name)
        return self._completion(params, hides)

    def _completion(self, params: Mapping[str, Any], hides: Hides) -> Wanted:
        ref, argument, context = params.get("ref"), params.get("argument"), params.get("context")
        if not isinstance(ref, dict) or ref.get("type") not in ("ref/prompt", "ref/resource"):
            raise InvalidParams("`ref` must be an object with the type ref/prompt or ref/resource.")
        if not isinstance(argument, dict) or (context is not None and not isinstance(context, dict)):
            raise InvalidParams("`argument`, and `context` where it is given, must be objects.")
        if ref["type"] == "ref/prompt":
            asked = _text(ref, "name", _MAX_NAME)
            server, prompt = self.directory.prompt(asked, hides)
            meant = {"type": ref["type"], "name": prompt.own}
        else:
            asked = _text(ref, "uri", LONGEST)
            server, own = self.directory.resource(asked, self._known(), hides)
            meant = {"type": ref["type"], "uri": own}
        typed = {"name": _text(argument, "name", _MAX_NAME), "value": _text(argument, "value", LONGEST, least=0)}
        given = _texts(context or {}, "arguments")
        more = {"context": {"arguments": given}} if given else {}
        return Wanted(COMPLETE, server, {"ref": meant, "argument": typed, **more}, asked)

    def subscribe(self, subscriber: ResourceSubscriber, uris: Sequence[str], agent: str | None) -> list[str]:
        """Subscribe without asking the servers; returns the URIs that can be subscribed to."""
        accepted, hides = [], self.engine.permission.visibility(agent).hides
        for uri in uris:
            try:
                wanted = self.find(SUBSCRIBE, {"uri": uri}, agent)
                if self._is_page(wanted.server):
                    continue  # pages are read again when needed
                if not self.is_off(request_tool(wanted.server, SUBSCRIBE)) and not hides(wanted.params["uri"]):
                    subscriber.add(wanted.subscription)
                    accepted.append(uri)
            except (UnknownResource, InvalidParams) as error:
                log.info("no subscription to a resource: %s", error.message)
        return accepted

    def _known(self) -> list[str]:
        return [*self._servers(), *(self.pages.origins if self.pages is not None else ())]

    def _servers(self) -> list[str]:
        return [] if self.upstream is None else self.upstream.enabled_servers()

    async def answer(self, caller: Caller, wanted: Wanted, *, stateless: bool) -> bytes:
        server, method = wanted.server, wanted.method
        if self._is_page(server):
            entry = Entry(page_request_tool(server, method), partial(self._run_in_page, server, method))
        else:
            entry = Entry(request_tool(server, method), partial(self._run, server, method))
        result = await self.engine.call(caller, method, wanted.params, entry)
        if isinstance(result, _Whole):
            answer = result.answer
        else:
            answer = from_blocks(method, orjson.loads(result.payload), wanted.params.get("uri", ""))
        if method == READ:
            _set_cache_hints(answer, stateless=stateless)
            if wanted.params["uri"] != wanted.asked:  # the agent used the hub's name
                for content in answer["contents"]:
                    if isinstance(content.get("uri"), str):
                        content["uri"] = resource_uri(server, content["uri"])
        return encode_result(answer)

    async def _run_in_page(self, origin: str, method: str, ctx: Any, params: dict[str, Any]) -> ToolResult:
        assert self.pages is not None  # noqa: S101 - it is a page's
        if method == COMPLETE:
            return _Whole(b"{}", answer={"completion": {"values": []}})
        if method == SUBSCRIBE:
            raise CommandFailed(
                "Resources of pages have no subscriptions.", hint="Read the resource again when needed."
            )
        answer = await self.pages.request(origin, method, params, ctx)
        return _Whole(encode_result(as_blocks(method, answer)), answer=answer)

    async def _run(self, server: str, method: str, ctx: CallContext, params: dict[str, Any]) -> ToolResult:
        upstream = self.upstream
        connection = upstream.pool.get(upstream.get(server).name) if upstream is not None else None
        if upstream is None or connection is None:  # it is being removed
            raise UpstreamError(f"The server {server} is being changed.", hint="Try again.")
        if method == COMPLETE:
            session = await connection.ready()
            if not session.supports_completions:
                return _Whole(b"{}", answer={"completion": {"values": []}})
            answer = completions(await upstream.calls.request(connection, method, ctx, dict(params)))
            return _Whole(b"{}", answer=answer)
        if method == SUBSCRIBE:
            session = await connection.ready()
            if not session.supports_subscriptions:
                raise UpstreamError(
                    f"The server {server} has no subscriptions.", hint="Read the resource again when needed."
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
                raise UnknownPrompt(_sentence(error), hint="Check the prompt's name and arguments.") from None
            uri = params["uri"][:1000]
            raise UnknownResource(_sentence(error), hint="List the resources again.", data={"uri": uri}) from None
        if method == SUBSCRIBE:
            connection.subscriptions.subscribed.add(params["uri"])
            return _Whole(b"{}")
        return _Whole(encode_result(as_blocks(method, answer)), answer=answer)


def _set_cache_hints(answer: dict[str, Any], *, stateless: bool) -> None:
    """Cache hints are part of the stateless revision only; what a hub passes on is private."""
    ttl = answer.pop("ttlMs", 0)
    answer.pop("cacheScope", None)
    if stateless:
        answer |= {"ttlMs": ttl if isinstance(ttl, int) and ttl >= 0 else 0, "cacheScope": "private"}


def _sentence(error: UpstreamError) -> str:
    return error.message.rstrip(". ") + "."


def _text(params: Mapping[str, Any], key: str, longest: int, least: int = 1) -> str:
    value = params.get(key)
    if not isinstance(value, str) or not least <= len(value) <= longest:
        raise InvalidParams(f"`{key}` must be a string of {least} to {longest} characters.")
    return value


def _texts(params: Mapping[str, Any], key: str) -> dict[str, str]:
    given = params.get(key)
    if given is None:
        return {}
    if not isinstance(given, dict) or len(given) > _MAX_ARGUMENTS:
        raise InvalidParams(f"`{key}` must be an object with at most {_MAX_ARGUMENTS} strings.")
    for name, value in given.items():
        if not isinstance(value, str):
            raise InvalidParams(f"`{key}.{name[:100]}` must be a string.")
    return given
