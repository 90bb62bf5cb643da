"""Node-RED: an agent builds a flow with the mouse; it is in the flows file, and it runs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.apps.app_agent import AppAgent
from tests.apps.installation import install, node
from tests.apps.servers import AppServer, serving
from tests.harness.ports import free_port

SETTINGS = Path(__file__).parent / "projects" / "node_red" / "settings.js"


@pytest.fixture(scope="module")
def node_red(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppServer]:
    red = install("node-red") / "node_modules" / "node-red" / "red.js"
    folder, port = tmp_path_factory.mktemp("node-red"), free_port()
    shutil.copyfile(SETTINGS, folder / "settings.js")
    settings = folder / "settings.js"
    command: list[str | Path] = [node(), red, "--userDir", folder, "--settings", settings, "--port", str(port)]
    with serving(command, folder, f"http://127.0.0.1:{port}", {}) as server:
        yield server


def flow(node_red: AppServer) -> dict[str, dict[str, Any]]:
    """The nodes of the flows file by type."""
    return {each["type"]: each for each in json.loads((node_red.folder / "flows.json").read_text())}


CODE = """const seen = ["a", "b"];
for (const name of seen) {
    if (name === "b") {
        msg.payload = { name, note: "from the flow" };
    }
}
return msg;"""


async def chart(agent: AppAgent, part: str) -> list[str]:
    """The refs of what the workspace shows with a word in its line, in order."""
    lines = await agent.lines(part, selector="#red-ui-workspace-chart")
    return [line.partition("[ref=")[2].partition(" ")[0] for line in lines]


async def test_a_flow_is_built_with_the_mouse_deployed_and_run(agent: AppAgent, node_red: AppServer) -> None:
    await agent.do("browser_open_tab", url=node_red.url)
    await agent.wait(text="Start", role="button")  # the welcome of a first visit
    await agent.click(text="Close", role="button")
    (line,) = await agent.lines("id=red-ui-workspace-chart", boxes=True)
    left, top, *_ = map(int, line.rpartition("box=")[2].rstrip("]").split(","))
    await agent.act(
        {"action": "drag", "from": {"text": "inject"}, "to": {"x": left + 200, "y": top + 140}},
        {"action": "drag", "from": {"text": "debug", "role": "clickable"}, "to": {"x": left + 600, "y": top + 160}},
    )
    outlet, inlet = await chart(agent, "class=red-ui-flow-port")
    await agent.act({"action": "drag", "from": outlet, "to": inlet})
    (wire,) = await chart(agent, "class=red-ui-flow-link-background")
    await agent.act({"action": "drag", "from": {"text": "function", "role": "clickable"}, "to": wire})
    assert len(await chart(agent, "class=red-ui-flow-link-background")) == 2
    *_, added = await chart(agent, "class=red-ui-flow-node ")
    await agent.click(ref=added, count=2)
    filled = await agent.do("browser_fill_form", fields=[{"label": "Editor content", "value": CODE}])
    assert filled["fields"][0]["value"] == CODE
    await agent.click(text="Done")
    await agent.click(text="Deploy")
    await agent.wait(text="Successfully deployed")
    made = flow(node_red)
    assert made["inject"]["wires"] == [[made["function"]["id"]]]
    assert made["function"]["wires"] == [[made["debug"]["id"]]]
    assert made["function"]["func"] == CODE
    button, _ = await chart(agent, "class=red-ui-flow-node-button-button")
    await agent.click(ref=button)
    await agent.wait(text='"from the flow"')
