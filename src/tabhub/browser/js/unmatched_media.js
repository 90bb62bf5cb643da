// Which of some media queries do not hold.
({ queries }) => ({ failed: queries.filter((query) => !matchMedia(query).matches) })
