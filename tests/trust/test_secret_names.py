"""Names of secrets and card numbers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tabhub.trust import secret_names
from tabhub.trust.secret_names import is_card_number, is_secret_name

_PAGE_TABLE = Path(secret_names.__file__).parents[1] / "browser/js/kit/secret_fields.js"


SECRET = """
password pwd passwd pass user_pass userPassword userpassword otp pin card-pin ssn cvv2 cvc access_token accessToken
X-Api-Key apikey api_key client_secret cardNumber user[password] one-time-code securityCode refreshToken JWT private_key
login.pass
"""
PLAIN = """
user email passport compass bypass mapping pinned spinner tokens max_tokens key code card number author secretary
"""


@pytest.mark.parametrize("name", SECRET.split())
def test_names_of_secrets_are_known(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", [*PLAIN.split(), "", "x" * 100 + "password"])
def test_other_names_are_not(name: str) -> None:
    assert not is_secret_name(name)


def test_card_numbers_pass_their_check() -> None:
    assert all(map(is_card_number, ("4111 1111 1111 1111", "378282246310005", "5555-5555-5555-4444")))
    assert not any(map(is_card_number, ("4111 1111 1111 1112", "4000000000000")))


def test_pages_and_the_hub_have_the_same_words() -> None:
    text = _PAGE_TABLE.read_text("utf-8")
    words, pairs = re.findall(r"`([^`$]+)`\.split", text)[:2]
    assert set(words.split()) == secret_names._WORDS
    assert set(pairs.split("|")) == secret_names._PAIRS
    endings = re.search(r"SECRET_ENDINGS = \[([^\]]+)\]", text)
    assert endings is not None
    assert tuple(re.findall(r'"(\w+)"', endings[1])) == secret_names._ENDINGS
