"""The person's routes for sessions: list, release a tab, end; and the names of REST sessions."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.harness.agent import Agent, client, message
from tests.harness.fake_extension import FakeExtension
from tests.harness.hub import RunningHub
from tests.harness.tenants import act, closing_browser, refused, tab_of


@pytest.fixture
async def browser(hub: RunningHub) -> AsyncIterator[FakeExtension]:
    async with closing_browser(hub) as browser:
        yield browser


async def test_the_person_can_list_sessions_release_tabs_and_end_sessions(
    hub: RunningHub, browser: FakeExtension
) -> None:
    async with Agent(hub) as one, client(hub) as http:
        mine = await tab_of(one)
        await act(one, tabId=7)
        ident = one.headers["Mcp-Session-Id"]
        (seen,) = (await http.get("/sessions")).json()["sessions"]
        assert (seen["id"], seen["kind"], seen["client"], seen["tabId"]) == (ident, "mcp", "raw 1", 7)
        assert [(held["tabId"], held["url"]) for held in seen["leases"]][1] == (7, "https://example.com/")
        freed = await http.post(f"/sessions/{ident}/release", json={"tabId": 7})
        assert freed.json() == {"ok": True, "id": ident, "tabId": 7}
        assert "Tab 7, which this session was working in, was freed by the person" in refused(await act(one))["text"]
        again = await http.post(f"/sessions/{ident}/release", json={"tabId": 7})
        assert again.status_code == 404
        assert str(mine) in again.json()["error"]["hint"]
        ended = await http.post(f"/sessions/{ident}/end", json={})
        assert ended.json() == {"ok": True, "id": ident, "closing": [mine]}
        assert (await one.post(message("ping"))).status_code == 404
        assert (await http.get("/sessions")).json() == {"sessions": [], "paused": None}
        assert (await http.post(f"/sessions/{ident}/end")).status_code == 404


async def test_invalid_requests_are_refused(hub: RunningHub) -> None:
    async with client(hub, **{"Tabhub-Session": "me"}) as http:
        await http.post("/tools/browser_list_sessions/call", json={})
        for path, body in [
            ("/sessions/rest:test:me/release", {"tabId": "7"}),
            ("/sessions/rest:test:me/release", {"tab": 7}),
            ("/sessions/rest:test:me/end", {"why": 1}),
            ("/pause", {"mode": "later"}),
            ("/pause", {"reason": "x" * 301}),
            ("/pause", [1]),
            ("/resume", {"x": 1}),
        ]:
            answer = await http.post(path, json=body)
            assert answer.status_code == 400, (path, body, answer.text)
        for method, path in [("POST", "/sessions"), ("GET", "/pause"), ("GET", "/sessions/rest:test:me/end")]:
            assert (await http.request(method, path)).status_code == 405
    async with client(hub, Authorization="Bearer wrong") as http:
        assert (await http.get("/sessions")).status_code == 401
        assert (await http.post("/pause")).status_code == 401


@pytest.mark.parametrize("name", ["", "a b", "x" * 65, "../up", "Ä".encode("latin-1").decode("latin-1")])
async def test_a_rest_session_has_a_plain_name(hub: RunningHub, name: str) -> None:
    async with client(hub) as http:
        headers = {"Tabhub-Session": name.encode("latin-1")}
        answer = await http.post("/tools/browser_list_sessions/call", json={}, headers=headers)  # type: ignore[arg-type]
    assert answer.status_code == 400
    assert "letters, digits" in answer.text
