"""The error table of docs/protocol.md is generated from errors.py: `python tests/docs/test_errors_doc.py --write`."""

from __future__ import annotations

import ast
import builtins
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

from tabhub import errors
from tabhub.errors import TabhubError

PAGE = Path(__file__).resolve().parents[2] / "docs" / "protocol.md"
SOURCE = Path(errors.__file__).parent
DEFINED_IN = {SOURCE / "errors.py", SOURCE / "client_errors.py"}
"""The second exists because the command line must start without importing the tree of `errors`."""
CONTROL_FLOW = {"InputRequired"}
"""Exceptions between modules that are not failures."""
BEGIN, END = "<!-- errors: begin -->", "<!-- errors: end -->"


def tree(kind: type[TabhubError]) -> Iterator[type[TabhubError]]:
    """The class and its subclasses, in the order of the source."""
    yield kind
    for below in kind.__subclasses__():
        if below.__module__ == errors.__name__:
            yield from tree(below)


def table() -> str:
    lines = ["| error | code | HTTP | category | outcome | retry | meaning |", "|---|---|---|---|---|---|---|"]
    for kind in tree(TabhubError):
        retry = "yes" if kind.retryable else ""
        meaning = (inspect.getdoc(kind) or "").splitlines()[0]
        lines.append(
            f"| {kind.__name__} | {kind.code} | {kind.status} | {kind.category} | {kind.outcome or ''} "
            f"| {retry} | {meaning} |"
        )
    return "\n".join(lines) + "\n"


def page() -> str:
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}\n{table()}{END}{after}"


def test_the_table_of_errors_equals_the_code() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python tests/docs/test_errors_doc.py --write"


def test_the_docstring_names_every_branch_of_the_tree() -> None:
    branches = {kind.__name__ for kind in TabhubError.__subclasses__() if kind.__subclasses__()}
    named = {word for line in (errors.__doc__ or "").splitlines() if "──" in line for word in line.split()}
    assert branches <= named, branches - named


def base_names(definition: ast.ClassDef) -> set[str]:
    """The base classes without their modules: `ssl.SSLError` counts as `SSLError`."""
    names = {base.id for base in definition.bases if isinstance(base, ast.Name)}
    return names | {base.attr for base in definition.bases if isinstance(base, ast.Attribute)}


def test_every_exception_that_leaves_its_module_is_defined_in_a_module_of_errors() -> None:
    definitions = [
        (path, node)
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    ]
    known = {name for name, value in vars(builtins).items() if isinstance(value, type)}
    exceptions = {name for name in known if issubclass(getattr(builtins, name), BaseException)}
    exceptions |= {
        name for _, node in definitions for name in base_names(node) if name.endswith(("Error", "Exception"))
    }
    size = 0
    while len(exceptions) != size:
        size = len(exceptions)
        exceptions |= {node.name for _, node in definitions if base_names(node) & exceptions}
    assert not [
        f"{path.relative_to(SOURCE)}: {node.name}"
        for path, node in definitions
        if base_names(node) & exceptions
        and path not in DEFINED_IN
        and not node.name.startswith("_")
        and node.name not in CONTROL_FLOW
    ]


if __name__ == "__main__" and "--write" in sys.argv:
    PAGE.write_text(page(), encoding="utf-8")
