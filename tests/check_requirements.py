"""Compares tests/requirements.toml with the tests: every requirement is shown, open or settled, and none is made up.

Owns the file's form and the rules. It reads the tests as syntax trees and imports none of them, and it needs
nothing but the standard library, so it runs before anything is installed:

    python tests/check_requirements.py               check, and print a summary; exit code 1 with problems
    python tests/check_requirements.py --list-open   what is open, by issue
    python tests/check_requirements.py --shown       what is shown, and by which tests
    python tests/check_requirements.py --sync        drop `open` from what tests show by now
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
from typing import Any

TESTS = Path(__file__).resolve().parent
ID = re.compile(r"S00[0-4](?:-[a-z0-9]+)+-\d{2}|[LFB][1-9]\d*")
REASON_OPEN = re.compile(r"issue \d+: \S")
STATUSES = ("open", "settled")
NEEDED = ("id", "seed", "section", "text")


@dataclass(frozen=True, slots=True)
class Requirement:
    """One behaviour the product must have."""

    id: str
    seed: str
    section: str
    text: str
    status: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Mark:
    """A test's claim to show a requirement."""

    id: str
    where: str


@dataclass(frozen=True, slots=True)
class Report:
    """What the comparison found."""

    requirements: tuple[Requirement, ...]
    shown: dict[str, list[str]]
    problems: tuple[str, ...]

    def state(self, requirement: Requirement) -> str:
        """How a requirement counts: shown, open, settled or missing."""
        if requirement.status == "settled":
            return "settled"
        if requirement.id in self.shown:
            return "shown"
        return requirement.status or "missing"

    def summary(self) -> str:
        """One line: for every seed how many are shown, open and settled."""
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
    """The entries of the file, and what is wrong with its form."""
    try:
        entries = tomllib.loads(path.read_text(encoding="utf-8")).get("requirement", [])
    except (OSError, tomllib.TOMLDecodeError) as error:
        return [], [f"{path.name}: cannot be read: {error}"]
    kept: list[Requirement] = []
    problems: list[str] = []
    for number, entry in enumerate(entries, 1):
        wrong = _entry_problem(entry)
        if wrong is None:
            kept.append(Requirement(**entry))
        else:
            problems.append(f"{path.name}: entry {number} ({entry.get('id', 'without id')}): {wrong}")
    for name, count in Counter(r.id for r in kept).items():
        if count > 1:
            problems.append(f"{path.name}: {name} is there {count} times; give each entry an id of its own")
    return kept, problems


def _entry_problem(entry: dict[str, Any]) -> str | None:
    for name in NEEDED:
        if not isinstance(entry.get(name), str) or not entry[name].strip():
            return f"`{name}` is missing or not a text"
    unknown = set(entry) - {*NEEDED, "status", "reason"}
    if unknown:
        return f"unknown field {', '.join(sorted(unknown))}"
    if not ID.fullmatch(entry["id"]):
        return "the id has neither the form S002-health-03 nor that of a matrix row"
    if entry["id"].startswith("S"):
        expected = f"S{entry['seed']}-{entry['section']}-"
        if entry["id"][:-2] != expected:
            return f"the id does not start with {expected}"
    elif entry["seed"] != "matrix":
        return 'a matrix row has seed = "matrix"'
    status, reason = entry.get("status"), entry.get("reason")
    if status is None:
        return None if reason is None else "`reason` without `status`"
    if status not in STATUSES:
        return f"status {status!r} is neither open nor settled"
    if not isinstance(reason, str) or not reason.strip():
        return f"{status} without a reason"
    if status == "open" and not REASON_OPEN.match(reason):
        return 'the reason of an open entry starts with "issue N: "'
    return None


def read_marks(tests: Path) -> tuple[list[Mark], list[str]]:
    """All ids in `pytest.mark.req(...)` below a folder, and the marks that cannot be read."""
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
                problems.append(f"{where}: req takes one or more ids and nothing else")
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
    """Compare the file with the tests."""
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
            problems.append(f"{requirement.id}: no test shows it; mark one, or set status and reason")
        if requirement.status == "open" and requirement.id in shown:
            problems.append(f"{requirement.id}: open, but shown by {shown[requirement.id][0]}; run with --sync")
    return Report(tuple(requirements), dict(shown), tuple(problems))


def sync(requirements_file: Path, report: Report) -> list[str]:
    """Drop status and reason of open entries that tests show; everything else in the file stays as it is."""
    done = {r.id for r in report.requirements if r.status == "open" and r.id in report.shown}
    lines: list[str] = []
    dropping = False
    for line in requirements_file.read_text(encoding="utf-8").splitlines(keepends=True):
        if line.startswith("[["):
            dropping = False
        elif line.startswith("id = "):
            dropping = tomllib.loads(line)["id"] in done
        if not (dropping and line.startswith(("status = ", "reason = "))):
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
    """Run from the command line; the exit code is 1 when something is wrong."""
    parser = argparse.ArgumentParser(description="Compare tests/requirements.toml with the tests.")
    parser.add_argument("--list-open", action="store_true", help="print what is open, by issue")
    parser.add_argument("--shown", action="store_true", help="print what is shown, and where")
    parser.add_argument("--sync", action="store_true", help="drop `open` from what tests show by now")
    parser.add_argument("--tests", type=Path, default=TESTS, help="the folder of tests and requirements.toml")
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
