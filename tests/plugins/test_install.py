"""Installing from an HTTP registry and from files: verified, completely or not at all, without running scripts."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tabhub.errors import PackageNotFound, PluginError, RegistryError, RegistryUnset
from tabhub.plugins.install import Installer
from tabhub.plugins.npm import Registry, find_registry
from tests.plugins.packages import NpmRegistry, files, tarball


@pytest.fixture
def registry() -> Iterator[NpmRegistry]:
    with NpmRegistry() as running:
        yield running


@pytest.fixture
def installer(registry: NpmRegistry, tmp_path: Path) -> Installer:
    return Installer(tmp_path / "plugins", lambda: Registry(registry.url))


def test_search_returns_only_plugins(registry: NpmRegistry, installer: Installer) -> None:
    registry.publish("slack")
    registry.publish("jira", package="@opentabs-dev/opentabs-plugin-jira")
    assert [(each.package, each.name) for each in installer.search("jira")] == [
        ("@opentabs-dev/opentabs-plugin-jira", "jira")
    ]
    assert {each.name for each in installer.search("")} == {"slack", "jira"}


def test_install_update_and_remove(registry: NpmRegistry, installer: Installer, tmp_path: Path) -> None:
    registry.publish("demo", "1.0.0", package="@opentabs-dev/opentabs-plugin-demo")
    plugin = installer.install("demo")
    assert (plugin.name, plugin.version, plugin.source) == ("demo", "1.0.0", "npm")
    assert installer.update("demo") == (None, "1.0.0")
    assert installer.updates() == ([], [])
    registry.publish("demo", "1.1.0", package="@opentabs-dev/opentabs-plugin-demo")
    (update,), _ = installer.updates()
    assert (update.name, update.version, update.newest) == ("demo", "1.0.0", "1.1.0")
    fresh, before = installer.update("demo")
    assert fresh is not None
    assert (before, fresh.version) == ("1.0.0", "1.1.0")
    assert [each.version for each in installer.installed()] == ["1.1.0"]
    assert installer.install("demo@1.0.0").version == "1.0.0"
    installer.remove("@opentabs-dev/opentabs-plugin-demo")
    assert installer.installed() == []
    assert [path.name for path in (tmp_path / "plugins").iterdir()] == []
    with pytest.raises(PluginError, match="No plugin named 'demo'"):
        installer.remove("demo")


def test_no_script_of_a_package_is_run_and_no_file_is_executable(
    registry: NpmRegistry, installer: Installer, tmp_path: Path
) -> None:
    registry.publish("demo")
    installer.install("demo")
    there = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(path.name == "ran" for path in there)
    assert not any(os.access(path, os.X_OK) and path.stat().st_mode & 0o111 for path in there)


def test_tarball_with_a_wrong_hash_is_rejected(registry: NpmRegistry, installer: Installer) -> None:
    registry.publish("demo", "1.0.0")
    installer.install("demo")
    registry.publish("demo", "2.0.0")
    registry.spoilt.add("opentabs-plugin-demo")
    with pytest.raises(RegistryError, match="SHA-512 differs"):
        installer.update("demo")
    assert [each.version for each in installer.installed()] == ["1.0.0"]


def test_package_with_another_name_is_rejected(registry: NpmRegistry, installer: Installer) -> None:
    registry.packages["opentabs-plugin-demo"] = {"1.0.0": tarball(files("other", "1.0.0"))}
    with pytest.raises(PluginError, match="says it is opentabs-plugin-other"):
        installer.install("opentabs-plugin-demo")
    assert installer.installed() == []


def test_package_does_not_replace_another_of_the_same_name(registry: NpmRegistry, installer: Installer) -> None:
    registry.publish("demo")
    registry.publish("demo", package="@opentabs-dev/opentabs-plugin-demo")
    installer.install("opentabs-plugin-demo")
    with pytest.raises(PluginError, match="Another package, opentabs-plugin-demo"):
        installer.install("@opentabs-dev/opentabs-plugin-demo")


def test_missing_package_version_and_registry_are_reported(registry: NpmRegistry, installer: Installer) -> None:
    with pytest.raises(PackageNotFound, match="There is no package"):
        installer.install("nothing")
    registry.publish("demo")
    with pytest.raises(PackageNotFound, match=r"no version '9\.9\.9'"):
        installer.install("demo", "9.9.9")
    with pytest.raises(RegistryError, match="cannot be reached"):
        Registry("http://127.0.0.1:9").search("")


def test_a_tarball_on_disk_needs_no_registry(tmp_path: Path) -> None:
    package = tmp_path / "demo-1.0.0.tgz"
    package.write_bytes(tarball(files()))

    def nowhere() -> Registry:
        raise RegistryUnset

    installer = Installer(tmp_path / "plugins", nowhere)
    assert installer.install(str(package)).name == "demo"
    with pytest.raises(PluginError, match="installed from a file"):
        installer.update("demo")
    with pytest.raises(RegistryUnset, match="No npm registry is configured"):
        installer.install("demo")


def odd(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", size: int = 0) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, link, size
    return info


@pytest.mark.parametrize(
    "member",
    [
        odd("package/../../evil", size=1),
        odd("/etc/evil", size=1),
        odd("package/a\\..\\evil", size=1),
        odd("package/c:evil", size=1),
        odd("package/a\nb", size=1),
        odd("evil", size=1),
        odd("package/link", tarfile.SYMTYPE, "/etc/passwd"),
        odd("package/hard", tarfile.LNKTYPE, "package/package.json"),
        odd("package/pipe", tarfile.FIFOTYPE),
        odd("package/device", tarfile.CHRTYPE),
        odd("package/" + "d/" * 30 + "deep", size=1),
    ],
    ids=lambda info: repr(info.name),
)
def test_package_with_paths_outside_its_folder_is_rejected(member: tarfile.TarInfo, tmp_path: Path) -> None:
    package = tmp_path / "bad.tgz"
    package.write_bytes(tarball(files(), member))
    installer = Installer(tmp_path / "home/plugins", lambda: Registry("http://127.0.0.1:9"))
    with pytest.raises(PluginError):
        installer.install(str(package))
    assert list((tmp_path / "home/plugins").iterdir()) == []
    assert not any(path.name == "evil" for path in tmp_path.rglob("*"))


def test_oversized_or_broken_package_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tabhub.plugins.archive._MAX_BYTES", 100_000)
    package = tmp_path / "big.tgz"
    package.write_bytes(tarball(files(), odd("package/big", size=200_000)))
    installer = Installer(tmp_path / "plugins", lambda: Registry("http://127.0.0.1:9"))
    with pytest.raises(PluginError, match="larger than"):
        installer.install(str(package))
    (tmp_path / "broken.tgz").write_bytes(b"not a tarball")
    with pytest.raises(PluginError, match=r"not a readable \.tgz"):
        installer.install(str(tmp_path / "broken.tgz"))


def test_remains_of_a_killed_installation_are_removed(
    registry: NpmRegistry, installer: Installer, tmp_path: Path
) -> None:
    (tmp_path / "plugins/.new-abc").mkdir(parents=True)
    registry.publish("demo")
    installer.install("demo")
    assert [path.name for path in (tmp_path / "plugins").iterdir()] == ["demo"]


def test_the_registry_is_the_setting_or_npms_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    env = {"HOME": str(tmp_path), "PATH": "", "KEY": "t0ken"}
    with pytest.raises(RegistryUnset):
        find_registry(None, env)
    (tmp_path / ".npmrc").write_text(
        "; mine\nregistry = https://npm.example/repo/\n//npm.example/repo/:_authToken=${KEY}\n"
    )
    assert find_registry(None, env).url == "https://npm.example/repo/"
    assert find_registry(None, {**env, "NPM_CONFIG_REGISTRY": "https://env.example"}).url == "https://env.example/"
    assert find_registry("https://set.example", env).url == "https://set.example/"
    (tmp_path / ".npmrc").unlink()
    program = tmp_path / "npm"
    program.write_text("#!/bin/sh\necho https://default.example/\n")
    program.chmod(0o755)
    assert find_registry(None, {**env, "PATH": str(tmp_path)}).url == "https://default.example/"
    with pytest.raises(PluginError, match="not the URL of a registry"):
        find_registry("file:///x", env)
    with pytest.raises(PluginError, match="not the URL of a registry"):
        find_registry("http://[x", env)


def test_a_token_goes_to_its_registry_only(registry: NpmRegistry, tmp_path: Path) -> None:
    registry.publish("demo")
    host = registry.url.removeprefix("http:")
    (tmp_path / ".npmrc").write_text(f"{host}/:_authToken=t0ken\n")
    find_registry(registry.url, {"HOME": str(tmp_path), "PATH": ""}).release("opentabs-plugin-demo")
    assert registry.asked.pop() == ("/opentabs-plugin-demo", "Bearer t0ken")
    other = Registry("http://127.0.0.1:9", "t0ken")
    other._get(f"{registry.url}/opentabs-plugin-demo", 100_000, "")
    assert registry.asked.pop() == ("/opentabs-plugin-demo", None)
