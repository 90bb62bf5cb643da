"""Schemas of tools: bounds, references, validation, and the form that all model APIs accept."""
