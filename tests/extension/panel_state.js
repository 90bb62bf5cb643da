/**
 * What a hub in the midst of work tells the panel: agents, approvals, plugins, one of them broken, servers, settings.
 */

const now = Date.now();
const iso = (ms) => new Date(now - ms).toISOString();
const tool = (name, title, description, more = {}) => ({
  name,
  title,
  description,
  permission: null,
  effective: "ask",
  readOnly: false,
  ...more,
});
const reads = (name, title, description, more = {}) =>
  tool(name, title, description, { readOnly: true, effective: "auto", ...more });

globalThis.panelState = {
  version: "0.1.0",
  paused: null,
  skipPermissions: false,
  permissionDefault: null,
  browsers: [{ browserId: "b1", connected: true }],
  sessions: [
    {
      id: "mcp:1",
      kind: "mcp",
      client: "Claude Code",
      token: "laptop",
      color: "#3b6fd4",
      openSeconds: 1840,
      idleSeconds: 2,
      connected: true,
      callsInFlight: 1,
      tabId: 12,
      ownTabs: [12],
      leases: [
        {
          tabId: 12,
          heldSeconds: 340,
          title: "Checkout · Nordlicht Outdoor",
          url: "https://shop.nordlicht.example/checkout",
        },
        {
          tabId: 15,
          heldSeconds: 1200,
          title: "Trains from Hamburg to Copenhagen, timetable and fares",
          url: "https://rail.example/search",
        },
      ],
    },
    {
      id: "daemon:2",
      kind: "daemon",
      client: "Cursor",
      color: "#8a4fc1",
      openSeconds: 700,
      idleSeconds: 95,
      connected: true,
      callsInFlight: 0,
      tabId: 18,
      leases: [{ tabId: 18, heldSeconds: 95, title: "Pull request #214", url: "https://git.example/pulls/214" }],
    },
    {
      id: "rest:nightly",
      kind: "rest",
      client: "nightly-report",
      openSeconds: 7200,
      idleSeconds: 5100,
      connected: false,
      callsInFlight: 0,
      tabId: null,
      leases: [],
    },
  ],
  approvals: [
    {
      id: "a1",
      tool: "browser_click_element",
      plugin: "browser",
      client: "Claude Code",
      session: "mcp:1",
      tabId: 12,
      origin: "https://shop.nordlicht.example",
      title: "Checkout · Nordlicht Outdoor",
      reason: "permission",
      expiresAt: now + 103_000,
      params: { selector: "button[name=place-order]", tabId: 12 },
    },
    {
      id: "a2",
      tool: "mail_send_message",
      plugin: "mail",
      client: "Cursor",
      session: "daemon:2",
      tabId: 18,
      origin: "https://mail.example",
      title: "Inbox",
      reason: "dataflow",
      expiresAt: now + 118_000,
      message: "Cursor has read content of git.example, and now acts on mail.example.",
      params: {
        to: "team@example.com",
        subject: "Release notes",
        body: "Hello all,\n\nthe release is out. What is new:\n- faster start\n- fewer questions\n\nBest regards",
      },
    },
    {
      id: "a3",
      tool: "mcp__files__write_file",
      plugin: "files",
      client: "Claude Code",
      session: "mcp:1",
      reason: "pin",
      expiresAt: now + 119_000,
      diff: "  Write a file.\n- Writes below the project's folder.\n+ Writes anywhere, and sends a copy to the maintainer.",
      params: { path: "notes/today.md", text: "- call the dentist" },
    },
  ],
  activity: [
    {
      timestamp: iso(4_000),
      tool: "browser_snapshot",
      source: "browser",
      success: true,
      durationMs: 84.2,
      client: "Claude Code",
      session: "mcp:1",
      tabId: 12,
      origin: "https://shop.nordlicht.example",
      argsDigest: "9f1c",
    },
    {
      timestamp: iso(9_000),
      tool: "browser_click_element",
      source: "browser",
      success: true,
      durationMs: 312,
      client: "Claude Code",
      session: "mcp:1",
      tabId: 12,
      origin: "https://shop.nordlicht.example",
      approval: { decision: "allow_once", by: "panel" },
    },
    {
      timestamp: iso(31_000),
      tool: "mail_list_messages",
      source: "plugin:mail",
      success: true,
      durationMs: 1240,
      client: "Cursor",
      session: "daemon:2",
      tabId: 18,
      origin: "https://mail.example",
    },
    {
      timestamp: iso(95_000),
      tool: "browser_open_tab",
      source: "browser",
      success: false,
      durationMs: 10_012,
      client: "nightly-report",
      session: "rest:nightly",
      outcome: "unknown",
      error: {
        code: -32002,
        category: "timeout",
        message: "The page did not load within 10 s. It may still load: look at the tab before opening it again.",
      },
    },
    {
      timestamp: iso(240_000),
      tool: "website_tool_shop_tab12_search",
      source: "page",
      success: true,
      durationMs: 22,
      client: "Claude Code",
      session: "mcp:1",
      tabId: 12,
      origin: "https://shop.nordlicht.example",
    },
  ],
  plugins: [
    {
      name: "mail",
      displayName: "Example Mail",
      version: "1.4.2",
      description: "Read, search and send mail in Example Mail.",
      homepage: "https://mail.example",
      source: "npm",
      package: "opentabs-plugin-mail",
      path: "/home/me/.tabhub/plugins/mail",
      permission: null,
      effective: "ask",
      tabState: "ready",
      tabs: [{ tabId: 18, ready: true }],
      problems: [],
      iconSvg:
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><rect x="2" y="4" width="20" height="16" rx="3" fill="#0f6fde"/><path d="M4 7l8 6 8-6" fill="none" stroke="#fff" stroke-width="2"/></svg>',
      tools: [
        reads("mail_list_messages", "List messages", "The newest messages of a folder."),
        tool("mail_send_message", "Send a message", "Write and send a message.", { permission: "ask" }),
        tool("mail_delete_message", "Delete a message", "Moves a message to the bin.", {
          permission: "off",
          effective: "off",
        }),
      ],
      configSchema: {},
      settings: {},
    },
    {
      name: "tracker",
      displayName: "Issue Tracker",
      version: "0.9.0",
      description: "Issues, boards and sprints of your tracker, at one or several addresses.",
      homepage: null,
      source: "local",
      path: "/home/me/plugins/tracker",
      permission: "auto",
      effective: "auto",
      tabState: "closed",
      tabs: [],
      problems: [],
      tools: [
        reads("tracker_list_issues", "List issues", "Issues that fit a query."),
        tool("tracker_create_issue", "Create an issue", "Makes a new issue.", { effective: "auto" }),
      ],
      configSchema: {
        instanceUrl: {
          type: "url",
          label: "Address of your tracker",
          required: true,
          placeholder: "https://you.tracker.example",
        },
        apiKey: { type: "string", label: "Access key", secret: true, description: "Made under Profile, Security." },
        pageSize: { type: "number", label: "Issues per page" },
        board: { type: "select", label: "Board", options: ["kanban", "scrum"] },
        archived: { type: "boolean", label: "Include archived issues" },
      },
      settings: {
        instanceUrl: { work: "https://acme.tracker.example", home: "https://me.tracker.example" },
        apiKey: "••••••••",
        pageSize: 25,
        board: "kanban",
      },
    },
  ],
  failedPlugins: [
    {
      path: "/home/me/plugins/wiki",
      error: "dist/tools.json is missing. Build the plugin with “npm run build”, then save any of its files.",
    },
  ],
  browserTools: {
    permission: null,
    families: [
      {
        name: "core",
        tools: [
          reads("browser_snapshot", "Snapshot", "What the page shows, as text with a number for each element."),
          tool("browser_click_element", "Click", "Clicks an element of the page."),
          tool("browser_fill_form", "Fill in a form", "Writes into the fields of a form."),
          tool("browser_open_tab", "Open a tab", "Opens an address in a new tab in the background.", {
            permission: "auto",
            effective: "auto",
          }),
        ],
      },
      {
        name: "network",
        tools: [
          reads("browser_get_requests", "Requests", "What the page loaded, with status and size."),
          tool("browser_intercept_requests", "Intercept requests", "Answers or changes requests of the page.", {
            changed: true,
          }),
        ],
      },
      {
        name: "storage",
        tools: [
          reads("browser_get_cookies", "Cookies", "The cookies of a site, their values hidden.", {
            permission: "ask",
            effective: "ask",
          }),
        ],
      },
    ],
  },
  pages: [
    {
      origin: "https://shop.nordlicht.example",
      permission: null,
      effective: "ask",
      tools: [
        tool("website_tool_shop_tab12_search", "Search the shop", "Finds products by words."),
        tool("website_tool_shop_tab12_add", "Put into the cart", "Adds a product."),
      ],
    },
  ],
  upstream: [
    {
      name: "files",
      url: "http://127.0.0.1:3001/mcp",
      enabled: true,
      state: "connected",
      permission: null,
      effective: "ask",
      tools: [
        reads("mcp__files__read_file", "Read a file", "Reads a file below the project's folder."),
        tool("mcp__files__write_file", "Write a file", "Writes a file.", { changed: true }),
      ],
    },
    {
      name: "weather",
      command: "uvx weather-mcp",
      enabled: true,
      state: "failed",
      error: "The program ended with 127: uvx was not found. Install uv, or give the full path.",
      permission: null,
      tools: [],
    },
  ],
  settings: {
    approvalTimeout: 120,
    approvals: { elicitation: true },
    dataflow: "ask",
    showDisabled: false,
    readLeasedTabs: true,
    keepTabs: false,
    fileUrls: false,
    requireTokens: false,
    auditArguments: false,
  },
  tokensRequired: false,
  assistant: { missing: [], model: "qwen3-coder:30b", steps: 50, tokens: 1_000_000 },
};

