"""What a person is asked: one call in words, where it is about to act, and what their answer may cover.

Owns the form of a request. Who is asked, and waiting for the answer, is the inbox's.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from tabhub.calls.approvals.element_lookup import Act, Seen
from tabhub.calls.call_words import tool_words
from tabhub.core.sessions import Session
from tabhub.core.tabs import Tab, TabTable
from tabhub.core.tools import Tool
from tabhub.trust.actions import phrase as kind_phrase
from tabhub.trust.approvals import Ask, choices_for, wider_scopes
from tabhub.trust.grants import Scope, grant_text
from tabhub.trust.sentences import sentence as words
from tabhub.wire.extension_link import ConfirmationRequest


@dataclass(frozen=True, slots=True)
class Request:
    """One call to be asked about."""

    session: Session
    tool: Tool
    arguments: Mapping[str, Any]
    ask: Ask
    steps: Sequence[Act] = ()
    """The steps of a batch."""
    tab_id: int | None = None
    """The tab that the call names, or its session's."""

    @property
    def acts(self) -> Sequence[Act]:
        """What it does: its steps, or the one thing that it is."""
        return self.steps or ((self.tool, self.arguments),)


def tab_of(session: Session, tool: Tool, arguments: Mapping[str, Any]) -> int | None:
    """The tab that a call is about, as its arguments, its page or its session name it."""
    kind = tool.source.kind
    own = kind in ("browser", "plugin")
    tab_id = arguments.get("tabId", session.tab) if own else _page(tool).get("tabId")
    return tab_id if type(tab_id) is int else None


def make_request(
    request: Request, seen: Seen, book: TabTable, *, expires_at: float, session_lasts: bool, longest: int, changed: str
) -> ConfirmationRequest:
    session, tool, ask = request.session, request.tool, request.ask
    tab: Tab | None = book.get(request.tab_id) if request.tab_id is not None else None
    choices = choices_for(ask, session_lasts=session_lasts)
    always = "allow_always" in choices
    agent = session.agent
    described = _described(request, seen)
    return ConfirmationRequest(
        id=secrets.token_urlsafe(18),
        tool=tool.name,
        plugin=tool.source.key,
        source=tool.source.label,
        client=session.client,
        token=session.token,
        session=session.short,
        agent=agent,
        sentence=words.sentence(agent, described),
        steps=words.steps_of(
            tool_words(tool),
            request.arguments,
            [(tool_words(step), given) for step, given in request.steps],
            seen.elements,
        ),
        harmless=_is_harmless(request),
        pictured=seen.first is not None,
        changed=changed,
        params=_shortened(request.arguments, longest),
        reason=ask.why,
        message=ask.message,
        expires_at=expires_at,
        tab_id=tab.tab_id if tab is not None else None,
        title=tab.title if tab is not None else None,
        url=tab.url if tab is not None else None,
        origin=ask.target or _page(tool).get("origin") or (tab.origin if tab is not None else None),
        diff=ask.diff,
        choices=choices,
        session_scope=_session_scope(ask.scope) if "allow_session" in choices else None,
        scope=grant_text(session.token, ask.scope) if always else None,
        wider=list(wider_scopes(ask)) if always else [],
    )


def logged_sentence(request: Request, seen: Seen) -> str:
    """The sentence without what is typed, for the audit log."""
    return words.sentence(request.session.agent, _described(request, seen, private=True))


def _described(request: Request, seen: Seen, *, private: bool = False) -> str:
    tool, arguments = request.steps[0] if len(request.steps) == 1 else (request.tool, request.arguments)
    return words.phrase(tool_words(tool), arguments, seen.elements, private=private)


def _is_harmless(request: Request) -> bool:
    """Whether the sentence alone is enough to allow it once: nothing changes, and nothing may leak."""
    ask = request.ask
    plain = ask.why == "permission" and not (ask.crossing or ask.frame or (ask.this_call_only and ask.scope))
    return plain and all(
        tool.source.kind == "browser" and words.is_harmless(tool.name, read_only=tool.read_only)
        for tool, _ in request.acts
    )


def _session_scope(scope: Sequence[Scope]) -> str:
    """What an approval for the session covers, as in "click and type on shop.example"."""
    done = (kind_phrase(each.kind) + (f" on {_host(each.site)}" if each.site is not None else "") for each in scope)
    return " and ".join(dict.fromkeys(done))


def _host(origin: str) -> str:
    return origin.partition("://")[2] or origin


def _page(tool: Tool) -> Mapping[str, Any]:
    return (tool.meta or {}).get("tabhub/page", {}) if tool.source.kind == "page" else {}


def _shortened(arguments: Mapping[str, Any], longest: int) -> Any:
    """The parameters as the person sees them: in full, unless they would fill the panel."""
    text = orjson.dumps(dict(arguments), option=orjson.OPT_INDENT_2, default=str).decode()
    if len(text) <= longest:
        return dict(arguments)
    return {"cut": f"{len(text)} characters, of which the first {longest}", "beginning": text[:longest]}
