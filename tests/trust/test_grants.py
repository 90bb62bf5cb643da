"""Grants: whom and what they cover, and how they read."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tabhub.trust.grants import ANY, Grant, Scope, find, grant_text

SHOP, BANK = "https://shop.example", "https://bank.example"


def grant(agent: str | None = "ci", kind: str = "input", site: str | None = SHOP) -> Grant:
    return Grant("1f2e3d4c", agent, kind, site, 0.0, "panel")


def test_a_grant_covers_its_agent_its_kind_and_its_site() -> None:
    assert grant().covers("ci", Scope("input", SHOP))
    assert not grant().covers("other", Scope("input", SHOP))
    assert not grant().covers(None, Scope("input", SHOP))
    assert not grant().covers("ci", Scope("script", SHOP))
    assert not grant().covers("ci", Scope("input", BANK))
    assert not grant().covers("ci", Scope("input", None))


def test_a_grant_is_wider_only_where_it_says_so() -> None:
    assert grant(site=ANY).covers("ci", Scope("input", BANK))
    assert grant(agent=ANY).covers(None, Scope("input", SHOP))
    assert not grant(agent=None).covers("ci", Scope("input", SHOP))


@given(st.lists(st.builds(grant, st.sampled_from((None, "ci", ANY)), st.just("input"), st.sampled_from((SHOP, ANY)))))
def test_the_first_grant_that_covers_is_found(grants: list[Grant]) -> None:
    scope = Scope("input", SHOP)
    assert find(grants, "ci", scope) == next((each for each in grants if each.covers("ci", scope)), None)


def test_a_grant_reads_as_a_sentence() -> None:
    assert grant().text == f"ci may always click and type on {SHOP}"
    assert grant(ANY, "navigate", ANY).text == "every agent may always open pages on every site"
    assert grant(None, "history", None).text == "agents without a token may always use history and bookmarks"
    several = (Scope("input", SHOP), Scope("navigate", BANK))
    assert grant_text("ci", several) == f"ci may always click and type on {SHOP} and open pages on {BANK}"
