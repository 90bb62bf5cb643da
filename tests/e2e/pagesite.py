"""A web site whose pages offer tools, and one of its tabs as an agent with the official client sees it.

The pages are those of the extension's tests, with the npm packages they use, and some that count what they did.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from mcp.client import Client
from mcp.types import CallToolResult, TextContent, Tool

from tests.e2e.site import Site
from tests.extension.pagesite import PACKAGES, PAGES, TYPES
from tests.harness.waiting import eventually

ERAS = ("legacy", "2026-07-28")
WEBMCP = ("add", "where", "fails", "hangs", "asks", "huge")
"""The tools of webmcp.html."""
SHOP = ("price", "count", "waits", "order")
"""The tools of transports.html."""
BETWEEN_LISTS = 0.15
"""Seconds: listing all tools takes 30 ms of CPU time, and a page's changes are collected for half a second."""

# A frame that obeys messages of its parent page, whose scripts cannot reach into it.
DRIVEN = '<script>addEventListener("message", ({ data }) => { if (data.run) eval(data.run); })</script>'
FRAMED = """<!doctype html><title>Framed</title><script>
const run = (code) => frames[0].postMessage({ run: code }, "*");
document.write(`<iframe allow="tools" src="http://localhost:${location.port}/driven"></iframe>`);
</script>"""
COUNTED = """<!doctype html><title>Counted</title><script>
const wait = (name) => async () => {
  await fetch(`/hit/${name}${location.search.slice(1)}`);
  if (location.search) await new Promise(() => {});
  return `done at ${location.href}`;
};
document.modelContext.registerTool({ name: "order", description: "Orders.", execute: wait("order") });
const annotations = { readOnlyHint: true };
document.modelContext.registerTool({ name: "look", description: "Looks.", annotations, execute: wait("look") });
</script>"""

MEMBER = """<!doctype html><title>Nobody</title><script>
const who = async () => (await fetch("/me")).text();
const asked = who().then((name) => {
  if (!name) return;
  document.title = "Member";
  document.modelContext.registerTool({ name: "me", description: "Who is here.", execute: who });
});
</script>"""
MANY = """<!doctype html><title>Many</title><script>
for (let n = 0; n < 120; n++) {
  document.modelContext.registerTool({ name: `t${n}`, description: "One of many.", execute: () => location.host });
}
</script>"""
FLOOD = f"""{MANY}<body><script>
for (let n = 0; n < 5; n++) {{
  const frame = document.createElement("iframe");
  frame.allow = "tools";
  frame.src = `http://s${{n}}.localhost:${{location.port}}/many`;
  document.body.append(frame);
}}
</script>"""
OWN = {"/many": MANY, "/flood": FLOOD, "/framed": FRAMED, "/counted": COUNTED, "/member": MEMBER}


class PageSite(Site):
    """The site at 127.0.0.1 and, as another origin, at localhost."""

    cached_paths = ("/npm/",)
    """A page that uses packages requests a hundred modules."""

    def page(self, path: str) -> tuple[str | bytes, str] | None:
        """A file or a generated page, and its type."""
        if path == "/driven":
            return (PAGES / "webmcp.html").read_text() + DRIVEN, TYPES[".html"]
        if path in OWN:
            return OWN[path], TYPES[".html"]
        kind, _, name = path[1:].partition("/")
        folder = {"pages": PAGES, "npm": PACKAGES}.get(kind)
        file = folder / name if folder is not None else None
        if file is None or not file.is_file():
            return None
        return file.read_bytes(), TYPES.get(file.suffix, "text/plain")


def prefix(origin: str) -> str:
    """How the names of a site's tools begin."""
    parts = urlsplit(origin)
    return f"website_tool_{(parts.hostname or '').replace('.', '_')}_{parts.port}"


def result_text(result: CallToolResult) -> str:
    """The first text of a result."""
    (first, *_) = result.content
    assert isinstance(first, TextContent)
    return first.text


async def data(client: Client, name: str, **arguments: Any) -> dict[str, Any]:
    """The structured content of a tool that must succeed."""
    result = await client.call_tool(name, arguments)
    assert not result.is_error, result_text(result)
    assert result.structured_content is not None
    return dict(result.structured_content)


async def of_site(client: Client, origin: str) -> dict[str, Tool]:
    """All tools of a site, as the hub lists them now."""
    listed = (await client.list_tools(cache_mode="refresh")).tools
    return {tool.name: tool for tool in listed if (tool.meta or {}).get("tabhub/page", {}).get("origin") == origin}


@dataclass(slots=True)
class PageTab:
    """A tab with a page that offers tools, as an agent sees it."""

    client: Client
    tab_id: int
    origin: str
    listed: dict[str, Tool] = field(default_factory=dict)
    """The tools when they were last as expected."""

    @classmethod
    async def open(cls, client: Client, url: str, origin: str | None = None, **more: Any) -> PageTab:
        """Open a page; its tools belong to its own origin, or to that of a frame in it."""
        opened = await data(client, "browser_open_tab", url=url, **more)
        parts = urlsplit(url)
        return cls(client, opened["tabId"], origin or f"{parts.scheme}://{parts.netloc}")

    async def close(self) -> None:
        await data(self.client, "browser_close_tab", tabId=self.tab_id)

    async def run(self, code: str) -> Any:
        """The result of a script in the page."""
        return (await data(self.client, "browser_execute_script", tabId=self.tab_id, code=code))["value"]

    async def tools(self) -> dict[str, Tool]:
        """The tools of this tab, by the page's own names."""
        found = {}
        for name, tool in (await of_site(self.client, self.origin)).items():
            page = (tool.meta or {})["tabhub/page"]
            if page.get("tabId") == self.tab_id:
                start = f"{prefix(self.origin)}_tab{page['tab']}_"
                assert name.startswith(start)
                found[name.removeprefix(start)] = tool
        return found

    async def lists(self, *names: str, via: str = "", **descriptions: str) -> dict[str, Tool]:
        """Wait until exactly these tools are listed, and return them; `descriptions` are texts they must contain.

        `via` is how the page offers them in the end: one that does so in two ways may first be seen with the other.
        """
        seen: dict[str, Tool] = {}

        async def there() -> bool:
            seen.clear()
            seen.update(await self.tools())
            answer = all(text in (seen[name].description or "") for name, text in descriptions.items() if name in seen)
            offered = {(tool.meta or {})["tabhub/page"]["via"] for tool in seen.values()}
            return answer and seen.keys() == set(names) and (not via or offered <= {via})

        try:
            await eventually(there, every=BETWEEN_LISTS)
        except TimeoutError:
            listed = {name: (tool.description, (tool.meta or {})["tabhub/page"]["via"]) for name, tool in seen.items()}
            wanted = f"{names} {via} {descriptions or ''}"
            raise AssertionError(f"expected the tools {wanted}, but listed are {listed}") from None
        self.listed = seen
        return seen

    async def call(self, tool: str, **arguments: Any) -> CallToolResult:
        """Call a listed tool of this tab."""
        return await self.client.call_tool(self.listed[tool].name, arguments)
