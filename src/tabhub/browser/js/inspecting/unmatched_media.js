// The media queries that do not match.
({ queries }) => ({ failed: queries.filter((query) => !matchMedia(query).matches) })
