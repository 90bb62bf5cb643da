// Which fields hold secrets, and what is shown instead of their values. Every tool that reads a page asks here.
// The words are those of trust/secret_names.py.
const MASK = "•••";
const SECRET_WORDS = new Set(
  `password passwd passphrase passcode pwd pass secret token apikey otp totp pin ssn cvc cvv csc jwt sid sessionid
  credential credentials authcode cardnumber ccnumber accesstoken refreshtoken idtoken authtoken clientsecret`.split(/\s+/),
);
const SECRET_PAIRS = new Set(
  `api key|access key|private key|secret key|card number|cc number|cc num|cc csc|cc cvc|cc cvv|card cvc|card cvv|security code|verification code|time code|auth code|recovery code|backup code|session id|social security`.split("|"),
);
const SECRET_ENDINGS = ["password", "passwd", "passphrase", "secret", "token", "apikey", "cardnumber", "authtoken"];
const SECRET_AUTOCOMPLETE = /(^|\s)(current-password|new-password|one-time-code|cc-number|cc-csc|cc-exp(-month|-year)?)(\s|$)/i;
const CARD_NUMBER = /^[3-6][\d -]{12,22}$/;
// Values of fewer characters are masked in their fields but not wherever else the page shows them.
const SHORTEST_ELSEWHERE = 6;
const FIELDS_OF_TEXT = "input, textarea, select, [contenteditable]";
const NOT_TEXT = new Set(["button", "submit", "reset", "image", "checkbox", "radio", "file", "range", "color"]);

