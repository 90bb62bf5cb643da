"""Checks tests/requirements.toml against the tests: every requirement is shown by a test, open or settled.

Owns the format of the file and its rules. It parses the tests without importing them and needs only the standard
library, so it runs before anything is installed:

    python tests/check_requirements.py               check and print a summary; exit code 1 with problems
    python tests/check_requirements.py --list-open   list open requirements by issue
    python tests/check_requirements.py --shown       list shown requirements with their tests
    python tests/check_requirements.py --sync        remove entries from [open] that tests show
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).resolve().parent
ID = re.compile(r"S(?P<seed>00[0-4])(?:-[a-z0-9]+)+-\d{2}|[LFBAC][1-9]\d*")
REASON_OPEN = re.compile(r"issue \d+: \S")
TABLES = ("requirements", "settled", "open")


@dataclass(frozen=True, slots=True)
class Requirement:
    """One behaviour the product must have. `status` is "open", "settled" or None; the first two have a reason."""

    id: str
    text: str
    status: str | None = None
    reason: str | None = None

    @property
    def seed(self) -> str:
        match = ID.fullmatch(self.id)
        assert match is not None
        return match["seed"] or "matrix"


@dataclass(frozen=True, slots=True)
class Mark:
    """A requirement id in a test's `req` mark."""

    id: str
    where: str


@dataclass(frozen=True, slots=True)
class Report:
    """The requirements, where each is shown, and the problems found."""

    requirements: tuple[Requirement, ...]
    shown: dict[str, list[str]]
    problems: tuple[str, ...]

    def state(self, requirement: Requirement) -> str:
        if requirement.status == "settled":
            return "settled"
        if requirement.id in self.shown:
            return "shown"
        return requirement.status or "missing"

    def summary(self) -> str:
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        for requirement in self.requirements:
            counts[requirement.seed][self.state(requirement)] += 1
            counts["all"][self.state(requirement)] += 1
        parts = (f"{seed} {c['shown']}/{c['open']}/{c['settled']}" for seed, c in counts.items() if seed != "all")
        total = counts["all"]
        return (
            f"requirements (shown/open/settled): {', '.join(parts)}; "
            f"all {total['shown']}/{total['open']}/{total['settled']}"
        )


def read_requirements(path: Path) -> tuple[list[Requirement], list[str]]:
    """Read the file; returns its valid requirements and the problems of its format."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        return [], [f"{path.name}: cannot be read: {error}"]
    problems = [f"{path.name}: unknown table {name!r}" for name in content if name not in TABLES]
    texts, settled, opened = (_table(path, name, content.get(name, {}), problems) for name in TABLES)
    reasons = settled | opened
    malformed = [name for name in texts if not ID.fullmatch(name)]
    wrong = {
        "an id looks like S002-health-03 or, for a matrix row, like F12": malformed,
        'the reason of an open requirement starts with "issue N: "': [
            name for name, reason in opened.items() if not REASON_OPEN.match(reason)
        ],
        "is both settled and open": sorted(settled.keys() & opened.keys()),
        "has a reason but no text in [requirements]": [name for name in reasons if name not in texts],
    }
    problems += [f"{path.name}: {name}: {problem}" for problem, names in wrong.items() for name in names]
    statuses = dict.fromkeys(settled, "settled") | dict.fromkeys(opened, "open")
    requirements = [
        Requirement(name, text, statuses.get(name), reasons.get(name))
        for name, text in texts.items()
        if name not in malformed
    ]
    return requirements, problems


def _table(path: Path, name: str, table: object, problems: list[str]) -> dict[str, str]:
    if not isinstance(table, dict):
        problems.append(f"{path.name}: {name} is not a table")
        return {}
    valid = {key: text for key, text in table.items() if isinstance(text, str) and text.strip()}
    problems += [f"{path.name}: {key} in [{name}] is empty or not a string" for key in table if key not in valid]
    return valid


def read_marks(tests: Path) -> tuple[list[Mark], list[str]]:
    """Collect the ids in every `pytest.mark.req(...)` below a folder; returns them and the unreadable marks."""
    marks: list[Mark] = []
    problems: list[str] = []
    for path in sorted(tests.rglob("*.py")):
        name = path.relative_to(tests).as_posix()
        try:
            tree = ast.parse(path.read_text(encoding="utf-8"), filename=name)
        except (SyntaxError, UnicodeDecodeError) as error:
            problems.append(f"{name}: cannot be parsed: {error}")
            continue
        for owner, call in _marks(tree, ""):
            where = f"{name}:{call.lineno}" + (f" {owner}" if owner else "")
            if call.keywords or not call.args:
                problems.append(f"{where}: req takes one or more ids and no other arguments")
            for argument in call.args:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    marks.append(Mark(argument.value, where))
                else:
                    problems.append(f"{where}: write the ids of req as plain strings")
    return marks, problems


def _marks(node: ast.AST, owner: str) -> Iterator[tuple[str, ast.Call]]:
    """Every call of `pytest.mark.req`, with the name of the function it stands in or on."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        owner = node.name
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.req":
        yield owner, node
    for child in ast.iter_child_nodes(node):
        yield from _marks(child, owner)


