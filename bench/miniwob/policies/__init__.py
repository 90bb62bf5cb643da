"""The policies: one script for each kind of task, for all products."""

from __future__ import annotations

from bench.miniwob.policies import choices, clicks, dates, drags, figures, mail, menus, pointing, posts, texts
from bench.miniwob.policies.registry import Policy, collect

POLICIES: dict[str, Policy] = collect(choices, clicks, dates, drags, figures, mail, menus, posts, pointing, texts)
