from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tabhub.trust.dataflow import DataFlows

MAIL, BANK, SHOP = "https://mail.example", "https://bank.example", "https://shop.example"


def test_what_was_read_elsewhere_is_named_and_the_place_itself_is_not() -> None:
    flows = DataFlows()
    assert flows.crossing("s", [BANK]) == ()
    flows.read("s", MAIL)
    flows.read("s", BANK)
    assert flows.crossing("s", [BANK]) == (MAIL,)
    assert flows.crossing("s", [SHOP]) == (MAIL, BANK)
    assert flows.crossing("s", []) == ()
    assert flows.crossing("other", [SHOP]) == ()


def test_a_pair_that_was_allowed_is_not_named_again_but_others_are() -> None:
    flows = DataFlows()
    flows.read("s", MAIL)
    flows.allow("s", [MAIL], [BANK])
    assert flows.crossing("s", [BANK]) == ()
    assert flows.crossing("s", [SHOP]) == (MAIL,)
    flows.read("s", SHOP)
    assert flows.crossing("s", [BANK]) == (SHOP,)


def test_what_a_plugin_read_is_no_news_to_the_same_plugin() -> None:
    flows = DataFlows()
    flows.read("s", MAIL, "mail")
    assert flows.crossing("s", ["mail"]) == ()
    assert flows.crossing("s", ["notes"]) == (MAIL,)


def test_a_session_that_ends_is_forgotten() -> None:
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
def test_after_it_was_allowed_an_act_crosses_nothing(read: list[str], target: str) -> None:
    flows = DataFlows()
    for site in read:
        flows.read("s", site)
    crossing = flows.crossing("s", [target])
    assert set(crossing) == set(read) - {target}
    flows.allow("s", crossing, [target])
    assert flows.crossing("s", [target]) == ()
