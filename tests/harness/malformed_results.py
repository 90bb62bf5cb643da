"""Tool results that break MCP, as pages, plugins and servers send them, and how they are repaired."""

from __future__ import annotations

from typing import Any

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
RESOURCE = {"uri": "a:1", "text": "t"}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def link(**more: Any) -> dict[str, Any]:
    return {"type": "resource_link", "uri": "a:1", "name": "a:1", **more}


MALFORMED: dict[str, tuple[Any, dict[str, Any]]] = {
    "a text as structured content": (
        {"content": [text("hi")], "structuredContent": "hi"},
        {"content": [text("hi")]},
    ),
    "a list as structured content": (
        {"content": [], "structuredContent": [1, 2]},
        {"content": [text("[1,2]")]},
    ),
    "a number as structured content beside other text": (
        {"content": [text("n")], "structuredContent": 7},
        {"content": [text("n"), text("7")]},
    ),
    "null as structured content": ({"content": [text("n")], "structuredContent": None}, {"content": [text("n")]}),
    "structured content alone": (
        {"structuredContent": {"a": 1}},
        {"content": [text('{"a":1}')], "structuredContent": {"a": 1}},
    ),
    "nothing": ({}, {"content": []}),
    "text instead of content": ({"content": "hi"}, {"content": [text("hi")]}),
    "one block instead of a list": ({"content": text("hi")}, {"content": [text("hi")]}),
    "null instead of content": ({"content": None}, {"content": []}),
    "texts, numbers and null as blocks": (
        {"content": ["hi", 5, None, ["x"]]},
        {"content": [text("hi"), text("5"), text("null"), text('["x"]')]},
    ),
    "a text block without text": ({"content": [{"type": "text"}]}, {"content": [text('{"type":"text"}')]}),
    "a text block with a number": (
        {"content": [{"type": "text", "text": 5}]},
        {"content": [text('{"type":"text","text":5}')]},
    ),
    "an unknown type": ({"content": [{"type": "video", "id": 1}]}, {"content": [text('{"type":"video","id":1}')]}),
    "a type that is no text": ({"content": [{"type": ["text"]}]}, {"content": [text('{"type":["text"]}')]}),
    "a block without a type": ({"content": [{"a": 1}]}, {"content": [text('{"a":1}')]}),
    "an image without data": (
        {"content": [{"type": "image", "mimeType": "image/png"}]},
        {"content": [text("[An image that cannot be shown: its data is not base64.]")]},
    ),
    "a sound that is not base64": (
        {"content": [{"type": "audio", "data": "?!", "mimeType": "audio/wav"}]},
        {"content": [text("[A sound that cannot be shown: its data is not base64.]")]},
    ),
    "an image without a type": (
        {"content": [{"type": "image", "data": PIXEL}]},
        {"content": [{"type": "image", "data": PIXEL, "mimeType": "image/png"}]},
    ),
    "an image as a data URL": (
        {"content": [{"type": "image", "data": f"data:image/gif;base64,{PIXEL}"}]},
        {"content": [{"type": "image", "data": PIXEL, "mimeType": "image/gif"}]},
    ),
    "an image in base64 for URLs, in lines": (
        {"content": [{"type": "image", "data": "-_\n-_", "mimeType": "image/png"}]},
        {"content": [{"type": "image", "data": "+/+/", "mimeType": "image/png"}]},
    ),
    "a resource without contents": (
        {"content": [{"type": "resource", "resource": {"uri": "a:1"}}]},
        {"content": [{"type": "resource", "resource": {"uri": "a:1", "text": ""}}]},
    ),
    "a resource without a URI": (
        {"content": [{"type": "resource", "resource": {"text": "t"}}]},
        {"content": [text('{"type":"resource","resource":{"text":"t"}}')]},
    ),
    "a resource that is not base64": (
        {"content": [{"type": "resource", "resource": {"uri": "a:1", "blob": "?", "mimeType": 5}}]},
        {"content": [{"type": "resource", "resource": {"uri": "a:1", "text": "[Its content is not base64.]"}}]},
    ),
    "a resource whose text is JSON": (
        {"content": [{"type": "resource", "resource": {"uri": "a:1", "text": {"b": 1}, "_meta": 5}}]},
        {"content": [{"type": "resource", "resource": {"uri": "a:1", "text": '{"b":1}'}}]},
    ),
    "a resource link without a name": ({"content": [{"type": "resource_link", "uri": "a:1"}]}, {"content": [link()]}),
    "a resource link with odd extras": (
        {"content": [link(size="big", title=5, description=None, icons=[{}], mimeType=[])]},
        {"content": [link()]},
    ),
    "a resource link without a URI": (
        {"content": [{"type": "resource_link", "uri": "no URI", "name": "n"}]},
        {"content": [text('{"type":"resource_link","uri":"no URI","name":"n"}')]},
    ),
    "odd annotations and meta": (
        {"content": [text("hi") | {"annotations": {"audience": ["cat"]}, "_meta": "x"}], "_meta": [1]},
        {"content": [text("hi")]},
    ),
    "annotations with an odd time": (
        {"content": [text("hi") | {"annotations": {"lastModified": "yesterday"}}]},
        {"content": [text("hi")]},
    ),
    "an error that is a text": ({"content": [text("hi")], "isError": "no"}, {"content": [text("hi")]}),
    "fields of the protocol": (
        {"content": [text("hi")], "resultType": "odd", "task": 5, "toolResult": 1},
        {"content": [text("hi")]},
    ),
}
"""By what is wrong: what is sent, and what agents get, apart from the mark of where it comes from."""
