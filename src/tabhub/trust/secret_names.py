"""Which names say that a value is secret, and which numbers are card numbers.

Owns the one table behind redacted logs, network records, storage and recordings. Form fields in pages are judged by
`browser/js/kit/secret_fields.js`, which has the same words. Pure; every pattern takes time linear in the text.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise

_WORD_LIST = """
password passwd passphrase passcode pwd pass secret token apikey otp totp pin ssn cvc cvv csc jwt sid sessionid
credential credentials authcode cardnumber ccnumber accesstoken refreshtoken idtoken authtoken clientsecret
"""
_WORDS = frozenset(_WORD_LIST.split())
"""A name with one of these words is secret."""
_PAIR_LIST = (
    "api key|access key|private key|secret key|card number|cc number|cc num|cc csc|cc cvc|cc cvv|card cvc|card cvv|"
    "security code|verification code|time code|auth code|recovery code|backup code|session id|social security"
)
_PAIRS = frozenset(_PAIR_LIST.split("|"))
"""So is one with two of these words in a row."""
_ENDINGS = ("password", "passwd", "passphrase", "secret", "token", "apikey", "cardnumber", "authtoken")
"""So is one with a word that ends like this, as `userpassword` does."""
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_LONGEST = 80
CARD = re.compile(
    r"(?<![0-9A-Za-z.-])[3-6][0-9]{3}(?:[0-9]{9,15}|(?:[ +-][0-9]{4}){3}|[ +-][0-9]{6}[ +-][0-9]{5})(?![0-9A-Za-z])"
)
"""What may be a card number: 13 to 19 digits, grouped as on cards or not at all."""


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Whether a key, parameter, field or header of this name has a secret as its value."""
    if len(name) > _LONGEST:
        return False
    words = [word.lower() for word in _WORD.findall(name)]
    if any(word in _WORDS or word.endswith(_ENDINGS) for word in words):
        return True
    return any(" ".join(pair) in _PAIRS for pair in pairwise(words))


def is_card_number(text: str) -> bool:
    """Whether these digits pass the check of card numbers (Luhn)."""
    digits = [int(character) for character in text if character.isdigit()]
    doubled = (sum(divmod(2 * digit, 10)) for digit in digits[-2::-2])
    return (sum(digits[::-2]) + sum(doubled)) % 10 == 0 and len(set(digits)) > 1
