"""Which agents are subscribed to which resources."""

from __future__ import annotations

from tabhub.limits import Limits
from tabhub.mcp.subscriptions import ResourceSubscriber, ResourceSubscribers, Subscription

OURS, THEIRS = "tabhub+mcp://s/notes://a", "notes://a"


async def test_each_agent_is_notified_of_its_subscriptions_by_its_own_uri() -> None:
    subscribers = ResourceSubscribers(Limits(list_changed_rate=0), lambda _server: None)
    notified: list[tuple[str, str]] = []
    one = ResourceSubscriber(subscribers, lambda uri: notified.append(("one", uri)))
    two = ResourceSubscriber(subscribers, lambda uri: notified.append(("two", uri)))
    one.add(Subscription("s", "notes://a", OURS))
    two.add(Subscription("s", "notes://a", THEIRS))
    two.add(Subscription("t", "notes://a", "tabhub+mcp://t/notes://a"))
    for uri in ("notes://a", "notes://a/part"):
        subscribers.updated("s", uri)
        assert sorted(notified) == [("one", OURS), ("two", THEIRS)]
        notified.clear()
    subscribers.updated("s", "notes://ab")
    subscribers.updated("u", "notes://a")
    assert notified == []
    assert subscribers.uris("s") == subscribers.uris("t") == {"notes://a"}


def test_a_resource_is_subscribed_until_its_last_subscriber_leaves() -> None:
    changed: list[str] = []
    subscribers = ResourceSubscribers(Limits(), changed.append)
    one, two = (ResourceSubscriber(subscribers, lambda _uri: None) for _ in range(2))
    for each in (one, two):
        each.add(Subscription("s", "notes://a", OURS))
    one.remove(OURS)
    one.remove(OURS)
    assert subscribers.uris("s") == {"notes://a"}
    two.close()
    two.close()
    assert not subscribers.uris("s")
    assert changed == ["s"] * 4
