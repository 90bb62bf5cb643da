"""`tabhub setup`: the settings of each client, and merging them without losing anything."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tabhub.cli.setup import jsonc
from tabhub.store.home import Home
from tabhub.store.tokens import TokenStore, client_token, create, listed
from tests.cli.conftest import Run, announce
from tests.cli.fake_http_hub import EXTENSION_KEY, PERSON_KEY, FakeHub

TOKEN = "thb_" + "7" * 64
HEADERS = {"Authorization": f"Bearer {TOKEN}"}
URL = "http://127.0.0.1:9515/mcp"
HTTP: dict[str, dict[str, Any]] = {
    "claude-code": {"mcpServers": {"tabhub": {"type": "http", "url": URL, "headers": HEADERS}}},
    "cursor": {"mcpServers": {"tabhub": {"type": "http", "url": URL, "headers": HEADERS}}},
    "vscode": {"servers": {"tabhub": {"type": "http", "url": URL, "headers": HEADERS}}},
    "windsurf": {"mcpServers": {"tabhub": {"serverUrl": URL, "headers": HEADERS}}},
    "opencode": {"mcp": {"tabhub": {"type": "remote", "url": URL, "headers": HEADERS}}},
    "codex": {"mcp_servers": {"tabhub": {"url": URL, "http_headers": HEADERS}}},
}


def read(client: str, text: str) -> Any:
    return tomllib.loads(text) if client == "codex" else json.loads(text)


def token_of(home: Path, client: str) -> str:
    """The token that `tabhub setup` gave a client; it admits the client."""
    token = (home / "client-tokens" / client).read_text().strip()
    assert TokenStore(Home(home)).agent_of(token.encode()) == client
    return token


def plain(home: Path, client: str, text: str) -> str:
    """The text with TOKEN in place of the client's token; no key of the hub is in it."""
    assert EXTENSION_KEY not in text
    assert PERSON_KEY not in text
    return text.replace(token_of(home, client), TOKEN)


@pytest.mark.req("S002-clients-01", "S002-clients-02", "S002-clients-03", "S002-clients-04")
@pytest.mark.parametrize("client", HTTP)
def test_printed_settings_match_each_client(tabhub: Run, home: Path, client: str) -> None:
    done = tabhub("setup", client)
    assert done.returncode == 0
    assert read(client, plain(home, client, done.stdout)) == HTTP[client]
    assert "Add this to " in done.stderr
    command = f'claude mcp add --scope user --transport http tabhub {URL} --header "Authorization: Bearer {TOKEN}"'
    assert (command in plain(home, client, done.stderr)) == (client == "claude-code")
    assert "own token" in done.stderr
    assert f"Created the token '{client}'" in done.stderr
    again = tabhub("setup", client)
    assert (again.stdout, "Created" in again.stderr) == (done.stdout, False)


@pytest.mark.req("S002-gateway-05")
def test_claude_command_has_the_name_before_env_options(tabhub: Run, home: Path) -> None:
    output = tabhub("setup", "claude-code", "--stdio", "--project").stderr
    assert f"  claude mcp add --scope project tabhub --env TABHUB_HOME={home} -- /" in output


def test_the_gateway_has_its_own_address(tabhub: Run, home: Path) -> None:
    shown = json.loads(plain(home, "cursor", tabhub("setup", "cursor", "--gateway").stdout))
    assert shown["mcpServers"]["tabhub"] == {"type": "http", "url": f"{URL}/gateway", "headers": HEADERS}


def test_tool_selection_is_part_of_the_url_or_command(tabhub: Run) -> None:
    done = tabhub("setup", "claude-code", "--tools", "Core, network")
    assert json.loads(done.stdout)["mcpServers"]["tabhub"]["url"] == f"{URL}?tools=core,network"
    assert f"http tabhub '{URL}?tools=core,network' --header" in done.stderr
    assert "tabhub setup claude-code --tools core,network --write" in done.stderr
    entry = json.loads(tabhub("setup", "claude-desktop", "--tools", "core").stdout)["mcpServers"]["tabhub"]
    assert entry["args"][-6:] == ["start", "--stdio", "--as", "claude-desktop", "--tools", "core"]


def test_writing_with_and_without_a_selection_replaces_the_url(tabhub: Run, tmp_path: Path) -> None:
    def url(*words: str) -> str:
        assert tabhub("setup", "cursor", "--write", "--file", "mcp.json", *words).returncode == 0
        written: str = json.loads((tmp_path / "mcp.json").read_text())["mcpServers"]["tabhub"]["url"]
        return written

    assert [url("--tools", "core"), url()] == [f"{URL}?tools=core", URL]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--tools", "cores"], "Did you mean core"),
        (["--tools", " , "], "the selection is empty"),
        (["--tools", "core", "--gateway"], "exclude each other"),
    ],
)
def test_invalid_selection_is_rejected(tabhub: Run, words: list[str], expected: str) -> None:
    done = tabhub("setup", "cursor", *words)
    assert done.returncode == 2
    assert expected in done.stderr
    assert not done.stdout


