"""The data-flow guard: which content a session may carry from site to site."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tabhub.trust.dataflow import DataFlows

MAIL, BANK, SHOP = "https://mail.example", "https://bank.example", "https://shop.example"


def test_sites_read_before_are_named_except_the_target() -> None:
    flows = DataFlows()
    assert flows.crossing("s", [BANK]) == ()
    flows.read("s", MAIL)
    flows.read("s", BANK)
    assert flows.crossing("s", [BANK]) == (MAIL,)
    assert flows.crossing("s", [SHOP]) == (MAIL, BANK)
    assert flows.crossing("s", []) == ()
    assert flows.crossing("other", [SHOP]) == ()


def test_an_approved_pair_is_not_named_again() -> None:
    flows = DataFlows()
    flows.read("s", MAIL)
    flows.allow("s", [MAIL], [BANK])
    assert flows.crossing("s", [BANK]) == ()
    assert flows.crossing("s", [SHOP]) == (MAIL,)
    flows.read("s", SHOP)
    assert flows.crossing("s", [BANK]) == (SHOP,)


def test_content_read_through_a_plugin_may_return_to_it() -> None:
    flows = DataFlows()
    flows.read("s", MAIL, "mail")
    assert flows.crossing("s", ["mail"]) == ()
    assert flows.crossing("s", ["notes"]) == (MAIL,)


def test_an_ended_session_is_removed() -> None:
    flows = DataFlows()
    flows.read("s", MAIL)
    assert flows.knows("s")
    flows.end("s")
    assert not flows.knows("s")
    assert len(flows) == 0


def test_memory_is_bounded() -> None:
    flows = DataFlows()
    for number in range(10_000):
        flows.read("s", f"https://{number}.example")
        flows.read(f"s{number}", MAIL)
    assert len(flows.crossing("s9999", [BANK])) == 1
    assert len(flows) <= 5000


@given(st.lists(st.sampled_from([MAIL, BANK, SHOP])), st.sampled_from([MAIL, BANK, SHOP]))
def test_an_approved_action_crosses_nothing(read: list[str], target: str) -> None:
    flows = DataFlows()
    for site in read:
        flows.read("s", site)
    crossing = flows.crossing("s", [target])
    assert set(crossing) == set(read) - {target}
    flows.allow("s", crossing, [target])
    assert flows.crossing("s", [target]) == ()
