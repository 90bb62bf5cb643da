"""An inbox: delete, mark, reply and forward."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bench.miniwob.actions import click, write
from bench.miniwob.policies.registry import spot, task
from bench.miniwob.products.base import Product
from bench.miniwob.view import View

_INBOXES = (
    "email-inbox", "email-inbox-delete", "email-inbox-forward", "email-inbox-important", "email-inbox-noscroll",
    "email-inbox-reply", "email-inbox-star-reply", "email-inbox-nl-turk", "email-inbox-forward-nl",
    "email-inbox-forward-nl-turk",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be done with whose mail."""

    verb: str
    sender: str
    receiver: str = ""
    message: str = ""


def understand(text: str, senders: list[str]) -> Order:
    """The order in a sentence; `senders` are the names in the inbox."""
    if (quoted := re.search(r'"(.*?)"', text)) is not None:
        return Order("reply", _names(text.replace(quoted[0], ""), senders)[0], message=quoted[1])
    names = _names(text, senders)
    if len(names) > 1 or re.search(r"forward", text, re.IGNORECASE):
        sender, receiver = _directed(text, names)
        return Order("forward", sender, receiver)
    deleted = re.search(r"delete|trash|remove|get rid|erase|discard|garbage|bin\b|eliminate", text, re.IGNORECASE)
    return Order("delete" if deleted else "star", names[0])


def _names(text: str, senders: list[str]) -> list[str]:
    """The names in a sentence: those of senders, and others after a word that leads to one."""
    known = {name for name in senders if re.search(rf"\b{re.escape(name)}(?:\b|s\b)", text)}
    known |= set(re.findall(r"\b(?:to|from|by) ([A-Z][a-z]+)", text))
    return sorted(known, key=text.find)


def _directed(text: str, names: list[str]) -> tuple[str, str]:
    """Whose mail goes to whom."""
    if len(names) == 1:
        return names[0], names[0]
    first, second = names[:2]
    for one, other in ((first, second), (second, first)):
        from_one = rf"(?:from|by) {one}\b|\b{one}'s?\b|\b{one}s (?:last|email)|{one} (?:sent|wrote|email)"
        if re.search(from_one, text):
            return one, other
        if re.search(rf"\bto {one}\b", text):
            return other, one
    return first, second


@task(*_INBOXES)
async def inbox(p: Product, v: View) -> None:
    names = await p.elements("#main .email-sender")
    senders = [node.text for node in names]
    order = understand(_order_text(v), senders)
    row = senders.index(order.sender)
    if order.verb in ("delete", "star"):
        kind = "trash" if order.verb == "delete" else "star"
        icons = await p.elements(f"#main .{kind}")
        await p.do(click(spot(icons[row])))
        return
    await p.do(click(spot(names[row])), click("Reply" if order.verb == "reply" else "Forward"))
    seen = await p.view()
    fields = seen.all("textbox")
    (send,) = await p.elements(f"#send-{order.verb}")
    await p.do(write(fields[0], order.message or order.receiver), click(spot(send)))


def _order_text(v: View) -> str:
    return v.text.split(" Primary", 1)[0]
