// Shows the secrets in this document's fields as dots, or as they were; they are shown again after 10 seconds.
// Returns how many are covered, once that is painted, whether there are frames, and `go` if there is neither.
async ({ cover }) => {
  clearTimeout(kit.covering);
  const uncover = () => {
    for (const [field, style] of kit.covered ?? []) {
      field.getAttribute("style"); // before this, removing it would leave an empty one
      if (style === null) field.removeAttribute("style");
      else field.setAttribute("style", style);
    }
    kit.covered = [];
  };
  uncover();
  if (!cover) return {};
  for (const field of kit.secretFields()) {
    // The browser itself shows passwords as dots.
    if (field.type === "password" || field.type === "hidden") continue;
    kit.covered.push([field, field.getAttribute("style")]);
    field.style.setProperty("-webkit-text-security", "disc", "important");
    if (field.localName === "select") field.style.setProperty("color", "transparent", "important");
  }
  kit.covering = setTimeout(uncover, 10000);
  const painted = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  if (kit.covered.length) await Promise.race([painted(), new Promise((done) => setTimeout(done, 300))]);
  const [covered, frames] = [kit.covered.length, document.querySelector("iframe, frame, object, embed") !== null];
  return { covered, frames, go: covered === 0 && !frames };
}
