"""What went wrong in a page since the last answer: failed requests, uncaught exceptions and console errors.

Owns what of this an action's answer reports, and its bounds. The complete records are kept in `record/`.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from tabhub.browser.driver.cdp_values import parse_int, parse_object, parse_text, parse_url
from tabhub.browser.record.console_messages import Message, parse_message
from tabhub.trust.redact import HIDDEN, redact, redact_url
from tabhub.trust.visibility import View

EVENTS = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown")
_KINDS = ("Document", "XHR", "Fetch")
_MOST_KEPT, _MOST_SHOWN, _LONGEST = 50, 5, 200
_MOST_REQUESTS = 200
_CLIENT_ERROR, _SERVER_ERROR = 400, 500
Params = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Problem:
    text: str
    urls: tuple[str, ...]
    """The URLs that it belongs to."""


class PageProblems:
    """Those of one tab that no answer has reported yet."""

    def __init__(self) -> None:
        self._found: deque[_Problem] = deque(maxlen=_MOST_KEPT)
        self._requests: OrderedDict[tuple[str | None, str], tuple[str, str, bool]] = OrderedDict()
        """Requests for documents and data under way: method, URL, and whether an action ran when they began."""

    @property
    def awaited(self) -> bool:
        """Whether requests are under way that began during an action."""
        return any(acting for _, _, acting in self._requests.values())

    def handle_event(self, method: str, params: Params, child: str | None, host: str, *, acting: bool) -> None:
        """`host` is that of the tab's page: what other sites answer is reported only if it is a server's error."""
        if method in EVENTS:
            message = parse_message(method, params, _LONGEST)
            if message is not None and message.level == "error":
                self._add_message(message, unknown=child is not None)
        elif method.startswith("Network."):
            self._handle_request(method, params, (child, str(params.get("requestId"))[:200]), host, acting=acting)

    def _add_message(self, message: Message, *, unknown: bool) -> None:
        urls = tuple(url for url in (message.url, *message.places) if url)
        if unknown and not urls:
            return
        kind = "" if message.source == "exception" else "Console error: "
        # What follows a redacted word may belong to the same secret.
        text = redact(message.text.partition("\n")[0])
        text, hidden, _ = text.partition(HIDDEN)
        place = f" ({redact_url(message.url)[-80:]}:{message.line})" if message.url else ""
        self._add(_Problem(f"{kind}{text}{hidden}{place}"[:_LONGEST], urls))

    def _handle_request(
        self, method: str, params: Params, key: tuple[str | None, str], host: str, *, acting: bool
    ) -> None:
        if method == "Network.requestWillBeSent":
            if params.get("type") in _KINDS and len(self._requests) < _MOST_REQUESTS:
                request = parse_object(params.get("request"))
                self._requests[key] = (parse_text(request.get("method"), 20), parse_url(request.get("url")), acting)
            return
        if (begun := self._requests.get(key)) is None:
            return
        verb, url, _ = begun
        own = (urlsplit(url).hostname or "") == host
        if method == "Network.responseReceived":
            status = parse_int(parse_object(params.get("response")).get("status"))
            if status >= (_CLIENT_ERROR if own or params.get("type") == "Document" else _SERVER_ERROR):
                self._add(_Problem(f"{verb} {redact_url(url)[:150]} returned {status}", (url,)))
            self._requests.pop(key)
        elif method == "Network.loadingFailed":
            reason = parse_text(params.get("errorText"), 60)
            if own and not params.get("canceled") and reason != "net::ERR_ABORTED":
                self._add(_Problem(f"{verb} {redact_url(url)[:150]} failed: {reason}", (url,)))
            self._requests.pop(key)

    def _add(self, problem: _Problem) -> None:
        if problem not in self._found:
            self._found.append(problem)

    def forget_requests(self) -> None:
        """The tab is no longer watched: nothing reports their end."""
        self._requests.clear()

    def pop(self, view: View) -> list[str]:
        """What an agent may see of them; each is reported once."""
        shown = [
            problem.text
            for problem in self._found
            if not (view.active and (view.hides_text(problem.text) or any(map(view.hides, problem.urls))))
        ]
        self._found.clear()
        if len(shown) <= _MOST_SHOWN:
            return shown
        return [*shown[:_MOST_SHOWN], f"… {len(shown) - _MOST_SHOWN} more: browser_get_console_logs"]
