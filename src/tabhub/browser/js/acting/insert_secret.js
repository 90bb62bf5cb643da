// Types a secret into the focused field, if this document still is the one that the secret was released for.
// The field stays secret from then on, for all that read the page.
async function ({ text, origin: released, paste }) {
  const failed = (problem) => ({ failed: problem });
  const focused = () => {
    let active = document.activeElement;
    while (active?.shadowRoot?.activeElement) active = active.shadowRoot.activeElement;
    return active;
  };
  const typeable = (field) => field && (field.localName === "textarea" || field.localName === "input" || field.isContentEditable) && !field.readOnly && !field.disabled;
  const tick = () => new Promise((done) => setTimeout(done, 20));
  const target = kit.fieldOf(this);
  // Fields for one character each pass the focus on to the next one.
  const split = target.localName === "input" && target.maxLength === 1 && text.length > 1;
  for (const piece of split ? text : [text]) {
    const field = focused();
    if (globalThis.origin !== released) return failed("the document is one of another site now");
    if (!typeable(field) || (!split && field !== target && !target.contains(field))) return failed("it lost the focus");
    if (split && field.maxLength !== 1) break;
    kit.keepSecret(field);
    if (!kit.enterText(field, piece, paste && !split)) return failed("it accepts no text");
    if (split) await tick();
  }
  return {};
}
