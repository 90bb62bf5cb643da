"""docs/architecture.md walks through calls file by file; the files are those that scripts/walk records.

`python -m tests.docs.test_architecture_doc --write` updates the lists and counts. A file keeps its sentence on the
page; a new one gets the first line of its module docstring, to be edited on the page.
"""

from __future__ import annotations

import ast
import asyncio
import re
import sys
from pathlib import Path

import pytest
import uvloop

from tests.harness.walks import SOURCE, Step, Walk, record

PAGE = Path(__file__).resolve().parents[2] / "docs" / "architecture.md"
WALKTHROUGHS = ("list tabs", "click", "approval")
_ITEM = re.compile(r"^\d+\. `([^`]+)`: (.+)$", re.MULTILINE)


def section(page: str, name: str) -> str:
    """The text between the marks of one walkthrough."""
    return page.split(f"<!-- walk: {name} -->\n")[1].split("<!-- end -->")[0]


def files(page: str, name: str) -> tuple[str, ...]:
    return tuple(file for file, _ in _ITEM.findall(section(page, name)))


def first_line(file: str) -> str:
    docstring = ast.get_docstring(ast.parse((SOURCE / file).read_text(encoding="utf-8"))) or "undocumented."
    return docstring.splitlines()[0]


def rewritten(page: str, walk: Walk) -> str:
    """The page with one walkthrough updated."""
    mark = f"<!-- walk: {walk.name} -->\n"
    old = section(page, walk.name)
    sentences = dict(_ITEM.findall(page)) | dict(_ITEM.findall(old))
    items = (f"{n}. `{file}`: {sentences.get(file) or first_line(file)}" for n, file in enumerate(walk.files, 1))
    count = f"{len(walk.steps)} functions in {len(walk.files)} files:"
    return page.replace(mark + old, mark + "\n".join([count, "", *items, ""]))


@pytest.mark.parametrize("name", WALKTHROUGHS)
async def test_a_walkthrough_names_the_files_that_the_call_passes(name: str) -> None:
    expected = (await record(name)).files
    page = PAGE.read_text(encoding="utf-8")
    assert files(page, name) == expected, "run: .venv/bin/python -m tests.docs.test_architecture_doc --write"


def test_updating_keeps_sentences_and_takes_new_ones_from_docstrings() -> None:
    page = "<!-- walk: click -->\n1. `a.py`: Old.\n2. `wire/sse.py`: Kept.\n<!-- end -->\nrest\n"
    walk = Walk("click", tuple(Step(file, "f") for file in ("wire/sse.py", "wire/jsonrpc.py", "wire/sse.py")))
    assert rewritten(page, walk) == (
        "<!-- walk: click -->\n3 functions in 2 files:\n\n1. `wire/sse.py`: Kept.\n"
        f"2. `wire/jsonrpc.py`: {first_line('wire/jsonrpc.py')}\n<!-- end -->\nrest\n"
    )


def test_the_layers_on_the_page_are_the_folders_of_the_source() -> None:
    page = PAGE.read_text(encoding="utf-8")
    folders = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()}
    layers = page.split("## Layers")[1].split("##")[0]
    assert folders == set(re.findall(r"^\| `([a-z]+)/` \|", layers, re.MULTILINE))


def main() -> None:
    page = PAGE.read_text(encoding="utf-8")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        for name in WALKTHROUGHS:
            page = rewritten(page, runner.run(record(name)))
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__" and "--write" in sys.argv:
    main()
