"""A new plugin's folder: small, complete, working, with a test.

Owns the texts of the two forms: a package as npm knows it (no build step: the adapter is plain JavaScript), and a
Python file with its page side. What is written passes the same checks as every other plugin.
"""

from __future__ import annotations

import json
from pathlib import Path

from tabhub.core import match_patterns as patterns
from tabhub.errors import PluginError
from tabhub.plugins.discovery import load
from tabhub.plugins.model import Plugin, check_name

_ADAPTER = """// Runs in the page itself, with the page's own session: what the person can do here, these tools can.
(() => {
  const adapter = {
    name: %(name)s,
    displayName: %(title)s,

    // Whether the tools can work now; a page that wants the person to sign in says false.
    async isReady() {
      return document.readyState !== "loading";
    },

    tools: [
      {
        name: "read_page",
        async handle() {
          return { title: document.title, address: location.href };
        },
      },
      {
        name: "find_text",
        async handle({ text }, { reportProgress } = {}) {
          const wanted = text.toLowerCase();
          const found = [];
          const blocks = [...document.querySelectorAll("p, li, h1, h2, h3, td")];
          for (const [place, block] of blocks.entries()) {
            if (block.textContent.toLowerCase().includes(wanted)) found.push(block.textContent.trim().slice(0, 300));
            if (place %% 100 === 0) reportProgress?.({ progress: place, total: blocks.length });
          }
          return { found: found.slice(0, 20), count: found.length };
        },
      },
    ],
  };

  // Other plugins of the same page stay as they are.
  const known = globalThis.__openTabs ?? {};
  const others = Object.getOwnPropertyDescriptors(known.adapters ?? {});
  delete others[adapter.name];
  const adapters = Object.defineProperties({}, others);
  adapters[adapter.name] = adapter;
  globalThis.__openTabs = Object.assign({}, known, { adapters });
})();
"""

_TEST = """// Run with: node --test
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import vm from "node:vm";

const read = (path) => readFileSync(new URL(`../${path}`, import.meta.url), "utf8");

function loaded(page) {
  const context = vm.createContext({ location: { href: "https://page.example/" }, ...page });
  vm.runInContext(read("dist/adapter.iife.js"), context);
  return context.__openTabs.adapters[%(name)s];
}

const block = (text) => ({ textContent: text });
const page = {
  document: {
    readyState: "complete",
    title: "A page",
    querySelectorAll: () => [block("One apple"), block("Two pears")],
  },
};

test("every tool that is listed has a handler", () => {
  const listed = JSON.parse(read("dist/tools.json")).tools.map((tool) => tool.name);
  const handled = [...loaded(page).tools].map((tool) => tool.name);
  assert.deepEqual(handled.sort(), listed.sort());
});

test("text is found whatever its case", async () => {
  const tool = loaded(page).tools.find((each) => each.name === "find_text");
  const answer = await tool.handle({ text: "APPLE" }, {});
  assert.equal(answer.count, 1);
  assert.equal(answer.found[0], "One apple");
});

test("a page that is still loading is not ready", async () => {
  assert.equal(await loaded(page).isReady(), true);
  assert.equal(await loaded({ document: { ...page.document, readyState: "loading" } }).isReady(), false);
});
"""

_PLUGIN_PY = '''"""What agents can do on the site; the page side is page.js."""

from tabhub.plugins.author import define

plugin = define(
    name=%(name)s,
    display_name=%(title)s,
    description=%(words)s,
    url_patterns=[%(pattern)s],
    page="page.js",
)


@plugin.tool(read_only=True)
def read_page() -> None:
    """Tells the title and address of the page."""


@plugin.tool(properties={"text": {"type": "string", "minLength": 1}}, required=["text"], read_only=True)
def find_text() -> None:
    """Finds the paragraphs of the page that hold a text."""
'''

