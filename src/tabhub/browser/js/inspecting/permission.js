// Whether the page has a permission: granted, prompt, denied, or unavailable where it cannot ask.
async ({ name }) => {
  const { hidden } = document;
  if (!isSecureContext || origin === "null") return { state: "unavailable", hidden };
  return { state: (await navigator.permissions.query({ name })).state, hidden };
}
