"""All limits by name: sizes, times, rates and counts.

Every bound of the product is a field of `Limits`. Each can be set in `config.json` under `limits`; the table in
`docs/limits.md` is generated from it. Times are in seconds, sizes in bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tabhub.errors import SetupError

MB = 1024 * 1024


def _limit(default: Any, doc: str) -> Any:
    return field(default=default, metadata={"doc": doc})


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of the hub."""

    # input
    max_body: int = _limit(4 * MB, "largest HTTP request body")
    max_head: int = _limit(64 * 1024, "largest head of an HTTP request: its line and headers")
    max_frame: int = _limit(10 * MB, "largest WebSocket message, either way")
    max_depth: int = _limit(64, "deepest nesting of a JSON value")
    max_keys: int = _limit(90_000, "maximum of object keys in one JSON message")
    max_digits: int = _limit(400, "longest number in a JSON message")
    max_token: int = _limit(512, "longest token accepted")
    header_timeout: float = _limit(10.0, "time for a client to send its request")

    # calls
    page_call_timeout: float = _limit(10.0, "deadline of a page tool's call")
    retries: int = _limit(3, "retries of a page tool's call that the page has not received")
    retry_delay: float = _limit(1.0, "pause before such a retry")
    call_timeout: float = _limit(30.0, "deadline of every other call")
    call_timeout_max: float = _limit(300.0, "longest time of a call, whatever progress it reports")
    concurrent_per_source: int = _limit(25, "calls one plugin, origin or server runs at once")
    queue_per_source: int = _limit(100, "calls that may wait for one plugin, origin or server")
    concurrent_browser: int = _limit(256, "built-in browser tool calls at once")

    # answers
    result_tokens: int = _limit(25_000, "estimated tokens of a tool result before the rest becomes a handle")
    change_tokens: int = _limit(2_000, "estimated tokens of the changes that an acting tool reports")
    result_ttl: float = _limit(3600.0, "how long a result handle can be read")
    result_store: int = _limit(256 * MB, "maximum of bytes stored for result handles")
    result_memory: int = _limit(32 * MB, "maximum of bytes of them in memory while the disk cannot be written")
    file_bytes: int = _limit(256 * MB, "largest file (PDF, trace) a tool writes")
    read_chars: int = _limit(20_000, "characters tabhub_read_result returns by default")
    list_page: int = _limit(1000, "entries in one page of tools/list, resources/list or prompts/list")
    gateway_page: int = _limit(50, "tools in one page of tabhub_list_tools")
    finder_found: int = _limit(10, "tools in the first page of a search with tabhub_list_tools")
    finder_tokens: int = _limit(1_500, "estimated tokens of the schemas of the best of them")

    # rates, per minute
    admin_rate: int = _limit(10, "requests per minute to each of /reload, /extension/reload and /plugin-settings")
    session_rate: int = _limit(60, "new MCP sessions per minute")
    call_rate: int = _limit(0, "tool calls per minute and session (0: no limit)")
    auth_failure_rate: int = _limit(
        60, "failed authentications per minute before all are refused; at a relay, of one address"
    )
    list_changed_rate: int = _limit(2, "list_changed notifications per second, agent and list")

    # approvals
    approvals: int = _limit(100, "calls that may wait for approval at once")
    grants: int = _limit(2000, "approvals stored that always hold; the oldest are dropped")
    approval_lookup: float = _limit(1.5, "time to find the elements of a call before the person is asked about it")
    approval_look_again: float = _limit(1.5, "time between looks at these elements while the person decides")
    approval_picture: int = _limit(256 * 1024, "bytes of the picture of an element shown to the person, as base64")
    approval_params: int = _limit(20_000, "characters of a call's parameters shown to the person who is asked")

    # sessions and streams
    session_idle: float = _limit(1800.0, "idle time after which a session without request or open stream ends")
    sessions: int = _limit(2000, "sessions at once")
    lease_idle: float = _limit(600.0, "time without a call after which another session may take a held tab")
    lease_orphan: float = _limit(
        60.0,
        "the same if the holder's client disconnected: its stream, or the request of its last call, was closed; "
        "for a client of the bridge socket at most half of bridge_grace",
    )
    tab_request: float = _limit(120.0, "time for a person to answer when an agent asks for another's tab")
    bridge_line: int = _limit(4 * MB, "longest line a client of the bridge socket may send")
    bridge_requests: int = _limit(1000, "requests of one bridge session at once")
    bridge_grace: float = _limit(30.0, "time for a disconnected bridge client to reconnect to its session")
    stream_events: int = _limit(1000, "events stored to resume one stream")
    stream_bytes: int = _limit(4 * MB, "bytes stored to resume one stream")
    stream_keepalive: float = _limit(15.0, "time between keep-alive comments on a quiet stream")

    # the browser link
    ping_interval: float = _limit(15.0, "time between pings on a link")
    ping_timeout: float = _limit(20.0, "time without an answer to a ping after which a link is closed")
    send_queue: int = _limit(32 * MB, "bytes waiting for a slow reader before it is disconnected")
    debugger_idle: float = _limit(60.0, "time without use after which the debugger detaches from a tab")
    browser_answer: float = _limit(5.0, "time for one browser to answer when all are asked")
    extension_back: float = _limit(10.0, "time for an extension that reloads to reconnect")
    tabs_per_browser: int = _limit(5000, "tabs of one browser the hub tracks")

    # the relay
    relay_auth: float = _limit(10.0, "time for a client of a relay to authenticate")
    relay_ping: float = _limit(
        20.0,
        "time between two looks at a client of a relay: after two in which it sent nothing it is pinged, after three "
        "disconnected",
    )
    relay_drain: float = _limit(10.0, "time for running requests to finish when a relay node is stopped")
    relay_clients: int = _limit(50_000, "connections of one relay node")
    relay_unauthenticated: int = _limit(
        5000,
        "connections of one relay node that have not authenticated yet; a tenth of that while the node is more than a "
        "second behind. More are refused and told when to come back",
    )
    relay_user_clients: int = _limit(1000, "connections of one user to one relay node")
    relay_client_rate: int = _limit(12_000, "messages per minute and connection a relay accepts (0: no limit)")
    relay_user_rate: int = _limit(60_000, "messages per minute and user a relay accepts, on all nodes (0: no limit)")
    relay_user_joins: int = _limit(
        1200, "new connections of one user per minute to one relay node; more have to wait (0: no limit)"
    )
    relay_revoked: int = _limit(200_000, "entries in a relay node's list of revoked tokens")
    relay_calls: int = _limit(1000, "forwarded requests of one agent without an answer yet")
    relay_queue: int = _limit(16 * MB, "bytes waiting for a slow reader at a relay before it is disconnected")
    relay_user_queue: int = _limit(
        64 * MB, "bytes waiting at a relay node for all readers of one user, incomplete messages included"
    )
    relay_all_queue: int = _limit(
        512 * MB,
        "the same for all users of a relay node; beyond that a connection of the user with the most is closed",
    )
    relay_stranger: int = _limit(16 * 1024, "bytes a client of a relay may send before it has authenticated")
    relay_token: int = _limit(8192, "longest token a relay accepts")
    relay_refresh: float = _limit(60.0, "time before the end of its token at which a browser is asked for a new one")
    relay_open: float = _limit(5.0, "time for another relay node to answer")
    relay_engines: int = _limit(500, "engines of one relay node: tools for agents over HTTP, one for each token")
    relay_user_engines: int = _limit(
        20, "engines of one user; beyond that the one idle for the longest time is stopped"
    )
    relay_engine_idle: float = _limit(
        300.0, "idle time after which an engine without session, open request or token is stopped"
    )
    relay_engine_sessions: int = _limit(20, "sessions of one engine")
    relay_engine_requests: int = _limit(100, "requests and streams open at one engine")
    relay_engine_bytes: int = _limit(8 * MB, "bytes one engine stores of long results, and as many of recordings")
    relay_bus_queue: int = _limit(64 * MB, "bytes waiting for a relay's bus before more are refused")

    # page tools
    page_tools: int = _limit(100, "tools of one document of a page; the rest is not listed, here and below")
    page_bytes: int = _limit(256 * 1024, "bytes of the definitions of these tools")
    page_embedded_tools: int = _limit(20, "tools of the frames of one other site in a tab")
    page_embedded_bytes: int = _limit(64 * 1024, "bytes of their definitions")
    page_tab_tools: int = _limit(200, "tools of one tab, of which `page_tools` are kept for its own page")
    page_tab_bytes: int = _limit(512 * 1024, "bytes of their definitions, `page_bytes` of them for its own page")
    page_site_tools: int = _limit(500, "tools of one site (its registrable domain) in all tabs")
    page_site_bytes: int = _limit(1 * MB, "bytes of their definitions")
    page_tools_all: int = _limit(10_000, "tools of all pages; beyond that the sites with the most give way")
    page_bytes_all: int = _limit(8 * MB, "bytes of their definitions")
    page_documents: int = _limit(50, "documents of one tab whose tools are known")
    page_early_bytes: int = _limit(
        2 * MB, "bytes of lists of tools that wait until one browser has reported their tabs"
    )
    page_cached: int = _limit(1000, "tools cached after their page has closed; the site with the most gives way")
    page_cached_bytes: int = _limit(2 * MB, "bytes of their definitions")
    page_cache_age: float = _limit(3600.0, "cached tools not seen for that time are dropped when the hub starts")
    page_update_rate: int = _limit(
        10, "lists of tools accepted per second of one site, and of one tab; beyond that only the last one is used"
    )
    page_update_rate_all: int = _limit(100, "lists of tools accepted per second of all pages")
    page_call_rate: int = _limit(6000, "calls per minute of the tools of one origin, by all agents (0: no limit)")
    page_appear: float = _limit(8.0, "time for a tool to appear in a tab that was opened for it")

    # external MCP servers
    upstream_connect: float = _limit(30.0, "time for an external server to connect and to list its tools")
    upstream_check: float = _limit(60.0, "time between checks of an idle external server")
    upstream_backoff: float = _limit(1.0, "first pause before a failed external server is retried")
    upstream_backoff_max: float = _limit(60.0, "longest such pause")
    upstream_login: float = _limit(300.0, "time for a person to log in to an external server")
    upstream_question: float = _limit(
        300.0, "time for an agent to return with the answer to an external server's question"
    )
    upstream_tools: int = _limit(1000, "tools of one external server; the rest is ignored")
    followed_resources: int = _limit(200, "resources of external servers one client may subscribe to")
    upstream_offers: int = _limit(
        5000, "resources of one external server, and as many templates and prompts; the rest is ignored"
    )
    upstream_answer: int = _limit(32 * MB, "largest message of an external server")

    # the agent
    agent_prompt: int = _limit(
        12_000, "tokens of tool definitions in the agent's prompt; the agent has to search for other tools"
    )
    agent_silence: float = _limit(120.0, "time after which a model that sends nothing has failed")
    agent_answer: int = _limit(8 * MB, "largest answer of a model")
    agent_tries: int = _limit(3, "attempts to reach a model that is busy or unreachable")
    agent_conversations: int = _limit(200, "conversations of the agent that are stored")

    # plugins
    plugin_logs: int = _limit(1000, "log entries stored of one plugin")
    plugin_requests: int = _limit(100, "requests with a secret that one call of a plugin's tool may make")
    plugin_request_time: float = _limit(30.0, "time for such a request, redirects included")
    plugin_request_bytes: int = _limit(1 * MB, "bytes of its body")
    plugin_answer: int = _limit(2 * MB, "bytes of its response")

    # acting on pages
    frame_answer: float = _limit(3.0, "time for a frame of another site to answer; then the page is read without it")
    element_appear: float = _limit(3.0, "time for an action's element to appear")
    element_ready: float = _limit(5.0, "time for it to become visible, enabled, still and uncovered")
    element_settled: float = _limit(0.6, "time without changes in the page after which waiting for that ends early")
    typed_characters: int = _limit(5000, "longest text typed key by key")
    action_settle: float = _limit(2.0, "longest time an action waits for the page or tab that it opened")
    action_responses: float = _limit(0.3, "longest time its answer waits for responses to requests that it caused")
    first_content: float = _limit(3.0, "time for a page that scripts build to show its first content in a snapshot")
    page_settle: float = _limit(1.0, "longest time a call waits for the page to react to the action before it")
    download_copy: int = _limit(500 * MB, "largest download copied into the folder for files from elsewhere")
    awake_idle: float = _limit(2.0, "time after which a background tab in which no call runs draws no more")
    wait_default: float = _limit(10.0, "how long the waiting tools wait by default")
    network_quiet: float = _limit(0.5, "time without traffic after which the network is idle")

    # recordings of tabs in use
    record_requests: int = _limit(500, "requests recorded of a tab")
    record_console: int = _limit(1000, "console messages recorded of a tab")
    record_frames: int = _limit(500, "WebSocket frames recorded of a tab")
    record_text: int = _limit(4000, "characters recorded of one console message or WebSocket frame")
    record_bytes: int = _limit(8 * MB, "maximum of bytes of each of them for a tab")
    record_all: int = _limit(
        128 * MB, "maximum of bytes recorded of all tabs; beyond that the least recently used tab is dropped"
    )
    captured_body: int = _limit(256 * 1024, "largest response whose body is stored while capture is on")
    intercept_wait: float = _limit(30.0, "time after which an intercepted request continues without a decision")
    intercept_idle: float = _limit(
        300.0, "interception ends when requests wait and its agent makes no call for that time"
    )

    # the managed browser
    browser_start: float = _limit(30.0, "time for a managed browser to start and load the extension")
    browser_stop: float = _limit(5.0, "time for a managed browser to exit before it is killed")
    browser_restart_min: float = _limit(
        1.0, "pause before a managed browser that exited is restarted, doubled each time"
    )
    browser_restart_max: float = _limit(60.0, "longest such pause; a longer run resets it")
    browser_log: int = _limit(2 * MB, "size at which the managed browser's log is rotated")
    tab_text: int = _limit(8192, "longest URL or title of a tab; the rest is cut")

    # records
    audit_ring: int = _limit(500, "calls /audit can show")
    audit_bytes: int = _limit(10 * MB, "size at which audit.log is rotated")
    audit_line: int = _limit(64 * 1024, "longest audit line; arguments that do not fit are left out")
    metric_sites: int = _limit(
        200, "origins with tools that `/metrics` counts one by one; beyond that the sites with the most give way"
    )

    @classmethod
    def parse(cls, values: Mapping[str, int | float]) -> Limits:
        """The limits with numbers from settings; an invalid one is an error that names it."""
        for name, value in values.items():
            if value < 0:
                raise SetupError(f"limits.{name} must not be negative")
            if isinstance(getattr(DEFAULTS, name), int) and value != int(value):
                raise SetupError(f"limits.{name} must be a whole number, not {value!r}")
        return cls(**{name: type(getattr(DEFAULTS, name))(value) for name, value in values.items()})


DEFAULTS = Limits()
