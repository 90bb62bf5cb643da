"""Results of pages, plugins and external servers as MCP defines them, so that every client can read them.

Official clients throw at a block without its field or at `structuredContent` that is no object, and the whole answer is
lost. What others send is repaired here, in one place: a part that cannot be is shown as text. What the results say is
up to whoever made them.
"""

from __future__ import annotations

import binascii
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import orjson

from tabhub.core.schemas.validators import Schema

Block = dict[str, Any]

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+")
_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)(?:;[^,;]*)*;base64,")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)")
_URL_SAFE = str.maketrans("-_", "+/")
_OWN_FIELDS = frozenset(
    {"content", "structuredContent", "isError", "_meta", "resultType", "task", "toolResult", "requestState"}
    | {"inputRequests", "ttlMs", "cacheScope"}
)
"""The fields that mean something to clients; others are passed on."""
_MIME = {"image": "image/png", "audio": "audio/wav"}
_ROLES = ("user", "assistant")
_OPTIONAL_TEXTS = ("title", "description", "mimeType")


def valid_result(answer: Mapping[str, Any]) -> dict[str, Any]:
    """A tool's result; `structuredContent` may be encoded (msgspec.Raw), and is decoded only if it is no object."""
    blocks = valid_blocks(answer.get("content"))
    structured = answer.get("structuredContent")
    if isinstance(structured, msgspec.Raw) and bytes(structured).lstrip()[:1] != b"{":
        structured = msgspec.json.decode(structured)
    if structured is not None and not isinstance(structured, Mapping | msgspec.Raw):
        blocks, structured = _with_text(blocks, structured), None
    if structured is not None and not blocks:
        blocks = [_text(_json(structured))]
    result: dict[str, Any] = {name: value for name, value in answer.items() if name not in _OWN_FIELDS}
    result["content"] = blocks
    if structured is not None:
        result["structuredContent"] = structured
    if answer.get("isError") is True:
        result["isError"] = True
    if isinstance(meta := answer.get("_meta"), Mapping):
        result["_meta"] = meta
    return result


def check_promise(result: dict[str, Any], who: str, output: Schema | None) -> dict[str, Any]:
    """A valid result, or an error if it is not what its tool's output schema promises: clients refuse it as well."""
    if output is None or "isError" in result:
        return result
    structured = result.get("structuredContent")
    if structured is None:
        problem = f"{who} promises structured content and gave none."
    elif not output.is_valid(orjson.loads(bytes(structured)) if isinstance(structured, msgspec.Raw) else structured):
        problem = f"{who}'s structured content does not fit its own outputSchema, and is left out."
    else:
        return result
    kept = {name: value for name, value in result.items() if name != "structuredContent"}
    return {**kept, "content": [*result["content"], _text(f"[{problem}]")], "isError": True}


def valid_blocks(content: Any) -> list[Block]:
    """The content blocks of a result or message, whether they came as a list, as one block or as text."""
    if content is None:
        return []
    return [_block(each) for each in (content if isinstance(content, list) else [content])]


def valid_contents(contents: Any, uri: str) -> list[Block]:
    """The contents of a resource."""
    return [
        _contents(each if isinstance(each, Mapping) else {"text": each}, uri)
        for each in (contents if isinstance(contents, list) else [] if contents is None else [contents])
    ]


def valid_messages(messages: Any) -> list[tuple[str, Block]]:
    """The messages of a prompt, as role and block."""
    return [
        (role if (role := _get(each, "role")) in _ROLES else _ROLES[0], block)
        for each in (messages if isinstance(messages, list) else [] if messages is None else [messages])
        for block in valid_blocks(each["content"] if isinstance(each, Mapping) and "content" in each else each)
    ]


def _get(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, Mapping) else None


def _with_text(blocks: list[Block], value: Any) -> list[Block]:
    """The blocks with a value as text, unless it is among them."""
    text = value if isinstance(value, str) else _json(value)
    known = any(block.get("text") in (text, _json(value)) for block in blocks)
    return blocks if known else [*blocks, _text(text)]


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


