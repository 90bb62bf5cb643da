"""Measurements of the hub against a bare pass-through; `python -m bench` runs them all."""
