"""Text for logs: secrets redacted, unsafe characters escaped."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabhub.trust.redact import HIDDEN, clean, redact, redact_arguments, redact_urls

HEX = "0123456789abcdef" * 4
ALMOST_SECRETS = ["eyJ-", "eyJ.", "a_", "token ", "f" * 63 + " ", "\t", "://", "://a:b", "token\t"]
"""Prefixes of secrets that never become one. `python -m bench hostile` measures their cost."""
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"Authorization: Bearer {HEX}", f"Authorization: Bearer {HIDDEN}"),
        ("authorization: bearer short-token.x", f"authorization: bearer {HIDDEN}"),
        (f"GET /ws?x=1&token={JWT}&y=2", f"GET /ws?x=1&token={HIDDEN}&y=2"),
        (f"protocols tabhub, {HEX}, chrome-1", f"protocols tabhub, {HIDDEN}, chrome-1"),
        (f"x{HEX.upper()}y", f"x{HIDDEN}y"),
        (f"ab{HEX}", HIDDEN),
        (f"jwt {JWT}.", f"jwt {HIDDEN}."),
        ('{"secret": "hunter2", "a": 1}', f'{{"secret": "{HIDDEN}", "a": 1}}'),
        ("x_access_token=abc; password: p4ss", f"x_access_token={HIDDEN}; password: {HIDDEN}"),
        ("to http://anna:p4ss@site:80/a@b?c=d@e", f"to http://anna:{HIDDEN}@site:80/a@b?c=d@e"),
        ("http://site:80/a@b http://site:80?x=@", "http://site:80/a@b http://site:80?x=@"),
        ('{"pin":1234,"pass":"a \\"b","user":"u"}', f'{{"pin":{HIDDEN},"pass":"{HIDDEN}","user":"u"}}'),
        (r'{"a":"{\"otp\":\"12 34\",\"b\":1}"}', rf'{{"a":"{{\"otp\":\"{HIDDEN}\",\"b\":1}}"}}'),
        (
            "user=a&passwd=b+c&pwd=d&userPassword=e&x=1",
            f"user=a&passwd={HIDDEN}&pwd={HIDDEN}&userPassword={HIDDEN}&x=1",
        ),
        ("to=https%3A%2F%2Fx%3Faccess_token%3Dabc%26b%3D1", f"to=https%3A%2F%2Fx%3Faccess_token%3D{HIDDEN}%26b%3D1"),
        ("url=https://x/?accessToken=a/b&c=1", f"url=https://x/?accessToken={HIDDEN}&c=1"),
        ("card 4111 1111 1111 1111, 4111111111111112", f"card {HIDDEN}, 4111111111111112"),
        ("Authorization: Basic dXNlcjpwYXNz", f"Authorization: Basic {HIDDEN}"),
        ("key sk_live_0123456789abc and ghp_" + "a" * 36, f"key {HIDDEN} and {HIDDEN}"),
        ('{"secret": true, "token": null, "pins": [1]}', '{"secret": true, "token": null, "pins": [1]}'),
        ("tokens: 25 of them, no secrets here", "tokens: 25 of them, no secrets here"),
        ("a plain sentence", "a plain sentence"),
    ],
)
def test_text_that_looks_like_a_secret_is_redacted(text: str, shown: str) -> None:
    assert redact(text) == shown


def test_urls_in_answers_have_no_secrets_and_the_rest_is_unchanged() -> None:
    data = b'{"url":"https://x/?page=2&access_token=abc#id_token=d","next":"?page_size=5&sid=7","pass":"shown"}'
    shown = (
        b'{"url":"https://x/?page=2&access_token=[redacted]#id_token=[redacted]","next":"?page_size=5&sid=[redacted]"'
    )
    assert redact_urls(data) == shown + b',"pass":"shown"}'
    plain = b'{"text":"a = b; c=d"}'
    assert redact_urls(plain) is plain


def test_arguments_are_kept_without_secrets() -> None:
    given = {"password": "p", "pin": 12, "pass": True, "fields": [{"ref": "e1", "value": "typed"}], "url": "/?token=a"}
    assert redact_arguments(given, ("typed",)) == {
        "password": HIDDEN,
        "pin": HIDDEN,
        "pass": True,
        "fields": [{"ref": "e1", "value": HIDDEN}],
        "url": f"/?token={HIDDEN}",
    }


def test_known_secrets_are_redacted_everywhere() -> None:
    assert redact("my-secret-value inside xmy-secret-valuex", ["my-secret-value"]) == f"{HIDDEN} inside x{HIDDEN}x"
    assert redact("an empty one hides nothing", ["", "an"]) == "an empty one hides nothing"


@given(st.text(max_size=50), st.text(max_size=50))
def test_a_known_secret_never_survives(before: str, after: str) -> None:
    assert HEX not in redact(f"{before}{HEX}{after}", [HEX])


@pytest.mark.parametrize("piece", ALMOST_SECRETS)
def test_long_text_without_secrets_is_unchanged(piece: str) -> None:
    text = piece * (400_000 // len(piece))
    assert redact(text) == text


def test_every_secret_in_a_long_text_is_redacted() -> None:
    assert redact("bearer abc " * 50_000) == f"bearer {HIDDEN} " * 50_000
    assert redact("token=abc " * 50_000) == f"token={HIDDEN} " * 50_000
    assert redact("token=" * 50_000) == f"token={HIDDEN}"
    assert redact(f"{JWT} {HEX} " * 5_000) == f"{HIDDEN} {HIDDEN} " * 5_000


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain · text ünïcode 漢字 🙂", "plain · text ünïcode 漢字 🙂"),
        ("two\nlines\r\n", "two\\nlines\\r\\n"),
        ("\x1b[31mred\x00\x7f\x9b", "\\x1b[31mred\\x00\\x7f\\x9b"),
        ("a\u202eb\u2066c\u200d\ufeff", "a\\u202eb\\u2066c\\u200d\\ufeff"),
        ("line\u2028para\u2029", "line\\u2028para\\u2029"),
        ("lone \ud800 half", "lone \\ud800 half"),
        ("tag \U000e0041", "tag \\U000e0041"),
    ],
)
def test_unsafe_characters_are_escaped(text: str, shown: str) -> None:
    assert clean(text) == shown


def test_long_text_is_cut_and_says_so() -> None:
    assert clean("a" * 12, 10) == "a" * 10 + "… (2 more)"
    assert clean("\n" * 12, 10) == "\\n" * 5 + "… (7 more)"
    assert len(clean("\n" * 10_000_000)) < 550


@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=80), st.integers(0, 60))
def test_any_text_becomes_one_printable_bounded_line(text: str, limit: int) -> None:
    shown = clean(text, limit)
    assert shown.isprintable()
    assert len(shown) <= limit + 20
    shown.encode()
