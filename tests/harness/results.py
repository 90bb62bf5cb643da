"""Results as external servers give them: the same answer as text and as structured content."""

from __future__ import annotations

from typing import Any

import orjson

from tabhub.core.tools import ToolResult


def both_forms(facts: dict[str, Any]) -> ToolResult:
    return ToolResult.of([{"type": "text", "text": orjson.dumps(facts).decode()}], structured=facts)
