"""The decision on a call: allow it, or ask and for what reason."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tabhub.config.permissions import Permission
from tabhub.trust.approvals import (
    DECISIONS,
    NO_FLOW,
    SKIPPED,
    Allowed,
    Approval,
    Ask,
    CallFacts,
    DataFlow,
    Verdict,
    Why,
    choices_for,
    decide,
    wider_scopes,
)
from tabhub.trust.grants import Scope
from tabhub.wire.panel import Decision

SESSION = Approval("panel", "allow_session")
SCOPE = (Scope("plugin:shop_buy", None),)
FLOW = DataFlow(("https://mail.example",), ("https://shop.example",), ("https://shop.example",))


def call(
    level: Permission,
    *,
    flow: DataFlow = NO_FLOW,
    steps: tuple[str, ...] = (),
    disturbs: str = "",
    session: Approval | None = None,
    skipped: bool = False,
    dataflow: str = "ask",
    verdict: Verdict | None = None,
) -> CallFacts:
    verdict = verdict or Verdict(level)
    facts = ("shop_buy", verdict, level, flow, steps, disturbs, session, skipped, dataflow)
    return CallFacts(*facts, "buy", "definition", SCOPE)


def test_a_tool_set_to_ask_asks_and_says_so() -> None:
    ask = decide(call("ask"))
    assert isinstance(ask, Ask)
    assert (ask.why, ask.message) == ("permission", "shop_buy acts, and is set to ask.")
    assert (ask.setting_name, ask.definition, ask.this_call_only) == ("buy", "definition", False)


@pytest.mark.parametrize("facts", [call("ask"), call("auto", flow=FLOW), call("auto", steps=("browser_type",))])
def test_skipped_permissions_ask_nothing_and_are_recorded(facts: CallFacts) -> None:
    skipped = call(facts.level, flow=facts.flow, steps=tuple(facts.steps_to_ask), skipped=True)
    assert decide(skipped) == Allowed(SKIPPED)


def test_an_approval_for_the_session_holds_unless_content_crosses_sites() -> None:
    assert decide(call("ask", session=SESSION)) == Allowed(SESSION)
    ask = decide(call("ask", session=SESSION, flow=FLOW))
    assert isinstance(ask, Ask)
    assert (ask.why, ask.crossing, ask.target) == ("dataflow", FLOW.sites, "https://shop.example")
    assert "has read https://mail.example, and now acts on https://shop.example" in ask.message


def test_data_flow_set_to_warn_lets_the_call_run_but_not_a_tool_set_to_ask() -> None:
    assert decide(call("auto", flow=FLOW, dataflow="warn")) == Allowed(warn=True)
    assert isinstance(decide(call("ask", flow=FLOW, dataflow="warn")), Ask)


def test_a_batch_names_its_steps_and_is_approved_for_one_call_only() -> None:
    ask = decide(call("auto", steps=("browser_type", "browser_press_key"), session=SESSION))
    assert isinstance(ask, Ask)
    assert ask.message == "shop_buy would use browser_type, browser_press_key, set to ask."
    assert ask.this_call_only


def test_a_changed_definition_is_shown_as_the_reason() -> None:
    verdict = Verdict("ask", "pin", "It has changed.", "- old\n+ new")
    ask = decide(call("ask", verdict=verdict))
    assert isinstance(ask, Ask)
    assert (ask.why, ask.message, ask.diff) == ("pin", "It has changed.", "- old\n+ new")


@pytest.mark.parametrize(
    ("why", "once", "lasts", "choices"),
    [
        ("permission", False, True, DECISIONS),
        ("permission", False, False, ("allow_once", "allow_always", "deny")),
        ("dataflow", False, True, ("allow_once", "allow_session", "deny")),
        ("dataflow", False, False, ("allow_once", "deny")),
        ("page", True, True, ("allow_once", "deny")),
    ],
)
def test_only_decisions_that_can_hold_are_offered(
    why: Why, once: bool, lasts: bool, choices: tuple[Decision, ...]
) -> None:
    assert choices_for(Ask(why, "", this_call_only=once), session_lasts=lasts) == list(choices)


def test_a_call_whose_site_is_not_known_is_approved_for_itself_only() -> None:
    ask = decide(replace(call("ask"), scope=()))
    assert isinstance(ask, Ask)
    assert ask.this_call_only


def test_a_wider_scope_is_offered_where_it_means_something() -> None:
    shop = "https://shop.example"
    assert wider_scopes(Ask("permission", "", scope=(Scope("input", shop),))) == ["every_site", "every_agent"]
    assert wider_scopes(Ask("permission", "", scope=(Scope("history", None),))) == ["every_agent"]
    assert wider_scopes(Ask("permission", "", scope=(Scope("page:buy", shop),))) == ["every_agent"]


def test_call_that_disturbs_other_sessions_is_approved_once_whatever_its_setting() -> None:
    for facts in (call("auto", disturbs="It would."), call("ask", disturbs="It would.", session=SESSION)):
        ask = decide(facts)
        assert isinstance(ask, Ask)
        assert (ask.why, ask.message, ask.this_call_only) == ("permission", "It would.", True)
