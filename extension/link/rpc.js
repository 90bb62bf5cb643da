/**
 * JSON-RPC 2.0 over one connection: parsing, dispatch, and exactly one answer to each request.
 *
 * Owns validation, the allow-list of methods, pending requests in both directions, and cancellation. It knows nothing of
 * sockets or of the browser: it gets a `send` and two tables. It never throws on received messages.
 *
 * An Rpc exists for one connection, so that an answer can never reach another one.
 */

export const PARSE_ERROR = -32700;
export const INVALID_REQUEST = -32600;
export const METHOD_NOT_FOUND = -32601;
export const INVALID_PARAMS = -32602;
export const FAILED = -32000;
export const TAB_NOT_FOUND = -32001;
export const CANCELLED = -32010;
/** The person stopped the agents in the tab. */
export const STOPPED = -32017;

/** The largest message that the hub accepts; a larger one would close the connection. */
export const MAX_MESSAGE = 10 * 1024 * 1024;
/** How many requests to the hub may be pending. */
const MAX_WAITING = 1000;

/** An error with the code it has on the wire. */
export class RpcError extends Error {
  /**
   * @param {number} code
   * @param {string} message
   * @param {Params} [data] details for the hub
   */
  constructor(code, message, data) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

/**
 * A running request of the hub. A handler that can stop early sets `onCancel`; with a `site`, it acts only on that site.
 * @typedef {{ id: string | number, cancelled: boolean, onCancel: (() => void) | null, site?: string | undefined }} Call
 */
/** @typedef {Record<string, unknown>} Params */
/** @typedef {(params: Params, call: Call) => unknown} Handler */
/** @typedef {import("./messages.js").Commands} Commands */
/**
 * Commands by method. Parameters are not trusted; results have the types that src/tabhub/wire declares.
 * @typedef {{ [M in keyof Commands]?: (params: Params, call: Call) => Commands[M]["result"] | Promise<Commands[M]["result"]> }} CommandTable
 */
/** @typedef {string | number | null} Id */
/** @typedef {{ resolve: (result: unknown) => void, reject: (error: Error) => void }} Waiter */

export class Rpc {
  /** @type {Map<Id, Call>} */
  #running = new Map();
  /** @type {Map<string, Waiter>} */
  #waiting = new Map();
  #next = 1;
  #send;
  #methods;
  #notifications;
  #note;

  /**
   * @param {object} wiring
   * @param {(text: string) => void} wiring.send
   * @param {ReadonlyMap<string, Handler>} wiring.methods the allow-list; a Map, which has no inherited names
   * @param {ReadonlyMap<string, (params: Params, from: string | undefined) => void>} wiring.notifications
   * @param {(message: string) => void} wiring.note logs a dropped message
   */
  constructor({ send, methods, notifications, note }) {
    this.#send = send;
    this.#methods = methods;
    this.#notifications = notifications;
    this.#note = note;
  }

  /**
   * Receive a message from the hub.
   * @param {unknown} data
   */
  receive(data) {
    let message;
    try {
      if (typeof data !== "string") throw new Error("a binary frame");
      message = JSON.parse(data);
    } catch (error) {
      this.#refuse(null, PARSE_ERROR, `Not valid JSON: ${textOf(error)}`);
      return;
    }
    if (!isObject(message) || message["jsonrpc"] !== "2.0") {
      this.#refuse(null, INVALID_REQUEST, "Not a JSON-RPC 2.0 message (one object with jsonrpc: \"2.0\").");
      return;
    }
    const { id, method } = message;
    const answers = Object.hasOwn(message, "result") || Object.hasOwn(message, "error");
    if (typeof method !== "string" || answers) {
      if (method === undefined && answers) this.#resolve(message);
      else this.#refuse(isId(id) ? id : null, INVALID_REQUEST, "A message has a method, or a result, or an error.");
      return;
    }
    if (id !== undefined && !isId(id)) {
      this.#refuse(null, INVALID_REQUEST, "The id must be a string or a whole number.");
      return;
    }
    const params = message["params"] ?? {};
    if (id === undefined) this.#handleNotification(method, params, message["connectionId"]);
    else this.#call(id, method, params);
  }

  /**
   * Send a request to the hub; rejects on an error or when the connection ends.
   * @param {string} method
   * @param {Params} params
   * @returns {Promise<unknown>}
   */
  request(method, params) {
    if (this.#waiting.size >= MAX_WAITING) return Promise.reject(new Error(`${MAX_WAITING} requests are unanswered.`));
    const id = `ext:${this.#next++}`;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#write({ jsonrpc: "2.0", id, method, params });
    });
  }

  /**
   * Send a notification to the hub, or over a relay to all agents or one; false if it is too large.
   * @param {string} method
   * @param {Params} params
   * @param {string} [connectionId] the connection of that agent
   */
  notify(method, params, connectionId) {
    return this.#write({ jsonrpc: "2.0", method, params, ...(connectionId === undefined ? {} : { connectionId }) });
  }

  /**
   * Cancel a request of the hub: it is answered at once as cancelled, and its result is dropped.
   * @param {unknown} id
   */
  cancel(id) {
    const call = isId(id) ? this.#running.get(id) : undefined;
    if (!call || !isId(id)) return;
    this.#running.delete(id);
    stop(call);
    this.#refuse(id, CANCELLED, "cancelled");
  }

