"""Change notifications of a server (a list or a resource has changed), in either era of the protocol.

Owns which messages mean that, and the subscription stream of the stateless era. This module imports the SDK; others
import it late, in a thread.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp import Client
from mcp.client.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    SubscriptionLost,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError

if TYPE_CHECKING:
    from tabhub.upstream.server_connection import Hooks
    from tabhub.upstream.subscriptions import ServerSubscriptions

log = logging.getLogger("tabhub.upstream")

LISTS = ("tools", "resources", "prompts")
_CHANGED: Mapping[type[Any], str] = {
    types.ToolListChangedNotification: "tools",
    types.ResourceListChangedNotification: "resources",
    types.PromptListChangedNotification: "prompts",
    ToolsListChanged: "tools",
    ResourcesListChanged: "resources",
    PromptsListChanged: "prompts",
}
"""The notifications of changed lists, in either era."""
_RETRY_AFTER = 5.0


def dispatch_change(message: Any, hooks: Hooks) -> None:
    """Call the hook for a change notification; other messages are ignored."""
    if isinstance(message, types.ResourceUpdatedNotification):
        hooks.updated(message.params.uri)
    elif isinstance(message, ResourceUpdated):
        hooks.updated(message.uri)
    elif (kind := _CHANGED.get(type(message))) is not None:
        hooks.changed(kind)


async def subscribe_to_changes(name: str, client: Client, hooks: Hooks, subscriptions: ServerSubscriptions) -> None:
    """Receive changes in the stateless era, where a client must subscribe. Returns when the server refuses."""
    while True:
        listening = asyncio.ensure_future(_listen(name, client, hooks, sorted(subscriptions.uris)))
        others = asyncio.ensure_future(subscriptions.changed())
        try:
            await asyncio.wait((listening, others), return_when=asyncio.FIRST_COMPLETED)
            if not listening.done():
                continue  # the subscriptions changed: subscribe again
            if not listening.result():
                return
            await asyncio.sleep(_RETRY_AFTER)
            for kind in LISTS:
                hooks.changed(kind)  # changes during the interruption were missed
            for uri in subscriptions.uris:
                hooks.updated(uri)
        finally:
            for task in (listening, others):
                task.cancel()
            await asyncio.wait((listening, others))


async def _listen(name: str, client: Client, hooks: Hooks, uris: Sequence[str]) -> bool:
    """Receive changes until the stream ends; False if the server refuses to send any."""
    has = client.server_capabilities
    tools, resources, prompts = (
        resources_changed is not None and bool(resources_changed.list_changed)
        for resources_changed in (has.tools, has.resources, has.prompts)
    )
    uris = uris if has.resources is not None and has.resources.subscribe else ()
    if not (tools or resources or prompts or uris):
        return bool(await asyncio.get_running_loop().create_future())  # until there is a subscription
    try:
        listening = client.listen(
            tools_list_changed=tools,
            resources_list_changed=resources,
            prompts_list_changed=prompts,
            resource_subscriptions=uris,
        )
        async with listening as events:
            async for event in events:
                dispatch_change(event, hooks)
    except MCPError as error:
        log.info("%s announces no changes: %s", name, error.message[:300])
        return False
    except (SubscriptionLost, TimeoutError) as error:
        log.debug("%s has stopped announcing changes: %s", name, error)
    return True
