"""Which elements of a page listen for the mouse.

Owns asking the browser and marking those elements in our world, whose scripts cannot see the listeners of the page's
own scripts.
"""

from __future__ import annotations

import asyncio
from typing import Any

from tabhub.browser.driver.cdp_values import parse_object, parse_objects
from tabhub.browser.driver.frames import Frame
from tabhub.errors import CommandFailed, ContextDestroyed

_TYPES = frozenset({"click", "mousedown", "mouseup", "pointerdown", "pointerup", "touchstart", "dblclick"})
_MAX_NEW = 300
"""Elements that are resolved for one look; the rest are for the next ones."""
_GROUP = "tabhub listeners"
_MARK = "function (...elements) { for (const element of elements) tabhubKit.heard(element); }"


async def learn_listeners(frame: Frame) -> bool:
    """Mark new elements with listeners for the mouse in the frame's world; a page that cannot be asked has none.

    Returns whether there were any.
    """
    try:
        try:
            return await _learn(frame)
        except ContextDestroyed:
            # The document was replaced before; the new one has a world of its own.
            frame.page.state.worlds.forget_document((frame.session_id, frame.frame_id))
            return await _learn(frame)
    except CommandFailed:
        return False  # the script that follows reports a lost page


async def _learn(frame: Frame) -> bool:
    page, session = frame.page, frame.session_id
    if _has_own_target(frame):  # the page's own world can be asked while ours is made
        world, answer = await asyncio.gather(frame.world(), _page_listeners(frame))
    else:
        world, answer = await frame.world(), await _page_listeners(frame)
    known = page.state.worlds.heard.setdefault(world.token, set())
    listeners = (one for one in parse_objects(answer.get("listeners")) if one.get("type") in _TYPES)
    nodes = dict.fromkeys(one.get("backendNodeId") for one in listeners)
    chosen = [node for node in nodes if type(node) is int and node not in known][:_MAX_NEW]
    if chosen:
        handles = await asyncio.gather(*(_resolve(frame, node, world.context_id) for node in chosen))
        known.update(chosen)
        arguments = [{"objectId": one} for one in handles if one]
        call = {"executionContextId": world.context_id, "functionDeclaration": _MARK, "arguments": arguments}
        await page.cdp("Runtime.callFunctionOn", call, session)
    page.cdp_nowait("Runtime.releaseObjectGroup", {"objectGroup": _GROUP}, session)
    return bool(chosen)


def _has_own_target(frame: Frame) -> bool:
    return frame.parent is None or frame.parent.session_id != frame.session_id


async def _page_listeners(frame: Frame) -> dict[str, Any]:
    if (document := await _page_document(frame)) is None:
        return {}
    # In their own world only: Chromium crashes when it is asked (with `pierce`) for the listeners of all worlds.
    page, session = frame.page, frame.session_id
    query = {"objectId": document, "depth": -1, "pierce": False}
    try:
        return parse_object(await page.cdp("DOMDebugger.getEventListeners", query, session))
    finally:
        page.cdp_nowait("Runtime.releaseObject", {"objectId": document}, session)


async def _page_document(frame: Frame) -> str | None:
    """A handle of the frame's document in the page's own world, where the page's listeners are known.

    It is in no group of objects: the browser puts every listener, with its source, into the group of the handle.
    """
    page, session, group = frame.page, frame.session_id, {"objectGroup": _GROUP}
    query: dict[str, Any] = {"expression": "document"}
    if _has_own_target(frame):
        return _handle(await page.cdp("Runtime.evaluate", query, session), "result")
    query["contextId"] = (await frame.world()).context_id
    ours = _handle(await page.cdp("Runtime.evaluate", query | group, session), "result")
    described = parse_object(await page.cdp("DOM.describeNode", {"objectId": ours}, session))
    node = parse_object(described.get("node")).get("backendNodeId")
    return _handle(await page.cdp("DOM.resolveNode", {"backendNodeId": node}, session), "object")


def _handle(answer: Any, name: str) -> str | None:
    handle = parse_object(parse_object(answer).get(name)).get("objectId")
    return handle if isinstance(handle, str) else None


async def _resolve(frame: Frame, node: int, context_id: int) -> str | None:
    """A handle in our world; None for an element of another document."""
    query: dict[str, Any] = {"backendNodeId": node, "executionContextId": context_id, "objectGroup": _GROUP}
    try:
        return _handle(await frame.page.cdp("DOM.resolveNode", query, frame.session_id), "object")
    except CommandFailed:
        return None
