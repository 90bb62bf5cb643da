// How far the page is scrolled.
() => ({ x: scrollX, y: scrollY })
