/**
 * The identity of this browser: an id that is stored with the profile, and the facts for `extension.hello`.
 */

import { textOf } from "./rpc.js";

/** @typedef {Required<Omit<import("./messages.js").ExtensionHello, "browserId" | "managed">>} About */

/** Brands in order of precedence: all of these browsers also report Chromium. */
const BRANDS = /** @type {const} */ ([
  ["Brave", "Brave"],
  ["Microsoft Edge", "Edge"],
  ["Google Chrome", "Chrome"],
]);

/**
 * The id of this browser profile, created on first use.
 * @param {(message: string) => void} note
 * @returns {Promise<string>}
 */
export async function browserId(note) {
  try {
    const { browserId: known } = await chrome.storage.local.get("browserId");
    if (typeof known === "string" && /^[0-9a-f-]{36}$/.test(known)) return known;
    const created = crypto.randomUUID();
    await chrome.storage.local.set({ browserId: created });
    return created;
  } catch (error) {
    note(`The browser's storage cannot be used, so its id lasts only until the extension restarts: ${textOf(error)}`);
    return crypto.randomUUID();
  }
}

/**
 * The facts about this browser for the hub.
 * @returns {Promise<About>}
 */
export async function browserFacts() {
  // navigator.userAgentData is not in TypeScript's library yet.
  const agent = /** @type {{ userAgentData?: { brands: { brand: string }[] } }} */ (/** @type {unknown} */ (navigator));
  const brands = (agent.userAgentData?.brands ?? []).map((entry) => entry.brand);
  const { os } = await chrome.runtime.getPlatformInfo();
  return {
    browserName: BRANDS.find(([brand]) => brands.includes(brand))?.[1] ?? "Chromium",
    browserVersion: /Chrome\/([\d.]+)/.exec(navigator.userAgent)?.[1] ?? "",
    extensionVersion: chrome.runtime.getManifest().version,
    platform: os,
  };
}
