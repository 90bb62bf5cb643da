"""`tabhub tool`: what a person or a script gets for each answer of the hub."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.cli.fake_http_hub import PERSON_KEY, FakeHub, ReceivedRequest, Reply

CALL = "POST /tools/browser_list_tabs/call"
TOOLS: list[dict[str, Any]] = [
    {
        "name": "browser_open_tab",
        "description": "Open a tab.\nMore.",
        "inputSchema": {"type": "object"},
        "plugin": "browser",
    },
    {"name": "slack_send", "description": "Send it", "inputSchema": {"type": "object"}, "plugin": "slack"},
]


def text(value: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": value}]}


@pytest.mark.req("S002-cli-04", "S002-modes-03")
def test_call_prints_the_text_of_the_result(hub: FakeHub, tabhub: Run) -> None:
    hub.answer(CALL, text("two tabs"))
    done = tabhub("tool", "call", "browser_list_tabs", '{"a": 1}')
    assert (done.returncode, done.stdout, done.stderr) == (0, "two tabs\n", "")
    request = hub.requests[-1]
    assert request.json == {"arguments": {"a": 1}}
    assert request.headers["authorization"] == f"Bearer {PERSON_KEY}"
    assert request.headers["tabhub-session"] == "cli"
    assert request.headers["tabhub-client"] == "cli"


def test_call_takes_arguments_from_stdin_and_file_and_a_tab(hub: FakeHub, tabhub: Run, tmp_path: Path) -> None:
    hub.answer(CALL, text("ok"))
    tabhub("tool", "call", "browser_list_tabs", "-", "--tab-id", "7", input='{"b": "ü"}', TABHUB_SESSION="two")
    assert hub.requests[-1].json == {"arguments": {"b": "ü", "tabId": 7}}
    assert hub.requests[-1].headers["tabhub-session"] == "two"
    (tmp_path / "args.json").write_text('{"c": 3}')
    tabhub("tool", "call", "browser_list_tabs", "@args.json")
    assert hub.requests[-1].json == {"arguments": {"c": 3}}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("{a: 1}", "not valid JSON"),
        ("[1]", "must be a JSON object, not an array"),
        ("", "not valid JSON"),
        ('{"a": NaN}', "NaN is not a JSON number"),
        ("[" * 100_000, "cannot be used"),
        ("@nowhere.json", "Cannot read nowhere.json"),
    ],
)
def test_bad_arguments_are_refused_before_anything_is_sent(
    hub: FakeHub, tabhub: Run, given: str, expected: str
) -> None:
    done = tabhub("tool", "call", "browser_list_tabs", given)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert expected in done.stderr
    assert hub.requests == []


def test_arguments_that_are_not_utf8_are_refused(hub: FakeHub, tabhub: Run) -> None:
    done = tabhub("tool", "call", "browser_list_tabs", "-", input=b'{"a": "\xff"}')
    assert (done.returncode, done.stdout) == (2, "")
    assert "not UTF-8" in done.stderr


def test_position_of_invalid_json_is_shown(hub: FakeHub, tabhub: Run) -> None:
    done = tabhub("tool", "call", "browser_list_tabs", '{"url": x}')
    rows = done.stderr.splitlines()
    assert rows[1] == '  {"url": x}'
    assert rows[2].index("^") == rows[1].index("x")


def test_failed_call_exits_with_1_and_explains_on_stderr(hub: FakeHub, tabhub: Run) -> None:
    hub.answer(CALL, {**text("No such tab."), "isError": True}, 422)
    done = tabhub("tool", "call", "browser_list_tabs")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: No such tab.\n"
    raw = tabhub("tool", "call", "browser_list_tabs", "--json")
    assert raw.returncode == 1
    assert json.loads(raw.stdout)["isError"] is True


@pytest.mark.parametrize(
    ("status", "headers", "body", "expected"),
    [
        (404, {}, {"error": {"message": "No tool is called x.", "hint": "Did you mean y?"}}, "hint: Did you mean y?"),
        (401, {}, {"error": {"message": "no"}}, "does not accept the key"),
        (429, {"Retry_After": "7"}, {}, "Try again in 7 s"),
        (503, {}, {"error": {"message": "No browser is connected."}}, "No browser is connected"),
        (500, {}, {}, "status 500"),
    ],
)
def test_each_error_status_has_a_hint(
    hub: FakeHub, tabhub: Run, status: int, headers: dict[str, str], body: dict[str, Any], expected: str
) -> None:
    hub.answer(CALL, body, status, **headers)
    done = tabhub("tool", "call", "browser_list_tabs")
    assert done.returncode == 1
    assert expected in done.stderr
    assert "hint: " in done.stderr
    assert PERSON_KEY not in done.stdout + done.stderr


@pytest.mark.req("S002-cli-05")
def test_call_without_a_hub_explains_how_to_start_one(home: Path, tabhub: Run) -> None:
    done = tabhub("tool", "call", "browser_list_tabs", TABHUB_PORT="1")
    assert done.returncode == 2
    assert done.stderr == (
        "error: The hub is not running on 127.0.0.1:1.\nhint: Start it with: tabhub start --background\n"
    )


@pytest.mark.parametrize(
    "garbage",
    [
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n<h1>",
        b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"x" * 100_000,
    ],
)
def test_response_of_another_server_is_reported_as_not_a_hub(hub: FakeHub, tabhub: Run, garbage: bytes) -> None:
    hub.on(CALL, lambda _asked, reply: reply.raw(garbage))
    done = tabhub("tool", "call", "browser_list_tabs")
    assert done.returncode == 1
    assert "is not a Tabhub hub" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "part", [b"", b"HTTP/1.1 200 OK\r\ncontent-le", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{"]
)
def test_truncated_response_is_reported(hub: FakeHub, tabhub: Run, part: bytes) -> None:
    hub.on(CALL, lambda _asked, reply: reply.raw(part))
    done = tabhub("tool", "call", "browser_list_tabs")
    assert done.returncode == 1
    assert "closed the connection before it answered" in done.stderr


def test_hub_that_never_answers_times_out(hub: FakeHub, tabhub: Run) -> None:
    hub.on(CALL, lambda _asked, reply: reply.wait_closed())
    done = tabhub("tool", "call", "browser_list_tabs", "--timeout", "0.3")
    assert done.returncode == 1
    assert "did not answer within 0.3 s" in done.stderr


def test_chunked_answers_and_single_bytes_are_read(hub: FakeHub, tabhub: Run) -> None:
    body = json.dumps(text("whole")).encode()
    chunks = b"".join(b"%x;ext=1\r\n%s\r\n" % (len(part), part) for part in (body[:9], body[9:])) + b"0\r\nt: 1\r\n\r\n"
    data = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks

    def byte_by_byte(_asked: ReceivedRequest, reply: Reply) -> None:
        for at in range(len(data)):
            reply.raw(data[at : at + 1])

    hub.on(CALL, byte_by_byte)
    assert tabhub("tool", "call", "browser_list_tabs").stdout == "whole\n"


def test_an_image_becomes_a_private_file_whose_path_is_printed(hub: FakeHub, tabhub: Run, tmp_path: Path) -> None:
    data = base64.b64encode(b"\x89PNG image").decode()
    hub.answer(CALL, {"content": [{"type": "image", "data": data, "mimeType": "image/png"}]})
    done = tabhub("tool", "call", "browser_list_tabs", TMPDIR=str(tmp_path))
    path = Path(done.stdout.strip())
    assert path.suffix == ".png"
    assert path.read_bytes() == b"\x89PNG image"
    assert path.stat().st_mode & 0o777 == 0o600
    raw = tabhub("tool", "call", "browser_list_tabs", "--json")
    assert json.loads(raw.stdout)["content"][0]["data"] == data


def test_structured_content_is_printed_if_there_is_no_text(hub: FakeHub, tabhub: Run) -> None:
    hub.answer(CALL, {"content": [], "structuredContent": {"tabs": [1]}})
    assert json.loads(tabhub("tool", "call", "browser_list_tabs").stdout) == {"tabs": [1]}


@pytest.mark.req("S002-cli-01", "S002-cli-02")
def test_list_shows_tools_by_plugin_and_json_shows_all(hub: FakeHub, tabhub: Run) -> None:
    hub.answer("GET /tools", TOOLS)
    done = tabhub("tool", "list")
    assert "browser (1 tool)\n  browser_open_tab  Open a tab.\n" in done.stdout
    assert "slack (1 tool)" in done.stdout
    assert json.loads(tabhub("tool", "list", "--json").stdout) == TOOLS
    tabhub("tool", "list", "--plugin", "a b&c")
    assert hub.requests[-1].path == "/tools?plugin=a%20b%26c"


def test_list_of_an_unknown_plugin_suggests_the_nearest(hub: FakeHub, tabhub: Run) -> None:
    hub.on("GET /tools", lambda request, reply: reply.json([] if "plugin=" in request.path else TOOLS))
    done = tabhub("tool", "list", "--plugin", "brwser")
    assert (done.returncode, done.stdout) == (1, "")
    assert "Did you mean 'browser'?" in done.stderr


def test_empty_list_explains_what_to_do(hub: FakeHub, tabhub: Run) -> None:
    hub.answer("GET /tools", [])
    assert "tabhub extension open" in tabhub("tool", "list").stdout
    hub.answer("GET /tools", {"not": "a list"})
    assert "not in the expected form" in tabhub("tool", "list").stderr


@pytest.mark.req("S002-cli-03")
def test_schema_prints_json_schema_and_offers_the_nearest_name(hub: FakeHub, tabhub: Run) -> None:
    hub.answer("GET /tools", TOOLS)
    assert json.loads(tabhub("tool", "schema", "slack_send").stdout) == {"type": "object"}
    done = tabhub("tool", "schema", "slack_snd")
    assert done.returncode == 1
    assert "Did you mean 'slack_send'?" in done.stderr


def test_tool_name_cannot_escape_its_url_path(hub: FakeHub, tabhub: Run) -> None:
    tabhub("tool", "call", "../x y\r\nEvil: 1")
    assert hub.requests[-1].path == "/tools/..%2Fx%20y%0D%0AEvil%3A%201/call"


def test_session_name_cannot_inject_a_header(hub: FakeHub, tabhub: Run) -> None:
    done = tabhub("tool", "call", "browser_list_tabs", TABHUB_SESSION="a\r\nEvil: 1")
    assert done.returncode == 2
    assert hub.requests == []


def test_tool_call_imports_no_heavy_modules(hub: FakeHub, env: dict[str, str]) -> None:
    hub.answer(CALL, text("ok"))
    code = (
        "import sys; from tabhub.cli import main; main(['tool', 'call', 'browser_list_tabs', '{}']);"
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True)
    heavy = {"asyncio", "http.client", "typing", "dataclasses", "pathlib", "rich", "orjson", "msgspec", "subprocess"}
    heavy |= {"urllib.parse", "tempfile", "tabhub.limits", "tabhub.errors", "difflib", "base64"}
    assert not heavy & set(done.stderr.split())
