// Load metrics, from the browser's own records.
() => {
  const entries = (type) => {
    if (!PerformanceObserver.supportedEntryTypes.includes(type)) return [];
    const observer = new PerformanceObserver(() => {});
    observer.observe({ type, buffered: true });
    const found = observer.takeRecords();
    observer.disconnect();
    return found;
  };
  const round = (value, digits = 1) => Number(value.toFixed(digits));
  const vitals = {};
  const [navigation] = performance.getEntriesByType("navigation");
  if (navigation) {
    vitals.ttfb = round(navigation.responseStart);
    if (navigation.domContentLoadedEventEnd) vitals.domContentLoaded = round(navigation.domContentLoadedEventEnd);
    if (navigation.loadEventEnd) vitals.load = round(navigation.loadEventEnd);
  }
  const paint = performance.getEntriesByName("first-contentful-paint")[0];
  if (paint) vitals.fcp = round(paint.startTime);
  const largest = entries("largest-contentful-paint").at(-1);
  if (largest) vitals.lcp = round(largest.startTime);
  // The score is that of the worst burst: shifts less than a second apart, at most five seconds in all.
  let worst = 0;
  let burst = { sum: 0, first: 0, last: 0 };
  for (const { value, startTime, hadRecentInput } of entries("layout-shift")) {
    if (hadRecentInput) continue;
    if (startTime - burst.last > 1000 || startTime - burst.first > 5000) burst = { sum: 0, first: startTime, last: 0 };
    burst.sum += value;
    burst.last = startTime;
    worst = Math.max(worst, burst.sum);
  }
  vitals.cls = round(worst, 4);
  const slowest = Math.max(0, ...entries("event").map(({ duration }) => duration));
  if (slowest) vitals.slowestInteraction = round(slowest);
  const tasks = entries("longtask").map(({ duration }) => duration);
  const resources = performance.getEntriesByType("resource");
  return {
    url: location.href.slice(0, 2000),
    ready: document.readyState,
    hidden: document.hidden,
    vitals,
    longTasks: { count: tasks.length, longest: round(Math.max(0, ...tasks)), total: round(tasks.reduce((a, b) => a + b, 0)) },
    resources: { count: resources.length, bytes: resources.reduce((sum, { transferSize }) => sum + transferSize, 0) },
  };
}
