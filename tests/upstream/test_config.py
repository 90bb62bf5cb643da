"""Which pasted configurations are accepted, and the errors for the others."""

from __future__ import annotations

from typing import Any

import pytest

from tabhub.errors import InvalidServerConfig, SetupError
from tabhub.upstream.config import read
from tabhub.upstream.secrets import expand

WEATHER = {"url": "http://localhost:3001/mcp"}


@pytest.mark.req("S001-config-01")
def test_a_configuration_maps_names_to_urls_and_headers() -> None:
    (server,) = read({"weather": {**WEATHER, "headers": {"Authorization": "Bearer sk-1"}}})
    assert (server.name, server.url) == ("weather", WEATHER["url"])
    assert server.headers == {"Authorization": "Bearer sk-1"}
    assert read({"weather": WEATHER})[0].headers == {}


def test_an_oauth_client_can_be_configured() -> None:
    oauth = {"clientId": "tabhub-1", "clientSecret": "${SECRET}", "scope": "read"}
    (server,) = read({"weather": {**WEATHER, "oauth": oauth}})
    assert server.oauth == oauth
    with pytest.raises(InvalidServerConfig, match=r"weather\.oauth\.clientId is missing"):
        read({"weather": {**WEATHER, "oauth": {"clientSecret": "hidden"}}})
    with pytest.raises(InvalidServerConfig, match=r"weather\.oauth\.client_id is not known") as caught:
        read({"weather": {**WEATHER, "oauth": {"client_id": "tabhub-1"}}})
    assert caught.value.hint == "The keys are clientId, clientSecret, scope."


@pytest.mark.req("S001-multiple-01")
def test_one_block_adds_several_servers() -> None:
    servers = read(
        {"weather": WEATHER, "database": {"url": "http://localhost:3002/mcp", "headers": {"X-Api-Key": "a"}}}
    )
    assert [server.name for server in servers] == ["weather", "database"]


@pytest.mark.req("S001-unwrap-01", "S001-unwrap-02")
@pytest.mark.parametrize("wrapper", ["mcpServers", "servers"])
def test_a_wrapper_is_unwrapped(wrapper: str) -> None:
    assert read({wrapper: {"weather": WEATHER}}) == read({"weather": WEATHER})
    assert read({"mcp": {wrapper: {"weather": WEATHER}}}) == read({"weather": WEATHER})
    assert read({wrapper: WEATHER})[0].name == wrapper  # a server with that name


def test_a_command_is_a_program_and_its_arguments() -> None:
    (server,) = read(
        {"files": {"command": "npx", "args": ["-y", "files; rm -rf /"], "env": {"A": "b"}, "type": "stdio"}}
    )
    assert (server.command, server.args, server.env) == ("npx", ("-y", "files; rm -rf /"), {"A": "b"})
    assert read({"joined": {"command": ["npx", "-y"]}})[0].args == ("-y",)


def test_keys_of_other_clients_are_understood() -> None:
    assert read({"a": {"serverUrl": "https://a.example/mcp", "alwaysAllow": []}})[0].url == "https://a.example/mcp"
    assert read({"a": {**WEATHER, "type": "http", "disabled": True}})[0].enabled is False


@pytest.mark.req("S001-config-03")
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "must be an object of servers"),
        ({}, "contains no server"),
        ({"url": "http://x/mcp"}, "The server has no name"),
        ({"": WEATHER}, "cannot be a server's name"),
        ({"a": {}}, "a.url is missing"),
        ({"a": {"headers": {}}}, "a.url is missing"),
        ({"a": 5}, "a: the entry must be an object"),
        ({"a": {"url": 5}}, "a.url must be a URL"),
        ({"a": {"url": "file:///etc/passwd"}}, "a.url must begin with http"),
        ({"a": {"url": "http://me:secret@x/mcp"}}, "a.url must not contain a user or password"),
        ({"a": {"url": "http://x/mcp", "headers": {"A": 5}}}, "a.headers.A must be a string, not a number"),
        ({"a": {"url": "http://x/mcp", "headers": {"A": "b\r\nC: d"}}}, "a.headers.A may contain printable ASCII only"),
        ({"a": {"url": "http://x/mcp", "headers": {"A b": "c"}}}, "is not the name of a header"),
        ({"a": {"url": "http://x/mcp", "command": "b"}}, "has both"),
        ({"a": {"url": "http://x/sse", "type": "sse"}}, "deprecated SSE transport"),
        ({"a": {"command": ""}}, "a.command must be the program"),
        ({"a": {"command": "b", "args": "c"}}, "a.args must be a list of strings"),
        ({"a": {"command": "b", "env": {"C": 1}}}, "a.env.C must be a string"),
        ({"browser": WEATHER}, "the hub uses that name itself"),
        ({"mcpServers": 5}, "`mcpServers` must be an object"),
    ],
)
def test_an_invalid_configuration_is_refused_with_the_field(given: Any, message: str) -> None:
    with pytest.raises(InvalidServerConfig) as refused:
        read(given)
    assert message in refused.value.text()
    assert "secret" not in refused.value.message.replace(message, "")


def test_references_to_the_environment_are_expanded() -> None:
    env = {"KEY": "k1"}
    assert expand("Bearer ${KEY}", "a", env) == expand("Bearer ${env:KEY}", "a", env) == "Bearer k1"
    assert expand("${NONE:-other}", "a", env) == "other"
    assert expand("$KEY {KEY}", "a", env) == "$KEY {KEY}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("${NONE}", "a.b needs the environment variable NONE"),
        ("${input:token}", "only the client it was written for"),
        ("${keyring:service}", "${keyring:SERVICE/USER}"),
        ("${1x}", "is not a valid reference"),
    ],
)
def test_an_unresolvable_reference_is_named_in_the_error(text: str, message: str) -> None:
    with pytest.raises(SetupError) as refused:
        expand(text, "a.b", {})
    assert message in refused.value.text()


def test_a_missing_keyring_command_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(SetupError, match="`keyring` is not installed"):
        expand("${keyring:tabhub/me}", "a.b", {})
