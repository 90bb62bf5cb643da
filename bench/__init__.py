"""Measurements of the hub against the limit of its own server stack; `python -m bench` runs them all."""
