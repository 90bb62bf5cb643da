"""The tools that the official conformance suite calls by name, as one more source of the hub.

They run through the same engine, surfaces and endpoints as every other tool; only their behaviour is the suite's.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from tabhub.calls.engine import Context
from tabhub.core.registry import Entry
from tabhub.core.tools import EMPTY_SCHEMA, CallContext, Source, Tool, ToolResult

SOURCE = Source("plugin", "conformance")
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
WAVE = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
_PAUSE = 0.05

Run = Callable[[Context, dict[str, Any]], Awaitable[ToolResult]]
TOOLS: list[Entry] = []


def text_input(name: str) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}


def tool(name: str, schema: dict[str, Any] | None = None) -> Callable[[Run], Run]:
    def register(run: Run) -> Run:
        async def runner(ctx: CallContext, args: dict[str, Any]) -> ToolResult:
            assert isinstance(ctx, Context)
            return await run(ctx, args)

        made = Tool(name, SOURCE, f"Conformance: {name}", schema or EMPTY_SCHEMA)
        TOOLS.append(Entry(made, runner))
        return run

    return register


def image() -> dict[str, Any]:
    return {"type": "image", "data": PIXEL, "mimeType": "image/png"}


def resource(uri: str, mime: str, text: str) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime, "text": text}}


def elicit(message: str, properties: dict[str, Any], required: list[str] | None = None) -> tuple[str, dict[str, Any]]:
    schema = {"type": "object", "properties": properties, "required": required or []}
    return "elicitation/create", {"mode": "form", "message": message, "requestedSchema": schema}


def sample(prompt: str, tokens: int = 100) -> tuple[str, dict[str, Any]]:
    message = {"role": "user", "content": {"type": "text", "text": prompt}}
    return "sampling/createMessage", {"messages": [message], "maxTokens": tokens}


NAME = elicit("What is your name?", {"name": {"type": "string"}}, ["name"])


@tool("test_simple_text")
async def simple_text(ctx: Context, args: dict[str, Any]) -> ToolResult:
    return ToolResult.text("This is a simple text response for testing.")


@tool("test_image_content")
async def image_content(ctx: Context, args: dict[str, Any]) -> ToolResult:
    return ToolResult.of([image()])


@tool("test_audio_content")
async def audio_content(ctx: Context, args: dict[str, Any]) -> ToolResult:
    return ToolResult.of([{"type": "audio", "data": WAVE, "mimeType": "audio/wav"}])


@tool("test_embedded_resource")
async def embedded_resource(ctx: Context, args: dict[str, Any]) -> ToolResult:
    text = "This is an embedded resource content."
    return ToolResult.of([resource("test://embedded-resource", "text/plain", text)])


@tool("test_multiple_content_types")
async def multiple_content_types(ctx: Context, args: dict[str, Any]) -> ToolResult:
    data = json.dumps({"test": "data", "value": 123})
    return ToolResult.of(
        [
            {"type": "text", "text": "Multiple content types test:"},
            image(),
            resource("test://mixed-content-resource", "application/json", data),
        ]
    )


@tool("test_tool_with_logging")
async def with_logging(ctx: Context, args: dict[str, Any]) -> ToolResult:
    for line in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        ctx.log("info", "conformance", line)
        await asyncio.sleep(_PAUSE)
    return ToolResult.text("Logged three messages.")


@tool("test_logging_tool")
async def logging_tool(ctx: Context, args: dict[str, Any]) -> ToolResult:
    ctx.log("info", "conformance", "a message for those who asked")
    return ToolResult.text("Logged one message.")


@tool("test_error_handling")
async def error_handling(ctx: Context, args: dict[str, Any]) -> ToolResult:
    return ToolResult.text("This tool intentionally returns an error for testing", is_error=True)


@tool("test_tool_with_progress")
async def with_progress(ctx: Context, args: dict[str, Any]) -> ToolResult:
    for step in (0, 50, 100):
        ctx.progress(step, 100)
        await asyncio.sleep(_PAUSE)
    return ToolResult.text("Progress done.")


@tool("test_sampling", text_input("prompt"))
async def sampling(ctx: Context, args: dict[str, Any]) -> ToolResult:
    answer = (await ctx.ask({"reply": sample(args["prompt"])}))["reply"]
    return ToolResult.text(f"LLM response: {answer['content']['text']}")


@tool("test_elicitation", text_input("message"))
async def elicitation(ctx: Context, args: dict[str, Any]) -> ToolResult:
    fields = {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"},
    }
    answer = (await ctx.ask({"reply": elicit(args["message"], fields, list(fields))}))["reply"]
    return ToolResult.text(f"User response: action: {answer['action']}, content: {answer.get('content')}")


async def _elicited(ctx: Context, fields: dict[str, Any]) -> ToolResult:
    answer = (await ctx.ask({"reply": elicit("Please fill in", fields)}))["reply"]
    content = json.dumps(answer.get("content"))
    return ToolResult.text(f"Elicitation completed: action={answer['action']}, content={content}")


@tool("test_elicitation_sep1034_defaults")
async def elicitation_defaults(ctx: Context, args: dict[str, Any]) -> ToolResult:
    return await _elicited(
        ctx,
        {
            "name": {"type": "string", "default": "John Doe"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
            "verified": {"type": "boolean", "default": True},
        },
    )


@tool("test_elicitation_sep1330_enums")
async def elicitation_enums(ctx: Context, args: dict[str, Any]) -> ToolResult:
    options = ["option1", "option2", "option3"]
    titled = [{"const": f"value{n}", "title": f"{word} Option"} for n, word in ((1, "First"), (2, "Second"))]
    return await _elicited(
        ctx,
        {
            "untitledSingle": {"type": "string", "enum": options},
            "titledSingle": {"type": "string", "oneOf": titled},
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
            "titledMulti": {"type": "array", "items": {"anyOf": titled}},
        },
    )


@tool("test_missing_capability")
async def missing_capability(ctx: Context, args: dict[str, Any]) -> ToolResult:
    await ctx.ask({"reply": sample("anything")})
    return ToolResult.text("The client can sample.")


@tool("test_streaming_elicitation")
async def streaming_elicitation(ctx: Context, args: dict[str, Any]) -> ToolResult:
    await ctx.ask({"user_name": NAME})
    return ToolResult.text("Asked.")


@tool("test_input_required_result_elicitation")
async def required_elicitation(ctx: Context, args: dict[str, Any]) -> ToolResult:
    answer = (await ctx.ask({"user_name": NAME}))["user_name"]
    return ToolResult.text(f"Hello, {answer.get('content', {}).get('name')}!")


@tool("test_input_required_result_sampling")
async def required_sampling(ctx: Context, args: dict[str, Any]) -> ToolResult:
    answer = (await ctx.ask({"capital_question": sample("What is the capital of France?")}))["capital_question"]
    return ToolResult.text(str(answer["content"]["text"]))


@tool("test_input_required_result_list_roots")
async def required_roots(ctx: Context, args: dict[str, Any]) -> ToolResult:
    answer = (await ctx.ask({"client_roots": ("roots/list", {})}))["client_roots"]
    return ToolResult.text(", ".join(root["uri"] for root in answer["roots"]))


CONFIRM = elicit("Please confirm", {"ok": {"type": "boolean"}}, ["ok"])


@tool("test_input_required_result_request_state")
async def required_state(ctx: Context, args: dict[str, Any]) -> ToolResult:
    await ctx.ask({"confirm": CONFIRM})
    return ToolResult.text("state-ok")


@tool("test_input_required_result_tampered_state")
async def tampered_state(ctx: Context, args: dict[str, Any]) -> ToolResult:
    await ctx.ask({"confirm": CONFIRM})
    return ToolResult.text("confirmed")


@tool("test_input_required_result_multiple_inputs")
async def required_several(ctx: Context, args: dict[str, Any]) -> ToolResult:
    await ctx.ask(
        {"user_name": NAME, "greeting": sample("Generate a greeting", 50), "client_roots": ("roots/list", {})}
    )
    return ToolResult.text("All three answered.")


@tool("test_input_required_result_multi_round")
async def required_rounds(ctx: Context, args: dict[str, Any]) -> ToolResult:
    name = elicit("Step 1: What is your name?", {"name": {"type": "string"}}, ["name"])
    colour = elicit("Step 2: What is your favorite color?", {"color": {"type": "string"}}, ["color"])
    first = (await ctx.ask({"step1": name}))["step1"]
    second = (await ctx.ask({"step2": colour}))["step2"]
    return ToolResult.text(f"{first.get('content')} {second.get('content')}")


@tool("test_input_required_result_capabilities")
async def required_by_capability(ctx: Context, args: dict[str, Any]) -> ToolResult:
    questions = {"user_name": NAME, "greeting": sample("Generate a greeting", 50)}
    wanted = {
        key: question
        for key, question in questions.items()
        if ctx.can("elicitation" if question[0] == "elicitation/create" else "sampling")
    }
    await ctx.ask(wanted)
    return ToolResult.text("Asked what this client can answer.")


@tool(
    "json_schema_2020_12_tool",
    {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            }
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": False,
    },
)
async def schema_2020_12(ctx: Context, args: dict[str, Any]) -> ToolResult:
    return ToolResult.text("fits")


HEADERED = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "priority": {"type": "integer", "x-mcp-header": "Priority"},
        "verbose": {"type": "boolean", "x-mcp-header": "Verbose"},
    },
}


@tool("test_custom_headers", HEADERED)
async def custom_headers(ctx: Context, args: dict[str, Any]) -> ToolResult:
    return ToolResult.text(f"region {args.get('region')}")
