"""The messages of page tools: what a page's frame offers, a call of it, its progress, and a question to the person.

Owns their form and bounds on the way from the extension to the hub and back. The tools themselves are read one by one
by core.page_tools, so that one invalid tool does not cost a page the others.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from tabhub.errors import InvalidParams
from tabhub.wire.messages import FrameId, Object, Received, Sent, TabId, convert, items_of, sent

DocumentId = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
MAX_EXTENSIONS = 64 * 1024
"""Largest `extensions` of a registration, in characters."""


class PageTool(Received):
    """A tool as a page declares it."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=128)]
    via: Literal["webmcp", "mcpb", "form"]
    title: str | None = None
    description: str | None = None
    input_schema: Object | None = None
    output_schema: Object | None = None
    annotations: Object | None = None
    kind: Literal["prompt", "resource", "template"] | None = None
    """What else of the page's server it is: the name is then this, a colon and the server's own name or URI."""


Tools = Annotated[list[Any], items_of(PageTool)]


Count = Annotated[int, msgspec.Meta(ge=0, lt=2**53)]


class PageMessage(Received):
    """What every message of a page's document has; from the browser, never from the page."""

    tab_id: TabId
    frame_id: FrameId
    document_id: DocumentId


class RegisterTools(PageMessage):
    """All tools of a document, and where it is."""

    origin: str
    url: str
    tools: Tools
    tab_url: str = ""
    title: str | None = None
    capabilities: Object | None = None
    extensions: Any = None
    declared: Count = 0
    """How many tools the document has, if it has more than these."""


class UpdateTools(PageMessage):
    """All tools, again, of a registered document."""

    tools: Tools
    declared: Count = 0


class PageDisconnected(PageMessage):
    """A document was closed or navigated away."""


class ElicitConfirmation(PageMessage):
    """A page asks the person for confirmation while one of its tools runs."""

    tool_name: str
    message: str
    call_id: str | int | None = None
    """The id of the request that runs the tool."""
    details: Any = None


class ToolProgress(Received):
    """The progress of a page's or plugin's tool."""

    dispatch_id: str | int
    progress: float
    total: float | None = None
    message: str | None = None


class PluginRequest(Received):
    """An HTTP request that a plugin's adapter asks the hub to make while one of its tools runs, with placeholders."""

    dispatch_id: str | int
    url: Annotated[str, msgspec.Meta(max_length=8192)]
    method: Annotated[str, msgspec.Meta(max_length=20)] = "GET"
    headers: dict[str, str] = {}
    body: str | None = None


class ExecuteTool(Sent):
    """A call of a page's tool."""

    tab_id: TabId
    frame_id: FrameId
    document_id: str
    tool_name: str
    args: Object
    extensions: Any = None
    meta: Object | None = msgspec.field(default=None, name="_meta")


class ToolOutcome(Received):
    """How a call of a page's tool ended: its MCP result, or the text of its error."""

    success: bool
    payload: msgspec.Raw


ConfirmationAnswer = sent("ConfirmationAnswer", "The answer to ElicitConfirmation.", confirmed=bool, reason=str | None)
PluginAnswer = sent(
    "PluginAnswer", "The answer to PluginRequest.", status=int, url=str, headers=dict[str, str], body=str
)
PageSettings = sent(
    "PageSettings",
    "What pages may do, and how many tools of a document, documents of a tab and lists per second of a tab are sent.",
    model_context=bool,
    allowed_origins=list[str],
    max_tools=int | None,
    max_bytes=int | None,
    max_documents=int | None,
    max_updates=int | None,
)

read_outcome = msgspec.json.Decoder(ToolOutcome).decode
"""Reads a page's answer; raises msgspec.DecodeError, because only the caller knows whose answer it is."""


def read_registration(message: Object) -> RegisterTools:
    """A registration within its bounds, or InvalidParams."""
    registration = convert("browser/registerTools", message, RegisterTools)
    if len(str(registration.extensions)) > MAX_EXTENSIONS:
        raise InvalidParams(f"browser/registerTools: `extensions` is larger than {MAX_EXTENSIONS} characters")
    return registration
