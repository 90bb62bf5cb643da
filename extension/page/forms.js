/**
 * Forms as tools: `<form toolname tooldescription>`, from the declarative WebMCP draft.
 *
 * Owns the schema of a form's fields, filling in and submitting. A form without `toolautosubmit` is filled in, and then
 * the person submits it or confirms the submission.
 */

/** @typedef {HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement} Field */

var PageForms = class {
  /** @type {unknown[]} */
  tools = [];
  #written = "[]";
  #scheduled = false;
  #observer;
  #context;
  #changed;

  /**
   * @param {InstanceType<typeof PageContext>} context through which a page responds to a submission
   * @param {() => void} changed
   * @param {(ms: number, run: () => void) => void} later
   */
  constructor(context, changed, later) {
    this.#context = context;
    this.#changed = changed;
    this.#observer = new MutationObserver(() => {
      if (this.#scheduled) return;
      this.#scheduled = true;
      later(100, () => {
        this.#scheduled = false;
        this.refresh();
      });
    });
    const attributeFilter = ["toolname", "tooldescription", "toolparamdescription", "toolautosubmit", "name", "required"];
    this.#observer.observe(document, { subtree: true, childList: true, attributeFilter });
    this.refresh();
  }

  /** Read all forms. */
  refresh() {
    const found = formsWithTools().map(describe);
    const written = JSON.stringify(found);
    if (written === this.#written) return;
    this.#written = written;
    this.tools = found;
    this.#changed();
  }

  /**
   * @param {string} name
   * @param {PageCall} call
   * @returns {Running}
   */
  call(name, call) {
    const stop = new AbortController();
    return { answer: this.#call(name, call, stop.signal), cancel: () => stop.abort() };
  }

  stop() {
    this.#observer.disconnect();
  }

  /**
   * @param {string} name
   * @param {PageCall} call
   * @param {AbortSignal} signal
   */
  async #call(name, call, signal) {
    const form = formsWithTools().find((found) => attribute(found, "toolname") === name);
    if (!form) throw new Error(`The page no longer has a form named ${name}.`);
    fill(form, pageChecks.isObject(call.args) ? call.args : {});
    if (!HTMLFormElement.prototype.checkValidity.call(form)) throw new Error(`The form is not valid: ${validationMessages(form)}`);
    const button = submitter(form);
    if (attribute(form, "toolautosubmit") !== null) return this.#submit(form, button, call.requestId);
    button?.focus();
    return this.#waitForPerson(form, button, call, signal);
  }

  /**
   * Wait until the person submits the form or confirms the submission.
   * @param {HTMLFormElement} form
   * @param {HTMLElement | null} button
   * @param {PageCall} call
   * @param {AbortSignal} signal
   */
  async #waitForPerson(form, button, call, signal) {
    const { promise, resolve, reject } = /** @type {PromiseWithResolvers<unknown>} */ (Promise.withResolvers());
    const pressed = (/** @type {Event} */ event) => {
      if (event.target !== form || !event.isTrusted) return;
      // The page's own listeners run between this one and the next.
      setTimeout(() => resolve(event.defaultPrevented ? HANDLED : submitted(form)), 0);
    };
    const ended = new AbortController();
    window.addEventListener("submit", pressed, { capture: true, signal: ended.signal });
    const reset = (/** @type {Event} */ event) => event.target === form && reject(new Error("The form was reset."));
    window.addEventListener("reset", reset, { capture: true, signal: ended.signal });
    signal.addEventListener("abort", () => reject(new Error("The call was cancelled.")), { signal: ended.signal });
    const asked = call.confirm(`Submit the form "${attribute(form, "toolname")}" as it is filled in?`, call.args);
    void asked.then((confirmed) => {
      if (ended.signal.aborted) return;
      ended.abort();
      if (confirmed) resolve(this.#submit(form, button, call.requestId));
      else reject(new Error("The form is filled in but not submitted: the person did not confirm. They can still submit it."));
    });
    return promise.finally(() => ended.abort());
  }

  /**
   * @param {HTMLFormElement} form
   * @param {HTMLElement | null} button
   * @param {string} id
   */
  async #submit(form, button, id) {
    /** @type {Event | null} */
    let event = null;
    const seen = (/** @type {Event} */ given) => {
      if (given.target === form) event = given;
    };
    const answer = this.#context.answer(id);
    // Awaited only if the page responds itself.
    answer.catch(() => {});
    window.addEventListener("submit", seen, { capture: true });
    const responds = this.#context.submitting(id, () => HTMLFormElement.prototype.requestSubmit.call(form, button));
    window.removeEventListener("submit", seen, { capture: true });
    if (responds) return answer;
    if (!event) throw new Error("The page prevented the submission.");
    return /** @type {Event} */ (event).defaultPrevented ? HANDLED : submitted(form);
  }
};

