"""Invalid, oversized or ambiguous JSON: on every surface over HTTP."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.harness.hub import RunningHub
from tests.harness.raw import Answer, Wire, request, wire
from tests.security.surfaces import Surface

BROKEN = [b"", b"{", b"{]", b'{"a":1', b"{'a':1}", b"nope", b'{"a":1}{', b"\x00", b'"\\x"', b'{"a":01}', b"//x\n{}"]
ENCODINGS = {
    "invalid utf-8": b'{"a":"\xff\xfe"}',
    "overlong": b'{"a":"\xc0\xaf"}',
    "raw surrogate": b'{"a":"\xed\xa0\x80"}',
    "escaped surrogate": b'{"a":"\\ud800"}',
    "reversed pair": b'{"a":"\\udc00\\ud800"}',
    "bom": b"\xef\xbb\xbf{}",
    "utf-16": '{"a":1}'.encode("utf-16"),
    "utf-16-le": '{"a":1}'.encode("utf-16-le"),
    "utf-32": '{"a":1}'.encode("utf-32"),
}
TOO_MUCH = {
    "nested arrays": "[" * 70 + "]" * 70,
    "nested objects": '{"a":' * 70 + "1" + "}" * 70,
    "far too deep": "[" * 500_000 + "]" * 500_000,
    "unclosed depth": "[" * 500_000,
    "many keys": "{" + ",".join(f'"k{n}":{n}' for n in range(100_000)) + "}",
    "long integer": "9" * 5000,
    "long fraction": "0." + "1" * 5000,
    "long exponent": "1e" + "9" * 5000,
}
"""Exceeds a bound, and is therefore refused before it is parsed."""
AMBIGUOUS = {
    "NaN": "NaN",
    "Infinity": "-Infinity",
    "same key twice": '{"a":1,"a":2}',
    "same key escaped": '{"a":1,"\\u0061":2}',
}
"""Within the bounds, but read differently by different parsers."""


def failure(surface: Surface, answer: Answer) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(answer.body)
    if surface.speaks_jsonrpc:
        assert (body["jsonrpc"], body["id"]) == ("2.0", None)
    error: dict[str, Any] = body["error"]
    return error


async def post(line: Wire, surface: Surface, headers: list[tuple[str, str]], body: bytes) -> Answer:
    await line.send(request("POST", surface.path, [*headers, ("Content-Length", str(len(body)))], body))
    return await line.answer()


async def good(line: Wire, surface: Surface, headers: list[tuple[str, str]]) -> bool:
    answer = await post(line, surface, headers, surface.body('"fine"'))
    return surface.accepted(answer.status, answer.body)


@pytest.mark.req("B1")
async def test_broken_json_is_a_parse_error_and_the_connection_stays_usable(hub: RunningHub, surface: Surface) -> None:
    headers = await surface.headers(hub)
    async with wire(hub.port) as line:
        for body in BROKEN:
            if surface.kind == "rest" and not body:
                continue  # an empty body means no arguments there
            answer = await post(line, surface, headers, body)
            assert (answer.status, failure(surface, answer)["code"]) == (400, -32700), body
        assert await good(line, surface, headers)


@pytest.mark.req("B6")
async def test_text_that_is_not_plain_utf8_is_refused_and_the_audit_log_unharmed(
    hub: RunningHub, surface: Surface
) -> None:
    headers = await surface.headers(hub)
    async with wire(hub.port) as line:
        for what, body in ENCODINGS.items():
            answer = await post(line, surface, headers, body)
            assert (answer.status, failure(surface, answer)["code"]) == (400, -32700), what
        assert await good(line, surface, headers)
    lines = hub.home.audit.read_bytes().splitlines()
    assert len(lines) == (0 if surface.kind == "settings" else 1)
    assert all(json.loads(line)["tool"] == "probe_echo" for line in lines)


@pytest.mark.req("B5")
@pytest.mark.parametrize("what", TOO_MUCH)
async def test_json_beyond_the_bounds_is_refused_before_it_is_parsed(
    hub: RunningHub, surface: Surface, what: str, parsed: list[bytes]
) -> None:
    headers = await surface.headers(hub)
    body = surface.body(TOO_MUCH[what])
    async with wire(hub.port) as line:
        answer = await post(line, surface, headers, body)
        assert (answer.status, failure(surface, answer)["code"]) == (400, -32700)
        assert body not in parsed, "a value was built although the body exceeds a bound"
        assert await good(line, surface, headers)
        assert surface.body('"fine"') in parsed, "the parser in use is not the one that is observed"


@pytest.mark.req("B5")
@pytest.mark.parametrize("what", AMBIGUOUS)
async def test_ambiguous_json_is_refused_and_the_connection_stays_usable(
    hub: RunningHub, surface: Surface, what: str
) -> None:
    headers = await surface.headers(hub)
    async with wire(hub.port) as line:
        answer = await post(line, surface, headers, surface.body(AMBIGUOUS[what]))
        assert (answer.status, failure(surface, answer)["code"]) == (400, -32700)
        assert await good(line, surface, headers)


async def test_json_at_the_bounds_is_accepted(hub: RunningHub, surface: Surface) -> None:
    headers = await surface.headers(hub)
    text = '"' + "[" * 500 + "{:" * 500 + "9" * 5000 + '\\"\\\\ \\ud83d\\ude00 é"'
    async with wire(hub.port) as line:
        answer = await post(line, surface, headers, surface.body(text))
        assert surface.accepted(answer.status, answer.body)


SHAPES: list[Any] = [
    {"id": 1, "method": "ping"},
    {"jsonrpc": "1.0", "id": 1, "method": "ping"},
    {"jsonrpc": 2.0, "id": 1, "method": "ping"},
    {"jsonrpc": "2.0", "id": 1},
    {"jsonrpc": "2.0", "id": 1, "method": ""},
    {"jsonrpc": "2.0", "id": 1, "method": 7},
    {"jsonrpc": "2.0", "id": True, "method": "ping"},
    {"jsonrpc": "2.0", "id": 1.5, "method": "ping"},
    {"jsonrpc": "2.0", "id": {}, "method": "ping"},
    {"jsonrpc": "2.0", "id": [], "method": "ping"},
    {"jsonrpc": "2.0", "id": None, "method": "ping"},
    {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []},
    {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": "x"},
    {"jsonrpc": "2.0", "id": 1, "method": "ping", "result": {}},
    {"jsonrpc": "2.0", "id": 1, "result": {}, "error": {"code": 1, "message": "x"}},
    {"jsonrpc": "2.0", "id": 1, "error": "x"},
    {"jsonrpc": "2.0", "id": 1, "error": {"code": "1", "message": "x"}},
    {"jsonrpc": "2.0", "id": True, "result": {}},
    {},
    "ping",
    7,
    None,
    True,
]


@pytest.mark.req("B2")
async def test_json_that_is_not_jsonrpc_is_an_invalid_request(hub: RunningHub, surface: Surface) -> None:
    headers = await surface.headers(hub)
    async with wire(hub.port) as line:
        for shape in SHAPES if surface.speaks_jsonrpc else ["ping", 7, None, [], True]:
            answer = await post(line, surface, headers, json.dumps(shape).encode())
            error = json.loads(answer.body)["error"]
            assert answer.status == 400, shape
            assert error["code"] == (-32600 if surface.speaks_jsonrpc else -32602), shape
        assert await good(line, surface, headers)


@pytest.mark.req("B14")
async def test_javascript_property_names_have_no_special_meaning(hub: RunningHub, surface: Surface) -> None:
    headers = await surface.headers(hub)
    text = '"x","__proto__":{"admin":true},"constructor":{"prototype":{"admin":true}},"prototype":1'
    async with wire(hub.port) as line:
        answer = await post(line, surface, headers, surface.body(text))
        assert surface.accepted(answer.status, answer.body)
        if surface.kind != "settings":
            result = json.loads(answer.body)
            echoed = (result.get("result") or result)["structuredContent"]
            assert echoed["__proto__"] == {"admin": True}
            assert echoed["constructor"] == {"prototype": {"admin": True}}
            assert "admin" not in echoed
