from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tabhub.trust.approvals import DECISIONS, Decision, Queue, Request


def request(ident: str, expires: float = 10.0, choices: tuple[Decision, ...] = DECISIONS) -> Request:
    return Request(
        id=ident,
        tool="t",
        plugin="p",
        source="plugin:p",
        client="c",
        session="s",
        params={},
        why="permission",
        words="",
        created=0.0,
        expires=expires,
        choices=choices,
    )


def test_requests_stand_in_the_order_they_came() -> None:
    queue = Queue(3)
    for ident in "abc":
        assert not queue.full
        queue.add(request(ident))
    assert queue.full
    assert [each.id for each in queue] == ["a", "b", "c"]


def test_an_answer_closes_the_request_it_names_once() -> None:
    queue = Queue(9)
    queue.add(request("a"))
    queue.add(request("b"))
    taken = queue.take("b", "deny")
    assert taken is not None
    assert taken.id == "b"
    assert queue.take("b", "deny") is None
    assert [each.id for each in queue] == ["a"]


def test_a_decision_that_was_not_offered_leaves_the_request_open() -> None:
    queue = Queue(9)
    queue.add(request("a", choices=("allow_once", "deny")))
    assert queue.take("a", "allow_always") is None
    assert queue.get("a") is not None
    assert queue.take("a", "allow_once") is not None


def test_what_has_waited_long_enough_is_due() -> None:
    queue = Queue(9)
    queue.add(request("a", 5.0))
    queue.add(request("b", 6.0))
    assert [each.id for each in queue.due(5.0)] == ["a"]
    assert [each.id for each in queue.due(6.0)] == ["a", "b"]


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from(DECISIONS))))
def test_no_answer_ever_closes_another_request(answers: list[tuple[str, Decision]]) -> None:
    queue = Queue(9)
    for ident in "abc":
        queue.add(request(ident))
    still = set("abc")
    for ident, decision in answers:
        taken = queue.take(ident, decision)
        assert (taken.id if taken else None) == (ident if ident in still else None)
        still.discard(ident)
        assert {each.id for each in queue} == still
