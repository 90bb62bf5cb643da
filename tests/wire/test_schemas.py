"""The published schemas and the extension's types match the structs."""

from __future__ import annotations

import json
import re

import pytest
from jsonschema_rs import Draft202012Validator

from tabhub.wire.browser_commands import COMMANDS
from tabhub.wire.extension_link import FROM_EXTENSION, FROM_HUB
from tests.wire.message_schemas import SCHEMAS, TYPES, surfaces, typescript

UPDATE = "run scripts/schemas"


@pytest.mark.parametrize("name", ["extension-link", "page-tools", "bridge", "relay"])
def test_published_schemas_match_the_structs(name: str) -> None:
    published = (SCHEMAS / f"{name}.json").read_text(encoding="utf-8")
    assert json.loads(published) == surfaces()[name], UPDATE


def test_there_are_no_other_schemas() -> None:
    assert {path.stem for path in SCHEMAS.iterdir()} == set(surfaces())


def test_the_types_of_the_extension_match_the_structs() -> None:
    assert TYPES.read_text(encoding="utf-8") == typescript(), UPDATE


def test_every_schema_is_valid_and_its_references_resolve() -> None:
    for schema in surfaces().values():
        for name in schema["$defs"]:
            Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": schema["$defs"]})


def test_every_message_names_a_definition() -> None:
    for schema in surfaces().values():
        references = set(re.findall(r'"#/\$defs/([^"]+)"', json.dumps(schema)))
        assert references <= set(schema["$defs"])


def test_every_message_of_the_extension_link_has_a_schema() -> None:
    link, pages = surfaces()["extension-link"]["messages"], surfaces()["page-tools"]["messages"]
    assert {*link["fromExtension"], *pages["fromExtension"]} == set(FROM_EXTENSION)
    assert {*link["commands"], *pages["commands"]} == set(COMMANDS)
    assert set(FROM_HUB) - set(link["fromHub"]) == {"agent.event"}
