"""`tabhub setup --migrate`, with a home and clients' settings as version 0.1.0 wrote them (home_0_1_0)."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Subprotocol

from tabhub.store.home import Home
from tabhub.store.tokens import TokenStore, listed
from tests.harness.agent import Agent, client
from tests.harness.fake_extension import FakeExtension
from tests.harness.hub import Address
from tests.harness.panel import Panel
from tests.harness.process import environment, hub_process

FIXTURE = Path(__file__).with_name("home_0_1_0")
SHARING = ("claude-code", "cursor", "vscode", "windsurf", "opencode", "codex")
"""The clients whose settings have the shared secret."""


@dataclass(frozen=True, slots=True)
class OldHome:
    """A person's files from the time of version 0.1.0."""

    home: Home
    person: Path
    secret: str

    @property
    def env(self) -> dict[str, str]:
        return environment(self.home.root) | {"HOME": str(self.person)}

    def files(self) -> dict[str, str]:
        """The clients' settings, without backups."""
        found = {path: path.read_text() for path in self.person.rglob("*") if path.is_file()}
        return {str(path.relative_to(self.person)): text for path, text in found.items() if ".backup-" not in path.name}

    async def tabhub(self, *words: str) -> tuple[int | None, str, str]:
        """Run a command in an empty folder."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tabhub", *words),
            env=self.env,
            cwd=self.home.root.parent,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, errors = await process.communicate()
        return process.returncode, out.decode(), errors.decode()


@pytest.fixture
def old(tmp_path: Path) -> OldHome:
    """A copy of the fixture, with the modes and places it had."""
    made = OldHome(Home(tmp_path / "home"), tmp_path / "person", "")
    shutil.copytree(FIXTURE / "home", made.home.root)
    shutil.copytree(FIXTURE / "person", made.person)
    for folder, _, names in os.walk(tmp_path):
        Path(folder).chmod(0o700)
        for name in names:
            path = Path(folder, name)
            path.write_text(path.read_text().replace("@HOME@", str(made.home.root)))
            path.chmod(0o600)
    return OldHome(made.home, made.person, json.loads(made.home.auth.read_text())["secret"])


async def test_agents_of_the_old_version_keep_calling_tools_and_reach_nothing_else(old: OldHome) -> None:
    async with hub_process(old.home.root) as hub:
        shared = Address(port=hub.port, token=old.secret)
        async with Panel(hub) as panel, client(shared) as http, Agent(shared) as agent:
            assert (await http.post("/tools/browser_list_tabs/call", json={})).status_code == 200
            assert "isError" not in (await agent.call("browser_list_tabs"))["result"]
            for method, path in (("GET", "/audit"), ("POST", "/upstream/add"), ("GET", "/sessions")):
                assert (await http.request(method, path)).status_code == 403
            for offer in (("tabhub", old.secret, "x"), ("opentabs", old.secret)):
                with pytest.raises(InvalidStatus, match="401"):
                    await connect(hub.ws_url, subprotocols=[Subprotocol(word) for word in offer])
            (notice,) = (await panel.get("config.getState"))["problems"]
            assert "tabhub setup --migrate" in notice
            assert "raw" in notice  # who it is
        assert notice in (await old.tabhub("status"))[1]
        assert "tabhub setup --migrate" in (await old.tabhub("doctor"))[1]
        async with client(hub) as person:
            lines = (await person.get("/audit", params={"limit": 2})).json()
        assert [line["tokenName"] for line in lines] == ["unnamed", "unnamed"]
        # the named token of that time is still one
        assert TokenStore(old.home).is_valid("ci")
    assert old.secret not in "".join(path.read_text("utf-8", "replace") for path in old.home.extension.rglob("*.json"))


async def test_one_command_gives_every_client_its_token_and_retires_the_secret(old: OldHome) -> None:
    before = old.files()
    assert sum(old.secret in text for text in before.values()) == len(SHARING)
    async with hub_process(old.home.root) as hub, FakeExtension(hub):
        shared = Address(port=hub.port, token=old.secret)
        async with client(shared, **{"Tabhub-Client": "nightly-script"}) as http:
            assert (await http.post("/tools/browser_list_tabs/call", json={})).status_code == 200
            code, out, errors = await old.tabhub("setup", "--migrate")
            assert code == 0, errors
            refused = await http.post("/tools/browser_list_tabs/call", json={})
            assert (refused.status_code, "token" in refused.text) == (401, True)
        names = [token.name for token in listed(old.home)]
        for name in (*SHARING, "claude-desktop"):
            assert f"has the token '{name}' now" in out
            assert name in names
            token = old.home.client_tokens.joinpath(name).read_text().strip()
            async with client(Address(port=hub.port, token=token)) as http:
                assert (await http.get("/tools")).status_code == 200
        assert "nightly-script, last on 20" in out  # no settings file was found for it
        after = old.files()
        assert not [path for path, text in after.items() if old.secret in text]
        for path, text in before.items():
            if "claude_desktop" not in path:
                assert re.sub(r"thb_[0-9a-f]{64}", old.secret, after[path]) == text
        desktop = json.loads(next(text for path, text in after.items() if "claude_desktop" in path))
        entry = desktop["mcpServers"]["tabhub"]
        assert entry["args"][-4:] == ["start", "--stdio", "--as", "claude-desktop"]
        assert entry["env"]["TABHUB_HOME"] == str(old.home.root)
        assert "notice" not in (await old.tabhub("status"))[1]
        _, again, _ = await old.tabhub("setup", "--migrate")
        assert "There is no shared secret, and every client has its own token." in again
        _, shown, _ = await old.tabhub("token", "list")
        assert all(name in shown for name in (*SHARING, "ci"))


async def test_it_works_before_the_first_start_of_the_new_version(old: OldHome) -> None:
    code, out, errors = await old.tabhub("setup", "--migrate")
    assert code == 0, errors
    assert "The shared secret opens nothing any more." in out
    async with hub_process(old.home.root) as hub, client(Address(port=hub.port, token=old.secret)) as http:
        assert (await http.get("/tools")).status_code == 401
        async with FakeExtension(hub):
            assert json.loads(old.home.config.read_text())["permissions"] == {"default": "auto"}


async def test_a_running_hub_of_the_old_version_has_to_be_restarted_first(old: OldHome) -> None:
    old.home.hub_json.write_text(json.dumps({"pid": os.getpid(), "port": 1}))
    code, _, errors = await old.tabhub("setup", "--migrate")
    assert code == 1
    assert "Restart the hub first" in errors
    assert json.loads(old.home.auth.read_text())["secret"] == old.secret