var HANDLED = "The form was submitted, and the page handled it itself.";

/** @param {HTMLFormElement} form */
function submitted(form) {
  return `The form was submitted to ${attribute(form, "action") ?? location.pathname}.`;
}

/**
 * Fields shadow the form's methods of the same name, so the methods of the class are called.
 * @param {HTMLFormElement} form
 * @param {string} name
 */
function attribute(form, name) {
  return Element.prototype.getAttribute.call(form, name);
}

/** @returns {HTMLFormElement[]} */
function formsWithTools() {
  return [...document.querySelectorAll("form[toolname][tooldescription]")].filter((form) => form instanceof HTMLFormElement);
}

/** @param {HTMLFormElement} form */
function validationMessages(form) {
  const invalid = [...Element.prototype.querySelectorAll.call(form, ":invalid")].filter((field) => isField(field));
  return invalid.map((field) => `${field.name}: ${field.validationMessage}`).join("; ");
}

/**
 * @param {Element} element
 * @returns {element is Field}
 */
function isField(element) {
  const kinds = [HTMLInputElement, HTMLSelectElement, HTMLTextAreaElement];
  return kinds.some((kind) => element instanceof kind) && !element.matches(":disabled");
}

/**
 * The fields of a form by name; choices share a name.
 * @param {HTMLFormElement} form
 */
function fieldsOf(form) {
  /** @type {Map<string, Field[]>} */
  const named = new Map();
  const elements = Object.getOwnPropertyDescriptor(HTMLFormElement.prototype, "elements")?.get?.call(form) ?? [];
  for (const field of [...elements].filter(isField)) {
    const skipped = ["submit", "button", "image", "reset", "file"].includes(field.type);
    const hidden = field.type === "hidden" && !field.hasAttribute("toolparamdescription");
    if (field.name && !skipped && !hidden) named.set(field.name, [...(named.get(field.name) ?? []), field]);
  }
  return named;
}

/**
 * @param {HTMLFormElement} form
 * @returns {HTMLButtonElement | HTMLInputElement | null}
 */
function submitter(form) {
  const wanted = "button:not([type]), button[type=submit], input[type=submit], input[type=image]";
  const found = Element.prototype.querySelector.call(form, `:is(${wanted}):not(:disabled)`);
  return found instanceof HTMLButtonElement || found instanceof HTMLInputElement ? found : null;
}

/** @param {HTMLFormElement} form */
function describe(form) {
  const fields = [...fieldsOf(form)];
  const required = fields.filter(([, same]) => same.some((field) => field.required)).map(([name]) => name);
  const properties = Object.fromEntries(fields.map(([name, same]) => [name, schemaOf(same)]));
  return {
    name: attribute(form, "toolname"),
    title: attribute(form, "tooltitle") ?? undefined,
    description: attribute(form, "tooldescription"),
    inputSchema: { type: "object", properties, ...(required.length > 0 ? { required } : {}) },
    via: "form",
  };
}

