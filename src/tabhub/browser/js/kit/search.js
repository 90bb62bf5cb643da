// All elements that match a text or role, each with its landmark, heading and row.
const placeOf = (element) => {
  let landmark = null;
  let role = "";
  for (let at = parentOf(element); at && !landmark; at = parentOf(at)) {
    role = roleOf(at);
    if (LANDMARKS.has(role) || role === "table") landmark = at;
  }
  let heading = null;
  for (const one of (landmark ?? element.getRootNode()).querySelectorAll("h1, h2, h3, h4, h5, h6, [role=heading]")) {
    if (!(one.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING)) break;
    if (one !== element && !one.contains(element)) heading = one;
  }
  const words = [];
  if (landmark) words.push(`${role}${wholeName(landmark, role) ? ` ${JSON.stringify(cut(wholeName(landmark, role), 60))}` : ""}`);
  if (heading) words.push(`heading ${JSON.stringify(cut(wholeName(heading, "heading"), 60))}`);
  const row = rowOf(element);
  if (row) words.push(row);
  return words.join(", ");
};

// The part of a long name around the wanted text.
const excerpt = (name, wanted, longest = 200) => {
  const at = wanted ? name.toLowerCase().indexOf(wanted) : -1;
  if (at + wanted.length <= longest) return cut(name, longest);
  const from = Math.max(0, at - longest / 4);
  return `…${cut(name.slice(from), longest - 1)}`.toWellFormed();
};

const search = (kit, wanted) => oneLook(() => searched(kit, wanted));
const searched = (kit, { text, role: asked, limit, near, offset }) => {
  const role = asRole(asked);
  const secrets = secretValues();
  const apart = withoutNested(matches(text, role));
  const list = apart.slice(0, limit).map(({ element, role: own, name, visible, rank }) => ({
    ref: kit.ref(element),
    role: own || element.localName,
    name: maskValues(excerpt(name, squeeze(text ?? "").toLowerCase()), secrets),
    where: maskValues(placeOf(element), secrets),
    visible,
    rank,
    // Whatever listeners there are.
    acts: Boolean(text) && role !== "clickable" && role !== "group" && acts(element),
    states: [...statesOf(element, own, activeElement()), ...(isClipped(element) ? ["clipped"] : []), name ? "" : hintOf(element, holdsActing(element))].filter(Boolean).join(" "),
    ...(offset ? { box: boxOf(element, offset) } : {}),
  }));
  const shown = { found: list, total: apart.length, ...places() };
  return !list.length && near ? { ...shown, nearest: nearText(kit.label, text, role) } : shown;
};