const namesSecret = (name) => {
  if (!name || name.length > 80) return false;
  const words = (name.match(/[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+/g) ?? []).map((word) => word.toLowerCase());
  return words.some(
    (word, at) => SECRET_WORDS.has(word) || SECRET_ENDINGS.some((ending) => word.endsWith(ending)) || SECRET_PAIRS.has(`${word} ${words[at + 1]}`),
  );
};

const isCardNumber = (text) => {
  if (!CARD_NUMBER.test(text)) return false;
  const digits = [...text.replace(/\D/g, "")].reverse().map(Number);
  const sum = digits.reduce((all, digit, at) => all + (at % 2 ? (digit * 2 > 9 ? digit * 2 - 9 : digit * 2) : digit), 0);
  return digits.length >= 13 && digits.length <= 19 && sum % 10 === 0;
};

// Fields that were secret once stay so: a button that shows the password makes it a text field, or replaces the field.
const onceSecret = new WeakSet();
const secretNames = new Set();
const keepSecret = (field) => {
  onceSecret.add(field);
  for (const name of [field.id, field.getAttribute("name")]) if (name) secretNames.add(name);
};
const typeChanges = new MutationObserver((changes) => {
  for (const { target, oldValue } of changes) if (oldValue?.toLowerCase() === "password") keepSecret(target);
});
const watchedRoots = new WeakSet();
const watchTypes = (root) => {
  if (watchedRoots.has(root)) return;
  watchedRoots.add(root);
  typeChanges.observe(root, { subtree: true, attributes: true, attributeFilter: ["type"], attributeOldValue: true });
};

const isSecretField = (element) => {
  if (onceSecret.has(element)) return true;
  const tag = element.localName;
  if (tag === "input" ? NOT_TEXT.has(element.type) : tag !== "textarea" && tag !== "select" && !element.hasAttribute?.("contenteditable")) return false;
  watchTypes(element.getRootNode());
  if (element.type === "password") {
    keepSecret(element);
    return true;
  }
  const [name, id] = [element.getAttribute("name"), element.id];
  if (secretNames.has(name) || secretNames.has(id)) return true;
  if (namesSecret(name) || namesSecret(id) || SECRET_AUTOCOMPLETE.test(element.getAttribute("autocomplete") ?? "")) return true;
  return tag === "input" && isCardNumber(element.value);
};

// The field that an element stands for: a label's control, the input of a code editor, or the only field inside it.
const fieldOf = (element) => {
  const field = element.localName === "label" && element.control ? element.control : element;
  const editor = editorOf(field);
  if (editor) return editor.input;
  if ("value" in field || field.isContentEditable) return field;
  const inner = field.querySelectorAll(INNER_FIELDS);
  return inner.length === 1 ? inner[0] : field;
};

const plainValue = (field) => ("value" in field ? String(field.value ?? "") : (field.textContent ?? ""));

const secretFields = function* (start = document) {
  for (const root of allRoots(start)) {
    watchTypes(root);
    for (const field of root.querySelectorAll(FIELDS_OF_TEXT)) if (isSecretField(field)) yield field;
  }
};

// Those of this document, and of the frames inside it that can be read along with it.
const framedSecretFields = function* (start = document) {
  yield* secretFields(start);
  for (const frame of start.querySelectorAll("iframe, frame")) if (frame.contentDocument) yield* framedSecretFields(frame.contentDocument);
};

// The values to mask wherever they are, longest first: those that fields have now, and those they had in the markup.
const secretValues = () => {
  const values = new Set();
  for (const field of framedSecretFields()) {
    if (field.localName === "select") continue;
    for (const value of [plainValue(field), field.getAttribute("value") ?? ""]) if (value) values.add(value);
  }
  return [...values].sort((one, other) => other.length - one.length);
};

// What the hub masks in the results of scripts. Every value that was read is kept here, so that an answer which never
// reaches the hub loses nothing. The fields that were there when a script began are read again when it has ended,
// wherever they are by then.
const MOST_SECRETS = 200;
const LONGEST_SECRET = 4000;
const MOST_SCRIPTS = 20;
const valuesRead = new Set();
let fieldsBefore = [];
let scriptsEnded = 0;
const readSecrets = () => {
  const fields = [...new Set([...framedSecretFields(), ...fieldsBefore.flat()])];
  for (const field of fields) {
    const value = field.localName === "select" ? "" : plainValue(field);
    valuesRead.delete(value);
    if (value && value.length <= LONGEST_SECRET) valuesRead.add(value);
  }
  for (const value of [...valuesRead].slice(0, -MOST_SECRETS)) valuesRead.delete(value);
  return fields;
};
const secretsRead = () => {
  const fields = readSecrets();
  return { values: [...valuesRead], go: fields.length > 0, frames: document.querySelector("iframe, frame, object, embed") !== null };
};
const secretsBeforeScript = () => {
  const fields = readSecrets();
  if (fields.length) fieldsBefore = [...fieldsBefore, fields].slice(-MOST_SCRIPTS);
  return { values: [...valuesRead], go: fields.length > 0 };
};
const secretsAfterScript = () => {
  readSecrets();
  scriptsEnded += 1;
  if (scriptsEnded >= fieldsBefore.length) [fieldsBefore, scriptsEnded] = [[], 0];
  return { values: [...valuesRead] };
};

// The HTML of a part of the page with the same values masked: in `value` attributes of any length, elsewhere if long.
const maskMarkup = (html) => {
  const asText = (value) => value.replace(/&/g, "&amp;").replace(/\u00a0/g, "&nbsp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const values = secretValues();
  for (const value of values) {
    const attribute = value.replace(/&/g, "&amp;").replace(/\u00a0/g, "&nbsp;").replace(/"/g, "&quot;");
    for (const written of new Set([attribute, asText(attribute), asText(value)])) {
      html = html.replaceAll(` value="${written}"`, ` value="${MASK}"`);
      if (value.length >= SHORTEST_ELSEWHERE) html = html.replaceAll(written, MASK);
      // The text of a field.
      else html = html.replaceAll(`>${written}</textarea>`, `>${MASK}</textarea>`);
    }
  }
  return html;
};

// A text of the page with the values of secret fields masked.
const maskValues = (text, values) => {
  for (const value of values) if (value.length >= SHORTEST_ELSEWHERE && text.includes(value)) text = text.replaceAll(value, MASK);
  return text;
};
