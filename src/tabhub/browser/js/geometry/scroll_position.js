// The scroll position of the page.
() => ({ x: scrollX, y: scrollY })