def check(requirements_file: Path, tests: Path) -> Report:
    requirements, problems = read_requirements(requirements_file)
    marks, unreadable = read_marks(tests)
    problems += unreadable
    known = {r.id for r in requirements}
    shown: dict[str, list[str]] = defaultdict(list)
    for mark in marks:
        if mark.id in known:
            shown[mark.id].append(mark.where)
        else:
            problems.append(f"{mark.where}: {mark.id} is not in {requirements_file.name}")
    for requirement in requirements:
        if requirement.status is None and requirement.id not in shown:
            problems.append(f"{requirement.id}: no test shows it; mark one, or add a reason to [settled] or [open]")
        if requirement.status == "open" and requirement.id in shown:
            problems.append(f"{requirement.id}: open, but shown by {shown[requirement.id][0]}; run with --sync")
    return Report(tuple(requirements), dict(shown), tuple(problems))


def sync(requirements_file: Path, report: Report) -> list[str]:
    """Remove entries from [open] that tests show; every other line of the file stays as it is."""
    done = {r.id for r in report.requirements if r.status == "open" and r.id in report.shown}
    lines: list[str] = []
    table = ""
    for line in requirements_file.read_text(encoding="utf-8").splitlines(keepends=True):
        if line.startswith("["):
            table = line.strip()
        if not (table == "[open]" and line.partition("=")[0].strip() in done):
            lines.append(line)
    requirements_file.write_text("".join(lines), encoding="utf-8")
    return sorted(done)


def _print_open(report: Report) -> None:
    groups: dict[str, list[Requirement]] = defaultdict(list)
    for requirement in report.requirements:
        if report.state(requirement) == "open":
            groups[requirement.reason or ""].append(requirement)
    for reason in sorted(groups):
        print(f"{reason} ({len(groups[reason])})")
        for requirement in groups[reason]:
            print(f"  {requirement.id}: {requirement.text}")


def _print_shown(report: Report) -> None:
    for requirement in report.requirements:
        for where in report.shown.get(requirement.id, ()):
            print(f"{requirement.id}  {where}")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Check tests/requirements.toml against the tests.")
    parser.add_argument("--list-open", action="store_true", help="list open requirements by issue")
    parser.add_argument("--shown", action="store_true", help="list shown requirements with their tests")
    parser.add_argument("--sync", action="store_true", help="remove entries from [open] that tests show")
    parser.add_argument("--tests", type=Path, default=TESTS, help="the folder with the tests and requirements.toml")
    options = parser.parse_args(arguments)
    file: Path = options.tests / "requirements.toml"
    report = check(file, options.tests)
    if options.sync:
        done = sync(file, report)
        print(f"no longer open: {', '.join(done) or 'none'}")
        report = check(file, options.tests)
    if options.list_open:
        _print_open(report)
    if options.shown:
        _print_shown(report)
    for problem in report.problems:
        print(problem, file=sys.stderr)
    print(report.summary())
    return 1 if report.problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
