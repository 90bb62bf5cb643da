"""Records which texts are parsed, to show that a refused text never is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import orjson
import pytest


def record_parsed_texts(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Every text passed to a JSON parser from now on, in order, until the end of the test."""
    texts: list[bytes] = []

    def recording(parse: Callable[..., Any]) -> Callable[..., Any]:
        def parse_and_record(text: Any, *args: Any, **kwargs: Any) -> Any:
            texts.append(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else bytes(text))
            return parse(text, *args, **kwargs)

        return parse_and_record

    monkeypatch.setattr(orjson, "loads", recording(orjson.loads))
    monkeypatch.setattr(msgspec.json, "decode", recording(msgspec.json.decode))
    return texts