/** @param {Field[]} same */
function schemaOf(same) {
  const [field] = same;
  if (!field) return {};
  const label = [...(field.labels ?? [])].map((found) => found.textContent?.trim() ?? "").join(" ");
  const group = same.length > 1 ? field.closest("fieldset[toolparamdescription]") : null;
  const text = (group ?? field).getAttribute("toolparamdescription") ?? (same.length > 1 ? "" : label);
  const description = (text || field.getAttribute("aria-description")) ?? "";
  return { ...kindOf(field, same), ...(description ? { description } : {}) };
}

/**
 * @param {Field} field
 * @param {Field[]} same
 * @returns {Record<string, unknown>}
 */
function kindOf(field, same) {
  if (field instanceof HTMLSelectElement) {
    const choices = { type: "string", enum: [...field.options].map((option) => option.value) };
    return field.multiple ? { type: "array", items: choices, uniqueItems: true } : choices;
  }
  const lengths = {
    ...(field.minLength > 0 ? { minLength: field.minLength } : {}),
    ...(field.maxLength >= 0 ? { maxLength: field.maxLength } : {}),
  };
  if (field instanceof HTMLTextAreaElement) return { type: "string", ...lengths };
  const values = same.map((one) => one.value);
  switch (field.type) {
    case "radio":
      return { type: "string", enum: values };
    case "checkbox":
      return same.length > 1 ? { type: "array", items: { type: "string", enum: values }, uniqueItems: true } : { type: "boolean" };
    case "number":
    case "range": {
      const bounds = [["minimum", field.min], ["maximum", field.max]].filter(([, value]) => value !== "" && Number.isFinite(Number(value)));
      return { type: "number", ...Object.fromEntries(bounds.map(([name, value]) => [name, Number(value)])) };
    }
    case "date":
      return { type: "string", format: "date" };
    case "email":
      return { type: "string", format: "email", ...lengths };
    case "url":
      return { type: "string", format: "uri", ...lengths };
    default:
      return { type: "string", ...lengths, ...(field.pattern ? { pattern: `^(?:${field.pattern})$` } : {}) };
  }
}

/**
 * Fill in a form with the events of user input; throws before anything is changed.
 * @param {HTMLFormElement} form
 * @param {Record<string, unknown>} args
 */
function fill(form, args) {
  const fields = fieldsOf(form);
  for (const [name, value] of Object.entries(args)) {
    const same = fields.get(name);
    if (!same) throw new Error(`The form has no field named ${name}.`);
    if (!fits(same, value)) throw new Error(`The field ${name} cannot have that value.`);
  }
  for (const [name, value] of Object.entries(args)) put(fields.get(name) ?? [], value);
}

/**
 * Whether a value is one of the choices, where there are choices.
 * @param {Field[]} same
 * @param {unknown} value
 */
function fits(same, value) {
  const [field] = same;
  if (field?.type === "checkbox" && same.length === 1) return typeof value === "boolean";
  const several = field?.type === "select-multiple" || field?.type === "checkbox";
  if (Array.isArray(value) !== several) return false;
  const choices = field instanceof HTMLSelectElement ? [...field.options] : same;
  const wanted = (Array.isArray(value) ? value : [value]).map(String);
  if (field instanceof HTMLSelectElement || field?.type === "checkbox" || field?.type === "radio") {
    return wanted.every((one) => choices.some((choice) => choice.value === one));
  }
  return ["string", "number", "boolean"].includes(typeof value);
}

/**
 * @param {Field[]} same
 * @param {unknown} value
 */
function put(same, value) {
  const wanted = (Array.isArray(value) ? value : [value]).map(String);
  for (const field of same) {
    if (field instanceof HTMLSelectElement) for (const option of field.options) option.selected = wanted.includes(option.value);
    else if (field.type === "checkbox" && same.length === 1) /** @type {any} */ (field).checked = value === true;
    else if (field.type === "checkbox" || field.type === "radio") /** @type {any} */ (field).checked = wanted.includes(field.value);
    else field.value = wanted.join(",");
    field.dispatchEvent(new Event("input", { bubbles: true, composed: true }));
    field.dispatchEvent(new Event("change", { bubbles: true }));
  }
}
