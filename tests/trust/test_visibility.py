"""What an agent may learn of: blocked sites are hidden, counted and masked; without rules nothing is looked at."""

from __future__ import annotations

from typing import Any

import pytest

from tabhub.config.settings import Config
from tabhub.errors import CommandFailed, TabNotFound
from tabhub.trust.site_rules import SiteRules
from tabhub.trust.visibility import EVERYTHING, MASK, Visibility

RULES = {
    "*.bank.example": "block",
    "help.bank.example": "read",
    "https://mail.example:8443": {"ci": "block"},
    "shop.example": "ask",
}


def visibility(agent: str | None = None, rules: dict[str, Any] = RULES) -> Visibility:
    return Visibility(SiteRules.parse(Config.parse({"sites": rules})), agent)


def test_without_rules_that_block_there_is_one_view_that_hides_nothing() -> None:
    ruled = visibility(rules={"shop.example": "ask", "bank.example": {"other": "block"}})
    assert ruled.view() is EVERYTHING
    assert not EVERYTHING.active
    assert EVERYTHING.keep([1, 2], lambda _: True) == [1, 2]
    assert EVERYTHING.note() == ""
    assert EVERYTHING.rules == ""


@pytest.mark.parametrize(
    ("url", "hidden"),
    [
        ("https://www.bank.example/account", True),
        ("blob:https://bank.example/1234", True),
        ("wss://bank.example/live", True),
        ("https://help.bank.example/", False),
        ("https://shop.example/?next=https://bank.example", False),
        ("about:blank", False),
        (None, False),
    ],
)
def test_urls_of_blocked_sites_are_hidden(url: str | None, hidden: bool) -> None:
    assert visibility().hides(url) is hidden


def test_rules_of_one_agent_hide_nothing_from_others() -> None:
    assert visibility("ci").hides("https://mail.example:8443/")
    assert not visibility("other").hides("https://mail.example:8443/")


def test_cookies_of_a_host_are_hidden_if_any_site_of_the_host_is_blocked() -> None:
    assert visibility().hides_host(".bank.example")
    assert visibility("ci").hides_host("mail.example")
    assert not visibility().hides_host("mail.example")
    assert not visibility().hides_host("help.bank.example")
    assert not visibility().hides_host("")


def test_a_site_of_the_same_domain_may_share_cookies() -> None:
    assert visibility().hides_near("shop.bank.example")
    assert visibility(rules={"*": "block", "shop.example": "act"}).hides_near("shop.example")
    assert not visibility().hides_near("shop.example")
    assert not visibility(rules={"bank.co.uk": "block"}).hides_near("shop.co.uk")
    assert not EVERYTHING.hides_near("bank.example")


def test_texts_lose_urls_of_blocked_sites_only() -> None:
    text = "from 'https://a.bank.example/x?y' to http://help.bank.example/ and wss://bank.example:9/q."
    assert visibility().mask(text) == f"from '{MASK}' to http://help.bank.example/ and {MASK}."
    listed = "https://shop.example/a,https://bank.example/b; https://bank.example:9, [https://bank.example]"
    assert visibility().mask(listed) == f"https://shop.example/a,{MASK}; {MASK}, [{MASK}]"
    assert visibility().hides_text(text)
    assert not visibility().hides_text("https://shop.example/ mentions bank.example")
    values = {"a": ["https://bank.example/"], "b": 1}
    assert visibility().mask_values(values) == {"a": [MASK], "b": 1}


def test_errors_lose_what_they_say_of_blocked_sites() -> None:
    error = CommandFailed(
        "at https://bank.example/x", hint="see https://bank.example/y", data={"u": "https://bank.example"}
    )
    visibility().mask_error(error)
    assert (error.message, error.hint, error.data) == (f"at {MASK}", f"see {MASK}", {"u": MASK})
    missing = TabNotFound("There is no tab 5.", hint="Open tabs: 7 (My bank account).")
    visibility().mask_error(missing)
    assert missing.hint == "browser_list_tabs shows what is open."


def test_a_view_counts_what_it_omits_each_once() -> None:
    view = visibility().view()
    assert view.keep(["https://bank.example/", "https://shop.example/"], view.hides) == ["https://shop.example/"]
    for _ in range(2):
        view.omit_frame("f1")
        view.keep([7], lambda _: True, lambda tab: ("tab", tab))
    view.omit_frame("f2")
    told = "1 entry is, 2 frames of the page are and 1 tab is on a site that the person keeps agents off, and left out."
    assert view.note() == told


def test_requests_of_pages_are_stopped_by_the_same_rules_in_the_same_order() -> None:
    patterns = visibility("ci").requests["urlPatterns"]
    assert patterns.index({"urlPattern": "*://help.bank.example:*/*", "block": False}) < patterns.index(
        {"urlPattern": "*://*.bank.example:*/*", "block": True}
    )
    assert {"urlPattern": "wss://mail.example:8443/*", "block": True} in patterns
    assert visibility("ci").rules != visibility("other").rules != ""
