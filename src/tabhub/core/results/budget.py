"""The output budget: how a tool result that costs too many tokens is cut.

Owns the cut and the text that is stored for later reading. Knows nothing of where that text is stored or under which
handle: the caller stores `Fitted.full_text` and renders the cut result with the handle it got.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from msgspec import Raw

from tabhub.core.results.tokens import estimate_tokens
from tabhub.errors import ParseError

IMAGE_TOKENS: Final = 1_600
"""The tokens of an image, a sound or a binary resource, whatever the length of its base64."""

_NOTE_TOKENS = 220
_NOTE_KEYS = 12
_LINE = 400
_DEPTH = 6
_TEXT_LENGTHS = (40_000, 10_000, 2_000, 500, 100, 20)
_MANY_COMMAS = 300_000
_TOO_MANY_COMMAS = 600_000
_SMALL = 65_536
_MAX_DECODE_DEPTH = 24
_MAX_SCANNED = 1_000_000
_COMMA: Final = ord(",")
_MARKS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[\]{},]')
_BLOCKS: Final = msgspec.json.Decoder(list[dict[str, Any]])
_FIELDS: Final = msgspec.json.Decoder(dict[str, Raw])
_ITEMS: Final = msgspec.json.Decoder(list[Raw])


def prefix_within(text: str, max_tokens: int, start: int = 0) -> int:
    """The position up to which the text from `start` on fits the budget."""
    at, remaining = start, max_tokens
    while at < len(text) and remaining > 0:
        chunk = text[at : at + 4096]
        cost = estimate_tokens(chunk)
        if cost > remaining:
            end = len(chunk) * remaining // cost
            while end and estimate_tokens(chunk[:end]) > remaining:
                end = end * 9 // 10
            return at + end
        at += len(chunk)
        remaining -= cost
    return at


def tidy_end(text: str, start: int, end: int) -> int:
    """Move a cut back to the end of a line if one is near, else behind a comma or a space."""
    if end >= len(text):
        return len(text)
    line = text.rfind("\n", start + (end - start) * 4 // 5, end)
    if line >= 0:
        return line + 1
    near = max(start, end - 200)
    mark = max(text.rfind(", ", near, end), text.rfind(",", near, end), text.rfind(" ", near, end))
    return mark + 1 if mark > start else end


@dataclass(frozen=True, slots=True)
class Fitted:
    """A result cut to its budget, and the full text to store."""

    head: dict[str, Any]
    """The cut result; `{handle}` stands in its last block and in its `_meta`."""
    full_text: str
    mime: str

    def render(self, handle: str) -> bytes:
        """The cut result, encoded, with the handle under which the full text was stored."""
        *blocks, note = self.head["content"]
        filled = {**note, "text": note["text"].replace("{handle}", handle)}
        meta = {**self.head["_meta"]}
        meta["tabhub/result"] = {**meta["tabhub/result"], "handle": handle}
        return msgspec.json.encode({**self.head, "content": [*blocks, filled], "_meta": meta})


def fit(payload: bytes, max_tokens: int) -> Fitted | None:
    """Cut an encoded CallToolResult to the budget; None if it already fits.

    A cut result has structuredContent with long texts and lists shortened: clients validate it against the tool's
    output schema, and a result without it is an error for them. It is left out only if it does not fit even then.
    """
    if len(payload) <= max_tokens:  # a token has at least one byte
        return None
    try:
        fields = _FIELDS.decode(payload)
        blocks = _BLOCKS.decode(fields.pop("content", Raw(b"[]")))
    except (msgspec.DecodeError, RecursionError) as error:
        raise ParseError(f"The tool's result is not an MCP result: {error}.") from None
    structured = bytes(fields.get("structuredContent", b"")).strip().removeprefix(b"null")
    texts = [text for text in map(_text_of, blocks) if text is not None]
    budget = max_tokens - IMAGE_TOKENS * (len(blocks) - len(texts))
    # An agent is shown either the text or the structured form of the same answer, so each must fit on its own.
    if _within(texts, budget) and (len(structured) <= budget or estimate_tokens(structured) <= budget):
        return None
    if structured:
        part = _shortened(structured, budget)
        fields.pop("structuredContent")
        if part is not None:
            fields["structuredContent"] = Raw(part)
    full, mime = _full_text(blocks, texts, structured)
    mirrored = mime == "application/json" and (not structured or not texts or texts[0].lstrip()[:1] in ("{", "["))
    content, shown, dropped = _cut(blocks, full if mirrored else None, max_tokens - _NOTE_TOKENS)
    if structured and not mirrored:
        shown = 0
    total_tokens = estimate_tokens(full)
    content.append({"type": "text", "text": _note(full, mime, shown, total_tokens, dropped)})
    details = {"handle": "{handle}", "totalChars": len(full), "totalTokens": total_tokens, "mime": mime}
    meta = msgspec.json.decode(fields.pop("_meta", b"null"))
    meta = {**(meta if isinstance(meta, dict) else {}), "tabhub/result": details}
    return Fitted({"content": content, **fields, "_meta": meta}, full, mime)


def _shortened(structured: bytes, budget: int) -> bytes | None:
    """The value with texts and lists cut until it fits; None if it never does."""
    if estimate_tokens(structured) <= budget:
        return structured
    value = _decode_shortened(structured, _TEXT_LENGTHS[0], _TEXT_LENGTHS[0] // 20)
    for longest in _TEXT_LENGTHS:
        value = _shorten(value, longest, max(1, longest // 20))
        part = msgspec.json.encode(value)
        if estimate_tokens(part) <= budget:
            return part
    return None


def _decode_shortened(raw: bytes, longest: int, most: int, depth: int = 0) -> Any:
    """A shortened value; of large parts only what is kept is decoded.

    Decoding millions of items takes seconds and holds the interpreter lock, also in a thread.
    """
    if len(raw) <= _SMALL or raw[:1] not in (b"[", b"{"):
        return _shorten(msgspec.json.decode(raw), longest, most)
    if raw[:1] == b"[":
        items = _first_items(raw, most) if depth < _MAX_DECODE_DEPTH else []
        return [_decode_shortened(bytes(item), longest, most, depth + 1) for item in items]
    fields = _FIELDS.decode(raw) if depth < _MAX_DECODE_DEPTH else {}
    return {key: _decode_shortened(bytes(item), longest, most, depth + 1) for key, item in fields.items()}


def _first_items(raw: bytes, most: int) -> list[Raw] | list[bytes]:
    """The first items of a list, within a bound on the bytes examined."""
    if raw.count(b",") <= _MANY_COMMAS:
        return _ITEMS.decode(raw)[:most]
    items: list[bytes] = []
    depth, start = 0, 1
    for mark in _MARKS.finditer(raw, 0, _MAX_SCANNED):  # a longer text is one mark up to there
        character = raw[mark.start()]
        if character in b"[{":
            depth += 1
        elif character in b"]}":
            depth -= 1
        elif character == _COMMA and depth == 1:
            items.append(raw[start : mark.start()])
            start = mark.end()
            if len(items) == most:
                break
    return items


def _shorten(value: Any, longest: int, most: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= longest else value[: longest - 1] + "…"
    if isinstance(value, list):
        return [_shorten(item, longest, most) for item in value[:most]]
    if isinstance(value, dict):
        return {key: _shorten(item, longest, most) for key, item in value.items()}
    return value


def _within(texts: list[str], budget: int) -> bool:
    if 3 * sum(map(len, texts)) <= budget or sum(len(text.encode()) for text in texts) <= budget:
        return True  # a token has at least one byte: short texts need no estimate
    for text in texts:
        budget -= estimate_tokens(text)
        if budget < 0:
            return False
    return budget >= 0


def _text_of(block: dict[str, Any]) -> str | None:
    """The text of a block, or None for an image, audio or other binary."""
    kind = block.get("type")
    if kind == "text":
        return str(block.get("text", ""))
    if kind == "resource":
        resource = block.get("resource")
        text = resource.get("text") if isinstance(resource, dict) else None
        return text if isinstance(text, str) else None
    if kind in ("image", "audio"):
        return None
    return msgspec.json.encode(block).decode()


def _with_text(block: dict[str, Any], text: str) -> dict[str, Any]:
    if block.get("type") == "text":
        return {**block, "text": text}
    if block.get("type") == "resource":
        return {**block, "resource": {**block["resource"], "text": text}}
    return {"type": "text", "text": text}


def _full_text(blocks: list[dict[str, Any]], texts: list[str], structured: bytes) -> tuple[str, str]:
    source = structured or (texts[0].strip().encode() if len(texts) == 1 else b"")
    if source[:1] in (b"{", b"["):
        formatted = json_lines(source)
        if formatted is not None:
            return formatted, "application/json"
    mime = "text/plain"
    if len(blocks) == 1 and isinstance(blocks[0].get("resource"), dict):
        mime = str(blocks[0]["resource"].get("mimeType") or mime)
    return "\n".join(texts), "text/plain" if mime == "application/json" else mime


def _cut(blocks: list[dict[str, Any]], data: str | None, budget: int) -> tuple[list[dict[str, Any]], int, list[str]]:
    """The blocks that fit, how many characters of the stored text they show, and what is in neither.

    Blocks that are not text come first, up to three quarters of the budget: they cannot be read later.
    `data`, if given, replaces the text blocks, which have the same content.
    """
    binary = [index for index, block in enumerate(blocks) if _text_of(block) is None]
    chosen = set(binary[: max(0, budget * 3 // 4 // IMAGE_TOKENS)])
    budget -= IMAGE_TOKENS * len(chosen)
    content: list[dict[str, Any]] = []
    shown, open_end = 0, True
    if data is not None:
        shown = tidy_end(data, 0, prefix_within(data, budget))
        if shown:
            content.append({"type": "text", "text": data[:shown]})
    for index, block in enumerate(blocks):
        text = _text_of(block)
        if text is None:
            if index in chosen:
                content.append(block)
        elif data is None and open_end:
            end = prefix_within(text, budget)
            if end == len(text):
                content.append(block)
                budget -= estimate_tokens(text)
                shown += end + 1
                continue
            open_end = False
            end = tidy_end(text, 0, end)
            shown += end
            if end:
                content.append(_with_text(block, text[:end]))
    left_out = [str(blocks[index].get("type")) for index in binary if index not in chosen]
    return content, shown, left_out


def _note(full: str, mime: str, shown: int, total_tokens: int, dropped: list[str]) -> str:
    """The note to the agent about the rest, and how to read it."""
    is_json = mime == "application/json"
    parts = [
        f"[This result is cut: {min(shown, len(full)):,} of {len(full):,} characters are shown"
        f" (all of it: about {total_tokens:,} tokens, {mime}).",
        f'Read on: tabhub_read_result {{"handle": "{{handle}}", "offset": {min(shown, len(full))}}};'
        ' find words: add "search": "words" or "/pattern/"' + ("; take parts:" if is_json else "."),
    ]
    if is_json:
        path = '"$.items[0:10].name"' if full[:1] == "{" else '"$[0:10].name"'
        parts.append(f'add "pick": {path}. At the top: {_describe_top_level(full)}.')
    if dropped:
        parts.append(
            f"Left out and not stored: {len(dropped)} blocks of type {', '.join(sorted(set(dropped)))}; ask for fewer."
        )
    return " ".join(parts) + "]"


def _describe_top_level(full: str) -> str:
    if full.count(",") > _TOO_MANY_COMMAS:
        return "an array" if full[:1] == "[" else "an object"
    if full[:1] == "[":
        return f"an array of {len(_ITEMS.decode(full)):,}"
    keys = list(_FIELDS.decode(full))
    named = ", ".join(key if len(key) <= 24 else key[:23] + "…" for key in keys[:_NOTE_KEYS])
    more = f" and {len(keys) - _NOTE_KEYS} more" if len(keys) > _NOTE_KEYS else ""
    return f"an object with {named or 'no keys'}{more}"


def json_lines(raw: bytes) -> str | None:
    """Format JSON with one item per line, values unchanged; None if it is not JSON.

    Only values too long for a line are split, and only a few levels deep, so the text grows little: pages cost few
    tokens, and a search finds whole items.
    """
    commas = raw.count(b",")
    try:
        if b"\n" in raw:
            raw = msgspec.json.format(raw, indent=-1)
        raw = bytes(msgspec.json.decode(raw, type=Raw))
        deepest = 0 if commas > _TOO_MANY_COMMAS else 2 if commas > _MANY_COMMAS else _DEPTH
        return _format(raw, 0, deepest).decode("utf-8")
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None


def _format(raw: bytes, depth: int, deepest: int) -> bytes:
    if len(raw) <= _LINE or depth >= deepest or raw[:1] not in (b"[", b"{"):
        return raw
    inner = b"\n" + b" " * (depth + 1)
    outer = b"\n" + b" " * depth
    if raw[:1] == b"[":
        items = [_format(bytes(item), depth + 1, deepest) for item in _ITEMS.decode(raw)]
        return b"[" + inner + (b"," + inner).join(items) + outer + b"]"
    pairs = [
        msgspec.json.encode(key) + b": " + _format(bytes(item), depth + 1, deepest)
        for key, item in _FIELDS.decode(raw).items()
    ]
    return b"{" + inner + (b"," + inner).join(pairs) + outer + b"}"
