"""The npm registry that plugins come from: search, versions, and verified packages.

Owns the requests to the registry and finding its URL: the setting `pluginRegistry`, or npm's own configuration. Its
answers are untrusted: sizes are bounded, and a tarball must have the SHA-512 that the registry announced.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urljoin, urlsplit

from tabhub import __version__
from tabhub.client_errors import HttpError, InvalidHttpResponse
from tabhub.core.descriptions import one_line
from tabhub.errors import PackageNotFound, ParseError, PluginError, RegistryError, RegistryUnset, VersionNotFound
from tabhub.net import download
from tabhub.plugins.model import name_of_package
from tabhub.wire import strict_json as strict
from tabhub.wire import urls

MB = 1024 * 1024
_MAX_ANSWER = 16 * MB
_MAX_TARBALL = 32 * MB
_STALL_TIMEOUT = 20.0
_DOWNLOAD_TIMEOUT = 600.0
_ACCEPT = "application/vnd.npm.install-v1+json, application/json;q=0.9, */*;q=0.8"
"""The short form of a package, where the registry has it."""
_RESULTS = 25
_VERSION = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+[0-9A-Za-z.+-]{0,60}")
_TAG = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,60}")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


@dataclass(frozen=True, slots=True)
class Release:
    """One version of a package."""

    package: str
    version: str
    tarball: str
    sha512: bytes


@dataclass(frozen=True, slots=True)
class Found:
    """One result of a search."""

    package: str
    name: str
    version: str
    description: str
    author: str


class Registry:
    """One npm registry."""

    def __init__(self, url: str, token: str | None = None) -> None:
        self.url = url.rstrip("/") + "/"
        self._token = token
        self._host = urlsplit(self.url).netloc

    def search(self, query: str) -> list[Found]:
        """Plugins that match the query; other packages are skipped."""
        text = quote(f"keywords:opentabs-plugin {query[:200]}".strip())
        answer = self._json(f"-/v1/search?text={text}&size={_RESULTS}")
        objects = answer.get("objects")
        found = []
        for each in objects[:_RESULTS] if isinstance(objects, list) else ():
            package = _object(_object(each).get("package"))
            with suppress(PluginError):
                name = str(package.get("name"))
                version, author = package.get("version"), _object(package.get("publisher")).get("username")
                description = one_line(str(package.get("description") or ""), 300)
                found.append(Found(name, name_of_package(name), _text(version), description, _text(author)))
        return found

    def release(self, package: str, version: str | None = None) -> Release:
        """A version of a package: by number or tag, else the latest."""
        name_of_package(package)
        facts = self._json(quote(package, safe="@"), package)
        versions, tags = facts.get("versions"), facts.get("dist-tags")
        if not isinstance(versions, Mapping) or not isinstance(tags, Mapping):
            raise RegistryError(f"{self.url} sent an invalid package document for {package}.")
        wanted: Any = version or "latest"
        if not _VERSION.fullmatch(wanted):
            wanted = tags.get(wanted) if _TAG.fullmatch(wanted) else None
        if not isinstance(wanted, str) or wanted not in versions:
            last = ", ".join(str(each) for each in list(versions)[-5:])
            raise VersionNotFound(f"{package} has no version {version or 'latest'!r}.", hint=f"The last ones: {last}.")
        dist = _object(_object(versions[wanted]).get("dist"))
        if (sha512 := _sha512(str(dist.get("integrity")))) is None:
            raise RegistryError(f"The registry has no SHA-512 for {package}, so the download cannot be verified.")
        return Release(package, wanted, self._tarball_url(str(dist.get("tarball") or ""), package), sha512)

    def download(self, release: Release) -> bytes:
        """The tarball of a version, verified by its SHA-512."""
        data = self._get(release.tarball, _MAX_TARBALL, release.package)
        if not hmac.compare_digest(hashlib.sha512(data).digest(), release.sha512):
            raise RegistryError(
                f"The package {release.package} {release.version} is not what the registry announced: "
                "its SHA-512 differs. Nothing was installed.",
                hint="Try again. If it happens again, do not trust the registry or the connection to it.",
            )
        return data

    def _tarball_url(self, given: str, package: str) -> str:
        """The absolute URL; it must use https or be on the registry itself."""
        with suppress(ValueError):
            url, own = urljoin(self.url, given), urlsplit(self.url)
            parts = urlsplit(url)
            if parts.scheme == "https" or (parts.scheme, parts.netloc) == (own.scheme, own.netloc):
                return url
        raise RegistryError(f"The registry has no usable tarball URL for {package}: {one_line(given, 200)!r}.")

    def _json(self, path: str, package: str = "") -> Mapping[str, Any]:
        raw = self._get(urljoin(self.url, path), _MAX_ANSWER, package)
        try:
            answer = strict.decode(raw)
        except ParseError as error:
            raise RegistryError(f"{self.url} is not an npm registry: {error.message}") from None
        if not isinstance(answer, Mapping):
            raise RegistryError(f"{self.url} is not an npm registry.")
        return answer

    def _get(self, url: str, max_body: int, package: str) -> bytes:
        if urlsplit(url).scheme not in ("http", "https"):
            raise RegistryError(f"{one_line(url, 200)!r} is not a web URL.")
        headers = {"User-Agent": f"tabhub/{__version__}", "Accept": _ACCEPT}
        if self._token and urlsplit(url).netloc == self._host:
            headers["Authorization"] = f"Bearer {self._token}"
        try:
            response = download.get(
                url, headers, timeout=_DOWNLOAD_TIMEOUT, stall_timeout=_STALL_TIMEOUT, max_body=max_body
            )
        except InvalidHttpResponse as error:
            raise RegistryError(f"The response of {self.url} cannot be used: {error}.") from None
        except (HttpError, ValueError) as error:
            raise RegistryError(
                f"{self.url} cannot be reached: {error}.",
                hint="Check the network and the setting pluginRegistry: tabhub config show",
            ) from None
        if response.status == 404 and package:
            raise PackageNotFound(
                f"There is no package {package} at {self.url}.", hint="Search for it: tabhub plugin search"
            )
        if not 200 <= response.status < 300:
            raise RegistryError(
                f"{self.url} answered with status {response.status}.",
                hint="The registry may not support this, or not permit it; the setting pluginRegistry names another. "
                "A package you have as a file: tabhub plugin install FILE.tgz",
            )
        return response.body


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: Any) -> str:
    return one_line(str(value or ""))


def _sha512(integrity: str) -> bytes | None:
    """The SHA-512 of an `integrity` value, which may list several hashes."""
    for each in integrity.split():
        kind, _, text = each.partition("-")
        with suppress(binascii.Error):
            digest = base64.b64decode(text, validate=True)
            if kind == "sha512" and len(digest) == hashlib.sha512().digest_size:
                return digest
    return None


def find_registry(setting: str | None, env: Mapping[str, str] = os.environ) -> Registry:
    """The registry from the setting, else from npm's configuration; otherwise RegistryUnset."""
    named = {key.lower(): value for key, value in env.items() if key.lower().startswith("npm_config_")}
    written = _npmrc(env)
    url = setting or named.get("npm_config_registry") or written.get("registry") or _ask_npm(env)
    if not url:
        raise RegistryUnset
    parts = urls.split(url)
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        raise PluginError(f"{one_line(url, 200)!r} is not the URL of a registry.", hint="It begins with https://")
    return Registry(url, written.get(f"//{parts.netloc}{parts.path.rstrip('/')}/:_authToken"))


def _npmrc(env: Mapping[str, str]) -> dict[str, str]:
    """The person's .npmrc: `key=value` lines, with `${NAME}` for environment variables."""
    home = env.get("HOME", "")
    path = Path(env.get("NPM_CONFIG_USERCONFIG") or env.get("npm_config_userconfig") or f"{home}/.npmrc")
    try:
        lines = path.read_text("utf-8", "replace")[:MB].splitlines()
    except OSError:
        return {}
    found = {}
    for line in lines:
        key, equals, value = line.partition("=")
        if equals and not line.lstrip().startswith(("#", ";")):
            found[key.strip()] = _VARIABLE.sub(lambda m: env.get(m[1], ""), value.strip().strip("\"'"))
    return found


def _ask_npm(env: Mapping[str, str]) -> str | None:
    """The registry that npm itself uses, which has a default."""
    npm = shutil.which("npm", path=env.get("PATH"))
    if npm is None:
        return None
    try:
        done = subprocess.run(
            [npm, "config", "get", "registry"], env=dict(env), capture_output=True, text=True, timeout=15, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    url = done.stdout.strip()
    return url if url.startswith(("http://", "https://")) else None
