"""Returning freed memory: only after much was freed, and harmless."""

from __future__ import annotations

from tabhub.platform.memory import FreedMemory, return_freed_memory


def test_memory_is_returned_once_after_many_objects_were_freed() -> None:
    freed = FreedMemory()
    counts = [100, 1000, 700, 600, 500, 400, 100, 0, 0]
    assert [freed.is_much(count) for count in counts] == [
        False, False, False, False, True, False, False, True, False
    ]  # fmt: skip


def test_returning_memory_changes_nothing_else() -> None:
    kept = [bytes(1000) for _ in range(1000)]
    return_freed_memory()
    assert sum(map(len, kept)) == 1_000_000
