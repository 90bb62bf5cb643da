"""HTTP requests that the hub makes for plugins, with their secret settings in them.

A plugin's adapter runs in the page's world, where nothing can be hidden from the page. So it names a secret,
`{{setting:KEY}}`, and the hub fills it in. Owns where a value may go: to the origins of `sendTo`, in the parts of
`sendIn`, over redirects to the same origin only, and never back: the response is masked. Whose request it is, is known
from the running call, not from what the page says.
"""

from __future__ import annotations

import asyncio
import json
import re
import ssl
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, quote_plus, urljoin, urlsplit

from tabhub.calls.engine import Context
from tabhub.client_errors import HttpError
from tabhub.core.origins import origin_of
from tabhub.errors import CommandFailed, InvalidArguments, PermissionDenied, RateLimited
from tabhub.limits import Limits
from tabhub.net.async_http import Bounds, Connections, Response
from tabhub.plugins.model import Field, Plugin
from tabhub.plugins.secret_settings import secret_name
from tabhub.plugins.settings import Setup
from tabhub.store.named_secrets import SHORTEST, SecretStore
from tabhub.trust.value_mask import ValueMask
from tabhub.upstream.transport.address_guard import AddressGuard
from tabhub.wire.page_tools import PluginRequest

_PLACEHOLDER = re.compile(r"\{\{([a-z]+):([^{}]{0,200})\}\}")
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
_OURS = frozenset(
    (
        "host",
        "connection",
        "content-length",
        "transfer-encoding",
        "upgrade",
        "te",
        "trailer",
        "expect",
        "keep-alive",
        "accept-encoding",
        "cookie",
    )
)
"""Headers that a plugin cannot set."""
_HIDDEN = frozenset(("set-cookie", "set-cookie2", "connection", "transfer-encoding", "content-length", "keep-alive"))
"""Headers that are not passed on."""
_MAX_HEADERS = 50
_MAX_HEADER = 8192
_MAX_HOPS = 5
_REDIRECTS = (301, 302, 303, 307, 308)
_GUIDE = "docs/guide.md, Plugins, says what a plugin's manifest has to declare."


@dataclass(frozen=True, slots=True)
class Requester:
    """Whose request it is."""

    plugin: Plugin
    setup: Setup
    ctx: Context

    def origins(self, item: Field) -> tuple[frozenset[str], frozenset[str]]:
        """Where a secret may be sent: by the manifest, and by the person's own `url` settings."""
        declared = frozenset(each for each in item.send_to if not each.isidentifier())
        urls = [url for key in item.send_to for url in _urls(self.setup.values.get(key))]
        return declared, frozenset(origin for url in urls if (origin := origin_of(url)) is not None)


