"""What a tool is: an immutable definition with a source, its wire form encoded once.

Owns `Tool`, `Source` and the result of a tool. Knows nothing of who runs it: a change makes a new Tool.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec
import orjson

from tabhub.core.results.rest import rest_block
from tabhub.core.schemas.argument_errors import explain_arguments, problems_of
from tabhub.core.schemas.validators import CompiledSchema, Schema
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
    facts: bytes | None = None
    """The same answer as data, encoded, for programs: a caller gets one of the two. Only built-in tools have it."""
    is_json: bool = False
    """Whether the one text in the payload is the facts as JSON."""
    has_media: bool = False
    """Whether the payload has what is not in the facts, such as an image."""
    rest: str | None = None
    """What its tool left out, until `form` puts it into the payload."""
    fits: bool = False
    """Whether its tool has kept it within the budget, so that nobody has to count its tokens again."""
    has_rest: bool = False
    """Whether it has a block with what its tool left out; see `core.results.rest`."""

    def with_payload(self, payload: bytes) -> ToolResult:
        """The same result, with another payload."""
        return self if payload is self.payload else msgspec.structs.replace(self, payload=payload)

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

    def form(self, *, structured: bool) -> ToolResult:
        """The answer as data or as text; one with an image has that and its facts."""
        if self.facts is None:
            return self
        payload = self.payload
        if structured:
            beginning = payload[:-1] if self.has_media else b'{"content":[]'
            payload = b'%b,"structuredContent":%b}' % (beginning, self.facts)
        if self.rest is not None:
            body = orjson.loads(payload)
            body["content"].append(rest_block(self.rest))
            payload = orjson.dumps(body)
        is_json = self.is_json and not structured
        return ToolResult(payload, self.is_error, is_json=is_json, fits=self.fits, has_rest=self.rest is not None)

    @classmethod
    def text(cls, text: str, *, is_error: bool = False) -> ToolResult:
        return cls.of([{"type": "text", "text": text}], is_error=is_error)


class Tool:
    """One tool of the catalogue, immutable; two have the same definition when `definition` is equal.

    Its schema must be valid: those of others are compiled once when they are read (core.validators). There may be
    thousands, of which few are called: the definition is stored as text and decoded when something asks for it.
    """

    __slots__ = (
        "__weakref__",
        "_head",
        "_kept",
        "_tail",
        "compiled",
        "name",
        "output",
        "param_headers",
        "read_only",
        "schema",
        "source",
        "tab_id",
        "timeout",
    )

    def __init__(
        self,
        name: str,
        source: Source,
        description: str,
        input_schema: Mapping[str, Any] | Schema = EMPTY_SCHEMA,
        title: str | None = None,
        output_schema: Mapping[str, Any] | Schema | None = None,
        annotations: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        meta: Mapping[str, Any] | None = None,
        tab_id: int | None = None,
    ) -> None:
        self.name = name
        self.source = source
        self.timeout = timeout
        """Seconds; None is the usual limit."""
        self.tab_id = tab_id
        """The tab whose page offers it; None if it is not bound to one."""
        self.schema = input_schema if isinstance(input_schema, Schema) else Schema.of(input_schema)
        self.output = (
            output_schema if output_schema is None or isinstance(output_schema, Schema) else Schema.of(output_schema)
        )
        """The schema of its structured content, for programs."""
        self.compiled: CompiledSchema | None = None
        """Of its arguments, once it was called."""
        own = source.kind in ("browser", "hub")
        self._kept: Mapping[str, Any] | None = input_schema if own and not isinstance(input_schema, Schema) else None
        """The decoded schema, of tools that are likely to be called."""
        self.read_only = annotations is not None and annotations.get("readOnlyHint") is True
        head: dict[str, Any] = {"name": name}
        if title:
            head["title"] = title
        head["description"] = description
        tail: dict[str, Any] = {"annotations": annotations} if annotations else {}
        if meta:
            tail["_meta"] = meta
        self._head = orjson.dumps(head)[:-1]
        self.schema.listed  # noqa: B018 - made now, because a page of a listing needs a thousand at once
        self._tail = b",%b" % orjson.dumps(tail)[1:] if tail else b"}"
        has_marks = _HEADER_MARK in self.schema.text
        self.param_headers: tuple[ParamHeader, ...] = declared(self.input_schema) if has_marks else ()
        """Arguments that stateless clients repeat as headers."""

    def __repr__(self) -> str:
        return f"Tool({self.name!r}, {self.source})"

    @property
    def wire(self) -> bytes:
        """The entry of tools/list for agents, without its output schema."""
        return b'%b,"inputSchema":%b%b' % (self._head, self.schema.listed, self._tail)

    @property
    def full_wire(self) -> bytes:
        """The entry of tools/list for programs."""
        if self.output is None:
            return self.wire
        return b'%b,"inputSchema":%b,"outputSchema":%b%b' % (
            self._head,
            self.schema.listed,
            self.output.text,
            self._tail,
        )

    @property
    def definition(self) -> tuple[bytes, bytes, Schema, Schema | None]:
        """What tells it apart from an earlier definition of the same name."""
        return self._head, self._tail, self.schema, self.output

    @property
    def wire_size(self) -> int:
        """The length of `wire`, which is not made for it."""
        return len(self._head) + len(self.schema.listed) + len(self._tail) + len(',"inputSchema":')

    def listing(self) -> dict[str, Any]:
        """The entry of tools/list for programs, decoded."""
        entry: dict[str, Any] = orjson.loads(self.full_wire)
        return entry

    @property
    def input_schema(self) -> Mapping[str, Any]:
        return self._kept if self._kept is not None else self.schema.value()

    @property
    def listed_schema(self) -> Mapping[str, Any]:
        """The input schema as agents are shown it."""
        listed: dict[str, Any] = orjson.loads(self.schema.listed)
        return listed

    @property
    def output_schema(self) -> Mapping[str, Any] | None:
        return self.output.value() if self.output is not None else None

    @property
    def title(self) -> str | None:
        title: str | None = orjson.loads(self._head + b"}").get("title")
        return title

    @property
    def description(self) -> str:
        description: str = orjson.loads(self._head + b"}")["description"]
        return description

    @property
    def annotations(self) -> Mapping[str, Any]:
        return self._tail_facts().get("annotations") or {}

    @property
    def meta(self) -> Mapping[str, Any] | None:
        meta: Mapping[str, Any] | None = self._tail_facts().get("_meta")
        return meta

    def _tail_facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = orjson.loads(b"{" + self._tail[1:]) if self._tail != b"}" else {}
        return facts

    def changed(self, **fields: Any) -> Tool:
        """A copy with other fields; schemas that stay are not compiled again."""
        same: dict[str, Any] = {
            "name": self.name,
            "source": self.source,
            "description": self.description,
            "input_schema": self._kept if self._kept is not None else self.schema,
            "title": self.title,
            "output_schema": self.output,
            "annotations": self.annotations,
            "timeout": self.timeout,
            "meta": self.meta,
            "tab_id": self.tab_id,
        }
        return Tool(**{**same, **fields})

    def accepts(self, arguments: Mapping[str, Any]) -> bool:
        """Whether arguments are valid; `invalid` says why not."""
        return (self.compiled or self._compile()).is_valid(arguments)

    def _compile(self) -> CompiledSchema:
        self.compiled = compiled = self.schema.compiled
        if self._kept is None:
            self._kept = self.schema.value()
        return compiled

    def invalid(self, arguments: Mapping[str, Any]) -> InvalidArguments:
        """The error for arguments that are not accepted, naming the invalid fields."""
        schema = self.input_schema
        errors = (self.compiled or self._compile()).validator.iter_errors(arguments)
        problems = problems_of(schema, errors)
        listed = "; ".join(f"{p['field']}: {p['problem']}" for p in problems)
        return InvalidArguments(
            f"Invalid arguments for {self.name}: {listed}.",
            hint=f"Nothing was done. {explain_arguments(schema)}".strip(),
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

    @property
    def structured(self) -> bool:
        """Whether the caller is a program that wants data instead of text."""

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
