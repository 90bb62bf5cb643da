/**
 * The HTTP status of the page that a tab shows, as far as events of its debugger tell it.
 *
 * Owns matching a response to the page that it became. It asks the page nothing.
 */

/** @typedef {Record<string, unknown>} CdpObject */

/** Responses that may still become the page. */
const MOST = 5;

export class DocumentStatus {
  static EVENTS = ["Network.responseReceived", "Page.frameNavigated"];
  /** Statuses by loader. @type {Map<unknown, number>} */
  #responses = new Map();
  /** @type {{ url: string, status: number } | null} */
  #page = null;

  /**
   * An event of the tab itself.
   * @param {string} method
   * @param {CdpObject} params
   */
  event(method, params) {
    if (method === "Network.responseReceived" && params["type"] === "Document") {
      const { status } = /** @type {CdpObject} */ (params["response"] ?? {});
      if (typeof status !== "number" || params["requestId"] !== params["loaderId"]) return;
      this.#responses.set(params["loaderId"], status);
      const [oldest] = this.#responses.keys();
      if (this.#responses.size > MOST) this.#responses.delete(oldest);
    } else if (method === "Page.frameNavigated") {
      const { url, loaderId, parentId } = /** @type {CdpObject} */ (params["frame"] ?? {});
      if (parentId !== undefined) return;
      const status = this.#responses.get(loaderId);
      this.#page = status === undefined ? null : { url: String(url), status };
    }
  }

  /**
   * The status of the page with this URL, null if it is not known.
   * @param {string} url
   */
  of(url) {
    return this.#page && this.#page.url === url.split("#", 1)[0] ? this.#page.status : null;
  }
}