def _json(value: Any) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except OverflowError:  # numbers of more than 64 bits, which are JSON all the same
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _block(raw: Any) -> Block:
    if isinstance(raw, str):
        return _text(raw)
    kind = _get(raw, "type")
    read = _READERS.get(kind) if isinstance(kind, str) else None
    fresh = read(raw) if read is not None else None
    return _extras(fresh) if fresh is not None else _text(_json(raw))


def _text_block(raw: Mapping[str, Any]) -> Block | None:
    return {**raw} if isinstance(raw.get("text"), str) else None


def _media_block(raw: Mapping[str, Any]) -> Block | None:
    data, mime, kind = raw.get("data"), raw.get("mimeType"), raw["type"]
    if isinstance(data, str) and (match := _DATA_URL.match(data)) is not None:
        data, mime = data[match.end() :], mime if isinstance(mime, str) else match[1]
    data = _base64(data) if isinstance(data, str) else None
    if not data:
        return _text(f"[{'An image' if kind == 'image' else 'A sound'} that cannot be shown: its data is not base64.]")
    return {**raw, "data": data, "mimeType": mime if isinstance(mime, str) else _MIME[kind]}


def _resource_block(raw: Mapping[str, Any]) -> Block | None:
    resource = raw.get("resource")
    if not isinstance(resource, Mapping) or not _is_uri(resource.get("uri")):
        return None
    return {**raw, "resource": _contents(resource, "")}


def _link_block(raw: Mapping[str, Any]) -> Block | None:
    uri, name, size = raw.get("uri"), raw.get("name"), raw.get("size")
    if not _is_uri(uri):
        return None
    fresh = {**raw, "uri": uri, "name": name if isinstance(name, str) else uri}
    if "size" in fresh and (type(size) is not int or size < 0):
        del fresh["size"]
    icons = fresh.get("icons")
    if "icons" in fresh and not (isinstance(icons, list) and all(isinstance(_get(i, "src"), str) for i in icons)):
        del fresh["icons"]
    return _optional_texts(fresh)


_READERS: Mapping[str, Callable[[Mapping[str, Any]], Block | None]] = {
    "text": _text_block,
    "image": _media_block,
    "audio": _media_block,
    "resource": _resource_block,
    "resource_link": _link_block,
}


def _contents(raw: Mapping[str, Any], uri: str) -> Block:
    """One content of a resource: a text, or base64."""
    fresh = {**raw, "uri": raw["uri"] if _is_uri(raw.get("uri")) else uri}
    text, blob = fresh.pop("text", None), fresh.pop("blob", None)
    if isinstance(blob, str) and (data := _base64(blob)) is not None:
        fresh["blob"] = data
    elif blob is not None and text is None:
        text = "[Its content is not base64.]"
    if text is not None or "blob" not in fresh:
        fresh["text"] = text if isinstance(text, str) else "" if text is None else _json(text)
    return _extras(_optional_texts(fresh))


def _optional_texts(fresh: Block) -> Block:
    for name in _OPTIONAL_TEXTS:
        if name in fresh and not isinstance(fresh[name], str):
            del fresh[name]
    return fresh


def _extras(fresh: Block) -> Block:
    """The block without annotations or `_meta` that are not valid."""
    if "_meta" in fresh and not isinstance(fresh["_meta"], Mapping):
        del fresh["_meta"]
    if "annotations" in fresh and not _are_annotations(fresh["annotations"]):
        del fresh["annotations"]
    return fresh


def _are_annotations(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return False
    audience, priority, modified = (value.get(key) for key in ("audience", "priority", "lastModified"))
    return (
        ("audience" not in value or (isinstance(audience, list) and all(role in _ROLES for role in audience)))
        and ("priority" not in value or (isinstance(priority, int | float) and 0 <= priority <= 1))
        and ("lastModified" not in value or (isinstance(modified, str) and _TIME.fullmatch(modified) is not None))
    )


def _is_uri(value: Any) -> bool:
    return isinstance(value, str) and _URI.fullmatch(value) is not None


def _base64(value: str) -> str | None:
    """The value as strict base64, if it is any kind of it."""
    plain = "".join(value.translate(_URL_SAFE).split()).rstrip("=")
    for candidate in (value, plain + "=" * (-len(plain) % 4)):
        try:
            binascii.a2b_base64(candidate, strict_mode=True)
        except (binascii.Error, ValueError):
            continue
        return candidate
    return None
