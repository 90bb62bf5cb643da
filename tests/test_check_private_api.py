"""The check for private API of packages, on snippets, on small trees and on the real one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import check_private_api
from tests.check_private_api import check, check_source, main

REJECTED = {
    "import h11._state": "h11._state",
    "import h11._state as state": "h11._state",
    "from h11._connection import Connection": "h11._connection.Connection",
    "from websockets import _private": "websockets._private",
    "def f():\n    from rich._wrap import divide_line": "rich._wrap.divide_line",
    "import websockets\nwebsockets._speed()": "websockets._speed",
    "import mcp.client\nmcp.client._transport": "mcp.client._transport",
    "import jwt as tokens\ntokens.api_jwt._jwt_global_obj": "jwt.api_jwt._jwt_global_obj",
    "from rich.console import Console\nConsole._detect()": "rich.console.Console._detect",
    'import orjson\ngetattr(orjson, "_loads")': "orjson._loads",
    'import orjson\nsetattr(orjson, "_loads", None)': "orjson._loads",
    'import importlib\nimportlib.import_module("h11._events")': "h11._events",
    "from uvicorn.protocols.http.httptools_impl import STATUS_LINE": "uvicorn.protocols",
    "import uvicorn.server": "uvicorn.server",
    "from uvicorn import server": "uvicorn.server",
    "import uvicorn\nuvicorn.server.ServerState()": "uvicorn.server",
    "from websockets.speedups import apply_mask": "websockets.speedups",
    "def broken(:": "",
}
ACCEPTED = [
    "import uvicorn\nuvicorn.Server(uvicorn.Config(app))",
    "from websockets.server import ServerProtocol",
    "from websockets.http11 import Request",
    "import orjson\norjson.__version__",
    "import os, sys\nos._exit(1)\nsys._getframe(1)",
    "from tabhub.calls.engine import _private",
    "from . import _sibling",
    "from __future__ import annotations",
    "class A:\n    def f(self):\n        return self._mine",
    "import orjson\ngetattr(orjson, name)",
]


@pytest.mark.parametrize(("source", "rule"), REJECTED.items(), ids=str)
def test_private_and_undocumented_api_is_rejected(source: str, rule: str) -> None:
    (finding,) = check_source(source, "src/one.py")
    assert finding.rule == rule
    assert str(finding).startswith(f"src/one.py:{finding.line}: ")


@pytest.mark.parametrize("source", ACCEPTED)
def test_documented_api_the_standard_library_and_own_code_are_accepted(source: str) -> None:
    assert check_source(source, "src/one.py") == []


def test_the_message_names_the_module_and_what_to_use_instead() -> None:
    (finding,) = check_source("\nimport uvicorn.config", "src/one.py")
    assert str(finding) == "src/one.py:2: uvicorn.config is undocumented: import Config from uvicorn"


@pytest.mark.parametrize("folder", ["src/tabhub/wire", "tests/harness", "bench", "scripts"])
def test_every_folder_with_code_is_checked(
    tmp_path: Path, folder: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check_private_api, "EXCEPTIONS", set())
    (tmp_path / folder).mkdir(parents=True)
    assert main(["--root", str(tmp_path)]) == 0
    (tmp_path / folder / "one.py").write_text("import h11._state\n")
    assert main(["--root", str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"{folder}/one.py:1: h11._state is private; use documented API of the package\n"


def test_an_exception_holds_for_its_file_and_module_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_private_api, "EXCEPTIONS", {("src/one.py", "uvicorn.protocols")})
    (tmp_path / "src").mkdir()
    (tmp_path / "src/one.py").write_text("import uvicorn.protocols\nimport uvicorn.config\n")
    (tmp_path / "src/two.py").write_text("import uvicorn.protocols\n")
    assert [(f.file, f.rule) for f in check(tmp_path)] == [
        ("src/one.py", "uvicorn.config"),
        ("src/two.py", "uvicorn.protocols"),
    ]


def test_an_exception_that_is_no_longer_needed_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_private_api, "EXCEPTIONS", {("src/one.py", "uvicorn.protocols")})
    (finding,) = check(tmp_path)
    assert "no longer uses uvicorn.protocols" in str(finding)


def test_the_project_uses_documented_api_only() -> None:
    assert check() == []
