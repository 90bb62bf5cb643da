// Frameworks, forms, login and storage of a page: names only, never the values of cookies, storage or fields.
async () => {
  const short = (text, most = 120) => String(text ?? "").replace(/\s+/g, " ").trim().slice(0, most).toWellFormed();
  const some = (selector, most) => [...document.querySelectorAll(selector)].slice(0, most);
  const keys = (open) => {
    try {
      return Object.keys(open()).slice(0, 100).map((key) => short(key));
    } catch {
      return [];
    }
  };
  const has = (name) => name in window;
  const found = [
    ["Next.js", () => has("__NEXT_DATA__") || has("next")],
    ["Nuxt", () => has("__NUXT__") || has("$nuxt")],
    ["Remix", () => has("__remixContext")],
    ["Gatsby", () => has("___gatsby") || document.querySelector("#___gatsby")],
    ["SvelteKit", () => Object.keys(window).some((key) => key.startsWith("__sveltekit"))],
    ["React", () => has("React") || document.querySelector("[data-reactroot]") || some("body *", 200).some((node) => Object.keys(node).some((key) => key.startsWith("__react")))],
    ["Vue", () => has("Vue") || has("__VUE__") || some("body *", 200).some((node) => "__vue__" in node || "__vue_app__" in node)],
    ["Angular", () => has("ng") || document.querySelector("[ng-version]")],
    ["AngularJS", () => has("angular")],
    ["Svelte", () => document.querySelector("[class*='svelte-']")],
    ["Ember", () => has("Ember")],
    ["Alpine.js", () => has("Alpine")],
    ["htmx", () => has("htmx")],
    ["Turbo", () => has("Turbo")],
    ["jQuery", () => has("jQuery")],
    ["Shopify", () => has("Shopify")],
    ["WordPress", () => document.querySelector("link[href*='wp-content'], script[src*='wp-includes']")],
  ];
  const frameworks = found.filter(([, test]) => { try { return test(); } catch { return false; } }).map(([name]) => name);
  const label = (field) => short(field.labels?.[0]?.textContent || field.getAttribute("aria-label") || field.placeholder || "", 60);
  const address = (text) => {
    try {
      const url = new URL(text, location.href);
      return short(url.origin === location.origin ? url.pathname : url.origin + url.pathname, 300);
    } catch {
      return "";
    }
  };
  const forms = some("form", 20).map((form) => ({
    name: short(form.getAttribute("toolname") || form.id || form.getAttribute("name") || form.getAttribute("aria-label") || ""),
    action: address(form.getAttribute("action") || location.href),
    method: short(form.getAttribute("method") || "get", 10).toUpperCase(),
    search: form.getAttribute("role") === "search" || Boolean(form.querySelector("input[type=search], [name=q], [name=query]")),
    login: Boolean(form.querySelector("input[type=password]")),
    fields: [...form.elements].filter((field) => field.name && field.type !== "hidden").slice(0, 30)
      .map((field) => ({ name: short(field.name, 60), type: short(field.type, 30), ...(label(field) ? { label: label(field) } : {}) })),
  }));
  const OAUTH = /oauth|openid|\/authorize|\/sso|saml|accounts\.google|login\.microsoftonline|appleid\.apple|auth0|okta/i;
  const LOGIN = /^(log ?in|sign ?in|anmelden|se connecter|iniciar sesi[oó]n)\b/i;
  const links = some("a[href], button", 3000);
  const oauth = links.filter((link) => OAUTH.test(link.href || "") || /\b(sign|log) ?in with\b|continue with/i.test(link.textContent || ""))
    .slice(0, 10).map((link) => ({ text: short(link.textContent, 60), to: link.href ? address(link.href) : "" }));
  const signIn = links.filter((link) => LOGIN.test(short(link.textContent, 40))).slice(0, 5).map((link) => short(link.textContent, 60));
  const signOut = links.some((link) => /^(log ?out|sign ?out|abmelden)\b/i.test(short(link.textContent, 40)));
  const meta = some("meta[name]", 200).map((node) => node.name);
  const tools = [];
  try {
    const context = document.modelContext || navigator.modelContext;
    const listed = await Promise.race([
      Promise.resolve(context?.getTools?.() ?? context?.listTools?.() ?? []),
      new Promise((resolve) => setTimeout(resolve, 500, [])),
    ]);
    for (const tool of [...(listed || [])].slice(0, 50)) tools.push({ name: short(tool.name, 100), description: short(tool.description, 200) });
  } catch {
    // The page has no tools, or they cannot be listed.
  }
  let databases = [];
  try {
    databases = (await indexedDB.databases()).slice(0, 30).map(({ name }) => short(name));
  } catch {
    // Some pages may not use databases.
  }
  return {
    url: location.href.slice(0, 2000),
    title: short(document.title, 200),
    description: short(document.querySelector("meta[name=description]")?.content, 300),
    generator: short(document.querySelector("meta[name=generator]")?.content, 100),
    frameworks,
    forms,
    oauth,
    signIn,
    signOut,
    csrf: meta.filter((name) => /csrf|xsrf/i.test(name)).map((name) => short(name)),
    localStorage: keys(() => localStorage),
    sessionStorage: keys(() => sessionStorage),
    databases,
    serviceWorker: Boolean(navigator.serviceWorker?.controller),
    tools,
    counts: { links: document.links.length, tables: document.querySelectorAll("table").length, articles: document.querySelectorAll("article").length },
  };
}
