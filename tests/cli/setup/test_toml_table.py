"""Editing one table of a TOML text in place."""

from __future__ import annotations

import tomllib

import pytest

from tabhub.cli.setup.toml_table import remove_table, set_table
from tabhub.errors import TomlError

VALUES = {"url": "http://x/", "http_headers": {"Authorization": 'B "q" \\'}, "n": 1.5, "on": True, "l": ["a"]}


@pytest.mark.parametrize(
    "before",
    ["", "a = 1", "a = 1\n", '# c\n[mcp_servers.other]\ncommand = "x"\n', "[z]\n\n[[list]]\nx = 1\n", "a = 1\r\n"],
)
def test_a_table_is_added_at_the_end(before: str) -> None:
    after = set_table(before, "mcp_servers", "tabhub", VALUES)
    assert after.startswith(before)
    assert tomllib.loads(after)["mcp_servers"]["tabhub"] == VALUES


def test_table_is_replaced_in_place_and_comments_stay() -> None:
    before = (
        "model = 1\n\n[mcp_servers.tabhub] # ours\n# note\nurl = 'old'\n[mcp_servers.tabhub.http_headers]\nA = 'b'\n"
        "\n# about other\n[mcp_servers.other]\ncommand = 'x' # keep\n"
    )
    assert set_table(before, "mcp_servers", "tabhub", {"url": "new"}) == (
        'model = 1\n\n[mcp_servers.tabhub] # ours\nurl = "new"\n# note\n'
        "\n# about other\n[mcp_servers.other]\ncommand = 'x' # keep\n"
    )


@pytest.mark.parametrize(
    "text",
    [
        "a = ",
        "mcp_servers = 1",
        "mcp_servers = { tabhub = { url = 'x' } }",
        "mcp_servers = { other = {} }",
        "mcp_servers.tabhub.url = 'x'",
        "[mcp_servers.tabhub]\nx = '''\n[fake]\n'''\n",
    ],
)
def test_unsafe_changes_are_rejected(text: str) -> None:
    with pytest.raises(TomlError):
        set_table(text, "mcp_servers", "tabhub", {"url": "new"})


def test_a_table_is_removed_and_comments_stay() -> None:
    before = (
        "model = 1\n\n[mcp_servers.tabhub] # ours\n# note\nurl = 'old'\n[mcp_servers.tabhub.http_headers]\nA = 'b'\n"
        "\n# about other\n[mcp_servers.other]\ncommand = 'x' # keep\n"
    )
    assert remove_table(before, "mcp_servers", "tabhub") == (
        "model = 1\n\n# note\n\n# about other\n[mcp_servers.other]\ncommand = 'x' # keep\n"
    )
    assert tomllib.loads(remove_table(set_table("a = 1\n", "s", "t", VALUES), "s", "t")) == {"a": 1}


@pytest.mark.parametrize("text", ["s = { t = { url = 'x' } }", "s.t.url = 'x'", "[s.t]\nx = '''\n[fake]\n'''\n"])
def test_unsafe_removals_are_rejected(text: str) -> None:
    with pytest.raises(TomlError):
        remove_table(text, "s", "t")
