"""Editing JSON with comments in place."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabhub.cli.setup.jsonc import parse, remove_member, set_member
from tabhub.errors import JsoncError

VALUE = {"type": "http"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("{}", '{\n  "s": {\n    "t": {\n      "type": "http"\n    }\n  }\n}'),
        ('{"a": 1}', '{"a": 1,\n  "s": {\n    "t": {\n      "type": "http"\n    }\n  }\n}'),
        (
            '{\n    // mine\n    "s": {\n        "other": {}, // keep\n    },\n}\n',
            '{\n    // mine\n    "s": {\n        "other": {}, // keep\n'
            '        "t": {\n            "type": "http"\n        }\n    },\n}\n',
        ),
        (
            '{\n\t"s": {\n\t\t"other": 1 /* one */\n\t\t// end\n\t}\n}',
            '{\n\t"s": {\n\t\t"other": 1, /* one */\n\t\t// end\n\t\t"t": {\n\t\t\t"type": "http"\n\t\t}\n\t}\n}',
        ),
        ('{"s": {"t": {"old": true}, "u": 2}}', '{"s": {"t": {\n      "type": "http"\n    }, "u": 2}}'),
        ('{\r\n  "s": {}\r\n}', '{\r\n  "s": {\r\n    "t": {\r\n      "type": "http"\r\n    }\r\n  }\r\n}'),
    ],
)
def test_one_member_is_set_and_the_rest_stays(before: str, after: str) -> None:
    assert set_member(before, ("s", "t"), VALUE) == after


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        '{"a"}',
        '{"a": }',
        '{"a": 1 "b": 2}',
        "{a: 1}",
        "[1, 2",
        '{"a": 1} x',
        '{"a": "x\ny"}',
        '{"a": 01}',
        "[" * 500,
        "/* open",
        '{"a": tru}',
        "{,}",
        '{"s": {}, "s": {}}',
        '{"s": []}',
        "[]",
    ],
)
def test_unparsable_text_is_rejected(text: str) -> None:
    with pytest.raises(JsoncError, match=r"line [12]"):
        set_member(text, ("s", "t"), VALUE)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=4), values, max_size=4), st.integers(0, 4) | st.none(), st.text(max_size=4))
def test_any_object_keeps_its_other_members(held: dict[str, object], indent: int | None, key: str) -> None:
    text = json.dumps(held, indent=indent, ensure_ascii=False)
    assert parse(text) == held
    assert parse(set_member(text, (key,), VALUE)) == {**held, key: VALUE}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"s": {"t": 1}}', '{"s": {}}'),
        ('{"s": {"t": {"x": 1},}}', '{"s": {}}'),
        ('{"s": {"t": 1, "u": 2}}', '{"s": { "u": 2}}'),
        ('{"s": {"a": 0, "t": 1, "u": 2}}', '{"s": {"a": 0,  "u": 2}}'),
        ('{"s": {"a": 0, "t": 1}}', '{"s": {"a": 0 }}'),
        (
            '{\n  "s": {\n    "a": {}, // keep\n    /* ours */\n    "t": {\n      "x": 1\n    }\n  }\n}',
            '{\n  "s": {\n    "a": {} // keep\n    /* ours */\n  }\n}',
        ),
        (
            '{\n  "s": {\n    "t": 1,\n    // of u\n    "u": 2,\n  }\n}\n',
            '{\n  "s": {\n    // of u\n    "u": 2,\n  }\n}\n',
        ),
    ],
)
def test_one_member_is_removed_and_the_rest_stays(before: str, after: str) -> None:
    assert remove_member(before, ("s", "t")) == after


@given(st.dictionaries(st.text(max_size=4), values, max_size=4), st.integers(0, 4) | st.none(), st.text(max_size=4))
def test_a_member_that_was_set_can_be_removed(held: dict[str, object], indent: int | None, key: str) -> None:
    text = json.dumps(held, indent=indent, ensure_ascii=False)
    without = {name: value for name, value in held.items() if name != key}
    assert parse(remove_member(set_member(text, (key,), VALUE), (key,))) == without
