// A slider or a segment of a date as it says of itself.
function () {
  const number = (name) => (this.hasAttribute(name) ? Number(this.getAttribute(name)) : null);
  return {
    now: number("aria-valuenow"),
    least: number("aria-valuemin"),
    most: number("aria-valuemax"),
    text: (this.getAttribute("aria-valuetext") ?? this.textContent ?? "").trim().slice(0, 100).toWellFormed(),
  };
}
