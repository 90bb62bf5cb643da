"""Permissions: whether a tool is off, needs a person's word each time, or runs by itself.

Owns the decision from the settings, most specific first: the tool, its plugin (or other source), the default. Knows
nothing of how a person is asked. Tables are made once per configuration; a decision is two look-ups at most.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tabhub.config import Config, Permission

__all__ = ["Permission", "Permissions"]


@dataclass(frozen=True, slots=True)
class Permissions:
    """What the settings say, ready to be looked up."""

    default: Permission
    plugins: Mapping[str, Permission]
    tools: Mapping[tuple[str, str], Permission]
    skipped: bool = False
    """Whether `ask` was turned into `auto` everywhere."""

    @classmethod
    def parse(cls, config: Config) -> Permissions:
        """Make the tables. A tool may be named as the plugin names it or as agents see it (`<plugin>_<tool>`)."""
        skip = config.skip_permissions
        plugins: dict[str, Permission] = {}
        tools: dict[tuple[str, str], Permission] = {}
        for plugin, settings in config.permissions.plugins.items():
            if settings.permission is not None:
                plugins[plugin] = _effective(settings.permission, skip)
            for tool, level in settings.tools.items():
                tools[plugin, tool] = _effective(level, skip)
            for tool, level in settings.tools.items():
                other = tool.removeprefix(f"{plugin}_") if tool.startswith(f"{plugin}_") else f"{plugin}_{tool}"
                tools.setdefault((plugin, other), _effective(level, skip))
        return cls(_effective(config.permissions.default, skip), plugins, tools, skip)

    def decide(self, plugin: str, tool: str) -> Permission:
        """What holds for one tool of a plugin, browser, origin or server."""
        return self.tools.get((plugin, tool)) or self.plugins.get(plugin) or self.default


def _effective(level: Permission, skip: bool) -> Permission:
    return "auto" if skip and level == "ask" else level
