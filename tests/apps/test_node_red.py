"""Node-RED: an agent builds a flow with the mouse; it is in the flows file, and it runs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.apps.installation import install, node
from tests.apps.servers import AppServer, serving
from tests.harness.ports import free_port

SETTINGS = Path(__file__).parent / "projects" / "node_red" / "settings.js"


@pytest.fixture(scope="module")
def node_red(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppServer]:
    red = install("node-red") / "node_modules" / "node-red" / "red.js"
    folder, port = tmp_path_factory.mktemp("node-red"), free_port()
    shutil.copyfile(SETTINGS, folder / "settings.js")
    command = [node(), red, "--userDir", folder, "--settings", folder / "settings.js", "--port", str(port)]
    with serving(command, folder, f"http://127.0.0.1:{port}", {}) as server:
        yield server


def flow(node_red: AppServer) -> dict[str, dict[str, Any]]:
    """The nodes of the flows file by type."""
    return {each["type"]: each for each in json.loads((node_red.folder / "flows.json").read_text())}
