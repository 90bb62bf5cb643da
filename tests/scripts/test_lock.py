"""The lock files: complete, with a hash for every file, consistent with each other, and without registry addresses."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.apps.installation import NODE_APPS, PYTHON_APPS

ROOT = Path(__file__).parents[2]
FILES = ("dev", "runtime", "build")
APPS = ROOT / "tests" / "apps" / "environments"
SYSTEMS = ({"sys_platform": "linux"}, {"sys_platform": "darwin"}, {"sys_platform": "win32"})
_PIN = re.compile(r"([a-z0-9-]+)==([0-9a-z.]+)(?: ; (.+?))?((?: \\\n    --hash=sha256:[0-9a-f]{64})+)\n")


class Pin(NamedTuple):
    version: str
    marker: Marker | None
    hashes: frozenset[str]


def pins(name: str) -> dict[str, Pin]:
    """The pins of a lock file, all of which it must consist of."""
    text = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8")
    assert not _PIN.sub("", text), "a line that is not a pin with hashes"
    found = _PIN.findall(text)
    made = {
        package: Pin(version, Marker(marker) if marker else None, frozenset(hashes.split(" \\\n    --hash=")[1:]))
        for package, version, marker, hashes in found
    }
    assert len(made) == len(found)
    return made


def wanted(name: str) -> list[Requirement]:
    project: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
    runtime = project["project"]["dependencies"]
    build = project["build-system"]["requires"]
    dev = project["project"]["optional-dependencies"]["dev"]
    lists = {"runtime": runtime, "build": build, "dev": [*runtime, *dev, *build]}
    return [Requirement(each) for each in lists[name]]


@pytest.mark.parametrize("name", FILES)
def test_every_requirement_of_the_project_is_locked_at_a_version_that_fits(name: str) -> None:
    locked = pins(name)
    for requirement in wanted(name):
        pin = locked[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(pin.version), requirement
        for system in SYSTEMS:
            if requirement.marker is None or requirement.marker.evaluate(system):
                assert pin.marker is None or pin.marker.evaluate(system), (requirement, system)


def test_the_lock_files_agree() -> None:
    dev = pins("dev")
    for name in ("runtime", "build"):
        for package, pin in pins(name).items():
            assert (pin.version, pin.hashes) == (dev[package].version, dev[package].hashes), package
    assert set(pins("runtime")) < set(dev)


def test_dependencies_have_a_floor_and_a_ceiling() -> None:
    for requirement in (*wanted("runtime"), *wanted("build")):
        assert {each.operator for each in requirement.specifier} == {">=", "<"}, requirement


def test_node_packages_are_locked_with_hashes_and_without_a_registry() -> None:
    package = json.loads((ROOT / "package.json").read_text())
    lock = json.loads((ROOT / "package-lock.json").read_text())
    assert lock["lockfileVersion"] == 3
    packages: dict[str, dict[str, Any]] = lock["packages"]
    assert packages.pop("")["devDependencies"] == package["devDependencies"]
    assert {path.rpartition("node_modules/")[2] for path in packages} >= set(package["devDependencies"])
    for path, facts in packages.items():
        assert facts["integrity"].startswith("sha512-"), path
        assert "resolved" not in facts, path
        assert "://" not in json.dumps({**facts, "funding": None}), path
    assert {name.split("-")[0] for name in platforms(packages)} >= {"linux", "darwin", "win32"}


def platforms(packages: dict[str, dict[str, Any]]) -> set[str]:
    """The platforms that the TypeScript compiler is locked for: not only the one the file was written on."""
    return {path.partition("@typescript/typescript-")[2] for path in packages if "@typescript/typescript-" in path}


def test_setup_and_the_image_install_from_the_lock_files() -> None:
    setup, image = (ROOT / "scripts" / "setup").read_text(), (ROOT / "deploy" / "Dockerfile").read_text()
    assert "--require-hashes --only-binary :all: --requirement requirements/dev.txt" in setup
    assert "--no-deps --no-build-isolation --editable ." in setup
    assert 'ci --prefix "$folder" --ignore-scripts' in setup
    for file in ("runtime", "build"):
        assert f"--require-hashes --only-binary :all: -r requirements/{file}.txt" in image


@pytest.mark.parametrize("app", PYTHON_APPS)
def test_apps_are_locked_with_hashes(app: str) -> None:
    text = (APPS / f"{app}.txt").read_text(encoding="utf-8")
    assert not _PIN.sub("", text), "a line that is not a pin with hashes"
    # A package may have several versions, for different systems or Pythons.
    assert (APPS / f"{app}.in").read_text().strip() in {f"{found[1]}=={found[2]}" for found in _PIN.finditer(text)}


@pytest.mark.parametrize("app", NODE_APPS)
def test_node_apps_are_locked_with_hashes_and_without_a_registry(app: str) -> None:
    lock = json.loads((APPS / app / "package-lock.json").read_text())
    packages: dict[str, dict[str, Any]] = lock["packages"]
    assert packages.pop("")["dependencies"] == json.loads((APPS / app / "package.json").read_text())["dependencies"]
    fetched = [each for each in packages.values() if not each.get("inBundle")]
    assert all(each["integrity"].startswith("sha512-") for each in fetched)
    assert not any("resolved" in each for each in packages.values())
