"""A call in words, for the audit log, the panel and the badge in its tab: from what the call itself found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tabhub.browser.tools.acting import batch
from tabhub.core.calls import Call
from tabhub.core.shown_elements import TargetKey, target_key
from tabhub.core.tools import Tool
from tabhub.errors import TabhubError
from tabhub.trust.sentences import sentence as words
from tabhub.trust.sentences.elements import NamedElement, labelled, targets
from tabhub.trust.sentences.words import PHRASES

BATCH = batch.browser_act.tool.name


def tool_words(tool: Tool) -> words.ToolWords:
    kind = tool.source.kind
    if kind in ("browser", "hub"):  # these have phrases of their own, which do not name the tool
        return words.ToolWords(tool.name, "" if tool.name in PHRASES else tool.title or "", kind, "")
    return words.ToolWords(tool.name, tool.title or "", kind, tool.source.key.partition("://")[2] or tool.source.key)


def call_phrase(tool: Tool, arguments: Mapping[str, Any], call: Call | None, *, with_text: bool = False) -> str:
    """What a call does; what was typed, and what URLs have after their path, only `with_text`."""
    known = PHRASES.get(tool.name)
    if type(known) is str and tool.source.kind in ("browser", "hub"):
        return known
    if tool.name == BATCH:
        try:
            steps = [(tool_words(step), given) for step, given in batch.tool_calls(arguments)]
        except TabhubError:  # a step that does not exist
            steps = []
        if steps:
            return words.batch_phrase(steps, private=not with_text)
    elements = _elements(tool, arguments, call.labels) if call is not None and call.labels else {}
    return words.phrase(tool_words(tool), arguments, elements, private=not with_text)


def _elements(tool: Tool, arguments: Mapping[str, Any], labels: Mapping[TargetKey, str]) -> dict[str, NamedElement]:
    found = {}
    for place, target in targets(tool.name, arguments):
        label = labels.get(target_key(target)) if target else next(iter(labels.values()))
        if label is not None:
            found[place] = labelled(label)
    return found
