"""The sentence that states which rule decides on a call."""

from __future__ import annotations

from typing import Any

import pytest

from tabhub.config.settings import Config
from tabhub.trust.actions import kind_of
from tabhub.trust.approvals import Verdict
from tabhub.trust.explain import Question, explain
from tabhub.trust.grants import Grant
from tabhub.trust.permissions import Permissions, ToolFacts
from tabhub.trust.site_rules import SiteRules
from tabhub.trust.verdicts import tool_verdict

BANK = "https://www.bank.example/accounts"


def sentence(
    tool: str,
    settings: dict[str, Any],
    *,
    reads: bool = False,
    url: str | None = BANK,
    grants: tuple[Grant, ...] = (),
    verdict: Verdict | None = None,
    frame: str | None = None,
) -> str:
    config = Config.parse(settings)
    permissions = Permissions.parse(config)
    facts = ToolFacts(tool, "browser", kind_of("browser", tool), reads)
    question = Question(facts, "browser", (tool,), "ci", url, frame)
    verdict = verdict or tool_verdict(permissions, facts, "browser", (tool,), "ci")
    return explain(question, verdict, permissions, SiteRules.parse(config), grants)


CLICK = "ci needs approval to click and type with browser_click_element on https://www.bank.example: "
FREE = "ci may, without approval, click and type with browser_click_element on https://www.bank.example: "
NEVER = "ci may not click and type with browser_click_element on https://www.bank.example: "


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (
            {},
            f"{CLICK}tools that act need approval, except in a browser that the hub started.",
        ),
        ({"permissions": {"default": "ask"}}, f"{CLICK}the setting permissions.default is ask."),
        (
            {"permissions": {"clients": {"ci": {"browser": {"tools": {"browser_click_element": "auto"}}}}}},
            f"{FREE}the setting permissions.clients.ci.browser.tools.browser_click_element is auto.",
        ),
        (
            {"permissions": {"browser": {"permission": "off"}}, "sites": {"www.bank.example": "act"}},
            f"{NEVER}the setting permissions.browser.permission is off.",
        ),
        ({"sites": {"*.bank.example": "block"}}, f"{NEVER}your site rule “*.bank.example: block” decides."),
        (
            {"sites": {"*.bank.example": {"*": "act", "ci": "read"}}},
            f"{NEVER}your site rule “*.bank.example: read (for ci)” decides.",
        ),
        ({"sites": {"*": "ask"}}, f"{CLICK}your site rule “*: ask” decides."),
        ({"sites": {"*": "act"}}, f"{FREE}your site rule “*: act” decides."),
        (
            {"sites": {"*": "act"}, "permissions": {"browser": {"tools": {"browser_click_element": "ask"}}}},
            f"{CLICK}the setting permissions.browser.tools.browser_click_element is ask.",
        ),
        (
            {"sites": {"*": "ask"}, "skipPermissions": True},
            f"{FREE}skipPermissions is on, although your site rule “*: ask” decides.",
        ),
    ],
)
def test_the_deciding_rule_is_named(settings: dict[str, Any], expected: str) -> None:
    assert sentence("browser_click_element", settings) == expected


def test_reading_and_private_data_are_told_apart() -> None:
    assert sentence("browser_snapshot", {}, reads=True) == (
        "ci may, without approval, read pages with browser_snapshot on https://www.bank.example: "
        "tools that only read run without approval."
    )
    assert sentence("browser_search_history", {}, reads=True, url=None) == (
        "ci needs approval to use history and bookmarks with browser_search_history: cookies, storage, history and "
        "bookmarks need approval, except in a browser that the hub started."
    )


def test_a_grant_and_a_changed_definition_are_named() -> None:
    granted = Grant("1f2e3d4c", "ci", "input", "https://www.bank.example", 0.0, "panel")
    text = sentence("browser_click_element", {"sites": {"*": "ask"}}, grants=(granted,))
    assert text == f"{FREE}grant 1f2e3d4c says that {granted.text}."
    changed = sentence("browser_click_element", {}, verdict=Verdict("ask", "pin"), grants=(granted,))
    assert changed == f"{CLICK}its definition has changed since it was approved."


@pytest.mark.parametrize(
    ("sites", "decides"),
    [
        ({"pay.example": "read"}, "ci may not click and type with browser_click_element on https://pay.example: "),
        ({"www.bank.example": "block", "pay.example": "act"}, NEVER),
        ({"www.bank.example": "act"}, "ci needs approval to click and type with browser_click_element on https://pay"),
    ],
)
def test_a_frame_is_judged_by_its_site_and_by_the_pages(sites: dict[str, str], decides: str) -> None:
    text = sentence("browser_click_element", {"sites": sites}, frame="https://pay.example/card")
    assert text.startswith(decides)
    assert text.endswith(
        " A frame of https://pay.example in a page of https://www.bank.example is judged by both sites; "
        "the stricter rule decides."
    )


def test_a_frame_of_the_pages_own_site_is_not_mentioned() -> None:
    assert "frame" not in sentence("browser_click_element", {}, frame="https://www.bank.example/inner")
