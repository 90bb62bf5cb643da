/**
 * Who this browser is: an id that stays with the profile, and what `extension.hello` says of it.
 */

import { textOf } from "./rpc.js";

/** @typedef {Required<Omit<import("./messages.js").ExtensionHello, "browserId" | "managed">>} About */

/** Brands in the order they decide: every one of these browsers also says it is Chromium. */
const BRANDS = /** @type {const} */ ([
  ["Brave", "Brave"],
  ["Microsoft Edge", "Edge"],
  ["Google Chrome", "Chrome"],
]);

/**
 * The id of this browser profile, made on first use.
 * @param {(message: string) => void} note
 * @returns {Promise<string>}
 */
export async function browserId(note) {
  try {
    const { browserId: known } = await chrome.storage.local.get("browserId");
    if (typeof known === "string" && /^[0-9a-f-]{36}$/.test(known)) return known;
    const made = crypto.randomUUID();
    await chrome.storage.local.set({ browserId: made });
    return made;
  } catch (error) {
    note(`The browser's storage cannot be used, so its id lasts only until the extension restarts: ${textOf(error)}`);
    return crypto.randomUUID();
  }
}

/**
 * What to tell the hub about this browser.
 * @returns {Promise<About>}
 */
export async function about() {
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
