"""The resources and prompts that the conformance suite expects, as an external server of the hub under test, made with
the SDK.

The suite reads them through the hub, under the hub's names. Uses standard input and output.
"""

from __future__ import annotations

import itertools
import json
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.prompts import Prompt
from mcp.server.mcpserver.prompts.base import UserMessage
from mcp_types import (
    Completion,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    EmbeddedResource,
    ImageContent,
    InputRequiredResult,
    TextResourceContents,
)

from tests.conformance.fixture_tools import PIXEL

server = MCPServer("conformance")
_added = itertools.count(1)


@server.resource("test://static-text", mime_type="text/plain")
def static_text() -> str:
    """A text."""
    return "This is the content of the static text resource."


@server.resource("test://watched-resource", mime_type="text/plain")
def watched() -> str:
    """A resource that can be subscribed to."""
    return "Watched."


@server.resource("test://static-binary", mime_type="image/png")
def static_binary() -> bytes:
    """A picture."""
    return b"\x89PNG\r\n\x1a\n"


@server.resource("test://template/{id}/data", mime_type="application/json")
def from_template(id: str) -> str:  # noqa: A002 - the suite names the variable
    """A resource for each id."""
    return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})


@server.prompt()
def test_simple_prompt() -> str:
    """A prompt without arguments."""
    return "This is a simple prompt for testing."


@server.prompt()
def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """A prompt with arguments."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@server.prompt()
def test_prompt_with_embedded_resource(resourceUri: str) -> list[Any]:  # noqa: N803 - the suite names the argument
    """A prompt that contains a resource."""
    words = "Embedded resource content for testing."
    held = TextResourceContents(uri=resourceUri, mime_type="text/plain", text=words)
    embedded = EmbeddedResource(type="resource", resource=held)
    return [UserMessage(embedded), UserMessage("Please process the embedded resource above.")]


@server.prompt()
def test_prompt_with_image() -> list[Any]:
    """A prompt that contains a picture."""
    picture = ImageContent(type="image", data=PIXEL, mime_type="image/png")
    return [UserMessage(picture), UserMessage("Please analyze the image above.")]


@server.prompt()
def test_input_required_result_prompt(ctx: Context) -> str | InputRequiredResult:
    """A prompt that requires input first."""
    answer = (ctx.input_responses or {}).get("user_context")
    if isinstance(answer, ElicitResult):
        return f"Use this context: {(answer.content or {}).get('context')}"
    schema = {"type": "object", "properties": {"context": {"type": "string"}}, "required": ["context"]}
    words = "What context should the prompt use?"
    asked = ElicitRequest(params=ElicitRequestFormParams(message=words, requested_schema=schema))
    return InputRequiredResult(input_requests={"user_context": asked})


@server.completion()  # type: ignore[no-untyped-call,untyped-decorator]
async def complete(ref: Any, argument: Any, context: Any) -> Completion | None:
    return Completion(values=[word for word in ("test", "testing") if word.startswith(argument.value)])


@server.tool()
async def change_prompts(ctx: Context) -> str:
    """Adds a prompt and announces it."""
    name = f"test_added_prompt_{next(_added)}"
    server.add_prompt(Prompt.from_function(lambda: "added", name=name, description="Added while running"))
    await ctx.notify_prompts_changed()
    await ctx.session.send_prompt_list_changed()
    return "The list has changed."


if __name__ == "__main__":
    server.run("stdio")
