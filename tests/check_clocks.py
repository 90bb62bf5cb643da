"""Finds tests that measure time or wait for a fixed time, because they fail on a busy machine for no reason.

Owns the rules and the two files that may read clocks. It parses the tests without importing them and needs only the
standard library:

    python tests/check_clocks.py    print the findings; exit code 1 with findings

Rejected are clocks for measuring (time.monotonic, perf_counter, loop.time() and the like), comparisons of a duration
(durationMs, elapsed, took), deadlines of Hypothesis, and sleeps of a fixed time. A line that needs one nevertheless
gives the reason, for reviewers:

    time.sleep(3600)  # clock: a server that never answers
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).resolve().parent
ALLOWED = ("harness/waiting.py", "harness/virtual_time.py")
INSTEAD = "wait for a condition with tests.harness.waiting, or measure it in bench/"
LONGEST_SLEEP = 0.05
CLOCKS = {
    "time": {name + ns for name in ("monotonic", "perf_counter", "process_time", "thread_time") for ns in ("", "_ns")},
    "os": {"times"},
    "resource": {"getrusage"},
}
METHODS = {"cpu_times", "cpu_percent"}
"""psutil's processes, whatever their variable is called."""
SLEEPS = {"time", "asyncio", "anyio"}
DURATIONS = {"duration", "durations", "elapsed", "took", "latency", "latencies"}
UNITS = {"seconds", "milliseconds"}
"""A duration when it is the whole name; freeInSeconds is a remaining time."""
COMMENT = re.compile(r"#\s*clock:\s*(.*)")


@dataclass(frozen=True, slots=True)
class Finding:
    """One place that reads a clock or waits for it."""

    file: str
    line: int
    what: str

    def __str__(self) -> str:
        return f"tests/{self.file}:{self.line}: {self.what}; {INSTEAD}"


@dataclass(frozen=True, slots=True)
class Report:
    """The findings, and how many places are excepted by a comment."""

    findings: tuple[Finding, ...]
    excepted: int


class _Names:
    """The names by which a file imports modules and functions, and its numeric constants."""

    def __init__(self, tree: ast.Module) -> None:
        self._modules: dict[str, str] = {}
        self._members: dict[str, tuple[str, str]] = {}
        self._numbers: dict[str, float] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for each in node.names:
                    self._modules[each.asname or each.name] = each.name
            elif isinstance(node, ast.ImportFrom) and node.module is not None:
                for each in node.names:
                    self._members[each.asname or each.name] = (node.module, each.name)
        for statement in tree.body:
            if isinstance(statement, ast.Assign) and (value := _number(statement.value)) is not None:
                names = (target.id for target in statement.targets if isinstance(target, ast.Name))
                self._numbers.update(dict.fromkeys(names, value))

    def member(self, node: ast.expr) -> tuple[str, str] | None:
        """The module and the name in it that an expression refers to, such as ("time", "monotonic")."""
        if isinstance(node, ast.Name):
            return self._members.get(node.id)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = self._modules.get(node.value.id)
            return (module, node.attr) if module is not None else None
        return None

    def number(self, node: ast.expr) -> float | None:
        """The value of a number or of a constant of this file."""
        return self._numbers.get(node.id) if isinstance(node, ast.Name) else _number(node)


def _number(node: ast.expr) -> float | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return float(node.value)
    return None


def find(source: str) -> list[tuple[int, int, str]]:
    """The clock uses of a file: first line, last line and description."""
    tree = ast.parse(source)
    names = _Names(tree)
    return sorted(
        (node.lineno, node.end_lineno or node.lineno, what)
        for node in ast.walk(tree)
        if isinstance(node, ast.expr | ast.stmt)
        for what in _problems(node, names)
    )


def _problems(node: ast.expr | ast.stmt, names: _Names) -> Iterator[str]:
    if isinstance(node, ast.Name | ast.Attribute):
        member = names.member(node)
        if member is not None and member[1] in CLOCKS.get(member[0], ()):
            yield f"reads the clock {'.'.join(member)}"
        elif isinstance(node, ast.Attribute) and node.attr in METHODS:
            yield f"reads processor times with {node.attr}"
    elif isinstance(node, ast.Import | ast.ImportFrom):
        imported = [each.name for each in node.names] if isinstance(node, ast.Import) else [node.module]
        if "timeit" in imported:
            yield "measures with timeit"
    elif isinstance(node, ast.Call):
        yield from _call_problems(node, names)
    elif isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Sub) and _reads_wall_clock(node.left, names) and names.number(node.right) is None:
            yield "measures with time.time()"
    elif isinstance(node, ast.Compare) and (name := _compared_duration(node)) is not None:
        yield f"compares the duration {name!r}"


