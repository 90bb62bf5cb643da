"""Change notifications of a server (a list or a resource has changed), in either era of the protocol.

Owns which messages mean that, and the subscription stream of the stateless era. This module imports the SDK; others
import it late, in a thread.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
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
    from tabhub.upstream.server_connection import ServerConnection

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


def dispatch_change(message: Any, connection: ServerConnection) -> None:
    """Report a change notification to the connection; other messages are ignored."""
    if isinstance(message, types.ResourceUpdatedNotification):
        connection.resource_updated(message.params.uri)
    elif isinstance(message, ResourceUpdated):
        connection.resource_updated(message.uri)
    elif (kind := _CHANGED.get(type(message))) is not None:
        connection.list_changed(kind)


async def subscribe_to_changes(client: Client, connection: ServerConnection) -> None:
    """Receive changes in the stateless era, where a client must subscribe. Returns when the server refuses."""
    subscriptions = connection.subscriptions
    while True:
        listening = asyncio.ensure_future(_listen(client, connection))
        others = asyncio.ensure_future(subscriptions.changed())
        try:
            await asyncio.wait((listening, others), return_when=asyncio.FIRST_COMPLETED)
            if not listening.done():
                continue  # the subscriptions changed: subscribe again
            if not listening.result():
                return
            await asyncio.sleep(_RETRY_AFTER)
            for kind in LISTS:
                connection.list_changed(kind)  # changes during the interruption were missed
            for uri in subscriptions.uris:
                connection.resource_updated(uri)
        finally:
            for task in (listening, others):
                task.cancel()
            await asyncio.wait((listening, others))


async def _listen(client: Client, connection: ServerConnection) -> bool:
    """Receive changes until the stream ends; False if the server refuses to send any."""
    has = client.server_capabilities
    tools, resources, prompts = (
        listed is not None and bool(listed.list_changed) for listed in (has.tools, has.resources, has.prompts)
    )
    uris = sorted(connection.subscriptions.uris) if has.resources is not None and has.resources.subscribe else ()
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
                dispatch_change(event, connection)
    except MCPError as error:
        log.info("%s announces no changes: %s", connection.server.name, error.message[:300])
        return False
    except (SubscriptionLost, TimeoutError) as error:
        log.debug("%s has stopped announcing changes: %s", connection.server.name, error)
    return True
