"""The requirements checker, on small trees of its own and on the real one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.check_requirements import check, main, read_requirements, sync

ENTRY = """[[requirement]]
id = "{id}"
seed = "002"
section = "health"
text = "It answers."
"""
OPEN = 'status = "open"\nreason = "issue 2: the server"\n'
SETTLED = 'status = "settled"\nreason = "It is done otherwise."\n'


def tree(folder: Path, toml: str, test: str = "") -> Path:
    (folder / "requirements.toml").write_text(toml)
    (folder / "test_one.py").write_text("import pytest\n" + test)
    return folder / "requirements.toml"


def entry(number: int = 1, rest: str = "") -> str:
    return ENTRY.format(id=f"S002-health-{number:02d}") + rest + "\n"


def marked(*ids: str) -> str:
    listed = ", ".join(f'"{i}"' for i in ids)
    return f"@pytest.mark.req({listed})\nasync def test_it() -> None: ...\n"


def test_a_tree_of_shown_open_and_settled_requirements_passes(tmp_path: Path) -> None:
    file = tree(tmp_path, entry(1) + entry(2, OPEN) + entry(3, SETTLED), marked("S002-health-01"))
    report = check(file, tmp_path)
    assert report.problems == ()
    assert report.shown == {"S002-health-01": ["test_one.py:2 test_it"]}
    assert report.summary() == "requirements (shown/open/settled): 002 1/1/1; all 1/1/1"


def test_an_id_that_only_a_test_knows_is_named(tmp_path: Path) -> None:
    file = tree(tmp_path, entry(1, OPEN), marked("S002-health-99"))
    assert check(file, tmp_path).problems == ("test_one.py:2 test_it: S002-health-99 is not in requirements.toml",)


def test_a_requirement_neither_shown_nor_open_is_named(tmp_path: Path) -> None:
    (problem,) = check(tree(tmp_path, entry(1)), tmp_path).problems
    assert problem.startswith("S002-health-01: no test shows it")


def test_a_requirement_both_open_and_shown_is_named_with_its_test(tmp_path: Path) -> None:
    (problem,) = check(tree(tmp_path, entry(1, OPEN), marked("S002-health-01")), tmp_path).problems
    assert "S002-health-01: open, but shown by test_one.py:2 test_it" in problem


def test_a_settled_requirement_may_be_shown_as_well(tmp_path: Path) -> None:
    assert check(tree(tmp_path, entry(1, SETTLED), marked("S002-health-01")), tmp_path).problems == ()


def test_an_id_used_twice_is_named(tmp_path: Path) -> None:
    (problem,) = check(tree(tmp_path, entry(1, OPEN) + entry(1, OPEN)), tmp_path).problems
    assert "S002-health-01 is there 2 times" in problem


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('text = "It answers."', 'text = ""'), "`text` is missing"),
        (('seed = "002"\n', ""), "`seed` is missing"),
        (('id = "S002-health-01"', 'id = "health-1"'), "neither the form"),
        (('section = "health"', 'section = "audit"'), "does not start with S002-audit-"),
        (('status = "open"', 'status = "later"'), "neither open nor settled"),
        (('status = "open"\n', ""), "`reason` without `status`"),
        (('reason = "issue 2: the server"\n', ""), "open without a reason"),
        (("issue 2: ", ""), 'starts with "issue N: "'),
        (('seed = "002"', 'seed = "002"\ntests = []'), "unknown field tests"),
        (('id = "S002-health-01"', 'id = "F1"'), 'has seed = "matrix"'),
    ],
)
def test_a_malformed_entry_is_named_with_what_is_wrong(tmp_path: Path, change: tuple[str, str], said: str) -> None:
    toml = entry(1, OPEN)
    assert change[0] in toml
    _, problems = read_requirements(tree(tmp_path, toml.replace(*change)))
    assert len(problems) == 1
    assert said in problems[0]


def test_a_file_that_is_not_toml_is_reported(tmp_path: Path) -> None:
    (problem,) = check(tree(tmp_path, "[[requirement"), tmp_path).problems
    assert "cannot be read" in problem


@pytest.mark.parametrize("mark", ["@pytest.mark.req()", "@pytest.mark.req(NAME)", '@pytest.mark.req("L1", why="x")'])
def test_a_mark_that_cannot_be_read_is_reported(tmp_path: Path, mark: str) -> None:
    file = tree(tmp_path, entry(1, OPEN), f"{mark}\ndef test_it(): ...\n")
    assert any("test_one.py:2 test_it: " in p and "req" in p for p in check(file, tmp_path).problems)


def test_a_test_file_that_does_not_parse_is_reported(tmp_path: Path) -> None:
    (problem,) = check(tree(tmp_path, entry(1, OPEN), "def broken(:\n"), tmp_path).problems
    assert problem.startswith("test_one.py: cannot be parsed")


def test_marks_are_found_in_folders_in_module_marks_and_in_parameters(tmp_path: Path) -> None:
    file = tree(tmp_path, entry(1) + entry(2) + entry(3))
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "test_two.py").write_text(
        "import pytest\n"
        'pytestmark = pytest.mark.req("S002-health-01")\n'
        '@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.req("S002-health-02", "S002-health-03"))])\n'
        "def test_it(x): ...\n"
    )
    report = check(file, tmp_path)
    assert report.problems == ()
    assert report.shown["S002-health-01"] == ["deep/test_two.py:2"]
    assert set(report.shown) == {"S002-health-01", "S002-health-02", "S002-health-03"}


def test_sync_drops_open_from_what_is_shown_and_keeps_all_else(tmp_path: Path) -> None:
    before = "# why\n\n" + entry(1, OPEN) + "# between\n" + entry(2, OPEN) + entry(3, SETTLED)
    file = tree(tmp_path, before, marked("S002-health-01", "S002-health-03"))
    assert sync(file, check(file, tmp_path)) == ["S002-health-01"]
    assert file.read_text() == "# why\n\n" + entry(1) + "# between\n" + entry(2, OPEN) + entry(3, SETTLED)
    assert check(file, tmp_path).problems == ()


def test_the_command_prints_problems_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree(tmp_path, entry(1))
    assert main(["--tests", str(tmp_path)]) == 1
    printed = capsys.readouterr()
    assert "no test shows it" in printed.err
    assert printed.out.startswith("requirements (shown/open/settled): 002 0/0/0")


def test_the_command_syncs_lists_open_by_issue_and_shown_with_places(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tree(tmp_path, entry(1, OPEN) + entry(2, OPEN), marked("S002-health-01"))
    assert main(["--tests", str(tmp_path), "--sync", "--list-open", "--shown"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "no longer open: S002-health-01",
        "issue 2: the server (1)",
        "  S002-health-02: It answers.",
        "S002-health-01  test_one.py:2 test_it",
        "requirements (shown/open/settled): 002 1/1/0; all 1/1/0",
    ]


def test_the_real_file_is_well_formed_and_covers_all_documents() -> None:
    requirements, problems = read_requirements(Path(__file__).with_name("requirements.toml"))
    assert problems == []
    assert {r.seed for r in requirements} == {"000", "001", "002", "003", "004", "matrix"}


def test_every_requirement_is_shown_open_or_settled() -> None:
    here = Path(__file__).parent
    assert check(here / "requirements.toml", here).problems == ()
