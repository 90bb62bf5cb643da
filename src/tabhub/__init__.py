"""Tabhub: one local hub between AI agents and the tabs of a person's real browser."""

__version__ = "0.1.0"
