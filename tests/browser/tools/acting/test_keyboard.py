"""browser_type_text against a browser in memory: what is sent in one message, and what is sent when one is not
enough."""

from __future__ import annotations

import pytest

from tabhub.errors import CommandFailed
from tests.browser.conftest import Bench
from tests.browser.fake_browser import Failure
from tests.browser.fake_page import document

READY = {"x": 1, "y": 1, "kind": "text", "typed": True, "url": "https://x.example/"}
FIELD = {"ref": "e1", "label": 'textbox "Name" [e1]', "others": 0, "value": READY, "go": True}
KEYS = "Input.dispatchKeyEvent"


def page(code: str) -> object:
    """A page with one field that contains the typed text."""
    return FIELD if "kit.find(" in code else {"value": "ab", "length": 2, "url": "https://x.example/"}


def follows(bench: Bench, followed: object) -> None:
    """A browser that executes the commands chained to a script."""
    document(bench, page)
    evaluate = bench.browser.answers["Runtime.evaluate"]

    def led(params: dict[str, object]) -> object:
        answer = evaluate(params)
        return {**answer, "followed": followed} if "kit.find(" in str(params["expression"]) else answer

    bench.browser.answers["Runtime.evaluate"] = led


async def test_keys_and_probe_are_sent_with_the_actionability_check(bench: Bench) -> None:
    follows(bench, {"result": {"result": {"value": {"value": "ab", "length": 2}}}})
    answer = await bench.call("browser_type_text", tabId=1, selector="#name", text="ab")
    assert (answer["did"], answer["value"]) == ('Typed into textbox "Name" [e1]', "ab")
    (aim,) = (sent for sent in bench.browser.commands("Runtime.evaluate") if "follow" in sent["params"])
    follow = aim["params"]["follow"]
    assert [each["method"] for each in follow] == [KEYS] * 4 + ["Runtime.evaluate"]
    assert not bench.browser.commands(KEYS)


async def test_an_extension_without_chained_commands_gets_the_keys_separately(bench: Bench) -> None:
    document(bench, page)
    bench.browser.answers[KEYS] = lambda _: {}
    answer = await bench.call("browser_type_text", tabId=1, selector="#name", text="ab")
    assert answer["value"] == "ab"
    (last,) = bench.browser.commands(KEYS)
    assert len(last["params"]["ahead"]) == 3


@pytest.mark.parametrize(
    "text", ["one\ntwo", "a\tb", "é", "x" * 401, ""], ids=["lines", "tab", "accent", "long", "empty"]
)
async def test_text_that_depends_on_the_kind_of_field_waits_for_it(bench: Bench, text: str) -> None:
    document(bench, page)
    bench.browser.answers |= {KEYS: lambda _: {}, "Input.insertText": lambda _: {}}
    await bench.call("browser_type_text", tabId=1, selector="#name", text=text)
    assert not any("follow" in sent["params"] for sent in bench.browser.commands("Runtime.evaluate"))


async def test_navigation_while_typing_is_tolerated_but_other_errors_are_not(bench: Bench) -> None:
    follows(bench, {"error": "Inspected target navigated or closed"})
    answer = await bench.call("browser_type_text", tabId=1, selector="#name", text="ab")
    assert "value" not in answer
    follows(bench, {"error": "Invalid parameters"})
    with pytest.raises(CommandFailed, match="Invalid parameters"):
        await bench.call("browser_type_text", tabId=1, selector="#name", text="ab")


async def test_a_field_without_a_probe_result_is_asked_again(bench: Bench) -> None:
    follows(bench, {"result": {"result": {"value": None}}})
    assert (await bench.call("browser_type_text", tabId=1, selector="#name", text="ab"))["value"] == "ab"


async def test_a_failed_actionability_check_is_reported(bench: Bench) -> None:
    def fails(_: object) -> object:
        raise Failure(-32000, "Cannot attach to this target")

    document(bench, page)
    evaluate = bench.browser.answers["Runtime.evaluate"]
    bench.browser.answers["Runtime.evaluate"] = lambda params: (
        fails(params) if "kit.find(" in params["expression"] else evaluate(params)
    )
    with pytest.raises(CommandFailed, match="extensions may not access"):
        await bench.call("browser_type_text", tabId=1, selector="#name", text="ab")
