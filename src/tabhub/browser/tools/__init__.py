"""The built-in browser tools, one file per family."""
