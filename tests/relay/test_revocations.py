"""The list of revoked tokens: what it names, how long, how many, and its digest."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tabhub.relay.revocations import NEVER, Revocations, append, user_key
from tabhub.trust.jwt import Claims


def claims(*ids: str, user: str = "ann", issued: float | None = 100.0) -> Claims:
    return Claims(user, 1e9, ids[0], other_ids=frozenset(ids[1:]), issued=issued)


def test_entries_are_kept_until_the_tokens_expire() -> None:
    known = Revocations(None)
    assert known.add(["a 100", "a 100", "b 5", "bad", "c x", " d 2000 "], 10) == ["a 100", "d 2000"]
    assert known.revokes(claims("x", "a"))
    assert not known.revokes(claims("b"))
    assert known.entries(150) == ["d 2000"]
    known.drop_ended(1000)
    assert len(known) == 1
    assert not known.revokes(claims("a"))


def test_of_two_revocations_of_one_token_the_longer_one_counts() -> None:
    known = Revocations(None)
    assert known.add(["a 100", f"a {NEVER}", "a 50"], 10) == ["a 100", f"a {NEVER}"]
    assert known.entries(150) == [f"a {NEVER}"]


def test_a_full_list_makes_room_for_ended_entries_and_reports_what_it_refuses(
    caplog: pytest.LogCaptureFixture,
) -> None:
    known = Revocations(None, 2)
    assert known.add(["a 100", "b 200"], 10) == ["a 100", "b 200"]
    assert known.add(["c 300"], 150) == ["c 300"]
    assert (known.refused, caplog.records) == (0, [])
    assert known.add(["d 400", "c 500"], 150) == ["c 500"]
    assert known.refused == 1
    assert "1 revoked tokens are not refused" in caplog.text


def test_a_raised_limit_reads_the_file_again(tmp_path: Path) -> None:
    file = tmp_path / "list"
    for name in "abc":
        append(file, name, 1000)
    known = Revocations(file, 2)
    assert known.reload(0) == ["a 1000", "b 1000"]
    assert (known.refused, known.reload(0)) == (1, [])
    known.change_limit(3)
    assert known.reload(0) == ["c 1000"]
    assert known.refused == 0


def test_a_user_is_revoked_up_to_a_time() -> None:
    known = Revocations(None)
    key = user_key("ann")
    known.add([f"{key}@100 5000", f"{key}@50 9000"], 0)
    assert known.revokes(claims("t", issued=100))
    assert known.revokes(claims("t", issued=None))
    assert not known.revokes(claims("t", issued=101))
    assert not known.revokes(claims("t", user="bob", issued=10))
    known.drop_ended(8000)
    assert known.revokes(claims("t", issued=50))
    assert not known.revokes(claims("t", issued=51))
    known.drop_ended(20_000)
    assert not known.revokes(claims("t", issued=1))
    assert len(known) == 0


def test_the_digest_depends_on_the_entries_and_not_on_their_order_or_age() -> None:
    entries = [f"t{number} {number * 60}" for number in range(1, 200)]
    one, two = Revocations(None), Revocations(None)
    one.add(entries, 0)
    random.Random(1).shuffle(entries)
    two.add(entries[:100], 0)
    assert one.digest(0) != two.digest(0)
    two.add(entries, 0)
    assert one.digest(0) == two.digest(0)
    assert one.digest(0)[0] == 199
    one.drop_ended(100 * 60.0)  # the other does so later
    assert one.digest(100) == two.digest(100)
    two.add(["t150 999999"], 0)
    assert one.digest(100) != two.digest(100)
    assert one.digest(100)[0] == two.digest(100)[0]
