"""Reading secret fields together with a script: what is sent around it, and what comes back.

Owns the scripts that read before and after it, in the same message, and the answers that are usable. How fields are
found is up to `js/kit/secret_fields.js`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec
import orjson

from tabhub.browser.driver.worlds import World
from tabhub.trust.value_mask import FieldMask

AHEAD = "Tabhub.ahead"
"""An event of the extension's own: the answers to what went ahead of a script that a dialog holds up."""
_AROUND = b',"ahead":[{"method":"Runtime.evaluate","params":%b}],"follow":[{"method":"Runtime.evaluate","params":%b}]'
_SCRIPTS = ("secretsBeforeScript", "secretsAfterScript")


class _Found(msgspec.Struct):
    values: list[str]
    go: bool = False
    """Whether there are fields, so that they are read again after the script."""


class _Result(msgspec.Struct):
    value: _Found | str | None = None
    """A text if the world has ended."""


class _Answer(msgspec.Struct):
    result: _Result = msgspec.field(default_factory=_Result)


class _Followed(msgspec.Struct):
    result: _Answer = msgspec.field(default_factory=_Answer)


class FieldReads(msgspec.Struct):
    """The answers to what was sent around a script: members of the script's own answer."""

    ahead: list[_Answer] = []
    followed: _Followed = msgspec.field(default_factory=_Followed)

    def learn(self, fields: FieldMask) -> bool:
        """Have the values masked. Returns whether they are all that there is to mask."""
        before = self.ahead[0].result.value if self.ahead else None
        if type(before) is not _Found:  # an older extension, or the document was replaced
            return False
        if before.values:
            fields.update(before.values)
        if not before.go:
            return True
        after = self.followed.result.result.value
        if type(after) is not _Found:
            return False
        fields.update(after.values)
        return True


@lru_cache(maxsize=1000)
def around_script(world: World) -> bytes:
    """Members of a command that runs a script: the fields of a document are read before and after it."""
    before, after = (orjson.dumps(world.script(f"return kit.{name}();")) for name in _SCRIPTS)
    return _AROUND % (before, after)


def learn_ahead(params: dict[str, Any], fields: FieldMask) -> None:
    """Have the values masked that an event AHEAD reports."""
    try:
        msgspec.convert(params, FieldReads).learn(fields)
    except msgspec.ValidationError:
        return  # an event of nobody's
