// The hub's toolkit in its isolated world of a document: elements by short refs that are stable for its lifetime.
const makeKit = () => {
  let [token, prefix] = ["", ""];
  const elements = new Map();
  const refs = new WeakMap();
  let count = 0;
  const ref = (element) => {
    let name = refs.get(element);
    if (!name) {
      count += 1;
      name = `${prefix}${count}`;
      refs.set(element, name);
      elements.set(name, new WeakRef(element));
    }
    return name;
  };
  const element = (name) => {
    const found = elements.get(name)?.deref();
    return found?.isConnected ? found : null;
  };
  const nameShown = (found, role) => {
    const content = isSecretField(found) || editable(found) || FIELD_ROLES.has(role) ? "" : squeeze(contentText(found));
    return cut(wholeName(found, role) || content, 80);
  };
  // What a person knows an element by.
  const identity = (found) => {
    const role = lookup(found).role || found.localName;
    return { role, name: nameShown(found, role) };
  };
  const label = (found) => {
    const role = lookup(found).role || found.localName;
    const name = nameShown(found, role);
    const hint = name ? "" : hintOf(found, holdsActing(found));
    const more = moreOf(found, "", name);
    return `${role}${name ? ` ${JSON.stringify(name)}` : ""}${more} [${ref(found)}${hint && ` ${hint}`}]`;
  };
  const focusOutside = (field) => {
    const active = field.getRootNode().activeElement ?? document.activeElement;
    const own = !active || active === document.body || active.contains(field) || field.contains(active) || active.shadowRoot?.contains(field);
    return own ? null : label(active);
  };
  return {
    get token() {
      return token;
    },
    // The hub names each world once.
    begin: (newToken, newPrefix) => {
      if (!token) [token, prefix] = [newToken, newPrefix];
      return [token, prefix];
    },
    ref,
    element,
    label,
    identity,
    focusOutside,
    role: roleOf,
    asRole,
    name: nameOf,
    text: (found) => squeeze(contentText(found)),
    acting: actingElements,
    shownRole: (found) => lookup(found).role,
    list: (wanted) => oneLook(() => listTargets({ element }, wanted)),
    heard: (found) => listening.add(found),
    seenByPeople,
    isClipped,
    isPicture,
    changing: isChanging,
    isSecret: isSecretField,
    keepSecret,
    fieldOf,
    fieldText,
    editorOf,
    editorRoots: EDITOR_ROOTS,
    oneLook,
    enterText,
    drawn,
    secretFields,
    secretValues,
    secretsRead,
    secretsBeforeScript,
    secretsAfterScript,
    maskValues,
    maskMarkup,
    visible: seen,
    roots: allRoots,
    children: childrenOf,
    parent: parentOf,
    snapshot: (wanted) => snapshot({ token, ref, element }, wanted),
    find: (wanted) => findTarget({ ref, element, label }, wanted),
    search: (wanted) => search({ ref, label }, wanted),
    all: (selector) => selectAll(selector),
    closed: (host, root) => closedRoots.set(host, root),
    hosts: untriedHosts,
    ...makeReactions(),
  };
};
