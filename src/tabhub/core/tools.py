"""What a tool is: an immutable definition with a source, its wire form encoded once.

Owns `Tool`, `Source` and the result of a tool. Knows nothing of who runs it: a change makes a new Tool.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from copy import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec
import orjson

from tabhub.core.schemas.argument_errors import explain_arguments, problems_of
from tabhub.core.schemas.portable import portable
from tabhub.core.schemas.validators import CompiledSchema, shared_validator
from tabhub.core.shown_elements import ShownElements, TargetKey
from tabhub.errors import InvalidArguments
from tabhub.wire.param_headers import MARK as HEADER_MARK
from tabhub.wire.param_headers import ParamHeader, declared

if TYPE_CHECKING:
    from tabhub.core.sessions import Session
    from tabhub.core.tabs import Tab

SourceKind = Literal["page", "plugin", "browser", "upstream", "hub"]
EMPTY_SCHEMA: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}
_HEADER_MARK = HEADER_MARK.encode()


@dataclass(frozen=True, slots=True)
class Source:
    """Where a tool comes from: its kind, and the plugin, origin or server it belongs to."""

    kind: SourceKind
    key: str
    label: str = field(init=False, compare=False, repr=False)
    """How logs and errors name it: its kind, and its key if that says more."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", self.kind if self.kind == self.key else f"{self.kind}:{self.key}")

    @property
    def setting(self) -> str:
        """Its name in permissions and pins: the key, but for a server the prefix of its tools, which no plugin can
        have."""
        return f"mcp__{self.key}" if self.kind == "upstream" else self.key

    def __str__(self) -> str:
        return self.label


BROWSER = Source("browser", "browser")
HUB = Source("hub", "hub")


