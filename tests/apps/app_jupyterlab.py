"""JupyterLab: an agent writes and runs a notebook and exports it; the code and outputs are in the files, as written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.apps.installation import install, python_of
from tests.apps.servers import AppServer, serving
from tests.harness.ports import free_port


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppServer]:
    install("jupyterlab")
    folder, port = tmp_path_factory.mktemp("jupyterlab"), free_port()
    (folder / "work").mkdir()
    command = [python_of("jupyterlab"), "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip", "127.0.0.1"]
    command += [f"--port={port}", "--ServerApp.port_retries=0", "--IdentityProvider.token="]
    command += [f"--ServerApp.root_dir={folder / 'work'}"]
    command += ["--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate", "--LabApp.news_url="]
    with serving(command, folder, f"http://127.0.0.1:{port}", {}, "/api") as server:
        yield server


def cells(lab: AppServer, name: str) -> list[dict[str, Any]]:
    """The cells of a notebook file."""
    found: list[dict[str, Any]] = json.loads((lab.folder / "work" / name).read_text())["cells"]
    return found
