"""An agent in a few lines: MCP (2025-11-25) over HTTP, one call at a time, with a person to ask.

Owns the session and reading an answer that comes as JSON or as a stream of events. It blocks, so that Ctrl+C reaches
the person's question at once. It knows no tool.
"""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any

from tabhub import __version__
from tabhub.cli.hub.client import HOST, Answer, Hub, bearer, not_a_hub
from tabhub.cli.hub.http_errors import refusal
from tabhub.errors import CallFailed, CliError, HubDownError

_VERSION = "2025-11-25"
_NO_SUCH_METHOD = -32601

Ask = Callable[[str], bool]
"""Put a question to the person: yes or no."""


class McpClient:
    """One MCP session with the hub."""

    def __init__(self, hub: Hub, name: str, ask: Ask, *, timeout: float = 60.0) -> None:
        self._hub = hub
        self._name = name
        self._ask = ask
        self._timeout = timeout
        self._ids = itertools.count(1)
        self._session: str | None = None

    def open(self) -> None:
        """Shake hands; the hub learns that there is a person to ask."""
        self._request(
            "initialize",
            {
                "protocolVersion": _VERSION,
                "capabilities": {"elicitation": {"form": {}}},
                "clientInfo": {"name": self._name, "version": __version__},
            },
        )
        self._post({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def tools(self) -> list[str]:
        """The names of all tools there are now."""
        names: list[str] = []
        cursor: str | None = None
        while True:
            page = self._request("tools/list", {"cursor": cursor} if cursor else {})
            names += [str(tool.get("name")) for tool in page.get("tools", []) if isinstance(tool, dict)]
            cursor = page.get("nextCursor")
            if not isinstance(cursor, str):
                return names

    def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Call a tool and give its result, also one that says `isError`."""
        return self._request("tools/call", {"name": name, "arguments": arguments})

    def close(self) -> None:
        """End the session; that the hub has gone already is no matter."""
        if self._session is None:
            return
        with contextlib.suppress(CliError), self._exchange("DELETE", None):
            self._session = None

    def _request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        ident = next(self._ids)
        message = {"jsonrpc": "2.0", "id": ident, "method": method, "params": params}
        with self._exchange("POST", message) as response:
            self._session = response.headers.get("mcp-session-id") or self._session
            for said in _messages(response):
                if "method" in said:
                    self._asked(said)
                elif said.get("id") == ident:
                    return _result(said)
        raise not_a_hub(f"it gave no answer to {method}")

    def _asked(self, message: dict[str, Any]) -> None:
        """The hub sends a request of its own while it works on ours; notifications need nothing."""
        if "id" not in message:
            return
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        params = message.get("params")
        if message["method"] == "elicitation/create" and isinstance(params, dict):
            yes = self._ask(str(params.get("message", "")))
            answer["result"] = {"action": "accept", "content": _agreed(params)} if yes else {"action": "decline"}
        else:
            answer["error"] = {"code": _NO_SUCH_METHOD, "message": f"Method not found: {message['method']}"}
        self._post(answer)

    def _post(self, message: dict[str, Any]) -> None:
        with self._exchange("POST", message):
            return

    @contextlib.contextmanager
    def _exchange(self, method: str, message: dict[str, Any] | None) -> Iterator[http.client.HTTPResponse]:
        headers = {
            "Authorization": f"Bearer {bearer(self._hub, '/mcp')}",
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
            "MCP-Protocol-Version": _VERSION,
        }
        if self._session is not None:
            headers["Mcp-Session-Id"] = self._session
        connection = http.client.HTTPConnection(HOST, self._hub.port, timeout=self._timeout)
        try:
            body = None if message is None else json.dumps(message).encode()
            connection.request(method, "/mcp", body, headers)
            response = connection.getresponse()
            if response.status >= 300:
                fields = {name.lower(): value for name, value in response.headers.items()}
                raise refusal(self._hub, Answer(response.status, fields, response.read()))
            yield response
        except ConnectionRefusedError:
            raise HubDownError(self._hub.address) from None
        except TimeoutError:
            raise CliError(
                f"The hub on {self._hub.address} did not answer within {self._timeout:g} s.", "Look at `tabhub logs`."
            ) from None
        except (OSError, http.client.HTTPException):
            raise CliError(
                f"The hub on {self._hub.address} closed the connection before it had answered.",
                "Look at `tabhub status` and `tabhub logs`.",
            ) from None
        finally:
            connection.close()


def _messages(response: http.client.HTTPResponse) -> Iterator[dict[str, Any]]:
    """The messages of an answer: its one body, or the events of its stream as they come."""
    if response.headers.get_content_type() != "text/event-stream":
        yield _message(response.read())
        return
    data: list[bytes] = []
    while line := response.readline():
        field, _, value = line.rstrip(b"\r\n").partition(b":")
        if field == b"data":
            data.append(value.removeprefix(b" "))
        elif not field and not value and any(data):
            yield _message(b"\n".join(data))
            data = []


def _message(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except ValueError:
        raise not_a_hub("it answered with something that is not JSON") from None
    if not isinstance(value, dict):
        raise not_a_hub("it answered with something that is not MCP")
    return value


def _result(message: dict[str, Any]) -> dict[str, Any]:
    result, error = message.get("result"), message.get("error")
    if isinstance(result, dict):
        return result
    said = error.get("message") if isinstance(error, dict) else None
    data = error.get("data") if isinstance(error, dict) else None
    hint = data.get("hint") if isinstance(data, dict) else None
    raise CallFailed(str(said or "The hub answered with an error it does not explain."), hint and str(hint))


def _agreed(params: dict[str, Any]) -> dict[str, Any]:
    """What a yes means in the form the question came with: every yes-or-no field is yes."""
    schema = params.get("requestedSchema")
    fields = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(fields, dict):
        return {}
    return {name: True for name, spec in fields.items() if isinstance(spec, dict) and spec.get("type") == "boolean"}
