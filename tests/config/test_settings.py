"""Settings: every key parsed, invalid values refused, unknown keys reported."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabhub.config.permissions import PluginPermission
from tabhub.config.settings import Config, convert, locate
from tabhub.errors import SetupError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def test_an_empty_file_gives_the_defaults() -> None:
    config = Config.parse({})
    assert config == Config()
    assert (config.port, config.launch, config.permissions.default) == (9515, "never", None)
    assert not config.audit_arguments
    assert not config.skip_permissions


def test_every_key_of_the_file_is_read() -> None:
    config = Config.parse(
        {
            "port": 9600,
            "launch": "always",
            "headless": "never",
            "browser": "/opt/chrome",
            "filesDir": "/srv/files",
            "auditArguments": True,
            "showDisabled": True,
            "skipPermissions": True,
            "localPlugins": ["/p/one"],
            "localPluginDirs": ["/p"],
            "settings": {"jira": {"instanceUrl": {"work": "https://acme.atlassian.net"}}},
            "permissions": {"default": "ask", "slack": {"permission": "auto", "tools": {"send_message": "off"}}},
            "limits": {"call_timeout": 60, "maxBody": 1000},
        }
    )
    assert config.port == 9600
    assert (config.launch, config.headless) == ("always", "never")
    assert (config.browser, config.files_dir) == ("/opt/chrome", "/srv/files")
    assert config.audit_arguments
    assert config.show_disabled
    assert config.skip_permissions
    assert (config.local_plugins, config.local_plugin_dirs) == (("/p/one",), ("/p",))
    assert config.settings == {"jira": {"instanceUrl": {"work": "https://acme.atlassian.net"}}}
    assert config.permissions.default == "ask"
    assert config.permissions.plugins == {"slack": PluginPermission("auto", {"send_message": "off"})}
    assert (config.limits.call_timeout, config.limits.max_body) == (60.0, 1000)
    assert config.problems == ()


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"port": "9515"}, "port"),
        ({"port": 0}, "port"),
        ({"port": True}, "port"),
        ({"port": 70000}, "port"),
        ({"launch": "maybe"}, "launch"),
        ({"launch": ["auto"]}, "launch"),
        ({"auditArguments": "yes"}, "auditArguments"),
        ({"browser": ""}, "browser"),
        ({"localPlugins": "/p"}, "localPlugins"),
        ({"localPlugins": [1]}, "localPlugins"),
        ({"settings": []}, "settings"),
        ({"settings": {"jira": "x"}}, "settings.jira"),
        ({"permissions": "auto"}, "permissions"),
        ({"permissions": {"default": "maybe"}}, "permissions.default"),
        ({"permissions": {"slack": "off"}}, "permissions.slack"),
        ({"permissions": {"slack": {"permission": True}}}, "permissions.slack.permission"),
        ({"permissions": {"slack": {"tools": {"send": "of"}}}}, "permissions.slack.tools.send"),
        ({"limits": {"call_timeout": "60"}}, "limits.call_timeout"),
        ({"limits": {"call_timeout": -1}}, "limits.call_timeout"),
        ({"limits": {"max_body": float("inf")}}, "limits.max_body"),
        ({"limits": {"max_body": 10**400}}, "limits.max_body"),
        ({"limits": {"call_timeout": 1, "callTimeout": 2}}, "limits.call_timeout"),
    ],
)
def test_a_wrong_value_is_refused_with_its_key(values: dict[str, Any], key: str) -> None:
    with pytest.raises(SetupError, match=key.replace(".", r"\.")):
        Config.parse(values)


@pytest.mark.parametrize(
    ("values", "key", "nearest"),
    [
        ({"prot": 9600}, "prot", "port"),
        ({"local_plugins": []}, "local_plugins", "localPlugins"),
        ({"Permissions": {}}, "Permissions", "permissions"),
        ({"limits": {"calltimeout": 5}}, "limits.calltimeout", "limits.call_timeout"),
        ({"permissions": {"slack": {"tool": {}}}}, "permissions.slack.tool", "permissions.slack.tools"),
    ],
)
def test_an_unknown_key_is_reported_with_the_nearest_known_one_and_kept(
    values: dict[str, Any], key: str, nearest: str
) -> None:
    config = Config.parse(values)
    assert list(config.extra) == [key]
    assert config.problems == (f"{key!r} is not a setting and has no effect. Did you mean {nearest!r}?",)


def test_a_key_unlike_all_others_is_reported_without_a_suggestion() -> None:
    assert Config.parse({"zzzz": 1}).problems == ("'zzzz' is not a setting and has no effect.",)


@pytest.mark.parametrize(
    ("key", "text", "path", "value"),
    [
        ("port", "9600", ("port",), 9600),
        ("launch", "always", ("launch",), "always"),
        ("auditArguments", "on", ("auditArguments",), True),
        ("showDisabled", "False", ("showDisabled",), False),
        ("browser", "/opt/my chrome", ("browser",), "/opt/my chrome"),
        ("browser", "", ("browser",), None),
        ("localPlugins", "/a,b", ("localPlugins",), ["/a,b"]),
        ("localPlugins", '["/a", "/b"]', ("localPlugins",), ["/a", "/b"]),
        ("limits.call_timeout", "60", ("limits", "call_timeout"), 60),
        ("limits.callTimeout", "0.5", ("limits", "call_timeout"), 0.5),
        ("permissions.default", "ask", ("permissions", "default"), "ask"),
        ("permissions.slack.permission", "off", ("permissions", "slack", "permission"), "off"),
        (
            "permissions.browser.tools.browser_execute_script",
            "off",
            ("permissions", "browser", "tools", "browser_execute_script"),
            "off",
        ),
        ("permissions.docs.example.com.permission", "ask", ("permissions", "docs.example.com", "permission"), "ask"),
        ("permissions.a.tools.b.tools.c", "ask", ("permissions", "a.tools.b", "tools", "c"), "ask"),
        ("settings.jira.token", "abc", ("settings", "jira", "token"), "abc"),
        ("settings.jira.limit", "5", ("settings", "jira", "limit"), 5),
        ("settings.jira.urls.work", "https://x.example", ("settings", "jira", "urls", "work"), "https://x.example"),
    ],
)
def test_typed_text_is_converted_to_path_and_value(key: str, text: str, path: tuple[str, ...], value: object) -> None:
    assert convert(key, text) == (path, value)


@pytest.mark.parametrize(
    ("key", "text", "message"),
    [
        ("prot", "1", "Did you mean 'port'"),
        ("limits.call_timout", "1", "Did you mean 'limits.call_timeout'"),
        ("permissions.slack", "off", "is not a setting"),
        ("permissions.default.permission", "off", "is not a setting"),
        ("permissions.slack.tools.", "off", "is not a setting"),
        ("permissions", "off", "is not a setting"),
        ("settings.jira", "off", "is not a setting"),
        ("settings.jira.", "off", "is not a setting"),
        ("port.x", "1", "is not a setting"),
        ("", "1", "is not a setting"),
        ("port", "abc", "whole number from 1 to 65535"),
        ("auditArguments", "maybe", "true or false"),
        ("limits.max_body", "NaN", "must be a number"),
        ("limits.max_body", "1e999", "must be a number below"),
        ("limits.max_body", "1.5", "whole number"),
        ("permissions.default", "never", "off, ask or auto"),
        ("localPlugins", "[1]", "list of paths"),
    ],
)
def test_an_invalid_key_or_text_is_reported(key: str, text: str, message: str) -> None:
    with pytest.raises(SetupError, match=message):
        convert(key, text)


def test_every_known_key_can_be_located() -> None:
    for key in Config.known_keys():
        named = key.replace("<plugin>", "my.plugin" if "permissions" in key else "jira")
        assert locate(named.replace("<tool>", "send").replace("<key>", "url").replace("<pattern>", "a.example"))


def test_the_values_in_force_can_be_parsed_back() -> None:
    config = Config.parse(
        {
            "port": 9600,
            "localPlugins": ["/p"],
            "permissions": {"default": "ask", "slack": {"permission": "off"}, "x": {"tools": {"a": "auto"}}},
            "limits": {"call_timeout": 2.5},
            "settings": {"jira": {"a": 1}},
        }
    )
    assert Config.parse(config.values()) == config


def test_the_environment_overrides_port_and_skips_permissions() -> None:
    assert Config().with_environment({"PORT": "1234"}).port == 1234
    assert Config().with_environment({"PORT": "1234", "TABHUB_PORT": "5678"}).port == 5678
    assert Config().with_environment({"TABHUB_DANGEROUSLY_SKIP_PERMISSIONS": "1"}).skip_permissions
    assert not Config().with_environment({"TABHUB_DANGEROUSLY_SKIP_PERMISSIONS": "0"}).skip_permissions
    assert Config(skip_permissions=True).with_environment({"TABHUB_DANGEROUSLY_SKIP_PERMISSIONS": "0"}).skip_permissions
    with pytest.raises(SetupError, match="TABHUB_PORT must be a whole number"):
        Config().with_environment({"TABHUB_PORT": "http"})


@given(st.dictionaries(st.sampled_from(["port", "limits", "permissions", "settings", "browser", "x"]), JSON))
def test_any_json_object_is_parsed_or_refused(values: dict[str, Any]) -> None:
    try:
        config = Config.parse(values)
    except SetupError:
        return
    assert len(config.problems) == len(config.extra)


def test_pages_may_offer_tools_from_allowed_origins_alone() -> None:
    assert Config().pages.allow("https://any.example")
    pages = Config.parse({"pages": {"allowedOrigins": ["https://Shop.example", "https://*.corp.example"]}}).pages
    for origin, allowed in {
        "https://shop.example": True,
        "http://shop.example": False,
        "https://a.corp.example": True,
        "https://corp.example": False,
        "https://evilcorp.example": False,
        "http://a.corp.example": False,
    }.items():
        assert pages.allow(origin) is allowed, origin
    assert convert("pages.allowedOrigins", "https://a.b") == (("pages", "allowedOrigins"), ["https://a.b"])
    assert convert("pages.modelContext", "off") == (("pages", "modelContext"), False)
    for wrong in ("a.b", ["a.b"], ["https://a.b/path"], "*", [7]):
        with pytest.raises(SetupError, match="list of origins"):
            Config.parse({"pages": {"allowedOrigins": wrong}})
    assert "modelContext" in Config.parse({"pages": {"modelContex": True}}).problems[0]
