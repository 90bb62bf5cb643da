"""True counts of tokens, as models count them."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any


@cache
def _encoding() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the package opens its own tables in a deprecated way
        import bpe_openai  # type: ignore[import-untyped]

        return bpe_openai.get_encoding("o200k_base")


def o200k(text: str) -> int:
    return len(_encoding().encode(text))
