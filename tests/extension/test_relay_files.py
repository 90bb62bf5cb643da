"""Agents over a relay have no access to local files, whatever their permissions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.extension.conftest import Site
from tests.extension.fakehub import Wire
from tests.extension.test_relay import Ask, connected, panel, relay
from tests.relay.independent import IndependentAgent
from tests.relay.world import RunningRelay, token

__all__ = ["panel", "relay"]

FIELD = "document.body.innerHTML = '<input type=file>'; document.querySelector('input')"
COUNT = {"expression": "document.querySelector('input').files.length", "returnByValue": True}


@pytest.mark.parametrize("way", ["alone", "ahead", "follow", "dropped"])
async def test_an_agent_over_a_relay_cannot_name_local_files(
    relay: RunningRelay, panel: Ask, wire: Wire, site: Site, tmp_path: Path, way: str
) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("private")
    made = (await wire.ask("createTab", url=f"{site.url}/", waitUntil="load"))["tabId"]
    await connected(panel, relay, level="act")
    async with IndependentAgent(relay.url, token()) as agent:
        await agent.ready()

        async def cdp(method: str, params: dict[str, Any], **more: Any) -> dict[str, Any]:
            wish = {"tabId": made, "method": method, "params": params, **more}
            return await (await agent.begin("forwardCDPCommand", wish))

        held = await cdp("Runtime.evaluate", {"expression": FIELD})
        given = {"files": [str(secret)], "objectId": held["result"]["result"]["objectId"]}
        command = {"method": "DOM.setFileInputFiles", "params": given}
        script = {"expression": "({ go: true })", "returnByValue": True}
        if way == "alone":
            answer = await cdp("DOM.setFileInputFiles", given)
        elif way == "dropped":
            data = {"items": [], "files": [str(secret)], "dragOperationsMask": 1}
            answer = await cdp("Input.dispatchDragEvent", {"type": "dragEnter", "x": 9, "y": 9, "data": data})
        else:
            answer = await cdp("Runtime.evaluate", script, **{way: [command]})
        assert "files of this computer" in answer["error"]["message"]
        assert (await cdp("Runtime.evaluate", COUNT))["result"]["result"]["value"] == 0
    await wire.ask("closeTab", tabId=made)


@pytest.mark.parametrize("way", ["createTab", "createWindow", "browser_navigate", "downloadFile", "Page.navigate"])
async def test_an_agent_over_a_relay_cannot_open_local_files(
    relay: RunningRelay, panel: Ask, wire: Wire, site: Site, tmp_path: Path, way: str
) -> None:
    secret = tmp_path / "secret.html"
    secret.write_text("<title>private</title>")
    made = (await wire.ask("createTab", url=f"{site.url}/", waitUntil="load"))["tabId"]
    await connected(panel, relay, level="act")
    async with IndependentAgent(relay.url, token()) as agent:
        await agent.ready()
        url = secret.as_uri().replace("file:", "FILE:")
        params: dict[str, Any] = {"url": url, "waitUntil": "load"}
        if way in ("browser_navigate", "Page.navigate"):
            params["tabId"] = made
        if way == "Page.navigate":
            wish = {"tabId": made, "method": way, "params": {"url": url}}
            answer = await (await agent.begin("forwardCDPCommand", wish))
        else:
            answer = await (await agent.begin(way, params))
    assert "files of this computer" in answer["error"]["message"], answer
    tabs = (await wire.ask("getTabs"))["tabs"]
    assert not [tab for tab in tabs if tab["url"].startswith("file:")]
    await wire.ask("closeTab", tabId=made)


@pytest.mark.parametrize("level", ["ask", "act"])
async def test_an_agent_over_a_relay_cannot_read_an_open_local_file(
    relay: RunningRelay, panel: Ask, wire: Wire, tmp_path: Path, level: str
) -> None:
    secret = tmp_path / "secret.html"
    secret.write_text("<title>private</title>what nobody else may read")
    made = (await wire.ask("createTab", url=secret.as_uri(), waitUntil="load"))["tabId"]
    await connected(panel, relay, level=level)
    looks: list[tuple[str, dict[str, Any]]] = [
        ("screenshot", {}),
        ("forwardCDPCommand", {"method": "DOM.getDocument", "params": {"depth": -1}}),
        ("forwardCDPCommand", {"method": "Page.captureScreenshot", "params": {}}),
        (
            "forwardCDPCommand",
            {"method": "Runtime.evaluate", "params": {"expression": "document.title", "throwOnSideEffect": True}},
        ),
        ("click", {"x": 5, "y": 5}),
    ]
    async with IndependentAgent(relay.url, token()) as agent:
        await agent.ready()
        for method, params in looks:
            answer = await (await agent.begin(method, {"tabId": made, **params}))
            assert "shows a file of this computer" in answer.get("error", {}).get("message", ""), (method, answer)
    await wire.ask("closeTab", tabId=made)
