"""The text of a code editor, read from its own objects in the page's world.

Code editors draw only the lines in view; the rest of their text can be reached only from there. What comes back is the
page's word: a text, never code.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from tabhub.browser.driver.frames import script_value
from tabhub.browser.driver.worlds import source
from tabhub.browser.elements.element import Element


@dataclass(frozen=True, slots=True)
class EditorModel:
    """A code editor by its root element."""

    root: Element
    object_id: str
    """The root in the page's world."""

    async def text(self) -> str | None:
        return await self._read(line=False)

    async def before_cursor(self) -> str | None:
        """The part of the cursor's line before it."""
        return await self._read(line=True)

    async def _read(self, *, line: bool) -> str | None:
        page, session = self.root.page, self.root.frame.session_id
        call = {
            "objectId": self.object_id,
            "functionDeclaration": source("editor_model"),
            "arguments": [{"value": line}],
            "returnByValue": True,
        }
        value = script_value(page, await page.cdp("Runtime.callFunctionOn", call, session))
        return value if isinstance(value, str) else None


@asynccontextmanager
async def editor_model(root: Element) -> AsyncIterator[EditorModel]:
    page, session = root.page, root.frame.session_id
    async with root.object_id() as handle:
        described = await page.cdp("DOM.describeNode", {"objectId": handle}, session)
        where = {"backendNodeId": described["node"]["backendNodeId"], "objectGroup": f"tabhub {root.ref}"}
        resolved = await page.cdp("DOM.resolveNode", where, session)
        yield EditorModel(root, str(resolved["object"]["objectId"]))
