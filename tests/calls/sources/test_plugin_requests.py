"""Requests that the hub makes for plugins: where a secret may go, and what comes back of it."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tabhub.calls.sources.plugin_requests import PluginRequests, Requester
from tabhub.errors import TabhubError
from tabhub.limits import DEFAULTS
from tabhub.plugins.manifest import read_package
from tabhub.plugins.secret_settings import write_settings
from tabhub.plugins.settings import resolve
from tabhub.store.home import Home
from tabhub.store.named_secrets import SecretStore
from tabhub.trust.value_mask import ValueMask
from tabhub.wire.page_tools import PluginRequest
from tests.plugins.packages import folder

TOKEN = "tk-secret-77"


@dataclass
class Api:
    """A server that gives one answer to everything."""

    url: str
    folder: Path
    answer: bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    received: list[str] = field(default_factory=list)
    blocked: bool = False

    def requester(self, schema: dict[str, Any], **values: Any) -> tuple[PluginRequests, Requester]:
        """A plugin with these settings, and its values as the person set them."""
        plugin = read_package(folder(self.folder / "demo", configSchema=schema))
        home = Home(self.folder / "home")
        store = SecretStore(home, None)
        if values:
            write_settings(home, store, plugin, values, 1.0)
        ctx: Any = SimpleNamespace(blocks=lambda _url: self.blocked, note_site=lambda _site: None)
        return PluginRequests(store, ValueMask(), DEFAULTS), Requester(plugin, resolve(plugin, values), ctx)

    async def ask(self, schema: dict[str, Any], *, made: int = 0, **request: Any) -> dict[str, Any]:
        requests, who = self.requester(schema, token=TOKEN)
        return await requests.send(who, asked(**{"url": f"{self.url}/x", **request}), made)


def asked(**request: Any) -> PluginRequest:
    return PluginRequest(dispatch_id=1, **{"headers": {"Authorization": "Bearer {{setting:token}}"}, **request})


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Api]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        made.received.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(made.answer.replace(b"\r\n", b"\r\nConnection: close\r\n", 1))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    made = Api(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", tmp_path)
    yield made
    server.close()
    await server.wait_closed()


def token(*send_to: str, **more: Any) -> dict[str, Any]:
    return {"token": {"type": "string", "secret": True, "sendTo": list(send_to), **more}}


async def test_the_value_is_filled_in_and_masked_wherever_the_answer_has_it(api: Api) -> None:
    body = f'{{"a": "{TOKEN}"}}'
    api.answer = (
        f"HTTP/1.1 200 OK\r\nX-Seen: {TOKEN}\r\nSet-Cookie: a=1\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
    )
    answer = await api.ask(token(api.url))
    assert f"Authorization: Bearer {TOKEN}" in api.received[0]
    assert answer["body"] == '{"a": "[secret demo.token]"}'
    assert answer["headers"] == {"x-seen": "[secret demo.token]"}


@pytest.mark.parametrize(
    "body",
    [base64.b64decode("/9j/4AAQ"), TOKEN.encode("utf-16"), TOKEN.encode("utf-16-le")],
    ids=["jpeg", "16", "16le"],
)
async def test_an_answer_that_is_no_text_is_not_passed_on(api: Api, body: bytes) -> None:
    api.answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    with pytest.raises(TabhubError, match="not UTF-8 text"):
        await api.ask(token(api.url))


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        ({"url": "https://user:x@api.example/"}, "without a user name"),
        ({"url": "https://{{setting:token}}.example/"}, "its host written out"),
        ({"url": "file:///etc/passwd"}, "http"),
        ({"url": "{api}/x?t={{setting:token}}"}, "may not be sent in the url"),
        ({"body": "{{setting:token}}"}, "may not be sent in the body"),
        ({"headers": {"Authorization": "{{setting:token}}\r\nX: y"}}, "one line"),
        ({"headers": {"Host": "x", "Authorization": "{{setting:token}}"}}, "cannot be set"),
        ({"method": "CONNECT"}, "method must be"),
        ({"made": 100}, "limits.plugin_requests"),
    ],
)
async def test_a_request_outside_the_rules_is_refused(api: Api, request_: dict[str, Any], expected: str) -> None:
    given = {name: value.replace("{api}", api.url) if name == "url" else value for name, value in request_.items()}
    with pytest.raises(TabhubError, match=expected):
        await api.ask(token(api.url), **given)
    assert api.received == []


async def test_an_origin_that_an_update_adds_needs_the_person(api: Api) -> None:
    requests, who = api.requester(token("https://api.example"), token=TOKEN)
    _, updated = api.requester(token("https://api.example", api.url))
    updated = Requester(updated.plugin, who.setup, who.ctx)
    with pytest.raises(TabhubError, match="did not declare") as refused:
        await requests.send(updated, asked(url=f"{api.url}/x"), 0)
    assert "tabhub plugin configure demo token" in str(refused.value.hint)
    assert api.received == []
    requests, updated = api.requester(token("https://api.example", api.url), token=TOKEN)
    assert (await requests.send(updated, asked(url=f"{api.url}/x"), 0))["status"] == 200


async def test_the_persons_own_url_setting_may_name_the_origin(api: Api) -> None:
    schema = {"site": {"type": "url", "label": "Site"}, **token("site")}
    requests, who = api.requester(schema, token=TOKEN, site=f"{api.url}/app")
    assert (await requests.send(who, asked(url=f"{api.url}/x"), 0))["body"] == "ok"
    with pytest.raises(TabhubError, match="may not be sent to"):
        await requests.send(who, asked(url="https://api.example/x"), 0)


async def test_a_value_that_is_missing_or_too_short_to_be_masked_is_not_sent(api: Api) -> None:
    requests, who = api.requester(token(api.url))
    with pytest.raises(TabhubError, match="is not set") as missing:
        await requests.send(who, asked(url=f"{api.url}/x"), 0)
    assert "tabhub plugin configure demo token=" in str(missing.value.hint)
    requests, who = api.requester(token(api.url), token="abc")
    with pytest.raises(TabhubError, match="at least 4"):
        await requests.send(who, asked(url=f"{api.url}/x"), 0)
    assert api.received == []


async def test_a_site_that_the_agent_is_kept_off_gets_no_request(api: Api) -> None:
    api.blocked = True
    with pytest.raises(TabhubError, match="A site rule keeps this agent off"):
        await api.ask(token(api.url))
    assert api.received == []


async def test_redirects_on_the_origin_end_after_a_few(api: Api) -> None:
    api.answer = b"HTTP/1.1 302 Found\r\nLocation: /again\r\nContent-Length: 0\r\n\r\n"
    with pytest.raises(TabhubError, match="redirected more than 5 times"):
        await api.ask(token(api.url))
    assert len(api.received) == 6
