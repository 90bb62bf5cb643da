"""Which policy does which task, and what several policies need."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import ModuleType

from bench.miniwob.actions import Target
from bench.miniwob.products.base import Product
from bench.miniwob.view import Node, View

Policy = Callable[[Product, View], Awaitable[None]]
_TASKS = "__miniwob_tasks__"

_REACTION = "a test of reaction: it lasts ten seconds whatever is done, and circles move on while an agent thinks"
LEFT_OUT = {
    "chase-circle": _REACTION,
    "moving-items": _REACTION,
    "count-sides": "the shape is painted on a canvas; only a picture shows it, and the policies read text",
    "hover-shape": "the page gives no reward",
}
"""The pages without a policy, and why."""


def task(*names: str) -> Callable[[Policy], Policy]:
    """Register a policy for tasks."""

    def register(policy: Policy) -> Policy:
        setattr(policy, _TASKS, names)
        return policy

    return register


def collect(*modules: ModuleType) -> dict[str, Policy]:
    """The policies of modules, by task."""
    found: dict[str, Policy] = {}
    for module in modules:
        for value in vars(module).values():
            for name in getattr(value, _TASKS, ()):
                if found.setdefault(name, value) is not value:
                    raise ValueError(f"{name} has two policies")
    return found


def target(view: View, text: str, roles: str | None = None) -> Target:
    """What to click for a text: what can be acted on by its ref, otherwise the text itself."""
    found = [node for node in view.all(roles, text) if node.ref]
    return found[-1] if found else text


def spot(node: Node) -> Target:
    """A node by its ref, if it has one, or the place where it is."""
    return node if node.ref else node.centre


def button(view: View, name: str = "Submit") -> Target:
    return target(view, name)