def _call_problems(node: ast.Call, names: _Names) -> Iterator[str]:
    function = node.func
    member = names.member(function)
    if isinstance(function, ast.Attribute) and function.attr == "time" and member is None and not node.args:
        yield f"reads the clock {ast.unparse(function)}()"
    if member is not None and member[0] in SLEEPS and member[1] == "sleep" and node.args:
        length = names.number(node.args[0])
        if length is not None and length > LONGEST_SLEEP:
            yield f"waits for a fixed time: {'.'.join(member)}({length:g})"
    limits = [each.value for each in node.keywords if each.arg == "deadline" and names.number(each.value) is not None]
    if limits and ast.unparse(function).rpartition(".")[2] == "settings":
        yield "limits the time of an example"
    if isinstance(function, ast.Attribute) and function.attr == "wait_for_timeout":
        yield "waits for a fixed time: wait_for_timeout"


def _reads_wall_clock(node: ast.expr, names: _Names) -> bool:
    return isinstance(node, ast.Call) and names.member(node.func) in {("time", "time"), ("time", "time_ns")}


def _compared_duration(node: ast.Compare) -> str | None:
    """The first operand of < or > that is named like a duration; `>= 0` does not compare one."""
    operands = [node.left, *node.comparators]
    for left, operator, right in zip(operands, node.ops, operands[1:], strict=False):
        ordered = isinstance(operator, ast.Lt | ast.LtE | ast.Gt | ast.GtE)
        if not ordered or (isinstance(operator, ast.GtE) and _number(right) == 0):
            continue
        for side in (left, right):
            if (name := _duration(side)) is not None:
                return name
    return None


def _duration(node: ast.AST | None) -> str | None:
    """The name in an operand that identifies a duration: of a variable, an attribute or a key."""
    inner: list[ast.AST] = []
    name: object = None
    if isinstance(node, ast.Name):
        name = node.id
    elif isinstance(node, ast.Attribute):
        name, inner = node.attr, [node.value]
    elif isinstance(node, ast.Subscript):
        name, inner = getattr(node.slice, "value", None), [node.value]
    elif isinstance(node, ast.BinOp):
        inner = [node.left, node.right]
    elif isinstance(node, ast.GeneratorExp | ast.ListComp):
        inner = [node.elt]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
        name, inner = getattr(node.args[0], "value", None) if node.args else None, [node.func.value]
    elif isinstance(node, ast.Call) and getattr(node.func, "id", None) != "len":  # which counts durations
        inner = list(node.args)
    elif isinstance(node, ast.Await | ast.Starred):
        inner = [node.value]
    if isinstance(name, str) and _says_duration(name):
        return name
    return next((found for each in inner if (found := _duration(each)) is not None), None)


def _says_duration(name: str) -> bool:
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().strip("_").split("_")
    return not DURATIONS.isdisjoint(words) or (len(words) == 1 and words[0] in UNITS) or words[-2:] == ["started", "in"]


def comments(source: str) -> dict[int, str]:
    """The reasons in `# clock:` comments, by line."""
    found: dict[int, str] = {}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and (match := COMMENT.search(token.string)):
            found[token.start[0]] = match[1].strip()
    return found


def check_file(name: str, source: str) -> Report:
    """The problems of one file; a comment without a reason or without a clock is a problem, too."""
    try:
        found, reasons = find(source), comments(source)
    except (SyntaxError, tokenize.TokenError) as error:
        return Report((Finding(name, 1, f"cannot be parsed: {error}"),), 0)
    findings: set[Finding] = set()
    used: set[int] = set()
    for first, last, what in found:
        lines = reasons.keys() & set(range(first, last + 1))
        used |= lines
        if not lines:
            findings.add(Finding(name, first, what))
    findings |= {Finding(name, line, "a `# clock:` comment where no clock is read") for line in reasons.keys() - used}
    findings |= {Finding(name, line, "a `# clock:` comment without a reason") for line in used if not reasons[line]}
    return Report(tuple(sorted(findings, key=lambda each: each.line)), len(used))


def check(tests: Path) -> Report:
    """All files below a folder except the two that own waiting."""
    findings: list[Finding] = []
    excepted = 0
    for path in sorted(tests.rglob("*.py")):
        name = path.relative_to(tests).as_posix()
        if name not in ALLOWED:
            report = check_file(name, path.read_text(encoding="utf-8"))
            findings += report.findings
            excepted += report.excepted
    return Report(tuple(findings), excepted)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line; the exit code is 1 when a test reads a clock."""
    parser = argparse.ArgumentParser(description="Find tests that measure time or wait for a fixed time.")
    parser.add_argument("--tests", type=Path, default=TESTS, help="the folder of tests")
    report = check(parser.parse_args(arguments).tests)
    for finding in report.findings:
        print(finding, file=sys.stderr)
    print(f"clocks in tests: {len(report.findings)} found, {report.excepted} excepted by `# clock:` comments")
    return 1 if report.findings else 0


if __name__ == "__main__":
    raise SystemExit(main())
