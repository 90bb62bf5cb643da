"""Pages whose libraries change built-in objects: their tools are listed and called as on any other page."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tests.extension.conftest import PAGES, Site
from tests.extension.pagetab import PageTab
from tests.extension.pluginbench import Bench, bench

__all__ = ["bench"]

Opener = Callable[[str], Awaitable[PageTab]]
LIBRARIES = {
    "toJSON of arrays and dates gives text": """
        Array.prototype.toJSON = function () { return "[" + this.join() + "]"; };
        Date.prototype.toJSON = function () { return '"a date"'; };
    """,
    "toJSON of all objects": "Object.prototype.toJSON = function () { return 'an object'; };",
    "members of all objects": """
        for (const name of ["each", "value", "get", "title", "annotations", "signal"])
          Object.prototype[name] = function () { return "from the library"; };
    """,
    "another Promise": "window.Promise = function () { throw new Error('not ready'); };",
    "a changed then": "Promise.prototype.then = Promise.prototype.catch = () => { throw new Error('changed'); };",
    "other methods of arrays": """
        for (const name of ["map", "find", "slice", "push", "flatMap", "some", "filter"])
          Array.prototype[name] = () => { throw new Error(name); };
    """,
    "other methods of maps and objects": """
        for (const name of ["get", "set", "has", "delete", "values"]) Map.prototype[name] = () => null;
        Object.keys = Object.assign = Object.defineProperty = Object.entries = () => { throw new Error("Object"); };
    """,
    "other JSON, events and classes": """
        JSON.stringify = JSON.parse = () => "changed";
        window.Event = window.CustomEvent = window.AbortController = window.DOMException = {};
        EventTarget.prototype.dispatchEvent = EventTarget.prototype.addEventListener = () => {};
    """,
}
OFFER = """
  document.modelContext.registerTool({
    name: "list", description: "Lists.", annotations: { readOnlyHint: true },
    inputSchema: { type: "object", properties: { tags: { type: "array" } }, required: ["tags"] },
    execute: async ({ tags }) => ({ tags, more: [[1], { deep: [2] }], at: new Date(0) }),
  });
"""


@pytest.mark.req("C6")
@pytest.mark.parametrize("library", LIBRARIES)
async def test_page_tools_are_listed_and_called(visit: Opener, library: str) -> None:
    page = await visit("empty.html")
    await page.run(f"(() => {{ {LIBRARIES[library]} {OFFER} }})()")
    (tool,) = (await page.reported("list"))["tools"]
    assert tool["inputSchema"]["required"] == ["tags"]
    assert tool["description"] == "Lists."
    answer = await page.call("list", tags=["a", "b"])
    assert answer["success"], answer
    assert answer["payload"]["structuredContent"] == {
        "tags": ["a", "b"],
        "more": [[1], {"deep": [2]}],
        "at": "1970-01-01T00:00:00.000Z",
    }


@pytest.mark.req("C6")
@pytest.mark.parametrize("library", list(LIBRARIES)[:4])
async def test_plugins_give_their_results(
    bench: Bench, site: Site, monkeypatch: pytest.MonkeyPatch, library: str
) -> None:
    monkeypatch.setitem(PAGES, "/library", ("", f"<title>L</title><script>{LIBRARIES[library]}</script>"))
    await bench.sync(bench.plugin("old", "*://127.0.0.1/*"))
    page = await bench.open(f"{site.url}/library")
    await bench.state("old", "ready", (page.tab, True))
    script = "({ tags: ['a'], more: [[1], { deep: [2] }] })"
    assert await bench.call("old", "give", input={"script": script}) == {"tags": ["a"], "more": [[1], {"deep": [2]}]}
