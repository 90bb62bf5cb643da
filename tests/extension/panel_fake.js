/**
 * A fake worker with a hub: it answers the panel's requests from its own state, changes that state as the hub would, and
 * records requests in `panelFake.asked`. Loaded after
 * panel_state.js and panel_conversations.js, before the panel's scripts.
 */

/** A browser without a relay. */
const RELAY = {
  ...{ url: "", hasToken: false, level: "ask", sites: [], instead: false, migrated: false, user: "", agents: 0 },
  ...{ phase: "off", reason: null, retryAt: null, questions: [] },
};

/** A picture of a button in a page. */
function picture() {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [420, 200];
  const paint = canvas.getContext("2d");
  const fill = (colour, ...box) => {
    paint.fillStyle = colour;
    paint.fillRect(...box);
  };
  fill("#ffffff", 0, 0, 420, 200);
  fill("#d7dbe2", 24, 20, 180, 14);
  fill("#e9ecf1", 24, 48, 372, 8);
  fill("#e9ecf1", 24, 66, 300, 8);
  fill("#1d7a46", 150, 84, 120, 36);
  paint.fillStyle = "#ffffff";
  paint.font = "bold 15px sans-serif";
  paint.fillText("Place order", 167, 107);
  fill("#e9ecf1", 24, 144, 340, 8);
  const place = { x: 150 / 420, y: 84 / 200, width: 120 / 420, height: 36 / 200, ratio: 2.1 };
  return { picture: canvas.toDataURL("image/jpeg", 0.9).split(",")[1], place };
}

/** The hub's handling of a request. */
const ANSWERS = {
  "hub.pause": (state) =>
    void (state.paused = { since: Date.now() / 1000, by: "panel", reason: "", mode: "wait", callsWaiting: 1 }),
  "hub.resume": (state) => void (state.paused = null),
  "config.setSkipPermissions": (state, { skip }) => void (state.skipPermissions = skip),
  "confirmation.response": (state, { id }) => void (state.approvals = state.approvals.filter((each) => each.id !== id)),
  "approvals.picture": () => picture(),
  "approvals.show": () => ({ ok: true }),
  "sessions.end": (state, { id }) => void (state.sessions = state.sessions.filter((each) => each.id !== id)),
  "audit.list": (state, { tool: wanted = "", ok }) => ({
    entries: state.activity.filter((each) => each.tool.includes(wanted) && (ok === undefined || each.success === ok)),
  }),
  "plugin.search": () => ({
    results: [
      {
        package: "@opentabs-dev/opentabs-plugin-slack",
        name: "slack",
        version: "2.1.0",
        description: "Messages, channels and search of Slack.",
        author: "opentabs-dev",
        installed: false,
      },
      { package: "opentabs-plugin-mail", name: "mail", version: "1.5.0", description: "Mail.", installed: true },
    ],
  }),
  "relay.state": (state) => state.relay ?? RELAY,
  "relay.set": (state, given) => (state.relay = { ...(state.relay ?? RELAY), migrated: false, ...given, token: undefined }),
  "sites.set": (state, { pattern, agent = null, level }) => {
    const others = state.siteRules.filter((rule) => rule.pattern !== pattern || rule.agent !== agent);
    state.siteRules = level === null ? others : [{ pattern, agent, level }, ...others];
  },
  "sites.page": (state) => ({
    pattern: "*.bank.example",
    level: state.siteRules.find(({ pattern, agent }) => pattern === "*.bank.example" && agent === null)?.level ?? null,
    explanations: [
      "laptop may, without approval, read pages with browser_snapshot on https://www.bank.example: tools that only read run without approval.",
      "laptop needs approval to click and type with browser_click_element on https://www.bank.example: tools that act need approval, except in a browser that the hub started.",
      "laptop needs approval to use cookies and storage with browser_get_cookies on https://www.bank.example: cookies, storage, history and bookmarks need approval, except in a browser that the hub started.",
    ],
  }),
  "sites.suggestion": (state, { category }) => {
    if (category === null) state.suggestedSites = null;
    else state.suggestedSites.find((each) => each.category === category).patterns = [];
  },
  "grants.revoke": (state, { id }) => void (state.grants = state.grants.filter((grant) => grant.id !== id)),
  "agent.list": () => ({ conversations: globalThis.panelConversations }),
  "agent.resume": (_, { conversation }) => ({ ...globalThis.panelConversation, conversation }),
  "agent.send": (_, { conversation, text }) => {
    const id = conversation ?? "cccccccccccc";
    globalThis.panelFake.event("agent.event", { conversation: id, session: "aaaaaaaa…", event: "message", text });
    return { conversation: id };
  },
  "agent.stop": (_, { conversation }) => {
    const ended = { event: "ended", why: "stopped", explanation: "Stopped.", steps: 0, tokens: 0 };
    globalThis.panelFake.event("agent.event", { conversation, ...ended });
    return { stopped: true };
  },
  "agent.remove": (_, { conversation }) =>
    void (globalThis.panelConversations = globalThis.panelConversations.filter(({ id }) => id !== conversation)),
  "plugin.checkUpdates": () => ({ updates: [{ name: "mail", newest: "1.5.0" }], problems: [] }),
};

