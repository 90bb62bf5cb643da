"""The part of a tab's record that an agent may see: without what belongs to the sites it is kept off.

Owns which page, frame or URL each entry belongs to. Where that is no longer known, the entry is left out.
"""

from __future__ import annotations

from collections.abc import Iterable

from tabhub.browser.record.console_messages import Message
from tabhub.browser.record.recorder import TabRecord
from tabhub.browser.record.traffic import Request, WebSocketFrame
from tabhub.trust.visibility import View


def visible_requests(view: View, record: TabRecord, requests: Iterable[Request]) -> list[Request]:
    return view.keep(requests, lambda request: is_hidden(view, record, request)) if view.active else list(requests)


def is_hidden(view: View, record: TabRecord, request: Request) -> bool:
    if view.hides(request.url) or view.hides(request.document):
        return True
    if request.kind == "websocket" and view.hides_text(request.initiator):  # its document is not known
        return True
    opens_page = request.page == record.traffic.page + 1
    return view.active and not opens_page and _of_hidden_page(view, record, request.page)


def visible_frames(view: View, record: TabRecord, frames: Iterable[WebSocketFrame]) -> list[WebSocketFrame]:
    """The WebSocket frames whose socket is known and may be seen."""
    if not view.active:
        return list(frames)
    sockets = {one.id for one in record.traffic.requests if not is_hidden(view, record, one)}
    return view.keep(frames, lambda frame: frame.socket not in sockets)


def visible_messages(view: View, record: TabRecord, messages: Iterable[Message]) -> list[Message]:
    def hidden(message: Message) -> bool:
        places = (message.url, *message.places)
        unknown = message.child and not any(places)
        return (
            unknown
            or any(map(view.hides, places))
            or view.hides_text(message.text)
            or _of_hidden_page(view, record, message.page)
        )

    return view.keep(messages, hidden) if view.active else list(messages)


def _of_hidden_page(view: View, record: TabRecord, number: int) -> bool:
    url = dict(record.pages).get(number)
    return url is None or view.hides(url)
