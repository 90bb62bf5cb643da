"""Reading packages: the published form works; faults are reported and affect nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tabhub.errors import PluginError
from tabhub.plugins.manifest import read_package
from tabhub.plugins.model import agents_name, check_name, name_of_package, packages_of
from tests.plugins import publishing
from tests.plugins.packages import folder, tool


def test_the_parts_of_a_package_become_a_plugin(tmp_path: Path) -> None:
    made = folder(
        tmp_path,
        "jira",
        "0.0.89",
        package="@opentabs-dev/opentabs-plugin-jira",
        urlPatterns=["*://*.atlassian.net/*"],
        excludePatterns=["*://*.atlassian.net/wiki/*"],
        homepage="https://www.atlassian.com",
        configSchema={"instanceUrl": {"type": "url", "label": "Jira URL", "required": False}},
        tools=[tool("list_issues", summary="Issues", group="Issues"), tool("get-issue")],
        extra={"iconSvg": "<svg><path d='M0 0'/></svg>"},
    )
    plugin = read_package(made, "npm")
    assert (plugin.name, plugin.display_name, plugin.version, plugin.source) == ("jira", "Jira", "0.0.89", "npm")
    assert plugin.url_patterns == ("*://*.atlassian.net/*",)
    assert plugin.exclude_patterns == ("*://*.atlassian.net/wiki/*",)
    assert [each.name for each in plugin.tools] == ["list_issues", "get-issue"]
    assert plugin.tools[0].group == "Issues"
    assert plugin.fields[0].schema() == {"type": "url", "label": "Jira URL"}
    assert plugin.icon_svg == "<svg><path d='M0 0'/></svg>"
    assert plugin.sdk_version == "0.0.115"
    assert plugin.problems == ()


def test_patterns_of_local_hosts_are_accepted_with_a_warning(tmp_path: Path) -> None:
    local = ["http://localhost:3000/*", "http://127.0.0.1/*", "https://*.nas.local/*", "http://intranet/*"]
    plugin = read_package(folder(tmp_path, urlPatterns=["https://a.example/*", *local, local[0]]))
    assert plugin.problems == (
        "it works on localhost, 127.0.0.1, nas.local, intranet: on whatever runs there, on this machine or in its "
        "network",
    )


@pytest.mark.parametrize("homepage", ["http://[::1", "https://a:99999/", "javascript:1", "nowhere", 5])
def test_invalid_homepage_is_dropped_and_reported(tmp_path: Path, homepage: Any) -> None:
    plugin = read_package(folder(tmp_path, homepage=homepage))
    assert plugin.homepage is None
    assert plugin.problems == ("the homepage is ignored: it is not a web URL",)


def test_published_package_is_read_completely(tmp_path: Path) -> None:
    for path, text in publishing.published().items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    plugin = read_package(tmp_path, "npm")
    assert (plugin.name, plugin.package) == ("counter", publishing.PACKAGE)
    assert [problem.partition(":")[0] for problem in plugin.problems] == ["it works on 127.0.0.1"]
    assert [each.name for each in plugin.tools] == ["read_badge", "count_up", "sell_out"]
    assert plugin.pre_script is not None
    assert "X-Badge" in plugin.pre_script


def test_pre_script_is_read_only_if_declared(tmp_path: Path) -> None:
    declared = {"preScriptFile": "../../elsewhere.js"}
    assert read_package(folder(tmp_path / "a", extra=declared, pre_script="1;")).pre_script == "1;"
    assert read_package(folder(tmp_path / "b", pre_script="1;")).pre_script is None
    missing = read_package(folder(tmp_path / "c", extra=declared))
    assert missing.pre_script is None
    assert missing.tools
    (problem,) = missing.problems
    assert "the script that runs before its pages is left out" in problem
    assert "dist/pre-script.iife.js is missing" in problem


def test_tools_may_be_a_bare_list_as_older_builds_write_them(tmp_path: Path) -> None:
    made = folder(tmp_path)
    (made / "dist/tools.json").write_text(json.dumps([tool("read")]))
    assert [each.name for each in read_package(made).tools] == ["read"]


@pytest.mark.parametrize(
    ("package", "name"),
    [
        ("opentabs-plugin-slack", "slack"),
        ("@opentabs-dev/opentabs-plugin-slack", "slack"),
        ("@acme/opentabs-plugin-slack", "acme-slack"),
        ("tabhub-plugin-notes", "notes"),
    ],
)
def test_names_come_from_packages(package: str, name: str) -> None:
    assert name_of_package(package) == name


@pytest.mark.parametrize(
    "package",
    [
        "@acme/left-pad",
        "opentabs-plugin-",
        "opentabs-plugin-../../etc",
        "opentabs-plugin-..",
        "@../opentabs-plugin-x",
        "opentabs-plugin-a/b",
        "opentabs-plugin-a\\b",
        "opentabs-plugin-a\r\nHost: evil",
        "opentabs-plugin-a b",
        "opentabs-plugin-Ä",
        "opentabs-plugin-a_b",
        "opentabs-plugin-%2e%2e",
        "opentabs-plugin-" + "a" * 300,
        *(
            f"opentabs-plugin-{name}"
            for name in ("browser", "extension", "plugin", "tabhub", "mcp", "website", "default")
        ),
    ],
)
def test_tricks_and_reserved_names_are_refused(package: str, tmp_path: Path) -> None:
    with pytest.raises(PluginError):
        name_of_package(package)
    with pytest.raises(PluginError):
        packages_of(package)
    with pytest.raises(PluginError):
        read_package(folder(tmp_path, package=package))


def test_a_short_name_means_the_packages_that_may_have_it() -> None:
    assert packages_of("slack")[0] == "@opentabs-dev/opentabs-plugin-slack"
    assert packages_of("@acme/opentabs-plugin-x") == ("@acme/opentabs-plugin-x",)
    with pytest.raises(PluginError):
        check_name("-a")


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"urlPatterns": []}, "at least one site"),
        ({"urlPatterns": ["<all_urls>"]}, "every site"),
        ({"urlPatterns": ["*://*.com/*"]}, "top-level domain"),
        ({"urlPatterns": ["*://*.co.uk/*"]}, "many owners below co.uk"),
        ({"urlPatterns": ["https://a.example/*", "https://*.github.io/*"]}, "many owners below github.io"),
        ({"urlPatterns": "https://a.example/*"}, "must be a list"),
        ({"excludePatterns": ["x"]}, "not a match pattern"),
        ({"displayName": ""}, "displayName"),
        ({"configSchema": {"a": {"type": "password", "label": "A"}}}, "must be one of url, string"),
        ({"configSchema": {"a": {"type": "select", "label": "A"}}}, "without options"),
        ({"configSchema": {"__proto__": {"type": "string", "label": "A"}}}, "plain name"),
        ({"tools": "none"}, "must be a list"),
    ],
)
def test_invalid_package_is_rejected_with_the_reason(more: dict[str, Any], reason: str, tmp_path: Path) -> None:
    with pytest.raises(PluginError, match=reason):
        read_package(folder(tmp_path, **more))


@pytest.mark.parametrize("missing", ["package.json", "dist/tools.json", "dist/adapter.iife.js"])
def test_a_missing_file_is_named(missing: str, tmp_path: Path) -> None:
    made = folder(tmp_path)
    (made / missing).unlink()
    with pytest.raises(PluginError, match=missing.replace(".", r"\.")):
        read_package(made)
    (made / missing).write_bytes(b"\xff\xfe{")
    if missing.endswith(".json"):
        with pytest.raises(PluginError, match="not valid JSON"):
            read_package(made)


@pytest.mark.req("B17")
@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"$ref": "https://evil.example/schema.json"}}},
        {"type": "object", "allOf": [{"$ref": "#"}]},
        {"type": "object", "properties": {"a": {"type": "nonsense"}}},
        {"type": "string"},
        "none",
    ],
)
def test_tool_with_an_invalid_schema_is_dropped_and_others_stay(schema: Any, tmp_path: Path) -> None:
    plugin = read_package(folder(tmp_path, tools=[tool("bad", input_schema=schema), tool("good")]))
    assert [each.name for each in plugin.tools] == ["good"]
    assert plugin.problems[0].startswith("the tool bad is left out: ")


def test_tools_with_invalid_or_duplicate_names_are_dropped(tmp_path: Path) -> None:
    tools = [tool("a"), tool("a"), tool("b c"), tool("../x"), tool("d\r\ne"), tool(""), tool("e", description=" "), 7]
    plugin = read_package(folder(tmp_path, tools=tools))
    assert [each.name for each in plugin.tools] == ["a"]
    assert len(plugin.problems) == 7
    assert all(problem.isprintable() for problem in plugin.problems)


def test_icon_with_a_script_is_dropped(tmp_path: Path) -> None:
    plugin = read_package(folder(tmp_path, iconSvg="<svg><script>alert(1)</script></svg>"))
    assert plugin.icon_svg is None
    assert plugin.problems == ("the icon is left out: it contains <script>",)


def test_invisible_characters_are_written_out(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"b": {"type": "string", "description": "A\u2060 b."}}}
    hidden = tool("a", description="Does it.\u200b\u202e", displayName="T\n", input_schema=schema)
    made = folder(tmp_path, displayName="Ja\u202ene\nX", tools=[hidden])
    plugin = read_package(made)
    assert plugin.display_name == "Ja\\u{202E}ne X"
    assert plugin.tools[0].description == "Does it.\\u{200B}\\u{202E}"
    assert plugin.tools[0].input_schema["properties"]["b"]["description"] == "A\\u{2060} b."
    assert plugin.tools[0].title == "T"


def test_names_for_agents_are_short_and_unique() -> None:
    assert agents_name("my-app", "list_issues") == "my-app_list_issues"
    long = [agents_name("my-app", f"{'x' * 80}{n}") for n in range(3)]
    assert all(len(name) == 64 for name in long)
    assert len(set(long)) == 3


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ({"sendTo": ["http://api.example"]}, "must be an exact origin"),
        ({"sendTo": ["https://api.example/v1"]}, "must be an exact origin"),
        ({"sendTo": ["https://*.example"]}, "must be an exact origin"),
        ({"sendTo": "https://api.example"}, "must be a list"),
        ({"sendTo": ["https://api.example"], "sendIn": ["a b"]}, "neither the name of a header"),
        ({"sendTo": ["https://api.example"], "secret": False}, "for secret settings"),
    ],
)
def test_where_a_secret_may_be_sent_is_exact(setting: dict[str, Any], reason: str, tmp_path: Path) -> None:
    schema = {"token": {"type": "string", "secret": True, **setting}}
    with pytest.raises(PluginError, match=reason):
        read_package(folder(tmp_path, configSchema=schema))


def test_a_secret_is_sent_in_the_authorization_header_unless_declared_otherwise(tmp_path: Path) -> None:
    send_to = ["https://api.example:8443", "http://127.0.0.1:9000", "site"]
    schema = {"token": {"type": "string", "secret": True, "sendTo": send_to}, "other": {"type": "string"}}
    token, other = read_package(folder(tmp_path, configSchema=schema)).fields
    assert (token.send_to, token.send_in) == (tuple(send_to), ("authorization",))
    assert (other.send_to, other.send_in) == ((), ())
    assert token.schema()["sendTo"] == send_to
