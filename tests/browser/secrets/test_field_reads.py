"""Secret fields are read in the message of the script whose result repeats them, or else in messages of their own."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import orjson
import pytest

from tabhub.browser.driver.worlds import LOST
from tabhub.browser.secrets.field_reads import AHEAD
from tabhub.browser.secrets.fields import read_secret_fields
from tabhub.errors import DialogOpen
from tests.browser.conftest import Bench, make_bench
from tests.browser.fake_browser import NO_ANSWER, Failure, settle

_FRAME = {"id": "F", "url": "https://site1.example/"}


class Page:
    """A page with secret fields: what it answers to the scripts that read them, and to that of the agent."""

    def __init__(self, bench: Bench) -> None:
        self.browser = bench.browser
        self.read: list[str] = []
        """What a read in a message of its own finds."""
        self.before: Any = {"values": [], "go": False}
        self.after: Any = None
        self.returns: Any = "said"
        self.documents = 0
        bench.browser.answers |= {
            "Page.getFrameTree": lambda _: {"frameTree": {"frame": _FRAME}},
            "Page.createIsolatedWorld": self._new_world,
            "Runtime.evaluate": self._evaluate,
        }

    def _new_world(self, _: Any) -> dict[str, Any]:
        self.documents += 1
        return {"executionContextId": self.documents}

    def _evaluate(self, params: dict[str, Any]) -> Any:
        code = params["expression"]
        if "tabhubKit.begin(" in code:
            return {"result": {"value": [f"token{self.documents}", "e"]}}
        if "tabhubKit ??=" in code:
            return {"result": {"value": True}}
        if "kit.secretsRead()" in code:
            return {"result": {"value": {"values": self.read, "go": bool(self.read), "frames": False}}}
        if self.returns is NO_ANSWER:
            return NO_ANSWER
        answer: dict[str, Any] = {"result": {"type": "string", "value": self.returns}}
        if self.before is not None:
            answer["ahead"] = [{"result": {"value": self.before}}]
        if self.after is not None:
            answer["followed"] = {"result": {"result": {"value": self.after}}}
        return answer

    def sent(self) -> list[str]:
        """What was sent to the page since the last look, in order; not what keeps the tab awake or watched."""
        names = []
        for message in self.browser.sent:
            name, code = self.browser.method_of(message), message["params"].get("params", {}).get("expression", "")
            names.append("read" if "kit.secretsRead()" in code else "script" if "tabhubScript" in code else name)
        self.browser.sent.clear()
        return [name for name in names if name in ("read", "script", "Page.createIsolatedWorld")]


@pytest.fixture
async def page(masking: Bench) -> Page:
    return Page(masking)


@pytest.fixture
async def masking(tmp_path: Path) -> Bench:
    return make_bench(tmp_path, read_secret_fields)


async def run(bench: Bench, **args: Any) -> Any:
    return (await bench.call("browser_execute_script", tabId=1, code="return x", **args))["value"]


async def test_a_call_is_one_message_once_the_document_has_been_read(masking: Bench, page: Page) -> None:
    await run(masking)
    assert page.sent()[-2:] == ["read", "script"]
    page.before = {"values": ["the old value"], "go": True}
    page.after = {"values": ["the new value"]}
    page.returns = "the old value, the new value"
    assert await run(masking) == "•••, •••"
    message = page.browser.sent[-1]["params"]
    assert page.sent() == ["script"]
    around = [each["params"] for each in (*message["ahead"], *message["follow"])]
    assert [each["contextId"] for each in around] == [1, 1]
    assert all("token1" in each["expression"] for each in around)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(None, None, id="by an older extension"),
        pytest.param(LOST, None, id="the document was replaced before"),
        pytest.param(None, {"values": ["half"]}, id="the first answer is missing"),
        pytest.param({"values": ["one value"], "go": True}, None, id="the second answer is missing"),
        pytest.param({"values": ["one value"], "go": True}, LOST, id="the document was replaced meanwhile"),
    ],
)
async def test_fields_are_read_again_when_an_answer_is_missing(
    masking: Bench, page: Page, before: Any, after: Any
) -> None:
    await run(masking)
    page.sent()
    page.before, page.after, page.read = before, after, ["one value", "another value"]
    page.returns = "one value, another value"
    assert await run(masking) == "•••, •••"
    assert page.sent() == ["script", "read"]


async def test_the_fields_of_a_new_document_are_read_before_its_first_script(masking: Bench, page: Page) -> None:
    await run(masking)
    page.sent()
    masking.browser.notify("cdp.event", tabId=1, method="Page.frameNavigated", params={"frame": _FRAME})
    page.read, page.returns = ["gone by then"], "gone by then"
    assert await run(masking) == "•••"
    assert page.sent()[:3] == ["Page.createIsolatedWorld", "read", "script"]


async def test_a_script_in_a_frame_waits_until_all_frames_are_read(masking: Bench, page: Page) -> None:
    await run(masking)
    page.sent()
    page.read, page.returns = ["in a frame"], "in a frame"
    assert await run(masking, frame=0) == "•••"
    names = page.sent()
    assert names.index("read") < names.index("script") < len(names) - 1 - names[::-1].index("read")


async def test_a_dialogs_text_is_masked_by_what_was_read_before_the_script(masking: Bench, page: Page) -> None:
    await run(masking)
    page.returns = NO_ANSWER
    calling = asyncio.ensure_future(run(masking))
    await settle()
    read = {"ahead": [{"result": {"value": {"values": ["said aloud"], "go": True}}}]}
    masking.browser.notify("cdp.event", tabId=1, method=AHEAD, params=read)
    opening = {"type": "alert", "message": "It is said aloud."}
    masking.browser.notify("cdp.event", tabId=1, method="Page.javascriptDialogOpening", params=opening)
    with pytest.raises(DialogOpen) as caught:
        await calling
    assert "It is •••." in caught.value.message
    assert caught.value.data == {"dialog": {"type": "alert", "message": "It is •••."}}


@pytest.mark.parametrize("params", [{}, {"ahead": 1}, {"ahead": [{"result": {"value": 7}}]}, {"ahead": [{}]}])
async def test_an_event_that_reports_no_values_changes_nothing(
    masking: Bench, page: Page, params: dict[str, Any]
) -> None:
    await run(masking)
    masking.browser.notify("cdp.event", tabId=1, method=AHEAD, params=params)
    assert await run(masking) == "said"


async def test_a_page_that_cannot_be_read_still_runs_scripts(masking: Bench, page: Page) -> None:
    def refuse(_: Any) -> None:
        raise Failure(-32000, "Cannot create a world")

    masking.browser.answers["Page.createIsolatedWorld"] = refuse
    assert await run(masking) == "said"
    message = next(each for each in page.browser.sent if "tabhubScript" in orjson.dumps(each).decode())
    assert "ahead" not in message["params"]