class Event {
  listeners = [];
  addListener(listener) {
    this.listeners.push(listener);
  }
  fire(...given) {
    for (const listener of this.listeners) listener(...given);
  }
}

const kind = new URLSearchParams(location.search).get("fake") ?? "full";
const state = structuredClone(globalThis.panelState);
if (kind === "new") globalThis.panelConversations = [];
else localStorage.setItem("conversation", globalThis.panelConversations[0].id);
if (kind === "new")
  Object.assign(state, {
    sessions: [],
    approvals: [],
    activity: [],
    plugins: [],
    failedPlugins: [],
    pages: [],
    upstream: [],
    siteRules: [],
    grants: [],
    assistant: { missing: ["agent.baseUrl", "agent.model"], model: null, steps: 50, tokens: 1_000_000 },
  });
if (kind === "quiet") Object.assign(state, { approvals: [], failedPlugins: [] });
const port = { name: "panel", onMessage: new Event(), onDisconnect: new Event(), disconnect() {} };
const calls = new Map();
globalThis.panelFake = {
  state,
  asked: [],
  /** Held answers, by method. */
  held: {},
  event(method, params) {
    if (method === "tool.invocationStart") calls.set(params.callId, params);
    if (method === "tool.invocationEnd") {
      const { callId, ...facts } = calls.get(params.callId);
      const ended = { timestamp: new Date().toISOString(), success: params.ok, durationMs: params.durationMs };
      state.activity.unshift({ ...facts, ...ended });
    }
    port.onMessage.fire({ type: "event", method, params });
  },
};
port.postMessage = ({ id, method, params }) => {
  globalThis.panelFake.asked.push([method, params]);
  const answer = () => {
    if (method === "link.state") return kind === "down" ? globalThis.panelDown : globalThis.panelLink;
    if (kind === "down") throw new Error("The hub is not connected.");
    if (globalThis.panelFake.refuse?.[method]) throw new Error(globalThis.panelFake.refuse[method]);
    if (method === "config.getState") return structuredClone(state);
    return ANSWERS[method]?.(state, params) ?? {};
  };
  const say = () => {
    try {
      port.onMessage.fire({ type: "answer", id, result: answer() });
    } catch (error) {
      port.onMessage.fire({ type: "answer", id, error: { message: error.message } });
    }
  };
  const held = globalThis.panelFake.held[method];
  if (held) held.push(say);
  else queueMicrotask(say);
};
const page = kind === "new" ? [] : [{ active: true, url: "https://www.bank.example/accounts", lastAccessed: 1 }];
globalThis.chrome = {
  runtime: { connect: () => port, lastError: undefined },
  tabs: {
    create: async () => {},
    query: async () => page,
    onActivated: new Event(),
    onUpdated: new Event(),
    onRemoved: new Event(),
  },
};
