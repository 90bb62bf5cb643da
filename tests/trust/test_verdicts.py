"""Verdicts: how the level of a tool and the rule of a site combine."""

from __future__ import annotations

import pytest

from tabhub.config.settings import Config
from tabhub.config.sites import SITE_LEVELS
from tabhub.errors import PermissionDenied
from tabhub.trust.approvals import Verdict
from tabhub.trust.permissions import ToolFacts
from tabhub.trust.site_rules import SiteRule, SiteRules
from tabhub.trust.verdicts import apply_site_rule


def rule(level: str, pattern: str = "bank.example") -> SiteRule:
    (found,) = SiteRules.parse(Config.parse({"sites": {pattern: level}})).rules
    return found


CLICK = ToolFacts("browser_click_element", "browser", "input", reads=False)
LOOK = ToolFacts("browser_snapshot", "browser", "read", reads=True)
OPEN = ToolFacts("browser_navigate_tab", "browser", "navigate", reads=False)
COOKIES = ToolFacts("browser_get_cookies", "browser", "storage", reads=True)
FETCH = ToolFacts("mcp__web__fetch", "upstream", "upstream:fetch", reads=False)
DENIED = "denied"


@pytest.mark.parametrize(
    ("site", "tool", "verdict", "holds"),
    [
        ("block", LOOK, Verdict("auto"), DENIED),
        ("block", OPEN, Verdict("auto"), DENIED),
        ("block", CLICK, Verdict("auto", own=True), DENIED),
        ("read", LOOK, Verdict("auto"), "auto"),
        ("read", CLICK, Verdict("auto", own=True), DENIED),
        ("read", OPEN, Verdict(None), None),
        ("read", COOKIES, Verdict(None), None),
        ("ask", LOOK, Verdict("auto"), "auto"),
        ("ask", CLICK, Verdict(None), "ask"),
        ("ask", CLICK, Verdict("auto", own=True), "ask"),
        ("ask", OPEN, Verdict("auto"), "ask"),
        ("ask", COOKIES, Verdict("auto"), "ask"),
        ("act", CLICK, Verdict(None), "auto"),
        ("act", CLICK, Verdict("ask"), "auto"),
        ("act", CLICK, Verdict("ask", own=True), "ask"),
        ("act", CLICK, Verdict("ask", "pin"), "ask"),
        ("act", COOKIES, Verdict(None), None),
        ("act", FETCH, Verdict("ask"), "ask"),
        *((level, CLICK, Verdict("off", own=True), "off") for level in SITE_LEVELS),
    ],
)
def test_the_stricter_of_tool_and_site_counts_but_act_answers_for_tools_without_a_setting(
    site: str, tool: ToolFacts, verdict: Verdict, holds: str | None
) -> None:
    on_site = apply_site_rule(tool, verdict, rule(site))
    assert holds == (DENIED if isinstance(on_site, PermissionDenied) else on_site.level)


def test_without_a_rule_nothing_changes() -> None:
    verdict = Verdict("ask", "pin", "It has changed.", "diff")
    assert apply_site_rule(CLICK, verdict, None) is verdict


def test_a_denied_call_names_the_rule_and_the_command_that_changes_it() -> None:
    (own,) = SiteRules.parse(Config.parse({"sites": {"*.bank.example": {"ci": "block"}}})).rules
    denied = apply_site_rule(LOOK, Verdict("auto"), own)
    assert isinstance(denied, PermissionDenied)
    assert denied.message == "browser_snapshot was not run: the person blocks agents on *.bank.example."
    assert "tabhub site remove '*.bank.example' --agent ci" in str(denied.hint)
    assert denied.outcome == "not_sent"
    reading = apply_site_rule(CLICK, Verdict("auto"), rule("read", "*"))
    assert isinstance(reading, PermissionDenied)
    assert "lets agents only read on every site" in reading.message
