"""Placeholders for secrets: where they are found."""

from __future__ import annotations

from tabhub.trust.placeholders import fill, has_placeholder, places


def test_placeholders_are_found_at_their_places() -> None:
    arguments = {
        "text": "{{secret:a}}",
        "fields": [{"value": "x"}, {"value": "{{totp:b}} "}],
        "{{secret:c}}": 1,
        "n": 5,
    }
    assert list(places(arguments)) == [("text",), ("fields", 1, "value"), ()]
    assert not has_placeholder("{{ name }} {secret:a}")


def test_placeholders_are_filled_and_other_text_is_kept() -> None:
    filled = fill("a {{secret:x-1}} {{totp:y}} {{other:z}}", lambda kind, name: f"<{kind} {name}>")
    assert filled == "a <secret x-1> <totp y> {{other:z}}"
