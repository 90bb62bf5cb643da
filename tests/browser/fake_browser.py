"""A browser in memory: it records method_of the hub sends, and the test defines its replies."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import orjson

from tabhub.limits import DEFAULTS, Limits
from tabhub.links.browsers import Browsers
from tabhub.links.extension import ExtensionLink

Answer = Callable[[dict[str, Any]], Any]
WATCHING = ("subscribeCDPEvents", "Page.enable", "Runtime.enable", "Log.enable", "Network.enable")
"""Commands that every tab in use receives first."""


NO_ANSWER = object()
"""Returned by an answer that leaves its command pending."""


class Failure(Exception):
    """An error reply of the browser."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class FakeBrowser:
    """One end of a link. Commands with an answer are answered immediately; the others stay pending."""

    def __init__(self, browser_id: str = "b1", limits: Limits = DEFAULTS) -> None:
        self.sent: list[dict[str, Any]] = []
        self.closed: list[tuple[int, str]] = []
        self.chains = False
        """Whether commands that follow a script are run, as by a newer extension."""
        self.answers: dict[str, Answer] = {name: lambda _: {} for name in WATCHING}
        self.link = ExtensionLink(
            browser_id,
            self._receive,
            lambda code, why: self.closed.append((code, why)),
            limits,
            asyncio.get_running_loop(),
        )

    def _receive(self, data: bytes) -> None:
        message = orjson.loads(data)
        self.sent.append(message)
        if "id" in message and "method" in message:
            answer = self.answers.get(self.method_of(message))
            if answer is not None:
                # Only after the hub has created its future: a real browser is never faster.
                self.link.loop.call_soon(self._answer, message, answer)

    def _answer(self, message: dict[str, Any], answer: Answer) -> None:
        params = message["params"].get("params", {}) if message["method"] == "forwardCDPCommand" else message["params"]
        try:
            result = answer(params)
            if result is not NO_ANSWER:
                self.reply(message["id"], self._followed(message["params"].get("follow", ()), result))
        except Failure as failure:
            self.refuse(message["id"], failure.code, str(failure))

    def _followed(self, follow: Sequence[dict[str, Any]], result: Any) -> Any:
        """The result, with that of the last command that follows a script whose value has `go: true`."""
        if not (self.chains and follow and result["result"]["value"]["go"]):
            return result
        try:
            results = [self.answers[each["method"]](each["params"]) for each in follow]
        except Failure as failure:
            return {**result, "followed": {"error": str(failure)}}
        return {**result, "followed": {"result": results[-1]}}

    @staticmethod
    def method_of(message: dict[str, Any]) -> str:
        """The command, or the CDP method it carries."""
        method: str = message["method"]
        return str(message["params"]["method"]) if method == "forwardCDPCommand" else method

    def commands(self, name: str) -> list[dict[str, Any]]:
        """The messages sent with one command."""
        return [message for message in self.sent if "method" in message and self.method_of(message) == name]

    def text(self, **message: Any) -> None:
        self.link.feed(orjson.dumps({"jsonrpc": "2.0", **message}).decode())

    def reply(self, number: Any, result: Any) -> None:
        self.text(id=number, result=result)

    def refuse(self, number: Any, code: int, message: str) -> None:
        self.text(id=number, error={"code": code, "message": message})

    def notify(self, method: str, /, **params: Any) -> None:
        self.text(method=method, params=params)

    def join(self, browsers: Browsers, *tabs: dict[str, Any]) -> FakeBrowser:
        """Connect, say hello and describe the tabs."""
        browsers.attach(self.link)
        self.notify(
            "extension.hello",
            browserId=self.link.browser_id,
            browserName="Chromium",
            browserVersion="156.0.0.0",
            extensionVersion="0.1.0",
            platform="linux",
        )
        self.notify("tab.syncAll", tabs=list(tabs), plugins={}, debugger={"attached": []})
        return self


def tab(tab_id: int, **more: Any) -> dict[str, Any]:
    return {"tabId": tab_id, "url": f"https://site{tab_id}.example/", "title": f"Site {tab_id}", "windowId": 1, **more}


async def settle() -> None:
    """Let everything that is ready run."""
    for _ in range(20):
        await asyncio.sleep(0)
