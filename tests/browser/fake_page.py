"""A document in memory that answers like our page code, depending on the evaluated code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.browser.conftest import Bench
from tests.browser.fake_browser import NO_ANSWER

VIEW = {
    "cssContentSize": {"x": 0, "y": 0, "width": 800, "height": 99999},
    "cssLayoutViewport": {"pageX": 0, "pageY": 50, "clientWidth": 800, "clientHeight": 600},
    "cssVisualViewport": {"pageX": 0, "pageY": 50, "clientWidth": 800, "clientHeight": 600},
}


def document(bench: Bench, answer: Any | Callable[[str], Any]) -> None:
    """One frame, whose page code returns `answer`, or the result of calling it with the code."""

    def evaluate(params: dict[str, Any]) -> Any:
        code = params["expression"]
        if "makeKit" in code:
            return {"result": {"value": True}}
        if "tabhubKit.begin(" in code:
            return {"result": {"value": ["token", "e"]}}
        if "tabhubKit ??=" in code:
            return {"result": {"value": True}}
        value = answer(code) if callable(answer) else answer
        return value if value is NO_ANSWER else {"result": {"value": value}}

    frame = {"id": "F", "url": "https://x.example/"}
    bench.browser.answers |= {
        "Page.getFrameTree": lambda _: {"frameTree": {"frame": frame}},
        "Page.createIsolatedWorld": lambda _: {"executionContextId": 7},
        "Page.getLayoutMetrics": lambda _: VIEW,
        "Runtime.evaluate": evaluate,
    }


def element(box: dict[str, float]) -> Callable[[str], Any]:
    """The answers of a page that contains the element, with this box."""

    def answer(code: str) -> Any:
        if "kit.find(" in code:
            return {"ref": "e1", "label": 'button "Send" [e1]', "others": 0}
        return {} if "scrollIntoView" in code else box

    return answer
