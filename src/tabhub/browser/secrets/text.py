"""Typing named secrets: `{{secret:NAME}}` and `{{totp:NAME}}` in the text for a field.

Owns in which arguments a placeholder may stand, and that its value goes only into a field of a document of the
secret's sites. One script of that document checks it and inserts the value, so that no navigation and no change of
focus can lead it elsewhere. Its masking afterwards is trust.value_mask's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from tabhub.browser.actions import TrackedAction
from tabhub.browser.driver.cdp_values import parse_object
from tabhub.browser.elements.element import ActionableElement
from tabhub.config.sites import SitePattern
from tabhub.core.tools import CallContext
from tabhub.errors import CommandFailed, InvalidArguments, SetupError
from tabhub.store.named_secrets import NamedSecret, SecretStore
from tabhub.trust.placeholders import Kind, Path, fill, has_placeholder, places
from tabhub.trust.redact import redact_urls
from tabhub.trust.site_rules import SiteRule, SiteRules
from tabhub.trust.totp import Totp
from tabhub.trust.value_mask import ValueMask

_FIELDS = ("text", "combo", "area", "rich")
_TEXTS: Mapping[str, Callable[[Path], bool]] = {
    "browser_type_text": lambda path: path == ("text",),
    "browser_fill_form": lambda path: path[0] == "fields" and path[2:] == ("value",),
}
"""The arguments that are typed into fields, by tool."""
_STEPS = {
    "type": "browser_type_text",
    "type_text": "browser_type_text",
    "fill": "browser_fill_form",
    "fill_form": "browser_fill_form",
}
"""Steps of browser_act that may be named otherwise than their tool."""
_HINT = (
    "It may stand only in what is typed into a field: `text` of browser_type_text, `value` of browser_fill_form, and "
    "those of their steps in browser_act."
)


def check_places(tool: str, arguments: Mapping[str, Any]) -> None:
    """InvalidArguments for a placeholder in anything but the text for a field."""
    for path in places(arguments):
        if not _is_field_text(tool, arguments, path):
            where = "/".join(map(str, path)) or "a name"
            raise InvalidArguments(f"{tool}: {where} has a placeholder for a secret. Nothing was sent.", hint=_HINT)


def _is_field_text(tool: str, arguments: Mapping[str, Any], path: Path) -> bool:
    if tool == "browser_act" and path[:1] == ("actions",) and len(path) > 2:
        step = arguments["actions"][path[1]]
        action = step.get("action")
        return _is_field_text(_STEPS.get(action, action), step, path[2:])
    return tool in _TEXTS and bool(path) and _TEXTS[tool](path)


class SecretText:
    """Types the secrets of one hub."""

    def __init__(self, store: SecretStore | None, mask: ValueMask, wall: Callable[[], float]) -> None:
        """Without a store, every placeholder fails."""
        self._store = store
        self._mask = mask
        self._wall = wall

    async def insert(self, action: TrackedAction, target: ActionableElement, text: str, *, paste: bool = False) -> None:
        """Enter a text with placeholders into a field that has just been found actionable and has the focus."""
        label = target.element.label
        if target.kind not in _FIELDS:
            what = "a code editor and not a text field" if target.kind == "code" else "not a text field"
            raise CommandFailed(
                f"{label} is {what}; a secret can be typed only into one. Nothing was typed.",
                hint="Nothing of the secret was sent to the page.",
            )
        origin = str(target.facts.get("origin"))
        value = await asyncio.to_thread(self._resolve, text, origin)
        answer = await action.tolerate_navigation(
            target.element.call("insert_secret", {"text": value, "origin": origin, "paste": paste}),
            target.element.frame,
        )
        if problem := parse_object(answer).get("failed"):
            raise CommandFailed(
                f"The secret could not be typed into {label}: {str(problem)[:200]}.",
                hint="Take a browser_snapshot to see what is there now.",
            )

    def mask(self, data: bytes) -> bytes:
        """What is written to a file, without the secrets used so far and those in URLs."""
        return self._mask.data(redact_urls(data))

    def mask_text(self, text: str) -> str:
        """A text without the secrets used so far."""
        return self._mask.text(text)

    def describe(self) -> list[dict[str, Any]] | str:
        """What agents may know, or why it cannot be read."""
        try:
            return self.listed()
        except SetupError as error:
            return error.message

    def listed(self) -> list[dict[str, Any]]:
        """What agents may know: names, kinds and sites."""
        found = self._store.listed() if self._store is not None else []
        return [
            {"placeholder": f"{{{{{secret.kind}:{secret.name}}}}}", "sites": list(secret.sites)}
            for secret in found
            if secret.kind != "plugin"
        ]

    def _resolve(self, text: str, origin: str) -> str:
        return fill(text, lambda kind, name: self._value(kind, name, origin))

    def _value(self, kind: Kind, name: str, origin: str) -> str:
        placeholder = f"{{{{{kind}:{name[:80]}}}}}"
        store = self._store
        secret = store.find(name) if store is not None else None
        if store is None or secret is None or secret.kind != kind:
            names = ", ".join(each["placeholder"] for each in self.listed()) or "none"
            raise CommandFailed(
                f"There is no secret {placeholder}. Nothing was typed.",
                hint=f"There is: {names}. The person adds one with: tabhub secret set NAME --site SITE",
            )
        if not _covers(secret, origin):
            raise CommandFailed(
                f"{placeholder} may not be used on {origin}. Nothing was typed.",
                hint=f"Its sites: {', '.join(secret.sites)}. Only the person can change them: tabhub secret set {name}",
            )
        value = store.value(secret)
        if kind == "secret":
            self._mask.add(name, value)
            return value
        code = Totp.parse(value).code(self._wall())
        self._mask.add_code(name, code)
        return code


def _covers(secret: NamedSecret, origin: str) -> bool:
    try:
        rules = SiteRules(SiteRule(SitePattern.parse(site), None, "act") for site in secret.sites)
    except SetupError:  # a site of another version, or of a file that was changed
        return False
    return rules.rule(origin, None) is not None


def conceal_secret(ctx: CallContext, target: ActionableElement, text: Any) -> None:
    """Keep what an agent itself types into a field for secrets out of the audit log."""
    if target.facts.get("secret") and isinstance(text, str) and not has_placeholder(text):
        ctx.conceal(text)


def is_secret(text: Any) -> bool:
    return isinstance(text, str) and has_placeholder(text)