@pytest.mark.parametrize("client", ["claude-desktop", "claude-code", "opencode", "codex"])
def test_the_command_is_a_full_path_and_holds_no_token(tabhub: Run, home: Path, client: str) -> None:
    done = tabhub("setup", client, "--stdio", "--gateway")
    shown = read(client, done.stdout)
    entry = next(iter(shown.values()))["tabhub"]
    words = entry["command"] if client == "opencode" else [entry["command"], *entry["args"]]
    assert Path(words[0]).is_absolute()
    assert words[-5:] == ["start", "--stdio", "--as", client, "--gateway"]
    assert entry["environment" if client == "opencode" else "env"] == {"TABHUB_HOME": str(home)}
    assert token_of(home, client) not in done.stdout + done.stderr


def test_port_is_the_running_hubs_or_else_from_the_settings(tabhub: Run, home: Path, hub: FakeHub) -> None:
    assert f"http://127.0.0.1:{hub.port}/mcp" in tabhub("setup", "cursor").stdout
    (home / "hub.json").unlink()
    (home / "config.json").write_text('{"port": 9700}')
    assert "http://127.0.0.1:9700/mcp" in tabhub("setup", "cursor").stdout


def test_a_token_of_that_name_from_elsewhere_is_replaced_with_a_warning(tabhub: Run, home: Path) -> None:
    before = create(Home(home), "cursor", 1.0)
    done = tabhub("setup", "cursor")
    assert "The token 'cursor' was replaced" in done.stderr
    assert before not in done.stdout
    assert token_of(home, "cursor") in done.stdout
    assert [each.name for each in listed(Home(home))] == ["cursor"]


@pytest.mark.parametrize("client", [*HTTP, "claude-desktop"])
def test_write_creates_a_private_file_and_is_idempotent(
    tabhub: Run, home: Path, env: dict[str, str], client: str
) -> None:
    done = tabhub("setup", client, "--write")
    assert done.returncode == 0, done.stderr
    path = Path(done.stdout.split("Added tabhub to ")[1].split(".\n")[0])
    assert path.is_relative_to(env["HOME"])
    assert path.stat().st_mode & 0o777 == 0o600
    if client in HTTP:
        assert read(client, plain(home, client, path.read_text())) == HTTP[client]
    again = tabhub("setup", client, "--write")
    assert "is already up to date" in again.stdout
    assert sorted(path.parent.iterdir()) == [path] or client == "claude-code"


def test_write_keeps_other_servers_comments_and_mode(tabhub: Run, home: Path, tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    before = '{\n  // of mine\n  "mcpServers": {\n    "other": {"command": "x"}, // keep\n  },\n  "theme": "dark"\n}'
    path.write_text(before)
    path.chmod(0o640)
    done = tabhub("setup", "cursor", "--write", "--file", "mcp.json")
    assert done.returncode == 0
    after = path.read_text()
    assert "// of mine" in after
    assert '"other": {"command": "x"}, // keep' in after
    assert '"theme": "dark"' in after
    assert token_of(home, "cursor") in after
    assert path.stat().st_mode & 0o777 == 0o640
    backup = next(tmp_path.glob("mcp.json.backup-*"))
    assert backup.read_text() == before
    assert backup.stat().st_mode & 0o777 == 0o640
    assert str(backup) in done.stdout
    assert "chmod 600" in done.stderr  # others could read the token


def test_write_keeps_what_the_person_added_to_our_entry(tabhub: Run, home: Path, tmp_path: Path) -> None:
    entry = {"command": "old", "args": [], "disabled": True, "headers": {"X-Mine": "1"}}
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {"tabhub": entry}}))
    assert "Updated tabhub" in tabhub("setup", "cursor", "--write", "--file", "mcp.json").stdout
    assert json.loads(plain(home, "cursor", path.read_text()))["mcpServers"]["tabhub"] == {
        "disabled": True,
        "type": "http",
        "url": URL,
        "headers": {"X-Mine": "1", **HEADERS},
    }