  /** The connection is closed: running requests are cancelled, pending ones fail. */
  close() {
    const [running, waiting] = [[...this.#running.values()], [...this.#waiting.values()]];
    this.#running.clear();
    this.#waiting.clear();
    this.#send = () => {};
    running.forEach(stop);
    for (const waiter of waiting) waiter.reject(new Error("The connection to the hub ended."));
  }

  /**
   * @param {string | number} id
   * @param {string} method
   * @param {unknown} params
   */
  #call(id, method, params) {
    const handler = this.#methods.get(method);
    if (!handler) return this.#refuse(id, METHOD_NOT_FOUND, `Method not found: ${method.slice(0, 100)}`);
    if (!isObject(params)) return this.#refuse(id, INVALID_PARAMS, "params must be an object");
    if (this.#running.has(id)) return this.#refuse(id, INVALID_REQUEST, `The request with the id ${id} still runs.`);
    /** @type {Call} */
    const call = { id, cancelled: false, onCancel: null };
    this.#running.set(id, call);
    let outcome;
    try {
      outcome = handler(params, call);
    } catch (error) {
      return this.#failed(id, call, error);
    }
    if (!(outcome instanceof Promise)) return this.#done(id, call, outcome);
    outcome.then(
      (result) => this.#done(id, call, result),
      (error) => this.#failed(id, call, error),
    );
  }

  /**
   * @param {string | number} id
   * @param {Call} call
   * @param {unknown} result
   */
  #done(id, call, result) {
    if (this.#running.get(id) !== call) return;
    this.#running.delete(id);
    const sent = this.#write({ jsonrpc: "2.0", id, result: result ?? {} });
    if (!sent) this.#refuse(id, FAILED, `The result is larger than ${MAX_MESSAGE} bytes. Ask for less of it.`);
  }

  /**
   * @param {string | number} id
   * @param {Call} call
   * @param {unknown} error
   */
  #failed(id, call, error) {
    if (this.#running.get(id) !== call) return;
    this.#running.delete(id);
    const known = error instanceof RpcError ? error : null;
    this.#refuse(id, known?.code ?? FAILED, textOf(error), known?.data);
  }

  /**
   * @param {string} method
   * @param {unknown} params
   * @param {unknown} from the connection of the agent that sent it over a relay
   */
  #handleNotification(method, params, from) {
    const handler = this.#notifications.get(method);
    if (!handler || !isObject(params)) return this.#note(`Dropped a notification: ${method.slice(0, 100)}`);
    try {
      handler(params, typeof from === "string" ? from : undefined);
    } catch (error) {
      this.#note(`The notification ${method} failed: ${textOf(error)}`);
    }
  }

  /** @param {Params} message a response */
  #resolve(message) {
    const id = message["id"];
    const waiter = typeof id === "string" ? this.#waiting.get(id) : undefined;
    if (!waiter || typeof id !== "string") return this.#note("Dropped a reply to an unknown request.");
    this.#waiting.delete(id);
    const failed = Object.hasOwn(message, "error");
    if (!failed) return waiter.resolve(message["result"]);
    const error = message["error"];
    if (Object.hasOwn(message, "result") || !isObject(error)) return waiter.reject(new Error("Invalid response."));
    const { code, message: text, data } = error;
    waiter.reject(new RpcError(typeof code === "number" ? code : FAILED, String(text), isObject(data) ? data : undefined));
  }

  /**
   * @param {Id} id
   * @param {number} code
   * @param {string} message
   * @param {Params} [data]
   */
  #refuse(id, code, message, data) {
    this.#write({ jsonrpc: "2.0", id, error: { code, message, ...(data === undefined ? {} : { data }) } });
  }

  /** @param {Params} message */
  #write(message) {
    const text = replaceLoneSurrogates(JSON.stringify(message));
    // A UTF-16 unit is at most 3 bytes of UTF-8: only a large text needs to be measured.
    if (text.length * 3 > MAX_MESSAGE && new TextEncoder().encode(text).length > MAX_MESSAGE) return false;
    this.#send(text);
    return true;
  }
}

/**
 * JSON with lone surrogates replaced, which cut strings may end with: the hub would refuse the whole message for one.
 * @param {string} json from JSON.stringify, which writes `\ud` only for lone surrogates
 */
function replaceLoneSurrogates(json) {
  if (!json.includes("\\ud")) return json;
  return json.replace(/\\\\|\\ud[89a-f][0-9a-f]{2}/g, (found) => (found === "\\\\" ? found : "\ufffd"));
}

/**
 * The commands of a module for the allow-list. Their types are checked against the hub's messages here.
 * @param {CommandTable} table
 * @returns {ReadonlyMap<string, Handler>}
 */
export function commandMap(table) {
  return new Map(Object.entries(table));
}

/** @param {Call} call */
function stop(call) {
  call.cancelled = true;
  call.onCancel?.();
}

/**
 * @param {unknown} value
 * @returns {value is Params}
 */
export function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * @param {unknown} value
 * @returns {value is string | number}
 */
function isId(value) {
  return typeof value === "string" || Number.isSafeInteger(value);
}

/**
 * The message of whatever was thrown.
 * @param {unknown} error
 */
export function textOf(error) {
  return error instanceof Error ? error.message : String(error);
}