@dataclass(frozen=True, slots=True)
class _Hop:
    """One HTTP request, with the values filled in."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None


@dataclass(eq=False)
class PluginRequests:
    """Makes the requests of all plugins."""

    store: SecretStore
    mask: ValueMask
    limits: Limits
    hosts: Callable[[], Collection[str]] = tuple
    """Private hosts that the person allowed (`upstreamHosts`)."""
    context: ssl.SSLContext | None = None
    _guard: AddressGuard = field(init=False)

    def __post_init__(self) -> None:
        self._guard = AddressGuard(self.hosts)

    async def send(self, who: Requester, request: PluginRequest, made: int) -> dict[str, Any]:
        """Make a request and return its masked response; `made` is how many the call has made before."""
        if made >= self.limits.plugin_requests:
            raise RateLimited(
                f"A call may make {self.limits.plugin_requests} requests (limits.plugin_requests).", retry_after=0
            )
        origin = self._origin(who, request)
        values = await asyncio.to_thread(self._values, who, request, origin)
        hop = _fill(request, values)
        mask = ValueMask()
        for key, value in values.items():
            name = f"{who.plugin.name}.{key}"
            mask.add(name, value)
            self.mask.add(name, value)
        connections = Connections(self.context, self._guard.resolve)
        try:
            async with asyncio.timeout(self.limits.plugin_request_time):
                return await self._follow(who, connections, hop, origin, mask)
        except TimeoutError:
            raise CommandFailed(
                f"{origin} did not answer within {self.limits.plugin_request_time:g} s (limits.plugin_request_time).",
                hint="Whether the request took effect is unknown.",
            ) from None
        except HttpError as error:
            raise CommandFailed(f"The request to {origin} failed: {mask.text(str(error))}.") from None
        finally:
            connections.close()

    def _origin(self, who: Requester, request: PluginRequest) -> str:
        """The origin of a request, after checking everything but its secrets."""
        if request.method.upper() not in _METHODS:
            raise InvalidArguments(f"The method must be one of {', '.join(_METHODS)}.")
        origin = origin_of(request.url)
        host = urlsplit(request.url).netloc if origin is not None else ""
        if origin is None or not request.url.startswith(("https://", "http://")) or "{" in host or "@" in host:
            raise InvalidArguments("The URL must be an http(s) URL without a user name, its host written out.")
        if not _is_printable_ascii(request.url.replace("{", "").replace("}", "")):
            raise InvalidArguments("The URL must be encoded: only printable ASCII characters, without spaces.")
        if len(request.headers) > _MAX_HEADERS:
            raise InvalidArguments(f"A request may have {_MAX_HEADERS} headers.")
        for name, value in request.headers.items():
            if not _HEADER.fullmatch(name) or name.lower() in _OURS:
                raise InvalidArguments(f"The header {name[:60]!r} cannot be set.")
            if len(value) > _MAX_HEADER or not value.isprintable():
                raise InvalidArguments(f"The header {name} is not one line of at most {_MAX_HEADER} characters.")
        if request.body is not None and len(request.body.encode()) > self.limits.plugin_request_bytes:
            raise InvalidArguments(
                f"The body is larger than {self.limits.plugin_request_bytes} bytes (limits.plugin_request_bytes)."
            )
        self._require_visible(who, origin)
        return origin

    @staticmethod
    def _require_visible(who: Requester, origin: str) -> None:
        if who.ctx.blocks(origin):
            raise PermissionDenied(
                f"A site rule keeps this agent off {origin}, so {who.plugin.display_name} cannot send anything there.",
                hint="The person changes it: tabhub site list",
            )

    def _values(self, who: Requester, request: PluginRequest, origin: str) -> dict[str, str]:
        """The values of all placeholders, each checked for the origin and the parts it is in."""
        values: dict[str, str] = {}
        texts = [
            ("url", request.url),
            *((k.lower(), v) for k, v in request.headers.items()),
            ("body", request.body or ""),
        ]
        for place, text in texts:
            for kind, key in _PLACEHOLDER.findall(text):
                if kind != "setting":
                    raise InvalidArguments(
                        f"{{{{{kind}:…}}}} cannot be used in a request of a plugin.",
                        hint="A plugin has only its own settings: {{setting:KEY}}.",
                    )
                item = self._setting(who, key, place)
                if key not in values:
                    values[key] = self._value(who, item, origin)
        if not values:
            raise InvalidArguments(
                "The request has no placeholder {{setting:KEY}}, so the hub does not make it.",
                hint="Use fetch() for requests without a secret.",
            )
        return values

    @staticmethod
    def _setting(who: Requester, key: str, place: str) -> Field:
        plugin = who.plugin
        item = next((each for each in plugin.fields if each.key == key and each.is_stored_apart), None)
        if item is None:
            own = ", ".join(each.key for each in plugin.fields if each.is_stored_apart) or "none"
            raise InvalidArguments(
                f"{plugin.display_name} has no secret setting {key[:60]!r}.", hint=f"Its secret settings: {own}."
            )
        if place not in item.send_in:
            where = place if place in ("url", "body") else f"header {place}"
            raise PermissionDenied(
                f"{key} may not be sent in the {where}, only in: {', '.join(item.send_in) or 'nothing'}.",
                hint=f"The plugin declares it: configSchema.{key}.sendIn. {_GUIDE}",
            )
        return item

    def _value(self, who: Requester, item: Field, origin: str) -> str:
        plugin = who.plugin
        declared, of_person = who.origins(item)
        if origin not in declared | of_person:
            known = ", ".join(sorted(declared | of_person)) or "nowhere"
            raise PermissionDenied(
                f"{item.key} may not be sent to {origin}, only to: {known}.",
                hint=f"The plugin declares it: configSchema.{item.key}.sendTo. {_GUIDE}",
            )
        again = f"The person sets it: tabhub plugin configure {plugin.name} {item.key}=…, or in the panel."
        stored = self.store.find(secret_name(plugin, item.key))
        if stored is None:
            raise CommandFailed(f"The setting {item.key} of {plugin.display_name} is not set.", hint=again)
        if origin not in of_person and origin not in stored.sites:
            raise PermissionDenied(
                f"{plugin.display_name} did not declare {origin} when the person set {item.key}.",
                hint=f"To agree to it, the person sets the value again. {again}",
            )
        value = json.loads(self.store.value(stored))
        if not isinstance(value, str) or len(value) < SHORTEST or not value.isprintable():
            raise CommandFailed(
                f"The setting {item.key} of {plugin.display_name} cannot be sent: it must be one line of at least "
                f"{SHORTEST} printable characters.",
                hint=again,
            )
        return value

    async def _follow(
        self, who: Requester, connections: Connections, hop: _Hop, origin: str, mask: ValueMask
    ) -> dict[str, Any]:
        bounds = Bounds(self.limits.plugin_request_time, self.limits.plugin_answer)
        for _ in range(_MAX_HOPS + 1):
            who.ctx.note_site(origin)
            async with connections.request(hop.method, hop.url, hop.headers, hop.body, bounds) as response:
                target = response.headers.get("location")
                if response.status not in _REDIRECTS or target is None:
                    return await _answer(response, hop, mask)
            hop = _redirected(hop, response.status, target, origin)
        raise CommandFailed(f"{origin} redirected more than {_MAX_HOPS} times.")


def _redirected(hop: _Hop, status: int, target: str, origin: str) -> _Hop:
    """The request that follows a redirect. Its headers have the secret, so it stays on the origin."""
    url = urljoin(hop.url, target).partition("#")[0]
    goes_to = origin_of(url)
    if goes_to != origin or "@" in urlsplit(url).netloc or not _is_printable_ascii(url):
        raise PermissionDenied(
            f"{origin} redirects to {goes_to or 'another place'}. Nothing was sent there: a secret is sent to the "
            "origin of the request only.",
            hint="Request the final URL, if the plugin declares its origin in sendTo.",
        )
    if status == 303 or (status in (301, 302) and hop.method == "POST"):
        kept = {name: value for name, value in hop.headers.items() if name.lower() != "content-type"}
        return _Hop("HEAD" if hop.method == "HEAD" else "GET", url, kept, None)
    return _Hop(hop.method, url, hop.headers, hop.body)


async def _answer(response: Response, hop: _Hop, mask: ValueMask) -> dict[str, Any]:
    """The response for the page: only text, so that it can be masked."""
    body = b"" if hop.method == "HEAD" else await response.body()
    encoding = response.headers.get("content-encoding", "identity")
    if body and encoding.lower() != "identity":
        raise CommandFailed(
            f"The response is compressed ({mask.text(encoding)[:40]}), although that was not asked for."
        )
    try:
        text = body.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise CommandFailed(
            "The response is not UTF-8 text. Only text can be checked for the secret, so nothing else is passed on."
        )
    headers = {name: mask.text(value) for name, value in response.headers.items() if name not in _HIDDEN}
    url = mask.text(hop.url)
    return {"status": response.status, "url": url, "headers": headers, "body": mask.text(text)}


def _fill(request: PluginRequest, values: Mapping[str, str]) -> _Hop:
    """Put the values in, each escaped for its place."""
    headers = {name: _filled(value, values, str) for name, value in request.headers.items()}
    kind = next((value.lower() for name, value in headers.items() if name.lower() == "content-type"), "")
    escape: Callable[[str], str] = str
    if "json" in kind:
        escape = _in_json
    elif "x-www-form-urlencoded" in kind:
        escape = quote_plus
    body = None if request.body is None else _filled(request.body, values, escape).encode()
    url = _filled(request.url, values, lambda value: quote(value, safe="")).partition("#")[0]
    return _Hop(request.method.upper(), url, {**headers, "accept-encoding": "identity"}, body)


def _filled(text: str, values: Mapping[str, str], escape: Callable[[str], str]) -> str:
    return _PLACEHOLDER.sub(lambda found: escape(values[found[2]]), text)


def _in_json(value: str) -> str:
    return json.dumps(value)[1:-1]


def _urls(value: Any) -> list[str]:
    """The URLs of a `url` setting in force."""
    return [url for url in value.values() if isinstance(url, str)] if isinstance(value, Mapping) else []


def _is_printable_ascii(text: str) -> bool:
    return text.isascii() and text.isprintable() and " " not in text