def test_write_follows_and_keeps_a_symlink(tabhub: Run, home: Path, tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    (tmp_path / "dotfiles" / "mcp.json").write_text("{}")
    (tmp_path / "mcp.json").symlink_to("dotfiles/mcp.json")
    assert tabhub("setup", "cursor", "--write", "--file", "mcp.json").returncode == 0
    assert (tmp_path / "mcp.json").is_symlink()
    assert token_of(home, "cursor") in (tmp_path / "dotfiles" / "mcp.json").read_text()


@pytest.mark.parametrize(
    ("client", "content"),
    [
        ("cursor", b'{"mcpServers": {'),
        ("cursor", b"[]"),
        ("cursor", b'{"mcpServers": []}'),
        ("cursor", b'{"mcpServers": {}, "mcpServers": {"a": 1}}'),
        ("cursor", b'{"a": "\xff"}'),
        ("codex", b"model = "),
        ("codex", b"mcp_servers = { tabhub = { url = 'x' } }"),
    ],
)
def test_unparsable_file_is_not_changed(tabhub: Run, tmp_path: Path, client: str, content: bytes) -> None:
    path = tmp_path / "settings"
    path.write_bytes(content)
    done = tabhub("setup", client, "--write", "--file", "settings")
    assert done.returncode == 1
    assert f"{path} was not changed: " in done.stderr
    assert "without --write" in done.stderr
    assert path.read_bytes() == content
    assert not list(tmp_path.glob("settings.*"))


def test_write_into_codex_keeps_the_rest_of_the_file(tabhub: Run, tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    before = '# mine\nmodel = "o"\n\n[mcp_servers.other]\ncommand = "x"  # keep\n'
    path.write_text(before)
    assert tabhub("setup", "codex", "--write", "--file", "config.toml").returncode == 0
    assert path.read_text().startswith(before)
    tabhub("setup", "codex", "--write", "--stdio", "--file", "config.toml")
    shown = tomllib.loads(path.read_text())["mcp_servers"]
    assert shown["other"] == {"command": "x"}
    assert set(shown["tabhub"]) == {"command", "args", "env"}
    assert path.read_text().startswith(before)


def test_configured_settings_folder_of_the_client_is_used(tabhub: Run, tmp_path: Path) -> None:
    assert (
        f"Add this to {tmp_path}/.claude.json" in tabhub("setup", "claude-code", CLAUDE_CONFIG_DIR=str(tmp_path)).stderr
    )
    assert f"Add this to {tmp_path}/config.toml" in tabhub("setup", "codex", CODEX_HOME=str(tmp_path)).stderr


def test_a_project_file_is_written_on_request_with_a_warning(tabhub: Run, home: Path, tmp_path: Path) -> None:
    done = tabhub("setup", "vscode", "--project", "--write")
    written = (tmp_path / ".vscode" / "mcp.json").read_text()
    assert json.loads(plain(home, "vscode", written)) == HTTP["vscode"]
    assert "out of version control" in done.stderr
    assert tabhub("setup", "windsurf", "--project").returncode == 2


@pytest.mark.parametrize("client", ["cursor", "codex", "claude-desktop"])
def test_remove_takes_the_entry_out_and_revokes_the_token(tabhub: Run, home: Path, tmp_path: Path, client: str) -> None:
    path = tmp_path / "settings"
    before = (
        '# mine\nmodel = "o"\n'
        if client == "codex"
        else '{\n  // mine\n  "mcpServers": {"other": {"command": "x"}}\n}\n'
    )
    path.write_text(before)
    assert tabhub("setup", client, "--write", "--file", "settings").returncode == 0
    token = token_of(home, client)
    done = tabhub("setup", client, "--remove", "--file", "settings")
    assert done.returncode == 0, done.stderr
    assert "Revoked the token" in done.stdout
    assert TokenStore(Home(home)).agent_of(token.encode()) is None
    assert not (home / "client-tokens" / client).exists()
    assert token not in path.read_text()
    if client == "codex":
        assert tomllib.loads(path.read_text()) == {"model": "o"}
        assert "# mine" in path.read_text()
    else:
        assert jsonc.parse(path.read_text()) == {"mcpServers": {"other": {"command": "x"}}}
        assert "// mine" in path.read_text()
    again = tabhub("setup", client, "--remove", "--file", "settings")
    assert again.returncode == 2
    assert "has no entry tabhub" in again.stderr


def test_remove_warns_of_another_file_with_the_revoked_token(tabhub: Run, tmp_path: Path) -> None:
    for words in ([], ["--project"]):
        assert tabhub("setup", "cursor", "--write", *words).returncode == 0
    done = tabhub("setup", "cursor", "--remove")
    assert f"{tmp_path}/.cursor/mcp.json still has the entry tabhub" in done.stderr


def test_start_shows_all_blocks_without_tokens(
    home: Path, env: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from tabhub.cli.setup.command import show_all

    announce(home, 9515)
    client_token(Home(home), "cursor", 1.0)
    for key in ("HOME", "TABHUB_HOME"):
        monkeypatch.setenv(key, env[key])
    show_all()
    shown = capsys.readouterr().out
    assert not {EXTENSION_KEY, PERSON_KEY, token_of(home, "cursor")} & set(re.findall(r"[a-z_0-9]{64,}", shown))
    assert "Bearer <the client's token>" in shown
    assert all(title in shown for title in ("Claude Code", "Claude Desktop", "Cursor", "VS Code", "Codex"))
