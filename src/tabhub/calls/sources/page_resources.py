"""Prompts and resources of servers in pages: listed like those of external servers, and requested where they are.

Owns how what a page offers besides tools becomes entries of the directory, and the requests for it. In the table of
page tools each of them is an entry with a `kind`, so the same bounds, origins and checks apply, and a request runs like
a call of a page's tool. A page's "server" in the directory is its origin.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import orjson

from tabhub.calls.engine import Context
from tabhub.calls.sources.page_calls import PageCalls
from tabhub.core.descriptions import ToolLocation, describe, one_line
from tabhub.core.pages.tool_names import PageKey, domain_of, prompt_name
from tabhub.core.pages.tools import PageTool, PageToolTable
from tabhub.core.resources import GET, ChangeKind, ListedItem, ResourceDirectory, ServerResources
from tabhub.core.results.resource_results import valid_answer
from tabhub.core.upstream_uris import may_match_template, resource_uri, template_uri
from tabhub.errors import CommandFailed, UnknownPrompt, UnknownResource


class PageResources:
    """The prompts and resources of all pages."""

    def __init__(
        self,
        pages: PageToolTable,
        calls: PageCalls,
        directory: ResourceDirectory,
        list_changed: Callable[[ChangeKind], None],
    ) -> None:
        self._pages = pages
        self._calls = calls
        self._directory = directory
        self._list_changed = list_changed
        self.origins: set[str] = set()
        """Those whose pages offer any."""

    def publish(self, origin: str) -> None:
        """The pages of an origin have changed."""
        offers = self._offers(origin)
        tabs = len({frame.tab_id for frame in self._pages.frames(origin)})
        listed = _listed(origin, offers.values(), ToolLocation(domain_of(origin), tabs=tabs))
        if offers:
            self.origins.add(origin)
        else:
            self.origins.discard(origin)
        for kind in self._directory.replace(origin, listed):
            self._list_changed(kind)

    async def request(self, origin: str, method: str, params: Mapping[str, Any], ctx: Context) -> dict[str, Any]:
        """The answer of a page to `prompts/get` or `resources/read`."""
        offers = self._offers(origin)
        if method == GET:
            name, arguments = f"prompt:{params['name']}", dict(params.get("arguments", {}))
            if name not in offers:
                raise UnknownPrompt(
                    f"No page of {origin} offers this prompt any longer.", hint="List the prompts again."
                )
        else:
            uri = params["uri"]
            arguments = {"uri": uri}
            name = f"resource:{uri}"
            if name not in offers:
                templates = (n for n, tool in offers.items() if tool.kind == "template")
                fitting = (n for n in templates if may_match_template(n.partition(":")[2], uri))
                if (found := next(fitting, None)) is None:
                    raise UnknownResource(
                        f"No page of {origin} offers this resource.",
                        hint="List the resources again.",
                        data={"uri": uri},
                    )
                name = found
        result = await self._calls.run(PageKey(origin, None, name), None, ctx, arguments)
        answer = await asyncio.to_thread(orjson.loads, result.payload)
        if result.is_error:
            raise CommandFailed(str(answer["content"][0].get("text", "The page failed.")))
        meta = {"_meta": answer["_meta"]} if "_meta" in answer else {}
        return valid_answer(method, {**answer.get("structuredContent", {}), **meta}, params.get("uri", ""))

    def _offers(self, origin: str) -> dict[str, PageTool]:
        frames = self._pages.frames(origin)
        return {tool.name: tool for frame in reversed(frames) for tool in frame.tools.values() if tool.kind is not None}


def _listed(origin: str, offers: Iterable[PageTool], place: ToolLocation) -> ServerResources:
    found: dict[str, list[ListedItem]] = {"prompt": [], "resource": [], "template": []}
    for tool in offers:
        own = tool.name.partition(":")[2]
        title = one_line(tool.title) if tool.title else ""
        entry: dict[str, Any] = {"title": title} if title else {}
        entry["description"] = describe(tool.description, place)
        needs: tuple[str, ...] = ()
        if tool.kind == "prompt":
            key = prompt_name(origin, own)
            arguments = _arguments(tool.input_schema)
            needs = tuple(each["name"] for each in arguments if each["required"])
            entry |= {"name": key, "arguments": arguments}
        else:
            key = resource_uri(origin, own) if tool.kind == "resource" else template_uri(origin, own)
            entry |= {"uri" if tool.kind == "resource" else "uriTemplate": key, "name": title or own}
            if isinstance(mime := tool.annotations.get("mimeType"), str):
                entry["mimeType"] = mime
        found[str(tool.kind)].append(ListedItem(key, own, orjson.dumps(entry), needs))
    return ServerResources(tuple(found["resource"]), tuple(found["template"]), tuple(found["prompt"]))


def _arguments(schema: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The arguments of a prompt, whose schema the extension wrote."""
    required = schema.get("required", ())
    return [
        {"name": name, "required": name in required}
        | ({"description": part["description"]} if isinstance(part, Mapping) and "description" in part else {})
        for name, part in schema.get("properties", {}).items()
    ]
