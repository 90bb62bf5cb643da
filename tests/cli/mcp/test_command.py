"""`tabhub mcp`, with a running hub and without one."""

from __future__ import annotations

import asyncio
import io
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tabhub.cli import main
from tests.harness.agent import client
from tests.harness.hub import RunningHub, running_hub
from tests.harness.waiting import until
from tests.upstream.servers import names, python


async def tabhub(*words: str) -> int:
    """Run a command in the home of this test's hub."""
    return await asyncio.to_thread(main, list(words))


@pytest.fixture
async def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RunningHub]:
    async with running_hub(tmp_path) as hub:
        monkeypatch.setenv("TABHUB_HOME", str(hub.home.root))
        hub.home.hub_json.write_text(json.dumps({"pid": os.getpid(), "port": hub.port}))
        yield hub


@pytest.mark.req("S001-managing-01", "S001-managing-02", "S001-managing-03", "S001-managing-05")
async def test_server_is_added_changed_and_removed(
    at_home: RunningHub, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "servers.json"
    file.write_text('{"mcpServers": {"every": ' + json.dumps(python("everything")) + "}} // mine")
    assert await tabhub("mcp", "add", str(file)) == 0
    assert "every added: ready, 9 tools" in capsys.readouterr().out
    assert await tabhub("mcp", "tools", "every") == 0
    assert "mcp__every__add  Add two numbers." in capsys.readouterr().out
    assert await tabhub("mcp", "disable", "every", "--tool", "add", "--tool", "mcp__every__fail") == 0
    assert {"mcp__every__add", "mcp__every__fail"}.isdisjoint(names(at_home))
    assert await tabhub("mcp", "enable", "every", "--tool", "add") == 0
    assert "mcp__every__add" in names(at_home)
    assert await tabhub("mcp", "disable", "every") == 0
    assert names(at_home) == set()
    assert await tabhub("mcp", "enable", "every") == 0
    assert "mcp__every__add" in names(at_home)
    assert await tabhub("mcp", "refresh", "every") == 0
    capsys.readouterr()
    assert await tabhub("mcp", "list", "--json") == 0
    (facts,) = json.loads(capsys.readouterr().out)
    assert facts["state"] == "ready"
    assert await tabhub("mcp", "remove", "every") == 0
    assert await tabhub("mcp", "tools", "every") == 1
    assert "There is no external server named 'every'" in capsys.readouterr().err


async def test_resources_and_prompts_of_a_server_are_counted(
    at_home: RunningHub, capsys: pytest.CaptureFixture[str]
) -> None:
    await at_home.hub.upstream.add({"lib": python("library")})
    life = at_home.hub.upstream.pool.get("lib")
    await until(lambda: life is not None and bool(life.resources.current.prompts))
    assert await tabhub("mcp", "list") == 0
    assert "lib ready (3 of 3 tools on, 4 resources, 2 templates, 2 prompts)" in capsys.readouterr().out


@pytest.mark.req("S001-adding-02")
async def test_servers_are_added_by_file_standard_input_and_address(
    at_home: RunningHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "one.json"
    file.write_text(json.dumps({"one": {"url": "http://127.0.0.1:9/mcp"}}))
    assert await tabhub("mcp", "add", str(file)) == 1  # no server listens there
    monkeypatch.setattr(sys, "stdin", io.StringIO('{"two": {"url": "http://127.0.0.1:9/mcp"}}'))
    await tabhub("mcp", "add", "-")
    await tabhub("mcp", "add", "three", "http://127.0.0.1:9/mcp", "--header", "X-Key: very-secret")
    output = capsys.readouterr()
    assert {each["name"] for each in at_home.hub.upstream.all()} == {"one", "two", "three"}
    assert "three added: not connected" in output.out
    assert "very-secret" not in output.out + output.err + json.dumps(at_home.hub.upstream.all())
    assert at_home.hub.upstream.get("three").headers == {"X-Key": "very-secret"}
    assert await tabhub("mcp", "add", "bad", "http://169.254.169.254/mcp") == 1
    assert "link-local" in capsys.readouterr().err


def test_without_a_hub_servers_are_changed_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TABHUB_HOME", str(tmp_path / "home"))
    assert main(["mcp", "add", "weather", "http://localhost:3001/mcp"]) == 0
    assert "tried when the hub starts" in capsys.readouterr().out
    assert main(["mcp", "disable", "weather"]) == 0
    assert main(["mcp", "refresh", "weather"]) == 2
    capsys.readouterr()
    assert main(["mcp", "list", "--json"]) == 0
    (facts,) = json.loads(capsys.readouterr().out)
    assert facts["enabled"] is False
    assert main(["mcp", "remove", "weather", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"removed": "weather"}
    assert main(["mcp", "add", "weather", "ftp://x"]) == 1
    assert "weather.url must begin with http" in capsys.readouterr().err


def test_servers_of_another_client_are_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TABHUB_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    servers = {"tabhub": {"command": "tabhub"}, "wiki": {"type": "http", "url": "https://wiki.example/mcp"}}
    here = {str(tmp_path): {"mcpServers": {"files": {"type": "stdio", "command": "npx", "args": ["files"]}}}}
    (tmp_path / ".claude.json").write_text(json.dumps({"mcpServers": servers, "projects": here}))
    (tmp_path / ".cursor").mkdir()
    (tmp_path / ".cursor/mcp.json").write_text(
        json.dumps({"mcpServers": {"old": {"type": "sse", "url": "https://o/sse"}}})
    )
    (tmp_path / "config/Code/User").mkdir(parents=True)
    (tmp_path / "config/Code/User/mcp.json").write_text(
        '{"servers": {"code": {"url": "https://c.example/mcp"}}, /*x*/}'
    )
    assert main(["mcp", "import", "claude-code"]) == 0
    assert main(["mcp", "import", "cursor"]) == 0
    assert "skipped: old.type" in capsys.readouterr().err
    assert main(["mcp", "import", "vscode"]) == 0
    capsys.readouterr()
    assert main(["mcp", "list", "--json"]) == 0
    assert [each["name"] for each in json.loads(capsys.readouterr().out)] == ["code", "files", "wiki"]


async def test_agents_cannot_change_servers(at_home: RunningHub) -> None:
    async with client(at_home) as http:
        agent = at_home.bearer
        for what in ("add", "set", "refresh", "remove"):
            answer = await http.post(
                f"/upstream/{what}", json={"json": {"a": {"command": "true"}}, "name": "a"}, headers=agent
            )
            assert answer.status_code == 403
            assert "for the person" in answer.text
        assert (await http.get("/upstream")).json() == {"servers": []}
    assert at_home.hub.upstream.all() == []
