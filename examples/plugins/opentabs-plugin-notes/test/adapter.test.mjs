// Run with: node --test
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import vm from "node:vm";

const read = (path) => readFileSync(new URL(`../${path}`, import.meta.url), "utf8");

/** A page with these notes, and the adapter in it. */
function notebook(texts, config = {}, locked = undefined) {
  const items = texts.map((text) => ({ textContent: text }));
  for (const item of items) item.remove = () => items.splice(items.indexOf(item), 1);
  const list = { querySelectorAll: () => items, append: (item) => items.push(item) };
  const document = {
    title: "Notebook",
    documentElement: { dataset: locked ? { locked } : {} },
    querySelector: () => list,
    createElement: () => ({}),
  };
  const context = vm.createContext({ document, __openTabs: { pluginConfig: config } });
  vm.runInContext(read("dist/adapter.iife.js"), context);
  const adapter = context.__openTabs.adapters.notes;
  const call = (name, input) => adapter.tools.find((tool) => tool.name === name).handle(input, {});
  return { adapter, call };
}

test("every tool that is listed has a handler", () => {
  const listed = JSON.parse(read("dist/tools.json")).tools.map((tool) => tool.name);
  assert.deepEqual([...notebook([]).adapter.tools].map((tool) => tool.name), listed);
});

test("a note is added with the signature that is set", async () => {
  const { call } = notebook(["one"], { signature: "Ada", order: "newest" });
  assert.equal((await call("add_note", { text: "two" })).count, 2);
  assert.deepEqual([...(await call("list_notes", {})).notes], ["two (Ada)", "one"]);
});

test("a note that is not there is a structured error", async () => {
  await assert.rejects(notebook(["one"]).call("remove_note", { number: 7 }), { code: "NO_NOTE", category: "not_found" });
});

test("a locked notebook is not ready", async () => {
  assert.equal(await notebook([]).adapter.isReady(), true);
  assert.equal(await notebook([], {}, "yes").adapter.isReady(), false);
});