_PAGE_JS = """// Runs in the page itself. `plugin`, `ToolError`, `log` and `config` are given.
plugin({
  async isReady() {
    return document.readyState !== "loading";
  },
  tools: {
    read_page() {
      return { title: document.title, address: location.href };
    },
    find_text({ text }) {
      const blocks = [...document.querySelectorAll("p, li, h1, h2, h3, td")].map((block) => block.textContent.trim());
      const found = blocks.filter((words) => words.toLowerCase().includes(text.toLowerCase()));
      if (!found.length) throw ToolError.notFound(`Nothing on this page holds ${JSON.stringify(text)}.`);
      return { found: found.slice(0, 20), count: found.length };
    },
  },
});
"""

_TEST_PY = '''"""Run with: pytest"""

from pathlib import Path

from tabhub.plugins.discovery import load


def test_the_plugin_loads_with_all_its_tools() -> None:
    plugin = load(Path(__file__).parent, "local")
    assert plugin.problems == ()
    assert [tool.name for tool in plugin.tools] == ["read_page", "find_text"]


def test_the_page_side_has_a_function_for_each_tool() -> None:
    page = (Path(__file__).parent / "page.js").read_text()
    assert all(f"{tool.name}(" in page for tool in load(Path(__file__).parent, "local").tools)
'''

_README = """# %(title)s

A plugin for %(pattern)s.

- `tabhub plugin dev %(folder)s` uses it in your browser and loads it anew at every save.
- `tabhub plugin inspect %(folder)s` shows what agents will see.
- %(test)s runs its test.
"""


def create(folder: Path, name: str, pattern: str, *, python: bool = False, title: str | None = None) -> Plugin:
    """Write a new plugin into a folder that is not there yet, and load it."""
    check_name(name)
    if (why := patterns.problem(pattern)) is not None:
        raise PluginError(f"{why[0].upper()}{why[1:]}.", hint="Write it as https://*.example.com/*")
    if folder.exists() and any(folder.iterdir()):
        raise PluginError(f"{folder} is there already and not empty.", hint="Name another folder: --dir")
    shown = title or name.replace("-", " ").title()
    words = f"Reads pages of {shown}."
    plain = {"name": name, "title": shown, "pattern": pattern, "folder": folder.name, "words": words}
    quoted = {key: json.dumps(value) for key, value in plain.items()}
    if python:
        files = {"plugin.py": _PLUGIN_PY % quoted, "page.js": _PAGE_JS, "test_plugin.py": _TEST_PY}
    else:
        files = {
            "package.json": _json(_package(name, shown, words, pattern)),
            "dist/tools.json": _json({"tools": _TOOLS}),
            "dist/adapter.iife.js": _ADAPTER % quoted,
            "test/adapter.test.mjs": _TEST % quoted,
        }
    files["README.md"] = _README % {**plain, "test": "`pytest`" if python else "`node --test`"}
    try:
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, "utf-8")
    except OSError as error:
        raise PluginError(f"The plugin could not be written to {folder}: {error.strerror}.") from None
    return load(folder, "local")


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _package(name: str, title: str, words: str, pattern: str) -> dict[str, object]:
    return {
        "name": f"opentabs-plugin-{name}",
        "version": "0.1.0",
        "description": words,
        "type": "module",
        "main": "dist/adapter.iife.js",
        "keywords": ["opentabs-plugin"],
        "files": ["dist"],
        "scripts": {"test": "node --test"},
        "opentabs": {"displayName": title, "description": words, "urlPatterns": [pattern]},
    }


_TOOLS: list[dict[str, object]] = [
    {
        "name": "read_page",
        "displayName": "Read page",
        "description": "Tells the title and address of the page.",
        "icon": "file-text",
        "input_schema": {"type": "object", "properties": {}, "additionalProperties": False},
        "output_schema": {"type": "object", "properties": {"title": {"type": "string"}, "address": {"type": "string"}}},
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": "find_text",
        "displayName": "Find text",
        "description": "Finds the paragraphs of the page that hold a text.",
        "icon": "search",
        "input_schema": {
            "type": "object",
            "properties": {"text": {"type": "string", "minLength": 1, "description": "What to look for."}},
            "required": ["text"],
            "additionalProperties": False,
        },
        "output_schema": {"type": "object", "properties": {"found": {"type": "array"}, "count": {"type": "integer"}}},
        "annotations": {"readOnlyHint": True},
    },
]
