"""The parameters that the hub adds to every plugin tool and removes from its input."""

from __future__ import annotations

from typing import Any

import pytest

from tabhub.core.tools import Source, Tool
from tabhub.plugins.inject import injected, stripped

_OWN: dict[str, Any] = {
    "type": "object",
    "properties": {"project": {"type": "string"}},
    "required": ["project"],
    "additionalProperties": False,
}


def made(schema: dict[str, Any]) -> Tool:
    return Tool("demo_x", Source("plugin", "demo"), "x", schema)


@pytest.mark.req("S002-injected-04", "S002-instance-03")
@pytest.mark.parametrize("instances", [[], ["only"]])
def test_tab_id_is_always_added_and_optional(instances: list[str]) -> None:
    schema = injected(_OWN, instances)
    assert schema["properties"]["tabId"]["type"] == "integer"
    assert schema["properties"]["tabId"]["minimum"] == 1
    assert schema["required"] == ["project"]
    assert "instance" not in schema["properties"]
    tool = made(schema)
    assert tool.accepts({"project": "P"})
    assert tool.accepts({"project": "P", "tabId": 1})
    for wrong in (0, -1, "1", 1.5, None):
        assert not tool.accepts({"project": "P", "tabId": wrong})


@pytest.mark.req("S002-injected-05", "S002-instance-02")
def test_instance_is_required_if_there_are_several() -> None:
    schema = injected(_OWN, ["work", "personal"])
    assert schema["properties"]["instance"]["enum"] == ["work", "personal"]
    assert schema["required"] == ["project", "instance"]
    tool = made(schema)
    assert tool.accepts({"project": "P", "instance": "work", "tabId": 42})
    for arguments in ({"project": "P"}, {"project": "P", "instance": "other"}):
        assert not tool.accepts(arguments)


def test_platform_parameters_override_the_plugins_without_changing_its_schema() -> None:
    own = {"type": "object", "properties": {"tabId": {"type": "string"}}, "required": ["tabId"]}
    schema = injected(own, [])
    assert schema["properties"]["tabId"]["type"] == "integer"
    assert "required" not in schema
    assert own["properties"] == {"tabId": {"type": "string"}}


def test_schema_branches_accept_the_added_parameters() -> None:
    branch = {"type": "object", "properties": {"kind": {"const": "a"}}, "additionalProperties": False}
    tool = made(injected({"type": "object", "anyOf": [branch]}, ["a", "b"]))
    assert tool.accepts({"kind": "a", "tabId": 3, "instance": "a"})


def test_platform_parameters_are_removed_from_the_input() -> None:
    given = {"project": "P", "tabId": 42.0, "instance": "work"}
    assert stripped(given, ["work", "personal"]) == ({"project": "P"}, 42, "work")
    assert stripped(given, ["work"]) == ({"project": "P", "instance": "work"}, 42, None)
    assert given == {"project": "P", "tabId": 42.0, "instance": "work"}
