"""Conversations on disk: saved, found, private and bounded."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from tabhub.errors import SetupError
from tabhub.store.conversations import Call, Conversation, ConversationStore, Message, Picture, Result


def conversation(number: int = 1, title: str = "Buy a lamp") -> Conversation:
    made = Conversation(f"{number:012x}", 1.0, 2.0, tokens=7)
    made.add(Message("user", title))
    made.add(Message("assistant", "I look.", [Call("a", "look", {"n": [1, None]})]))
    made.add(Message("tool", results=[Result("a", "look", "seen", pictures=[Picture("image/png", "QQ==")])]))
    return made


def test_a_conversation_is_saved_without_its_pictures(tmp_path: Path) -> None:
    store = ConversationStore(tmp_path / "c", 10)
    made = conversation()
    store.save(made)
    found = store.load(made.id)
    assert found.messages[:2] == made.messages[:2]
    (result,) = found.messages[2].results
    assert (result.text, result.pictures) == ("seen\n[a picture was here; pictures are not stored]", [])
    assert made.messages[2].results[0].pictures, "what is in use keeps them"
    assert (found.title, found.tokens) == ("Buy a lamp", 7)


def test_only_this_user_may_read_them(tmp_path: Path) -> None:
    store = ConversationStore(tmp_path / "c", 10)
    store.save(conversation())
    assert (tmp_path / "c").stat().st_mode & 0o777 == 0o700
    (file,) = (tmp_path / "c").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_conversation_is_found_by_a_prefix_or_as_the_last(tmp_path: Path) -> None:
    store = ConversationStore(tmp_path, 10)
    for number, name in ((0xA1 << 40, "one"), (0xA2 << 40, "two")):
        store.save(conversation(number, name))
        os.utime(tmp_path / f"{number:012x}.json", (number >> 40, number >> 40))
    assert store.load("last").title == "two"
    assert store.load("a1").title == "one"
    assert [each.title for each in store.all()] == ["two", "one"]
    with pytest.raises(SetupError, match="begin with"):
        store.load("a")
    with pytest.raises(SetupError, match="There is no conversation 'b'"):
        store.load("b")


def test_beyond_the_maximum_the_oldest_are_removed(tmp_path: Path) -> None:
    store = ConversationStore(tmp_path, 2)
    for number in range(1, 4):
        store.save(conversation(number, str(number)))
        os.utime(tmp_path / f"{number:012x}.json", (number, number))
    store.save(conversation(3, "3"))
    assert {each.title for each in store.all()} == {"2", "3"}


def test_missing_and_broken_conversations_are_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = ConversationStore(tmp_path / "none", 2)
    assert store.all() == []
    with pytest.raises(SetupError, match="No saved conversations"):
        store.load("last")
    (tmp_path / f"{5:012x}.json").write_text("{")
    store = ConversationStore(tmp_path, 2)
    with pytest.raises(SetupError, match="cannot be read"):
        store.load("last")
    assert store.all() == []
    assert "cannot be read" in caplog.text


def test_an_id_cannot_be_a_path(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="is not the id"):
        ConversationStore(tmp_path, 2).save(msgspec.structs.replace(conversation(), id="../evil"))


def test_a_title_is_one_short_line() -> None:
    assert conversation(1, "a\nb " * 100).title.startswith("a b a b")
    assert len(conversation(1, "a\nb " * 100).title) == 80
