"""Rejects private and undocumented API of third-party packages: it may change with any release.

Owns the rules, the table of undocumented modules and the exceptions. It parses the code without importing it and needs
only the standard library:

    python tests/check_private_api.py    print the findings; exit code 1 with findings or outdated exceptions

Rejected are imports of modules or names that start with an underscore, access to such attributes of anything imported
from a package, and every import from a module in UNDOCUMENTED. The standard library and this project are not checked:
the first documents what it underscores (os._exit, sys._getframe), the second is ours.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("src", "tests", "bench", "scripts")
OURS = {"tabhub", "tests", "bench", "scripts", "plugin"}
UNDOCUMENTED = {
    "hypothesis.internal": "hypothesis and hypothesis.strategies are the API",
    "httptools.parser": "import from httptools",
    "mcp.cli": "the command line of the package, not an API",
    "orjson.orjson": "import from orjson",
    "prometheus_client.process_collector": "import ProcessCollector from prometheus_client",
    "uvicorn.config": "import Config from uvicorn",
    "uvicorn.lifespan": "uvicorn.Config and uvicorn.Server are the API",
    "uvicorn.loops": "uvicorn.Config and uvicorn.Server are the API",
    "uvicorn.protocols": "uvicorn.Config and uvicorn.Server are the API",
    "uvicorn.server": "import Server from uvicorn; ServerState is internal",
    "uvicorn.supervisors": "uvicorn.Config and uvicorn.Server are the API",
    "uvloop.loop": "import from uvloop",
    "websockets.connection": "deprecated alias of websockets.protocol",
    "websockets.headers": "websockets.server and websockets.client parse headers",
    "websockets.http": "deprecated",
    "websockets.imports": "internal",
    "websockets.legacy": "deprecated; use websockets.asyncio",
    "websockets.speedups": "websockets.protocol masks and unmasks frames",
    "websockets.streams": "internal",
    "websockets.utils": "websockets.protocol masks and unmasks frames",
}
EXCEPTIONS: set[tuple[str, str]] = set()
"""Files that use an undocumented module nevertheless. An entry that is no longer needed is an error."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One use of private API. `rule` is the module of UNDOCUMENTED, or the private name."""

    file: str
    line: int
    rule: str
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}"


def check_source(source: str, file: str) -> list[Finding]:
    try:
        tree = ast.parse(source, filename=file)
    except SyntaxError as error:
        return [Finding(file, error.lineno or 1, "", f"cannot be parsed: {error.msg}")]
    imported: dict[str, str] = {}
    findings: list[Finding] = []
    for line, path, name, target in _imports(tree):
        if _is_third_party(path):
            imported[name] = target
            findings += _judge_import(path, line, file)
    for node in ast.walk(tree):
        findings += _judge_attribute(node, imported, file)
    return findings


def _imports(tree: ast.Module) -> Iterator[tuple[int, str, str, str]]:
    """Every absolute import: its line, the dotted path it imports, the name it binds, and what that name stands for."""
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                for alias in node.names:
                    package = alias.name.partition(".")[0]
                    yield node.lineno, alias.name, alias.asname or package, alias.name if alias.asname else package
            case ast.ImportFrom(module=str(module), level=0):
                for alias in node.names:
                    path = f"{module}.{alias.name}"
                    yield node.lineno, path, alias.asname or alias.name, path
            case ast.Call(func=ast.Attribute(attr="import_module"), args=[ast.Constant(value=str(path)), *_]):
                yield node.lineno, path, "", path


def _is_third_party(path: str) -> bool:
    package = path.partition(".")[0]
    return package not in sys.stdlib_module_names and package not in OURS


def _is_private(name: str) -> bool:
    return name.startswith("_") and not (name.startswith("__") and name.endswith("__"))


def _judge_import(path: str, line: int, file: str) -> Iterator[Finding]:
    if any(_is_private(part) for part in path.split(".")):
        yield Finding(file, line, path, f"{path} is private; use documented API of the package")
    for module, advice in UNDOCUMENTED.items():
        if path == module or path.startswith(module + "."):
            yield Finding(file, line, module, f"{module} is undocumented: {advice}")


def _judge_attribute(node: ast.AST, imported: dict[str, str], file: str) -> Iterator[Finding]:
    """Judge `module._name`, `getattr(module, "_name")` and `package.undocumented_module`."""
    match node:
        case ast.Attribute(value=owner, attr=name):
            pass
        case ast.Call(func=ast.Name(id="getattr" | "setattr"), args=[owner, ast.Constant(value=str(name)), *_]):
            pass
        case _:
            return
    first, *rest = ast.unparse(owner).split(".")
    if first not in imported:
        return
    path = ".".join([imported[first], *rest, name])
    if _is_private(name):
        yield Finding(file, node.lineno, path, f"{path} is private; use documented API of the package")
    elif path in UNDOCUMENTED:
        yield Finding(file, node.lineno, path, f"{path} is undocumented: {UNDOCUMENTED[path]}")


def check(root: Path = ROOT) -> list[Finding]:
    """Check every Python file of the project, and that each exception is still needed."""
    findings: list[Finding] = []
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.py")):
            findings += check_source(path.read_text(encoding="utf-8"), path.relative_to(root).as_posix())
    used = {(finding.file, finding.rule) for finding in findings}
    findings = [finding for finding in findings if (finding.file, finding.rule) not in EXCEPTIONS]
    return findings + [
        Finding(file, 1, rule, f"no longer uses {rule}; delete its entry in EXCEPTIONS of tests/check_private_api.py")
        for file, rule in sorted(EXCEPTIONS - used)
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Reject private API of third-party packages.")
    parser.add_argument("--root", type=Path, default=ROOT, help="the folder of the project")
    findings = check(parser.parse_args(arguments).root)
    for finding in findings:
        print(finding, file=sys.stderr)
    return 1 if findings else 0


if __name__ == "__main__":
    raise SystemExit(main())
