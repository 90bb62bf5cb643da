/**
 * The page that the person looks at next to the panel. In a tab of its own, the panel covers it: there it is the last web
 * page they looked at in this window.
 */

/**
 * Calls back with the page's URL, now and when it changes.
 * @param {(url: string | null) => void} changed
 */
export function watchPage(changed) {
  /** @type {string | null | undefined} */
  let shown;
  const look = async () => {
    const tabs = await chrome.tabs.query({ currentWindow: true });
    const pages = tabs.filter(({ url }) => /^https?:/.test(url ?? ""));
    pages.sort((one, other) => Number(other.active) - Number(one.active) || (other.lastAccessed ?? 0) - (one.lastAccessed ?? 0));
    const url = pages[0]?.url ?? null;
    if (url === shown) return;
    shown = url;
    changed(url);
  };
  const again = () => void look();
  chrome.tabs.onActivated.addListener(again);
  chrome.tabs.onUpdated.addListener((_id, { url }) => void (url === undefined || look()));
  chrome.tabs.onRemoved.addListener(again);
  again();
}
