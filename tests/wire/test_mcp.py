"""MCP on the wire: versions, envelopes and headers of both eras."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabhub.errors import HeaderMismatch, InvalidParams, TabhubError, UnsupportedVersion
from tabhub.wire import mcp
from tabhub.wire.jsonrpc import Request

META = {mcp.META_VERSION: mcp.STATELESS, mcp.META_CAPABILITIES: {}, mcp.META_CLIENT: {"name": "a", "version": "1"}}
ANYTHING = st.none() | st.booleans() | st.integers() | st.text(max_size=9) | st.lists(st.integers(), max_size=2)


def envelope(
    method: str = "tools/call", meta: Any = None, version: str = mcp.STATELESS, **headers: bytes | None
) -> mcp.Envelope:
    """Read the envelope of a call of `x`, with these headers instead of the correct ones."""
    right: dict[bytes, bytes | None] = {b"mcp-method": method.encode(), b"mcp-name": b"x"}
    right |= {name.replace("_", "-").encode(): value for name, value in headers.items()}
    request = Request(1, method, {"name": "x", "_meta": META if meta is None else meta})
    return mcp.read_envelope(request, version, {k: v for k, v in right.items() if v is not None})


def test_a_valid_envelope_is_read() -> None:
    meta = {**META, mcp.META_LOG_LEVEL: "warning", "progressToken": 7}
    read = envelope(meta=meta)
    assert (read.client, read.capabilities, read.log_level, read.progress_token) == ("a 1", {}, "warning", 7)
    assert envelope(meta={**META, mcp.META_LOG_LEVEL: "loud", "progressToken": True}).log_level is None


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"meta": []}, InvalidParams),
        ({"meta": {}}, InvalidParams),
        ({"meta": {mcp.META_VERSION: mcp.STATELESS}}, InvalidParams),
        ({"meta": {**META, mcp.META_CAPABILITIES: []}}, InvalidParams),
        ({"meta": {**META, mcp.META_VERSION: "2025-11-25"}}, HeaderMismatch),
        ({"mcp_method": None}, HeaderMismatch),
        ({"mcp_method": b"tools/list"}, HeaderMismatch),
        ({"mcp_name": None}, HeaderMismatch),
        ({"mcp_name": b"y"}, HeaderMismatch),
        ({"version": "2027-01-01", "meta": {**META, mcp.META_VERSION: "2027-01-01"}}, UnsupportedVersion),
    ],
)
def test_an_envelope_that_disagrees_with_its_headers_is_refused(
    wrong: dict[str, Any], error: type[TabhubError]
) -> None:
    with pytest.raises(error) as caught:
        envelope(**wrong)
    assert mcp.error_status(caught.value) == 400


def test_methods_without_a_name_need_no_name_header() -> None:
    assert envelope("tools/list", mcp_name=None).client == "a 1"


@given(st.text(st.characters(codec="utf-8"), max_size=30))
def test_any_text_can_be_sent_in_a_header_as_base64(text: str) -> None:
    raw = b"=?base64?" + base64.b64encode(text.encode()) + b"?="
    assert mcp.header_value(raw) == text


@given(st.binary(max_size=40))
def test_any_header_bytes_give_text_or_none(raw: bytes) -> None:
    for value in (raw, b"=?base64?" + raw + b"?="):
        assert isinstance(mcp.header_value(value), str | None)


@pytest.mark.parametrize("payload", ["Zh==", "Zg", "Z g=", "-_-_", "/w=="])
def test_non_canonical_base64_is_refused(payload: str) -> None:
    assert mcp.header_value(f"=?base64?{payload}?=".encode()) is None


@pytest.mark.parametrize("version", mcp.HANDSHAKE_VERSIONS)
def test_a_supported_handshake_version_is_accepted(version: str) -> None:
    assert mcp.negotiate(version) == version


@pytest.mark.parametrize("version", ["2024-11-05", "2026-07-28", "1", ""])
def test_any_other_version_is_answered_with_the_latest(version: str) -> None:
    assert mcp.negotiate(version) == "2025-11-25"


@pytest.mark.parametrize("version", [None, 5, {}, ["2025-11-25"]])
def test_a_version_that_is_not_a_string_is_refused(version: Any) -> None:
    with pytest.raises(InvalidParams):
        mcp.negotiate(version)


@given(ANYTHING | st.fixed_dictionaries({}, optional={"name": ANYTHING, "version": ANYTHING}))
def test_a_client_name_is_one_short_printable_line(info: Any) -> None:
    name = mcp.client_name(info)
    assert 0 <= len(name) <= 100
    assert name.isprintable()


def test_a_client_name_cannot_break_a_log_line() -> None:
    assert mcp.client_name({"name": "a\r\nb\x1b[31m\u202e", "version": "2"}) == "ab[31m 2"
    assert mcp.client_name({"name": "  "}) == "unknown"
    assert mcp.client_name("a") == "unknown"


def test_only_routing_headers_sent_twice_are_refused() -> None:
    with pytest.raises(HeaderMismatch):
        mcp.refuse_doubled([(b"mcp-name", b"a"), (b"mcp-name", b"a")], mcp.ROUTING_HEADERS)
    mcp.refuse_doubled([(b"accept", b"a"), (b"accept", b"b")], mcp.ROUTING_HEADERS)


@pytest.mark.parametrize("payload", [{}, {"tools": []}, {"content": [{"type": "text", "text": "}"}]}])
def test_a_stateless_result_is_marked_complete(payload: dict[str, Any]) -> None:
    marked = json.loads(mcp.stateless_payload(json.dumps(payload).encode()))
    assert marked == {"resultType": "complete", **payload}


def test_the_error_for_an_unsupported_version_lists_supported_ones() -> None:
    error = UnsupportedVersion("x" * 500, mcp.SUPPORTED)
    assert error.code == -32022
    assert error.details()["supported"] == ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]
    assert len(error.details()["requested"]) == 100
