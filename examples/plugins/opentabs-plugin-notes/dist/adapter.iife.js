// Runs in the notebook's own page: it reads and changes the page's list, as the person would.
(() => {
  const setting = (key) => globalThis.__openTabs?.pluginConfig?.[key];
  const list = () => document.querySelector("[data-notes]");
  const notes = () => [...list().querySelectorAll("li")].map((item) => item.textContent.trim());

  const failed = (message, code, category) => Object.assign(new Error(message), { name: "ToolError", code, category });

  const adapter = {
    name: "notes",
    displayName: "Notes",

    // A notebook that is locked wants the person to sign in first.
    async isReady() {
      return list() !== null && document.documentElement.dataset.locked === undefined;
    },

    tools: [
      {
        name: "list_notes",
        async handle() {
          const found = setting("order") === "newest" ? notes().reverse() : notes();
          return { notebook: document.title, notes: found, site: setting("site") };
        },
      },
      {
        name: "add_note",
        async handle({ text }, { reportProgress } = {}) {
          reportProgress?.({ progress: 0, total: 1, message: "Writing" });
          const item = document.createElement("li");
          const signature = setting("signature");
          item.textContent = signature ? `${text} (${signature})` : text;
          list().append(item);
          reportProgress?.({ progress: 1, total: 1, message: "Written" });
          return { count: notes().length };
        },
      },
      {
        name: "remove_note",
        async handle({ number }) {
          const item = list().querySelectorAll("li")[number - 1];
          if (!item) throw failed(`There is no note ${number}; there are ${notes().length}.`, "NO_NOTE", "not_found");
          item.remove();
          return { removed: item.textContent.trim() };
        },
      },
    ],
  };

  const known = globalThis.__openTabs ?? {};
  const others = Object.getOwnPropertyDescriptors(known.adapters ?? {});
  delete others[adapter.name];
  const adapters = Object.defineProperties({}, others);
  adapters[adapter.name] = adapter;
  globalThis.__openTabs = Object.assign({}, known, { adapters });
})();
