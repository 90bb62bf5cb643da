"""The built-in browser tools, one file a family. What they stand on is one folder up."""
