"""What a policy can see and do, whichever product does it."""

from __future__ import annotations

from typing import Protocol

from bench.miniwob.actions import Action
from bench.miniwob.products.mcp import Meter
from bench.miniwob.view import Node, View


class Product(Protocol):
    """A browser in the hands of an agent."""

    name: str

    def begin(self, *, log: bool) -> Meter:
        """Count the calls from here on; with `log`, keep them."""
        ...

    async def open(self, url: str) -> View:
        """Go to a page and see it."""
        ...

    async def view(self, *, boxes: bool = False) -> View:
        """The page as it is after the last action."""
        ...

    async def do(self, *actions: Action) -> None:
        """Do actions in order, in as few calls as the product allows."""
        ...

    async def value(self, node: Node) -> str:
        """All that a field holds."""
        ...

    async def elements(self, selector: str, *attributes: str) -> list[Node]:
        """Elements that the view does not show: tag, text, box, and `attribute=value` of those that are set."""
        ...