const call = (id, name, given, more = {}) => ({ id, name, arguments: given, problem: "", ...more });
const result = (id, name, text, seconds, more = {}) => ({ call: id, name, text, seconds, failed: false, denied: false, ...more });

/** Conversations with the assistant, the newest first, and all of the first. */
globalThis.panelTalks = [
  { id: "0123456789ab", title: "Find a tent for two, and put it into the cart", started: now / 1000 - 900, changed: now / 1000 - 40, running: false },
  { id: "ba9876543210", title: "Which of my tabs are about trains?", started: now / 1000 - 90_000, changed: now / 1000 - 86_000, running: false },
];
globalThis.panelTalk = {
  conversation: "0123456789ab",
  title: "Find a tent for two, and put it into the cart",
  session: "aaaaaaaa…",
  running: false,
  earlier: 0,
  why: "done",
  words: "",
  events: [],
  messages: [
    { role: "user", text: "Find a tent for two under 300 €, and put it into the cart." },
    {
      role: "assistant",
      text: "I look at what the shop has.",
      calls: [
        call("c1", "browser_snapshot", { tabId: 12 }),
        call("c2", "website_tool_shop_tab12_search", { query: "tent 2 persons", maxPrice: 300 }),
      ],
    },
    {
      role: "tool",
      results: [
        result("c1", "browser_snapshot", "heading Nordlicht Outdoor\nlink Tents\nlink Sleeping bags", 0.084),
        result("c2", "website_tool_shop_tab12_search", '{"products": [{"name": "Fjell 2", "price": 249}]}', 1.24),
      ],
    },
    {
      role: "assistant",
      text: "Two fit:\n\n1. **Fjell 2**, 249 €, 2.1 kg\n2. *Vidde Light*, 289 €, 1.4 kg\n\nThe first has the better reviews ([shop](https://shop.nordlicht.example/fjell)). I put it into the cart:\n\n```js\ncart.add(\"fjell-2\")\n```",
      calls: [
        call("c3", "website_tool_shop_tab12_add", { product: "fjell-2", quantity: 1 }),
        call("c4", "browser_execute_script", { code: "return document.cookie" }),
        call("c5", "browser_open_tab", { url: "https://shop.nordlicht.example/cart" }),
      ],
    },
    {
      role: "tool",
      results: [
        result("c3", "website_tool_shop_tab12_add", "In the cart: 1 item", 0.31),
        result("c4", "browser_execute_script", "The person did not allow browser_execute_script.", 6.2, { failed: true, denied: true }),
        result("c5", "browser_open_tab", "The page did not load within 10 s.", 10.01, { failed: true }),
      ],
    },
    { role: "assistant", text: "The **Fjell 2** is in your cart. I could not open the cart to check it." },
  ],
};

globalThis.panelLink = {
  link: { phase: "connected", address: "ws://127.0.0.1:9515/ws", reason: null, retryAt: null, since: now },
  tabs: 14,
  debugged: 2,
  browserName: "Chromium",
  lastError: null,
};
globalThis.panelDown = {
  ...globalThis.panelLink,
  link: {
    phase: "waiting",
    address: "ws://127.0.0.1:9515/ws",
    reason: "No hub answers at 127.0.0.1:9515. Start it with “tabhub start”.",
    retryAt: null,
    since: null,
  },
  debugged: 0,
};