class ToolResult(msgspec.Struct):
    """A tool's result, already encoded as an MCP CallToolResult object (`{"content":[…],…}`)."""

    payload: bytes
    is_error: bool = False

    @classmethod
    def of(
        cls,
        content: list[dict[str, Any]],
        *,
        structured: Any = None,
        is_error: bool = False,
        meta: dict[str, Any] | None = None,
    ) -> ToolResult:
        body: dict[str, Any] = {"content": content}
        if structured is not None:
            body["structuredContent"] = structured
        if is_error:
            body["isError"] = True
        if meta:
            body["_meta"] = meta
        return cls(orjson.dumps(body), is_error)

    @classmethod
    def text(cls, text: str, *, is_error: bool = False) -> ToolResult:
        return cls.of([{"type": "text", "text": text}], is_error=is_error)


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Tool:
    """One tool of the catalogue; two have the same definition when their `wire` is equal.

    Its schema must be valid: those of others are compiled once when they are read (core.validators).
    """

    name: str
    source: Source
    description: str
    input_schema: Mapping[str, Any] = field(default_factory=lambda: EMPTY_SCHEMA)
    title: str | None = None
    output_schema: Mapping[str, Any] | None = None
    annotations: Mapping[str, Any] = field(default_factory=dict)
    timeout: float | None = None
    """Seconds; None is the usual limit."""
    meta: Mapping[str, Any] | None = None
    compiled: CompiledSchema | None = field(init=False, repr=False)
    """Of its arguments, once it was called."""
    read_only: bool = field(init=False, repr=False)
    listed_schema: Mapping[str, Any] = field(init=False, repr=False)
    """The input schema as agents are shown it."""
    param_headers: tuple[ParamHeader, ...] = field(init=False, repr=False)
    """Arguments that stateless clients repeat as headers."""
    wire: bytes = field(init=False, repr=False)
    """The encoded entry of tools/list, spliced into answers."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "compiled", None)
        object.__setattr__(self, "read_only", self.annotations.get("readOnlyHint") is True)
        object.__setattr__(self, "listed_schema", portable(self.input_schema))
        object.__setattr__(self, "wire", orjson.dumps(self.listing()))
        object.__setattr__(self, "param_headers", declared(self.input_schema) if _HEADER_MARK in self.wire else ())

    def listing(self) -> dict[str, Any]:
        """The entry of tools/list."""
        entry: dict[str, Any] = {"name": self.name}
        if self.title:
            entry["title"] = self.title
        entry["description"] = self.description
        entry["inputSchema"] = dict(self.listed_schema)
        if self.output_schema is not None:
            entry["outputSchema"] = dict(self.output_schema)
        if self.annotations:
            entry["annotations"] = dict(self.annotations)
        if self.meta:
            entry["_meta"] = dict(self.meta)
        return entry

    def with_description(self, description: str, meta: Mapping[str, Any] | None) -> Tool:
        """A copy with another description; nothing is compiled again."""
        fresh = copy(self)
        object.__setattr__(fresh, "description", description)
        object.__setattr__(fresh, "meta", meta)
        object.__setattr__(fresh, "wire", orjson.dumps(fresh.listing()))
        return fresh

    def accepts(self, arguments: Mapping[str, Any]) -> bool:
        """Whether arguments are valid; `invalid` says why not."""
        return (self.compiled or self._compile()).is_valid(arguments)

    def _compile(self) -> CompiledSchema:
        compiled = shared_validator(self.input_schema)
        object.__setattr__(self, "compiled", compiled)
        return compiled

    def invalid(self, arguments: Mapping[str, Any]) -> InvalidArguments:
        """The error for arguments that are not accepted, naming the invalid fields."""
        errors = (self.compiled or self._compile()).validator.iter_errors(arguments)
        problems = problems_of(self.input_schema, errors)
        listed = "; ".join(f"{p['field']}: {p['problem']}" for p in problems)
        return InvalidArguments(
            f"Invalid arguments for {self.name}: {listed}.",
            hint=f"Nothing was done. {explain_arguments(self.input_schema)}".strip(),
            data={"errors": problems},
        )


class CallContext(Protocol):
    """What a running tool may know and do."""

    sent: bool
    """Set once something was sent to the browser: from then on the call is never repeated."""
    tab: int | None
    """The tab the call works on, and the origin there: for the audit log and the data flow guard."""
    origin: str | None
    shown: ShownElements
    """The elements that a person was shown when they approved the call."""

    @property
    def session(self) -> Session:
        """The session that made the call."""

    @property
    def extra(self) -> Mapping[str, Any]:
        """The params of the agent's request (`_meta`, `inputResponses`); empty for REST."""

    def log(self, level: str, logger: str, data: Any) -> None:
        """Send a log message to the agent."""

    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Report progress; it extends the deadline and reaches the agent if it asked for it."""

    def conceal(self, text: str) -> None:
        """Keep an argument out of the audit log: it went into a field for secrets."""

    async def wait_while_paused(self) -> None:
        """Between two steps that act: wait while agents are paused, or raise Paused."""

    def can(self, capability: str) -> bool:
        """Whether the agent's client declared a capability (elicitation, sampling, roots)."""

    def visit(self, tab: int | None, site: str | None) -> None:
        """Note the tab and site that the call works on from now on, for the audit log and the data-flow guard."""

    def note_site(self, site: str | None) -> None:
        """Note a site of which the call reads something."""

    def note_target(self, target: TargetKey, label: str, area: tuple[float, float, float, float] | None = None) -> None:
        """Note an element that the call works on, and where it is: for the audit log, and to show it to the person."""

    def begin_step(self, tool: Tool, arguments: dict[str, Any]) -> None:
        """What is done from now on is a step of the call, which is checked like a call of its own."""

    def work_on(self, tab: Tab) -> None:
        """Note the tab that the call works on. SiteChanged unless the call, or its step, may work on the site that it
        shows now."""

    async def require_frame(self, tab_id: int, site: str) -> None:
        """PermissionDenied unless the call, or its step, may act in a frame of that site; the person may be asked."""

    def frames_matter(self) -> bool:
        """Whether it may depend on the frame that the call acts in; if not, nobody needs to find out which it is."""

    def confirm(self, text: str, tab_id: int) -> Awaitable[bool] | None:
        """Ask the person who runs the hub (panel, notification, terminal) about a tab; None if that is not possible."""

    async def ask(self, questions: dict[str, tuple[str, dict[str, Any]]]) -> dict[str, dict[str, Any]]:
        """Ask the agent's client, and through it its person: by key, a method and its params; returns answers by
        key."""


Runner = Callable[[CallContext, dict[str, Any]], Awaitable[ToolResult]]
