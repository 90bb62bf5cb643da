"""Streamlit: what the agent fills in is in the app's own state; a download is found and uploaded again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.apps.app_agent import AppAgent
from tests.apps.installation import install, python_of
from tests.apps.servers import AppServer, serving
from tests.e2e.live import LiveHub
from tests.harness.ports import free_port
from tests.harness.waiting import until_outside

APP = Path(__file__).parent / "projects" / "streamlit" / "orders.py"


@pytest.fixture(scope="module")
def orders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppServer]:
    install("streamlit")
    folder, port = tmp_path_factory.mktemp("streamlit"), free_port()
    command = [python_of("streamlit"), "-m", "streamlit", "run", APP, "--server.headless", "true"]
    command += ["--server.address", "127.0.0.1", "--server.port", str(port), "--browser.gatherUsageStats", "false"]
    environment = {"ORDERS_STATE": str(folder / "state.json")}
    with serving(command, folder, f"http://127.0.0.1:{port}", environment, "/_stcore/health") as server:
        yield server


def taken(orders: AppServer) -> dict[str, Any]:
    """The app's state as of its last run."""
    state: dict[str, Any] = json.loads((orders.folder / "state.json").read_text())
    return state


async def test_what_is_filled_in_is_in_the_apps_state(agent: AppAgent, orders: AppServer) -> None:
    await agent.do("browser_open_tab", url=orders.url)
    await agent.wait(text="Orders", role="heading")
    wanted = {
        "Region": ("region", "East"),
        "Share": ("share", 60),
        "Due": ("due", "2027-03-14"),
        "Tags": ("tags", ["urgent", "vip"]),
        "Customer": ("customer", "Ada Lovelace"),
        "Note": ("note", "two\nlines"),
        "Rush": ("rush", True),
        "Courier": ("delivery", "Courier"),
    }
    for label, (_, value) in wanted.items():
        given = True if label == "Courier" else value
        await agent.do("browser_fill_form", fields=[{"label": label, "value": given}])
    expected = dict(wanted.values())
    await until_outside(lambda: expected.items() <= taken(orders).items())


async def test_a_download_is_reported_and_can_be_uploaded(agent: AppAgent, orders: AppServer, hub: LiveHub) -> None:
    await agent.do("browser_open_tab", url=orders.url)
    await agent.click(text="Download report", role="button")
    path = await agent.downloaded("report.csv")
    assert (hub.home / "files" / path).read_text() == "region,share\nNorth,25\n"
    await agent.do("browser_upload_file", text="Upload", role="button", paths=[path])
    await until_outside(lambda: taken(orders)["attachment"] == ["report.csv", "region,share\nNorth,25\n"])
