"""Masking of used secrets: every way in which an answer may have them."""

from __future__ import annotations

import html
import json
from urllib.parse import quote, quote_plus

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabhub.trust.value_mask import FieldMask, ValueMask

VALUES = st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=4, max_size=40).filter(str.strip)


def masking(value: str) -> ValueMask:
    mask = ValueMask()
    mask.add("shop", value)
    return mask


def test_without_a_used_secret_nothing_is_changed() -> None:
    data, value = b"anything", {"a": ["b"]}
    mask = ValueMask()
    assert mask.data(data) is data
    assert mask.value(value) is value


@given(VALUES)
def test_no_written_form_survives(value: str) -> None:
    mask = masking(value)
    body = orjson.dumps({"value": value})
    forms = [value, json.dumps(value), body.decode(), orjson.dumps(body.decode()).decode(), quote(value, safe="")]
    forms += [quote_plus(value), html.escape(value), json.dumps(html.escape(value)), " ".join(value.split())]
    for form in forms:
        shown = mask.text(f"before {form} after")
        assert "[secret shop]" in shown, form
        assert form not in shown


@given(VALUES, st.text(max_size=20))
def test_masked_json_stays_json(value: str, other: str) -> None:
    body = orjson.dumps({"a": value, "b": [f"x{value}y"], "c": "plain"})
    masked = orjson.loads(masking(value).data(orjson.dumps({"text": body.decode(), "more": value})))
    assert masked["more"] == "[secret shop]"
    assert value not in orjson.loads(masked["text"])["b"][0] or value in "x[secret shop]y"


def test_a_cut_secret_is_masked_up_to_its_cut() -> None:
    mask = masking("correct-horse-battery-staple")
    assert mask.text('= "correct-horse-ba…" and') == '= "[secret shop]…" and'
    assert mask.text("correct-hat…") == "correct-hat…"
    assert mask.text("correct-horse") == "correct-horse"


def test_codes_are_masked_until_many_others_were_used() -> None:
    mask = ValueMask()
    for number in range(150):
        mask.add_code("code", f"{number:06}")
    assert mask.text("000000 000149") == "000000 [secret code]"


@pytest.mark.parametrize("text", ["a\nb", 'quo"te', "back\\slash", "ünï", "<b>&amp;"])
def test_special_characters_are_masked_within_json(text: str) -> None:
    value = f"{text}-secret"
    assert "secret" not in masking(value).data(orjson.dumps({"x": value})).decode().replace("[secret shop]", "")


def test_a_result_with_a_masked_number_stays_json_and_its_text_still_repeats_it() -> None:
    mask = ValueMask()
    mask.add_code("code", "604815")
    facts = orjson.dumps({"value": [604815, 16048150, "604815"], "604815": None})
    text = orjson.dumps(facts.decode())
    result = orjson.loads(
        mask.result(b'{"content":[{"type":"text","text":%b}],"structuredContent":%b}' % (text, facts))
    )
    assert result["structuredContent"]["value"] == ["[secret code]", 16048150, "[secret code]"]
    assert orjson.loads(result["content"][0]["text"]) == result["structuredContent"]


def test_pictures_are_not_changed_where_they_look_like_a_secret() -> None:
    mask = ValueMask()
    mask.add("shop", "abcdef")
    result = orjson.loads(
        mask.result(b'{"content":[{"type":"image","data":"xxabcdefxx"},{"type":"text","text":"abcdef"}]}')
    )
    assert [result["content"][0]["data"], result["content"][1]["text"]] == ["xxabcdefxx", "[secret shop]"]


def test_the_values_of_a_tabs_fields_are_bounded_and_the_latest_stay() -> None:
    fields = FieldMask()
    for number in range(1000):
        fields.update([f"password-{number:03}", "x" * 5000, "ab"])
    assert fields.text("password-000 password-999 ab") == "password-000 ••• ab"
    assert fields.text("x" * 5000) == "x" * 5000
