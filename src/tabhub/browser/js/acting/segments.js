// The segments of a date or time that is typed part by part, each with what it stands for.
function () {
  const KINDS = ["year", "month", "day", "hour", "minute", "second", "dayPeriod"];
  const kindOf = (segment) => {
    const type = segment.dataset.type ?? segment.dataset.segment;
    if (KINDS.includes(type)) return type;
    const label = (segment.getAttribute("aria-label") ?? "").toLowerCase();
    if (/^(am\/pm|meridiem|day period)/.test(label)) return "dayPeriod";
    const named = KINDS.find((kind) => label.startsWith(kind));
    if (named) return named;
    const most = Number(segment.getAttribute("aria-valuemax"));
    return { 12: "month", 23: "hour", 28: "day", 29: "day", 30: "day", 31: "day", 59: "minute" }[most] ?? (most > 999 ? "year" : "");
  };
  return [...this.querySelectorAll("[role=spinbutton]:not(input)")].slice(0, 20).map((segment) => ({
    ref: kit.ref(segment),
    kind: kindOf(segment),
    least: Number(segment.getAttribute("aria-valuemin")),
    now: segment.hasAttribute("aria-valuenow") ? Number(segment.getAttribute("aria-valuenow")) : null,
    text: (segment.getAttribute("aria-valuetext") ?? segment.textContent).trim().slice(0, 40).toWellFormed(),
  }));
}
