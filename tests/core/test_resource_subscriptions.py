"""Which agents are subscribed to which resources."""

from __future__ import annotations

from tabhub.core.resource_subscriptions import Subscription, Subscriptions

OURS, THEIRS = "tabhub+mcp://s/notes://a", "notes://a"


def test_each_agent_is_notified_of_its_subscriptions_by_its_own_uri() -> None:
    book: Subscriptions[str] = Subscriptions()
    book.add("one", Subscription("s", "notes://a", OURS))
    book.add("two", Subscription("s", "notes://a", THEIRS))
    book.add("two", Subscription("t", "notes://a", "tabhub+mcp://t/notes://a"))
    assert list(book.subscribers("s", "notes://a")) == [("one", OURS), ("two", THEIRS)]
    assert list(book.subscribers("s", "notes://a/part")) == [("one", OURS), ("two", THEIRS)]
    assert not list(book.subscribers("s", "notes://ab"))
    assert not list(book.subscribers("u", "notes://a"))
    assert book.uris("s") == book.uris("t") == {"notes://a"}


def test_a_resource_is_subscribed_until_its_last_subscriber_leaves() -> None:
    book: Subscriptions[str] = Subscriptions()
    for agent in ("one", "two"):
        book.add(agent, Subscription("s", "notes://a", OURS))
    assert book.remove("one", OURS) == Subscription("s", "notes://a", OURS)
    assert book.remove("one", OURS) is None
    assert book.uris("s") == {"notes://a"}
    assert book.drop("two") == [Subscription("s", "notes://a", OURS)]
    assert book.drop("two") == []
    assert not book.uris("s")
