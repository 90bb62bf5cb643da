"""A stream of posts with icons to like, share, and so on."""

from __future__ import annotations

import re

from bench.miniwob.actions import click
from bench.miniwob.policies.registry import button, spot, task
from bench.miniwob.products.base import Product
from bench.miniwob.view import View

_IN_MENU = ("Share via DM", "Copy link to Tweet", "Embed Tweet", "Mute", "Block", "Report")


@task("social-media")
async def one_post(p: Product, v: View) -> None:
    user, action = v.find(r'For the user (@\S+?), click on the "(.*?)" button')
    at = (await _users(p)).index(user)
    if action not in _IN_MENU:
        icons = await p.elements(f".{action.lower()}")
        await p.do(click(spot(icons[at])))
        return
    menus = await p.elements(".more")
    await p.do(click(spot(menus[at])))
    seen = await p.view()
    name = f"{action} {user}" if action in ("Mute", "Block") else action
    await p.do(click(next((n for n in seen.all(None, name) if n.ref), None) or name))


@task("social-media-all", "social-media-some")
async def several_posts(p: Product, v: View) -> None:
    action, many, user = v.find(r'Click the "(\w+)" button on (all|\d+) posts? by (@\S+) and then')
    icons = await p.elements(f".{action.lower()}")
    own = [icon for icon, name in zip(icons, await _users(p), strict=True) if name == user]
    chosen = own if many == "all" else own[: int(many)]
    await p.do(*(click(spot(icon)) for icon in chosen), click(button(v)))


async def _users(p: Product) -> list[str]:
    return [re.sub(r"\s", "", node.text) for node in await p.elements(".username")]
