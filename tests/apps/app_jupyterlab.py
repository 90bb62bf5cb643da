"""JupyterLab: an agent writes and runs a notebook and exports it; the code and outputs are in the files, as written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.apps.app_agent import AppAgent
from tests.apps.installation import install, python_of
from tests.apps.servers import AppServer, serving
from tests.e2e.live import LiveHub
from tests.harness.ports import free_port
from tests.harness.waiting import until_outside


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


TYPED = """total = 0
for i in range(3):
    if i:
        total += i
print("total", total)"""
INSERTED = '''def table(rows):
    """Rows as text."""
    return {
        "rows": [[cell.strip() for cell in row.split("|")] for row in rows],
        "note": 'it is "quoted", and quoted again',
    }


first = table(["a | b", "c | d"])
second = table([])
print(len(first["rows"]), second["rows"], "x" * 20)
first["rows"]'''


async def test_a_notebook_is_written_run_saved_exported_and_uploaded(
    agent: AppAgent, lab: AppServer, hub: LiveHub
) -> None:
    await agent.do("browser_open_tab", url=f"{lab.url}/lab")
    await agent.wait(text="Notebook", role="heading")
    await agent.click(ref=await agent.ref('button "Python 3 (ipykernel)'))
    await agent.wait(text="Python 3 (ipykernel) | Idle")
    # Into the focused cell: a line break must not run it.
    typed = await agent.do("browser_type_text", text=TYPED)
    assert typed["value"] == TYPED
    await agent.do("browser_press_key", key="Shift+Enter")
    await agent.wait(text="total 3")
    assert len(INSERTED) > 300
    inserted = await agent.do("browser_type_text", text=INSERTED, insert=True)
    assert inserted["value"] == INSERTED
    await agent.do("browser_press_key", key="Shift+Enter")
    await agent.wait(text="[['a', 'b'], ['c', 'd']]")
    await agent.do("browser_press_key", key="Control+s")
    await agent.wait(text="Rename file")
    await agent.do("browser_fill_form", fields=[{"label": "File name", "value": "report.ipynb"}])
    await agent.click(text="Rename and Save", role="button")
    await agent.wait(text="report.ipynb", role="tab")

    code = [cell for cell in cells(lab, "report.ipynb") if cell["source"]]
    assert ["".join(cell["source"]) for cell in code] == [TYPED, INSERTED]
    first, second = (cell["outputs"] for cell in code)
    assert [("".join(output["text"])) for output in first] == ["total 3\n"]
    assert "".join(second[0]["text"]) == f"2 [] {'x' * 20}\n"
    assert "".join(second[1]["data"]["text/plain"]) == "[['a', 'b'], ['c', 'd']]"

    await agent.click(text="File", role="menuitem")
    await agent.click(text="Save and Export Notebook As")
    await agent.click(text="Executable Script", role="menuitem")
    path = await agent.downloaded("report.py")
    exported = (hub.home / "files" / path).read_text()
    assert TYPED in exported
    assert INSERTED in exported
    await agent.do("browser_upload_file", text="Upload Files", role="button", paths=[path])
    await until_outside((lab.folder / "work" / "report.py").exists)
    assert (lab.folder / "work" / "report.py").read_text() == exported
