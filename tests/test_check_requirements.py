"""The requirements checker, on small examples and on the real file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.check_requirements import check, main, read_requirements, sync

OPEN = "issue 2: the server"
SETTLED = "It is done otherwise."


def tree(folder: Path, toml: str, test: str = "") -> Path:
    (folder / "requirements.toml").write_text(toml)
    (folder / "test_one.py").write_text("import pytest\n" + test)
    return folder / "requirements.toml"


def ident(number: int) -> str:
    return f"S002-health-{number:02d}"


def entries(count: int = 1, settled: tuple[int, ...] = (), opened: tuple[int, ...] = ()) -> str:
    """The file for requirements 1 to `count`, with the numbers of the settled and open ones."""
    lines = ["[requirements]", *(f'{ident(n)} = "It answers."' for n in range(1, count + 1))]
    lines += ["[settled]", *(f'{ident(n)} = "{SETTLED}"' for n in settled)]
    lines += ["[open]", *(f'{ident(n)} = "{OPEN}"' for n in opened)]
    return "\n".join(lines) + "\n"


def marked(*ids: str) -> str:
    listed = ", ".join(f'"{i}"' for i in ids)
    return f"@pytest.mark.req({listed})\nasync def test_it() -> None: ...\n"


def test_a_tree_of_shown_open_and_settled_requirements_passes(tmp_path: Path) -> None:
    file = tree(tmp_path, entries(3, settled=(3,), opened=(2,)), marked("S002-health-01"))
    report = check(file, tmp_path)
    assert report.problems == ()
    assert report.shown == {"S002-health-01": ["test_one.py:2 test_it"]}
    assert report.summary() == "requirements (shown/open/settled): 002 1/1/1; all 1/1/1"


def test_an_unknown_id_in_a_test_is_reported(tmp_path: Path) -> None:
    file = tree(tmp_path, entries(opened=(1,)), marked("S002-health-99"))
    assert check(file, tmp_path).problems == ("test_one.py:2 test_it: S002-health-99 is not in requirements.toml",)


def test_a_requirement_without_test_or_reason_is_reported(tmp_path: Path) -> None:
    (problem,) = check(tree(tmp_path, entries()), tmp_path).problems
    assert problem.startswith("S002-health-01: no test shows it")


def test_an_open_requirement_that_is_shown_is_reported_with_its_test(tmp_path: Path) -> None:
    (problem,) = check(tree(tmp_path, entries(opened=(1,)), marked("S002-health-01")), tmp_path).problems
    assert "S002-health-01: open, but shown by test_one.py:2 test_it" in problem


def test_a_settled_requirement_may_be_shown_as_well(tmp_path: Path) -> None:
    assert check(tree(tmp_path, entries(settled=(1,)), marked("S002-health-01")), tmp_path).problems == ()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('"It answers."', '""'), "S002-health-01 in [requirements] is empty or not a string"),
        (('"It answers."', "7"), "S002-health-01 in [requirements] is empty or not a string"),
        (("S002-health-01 = ", "health-1 = "), "an id looks like S002-health-03"),
        (("S002-health-01 = ", "S005-health-01 = "), "an id looks like S002-health-03"),
        (("[settled]\n", '[settled]\nS002-health-01 = "Otherwise."\n'), "S002-health-01: is both settled and open"),
        (("[settled]\n", '[settled]\nS002-health-09 = "Otherwise."\n'), "S002-health-09: has a reason but no text"),
        (("[settled]\n", "[settled]\nS002-health-01 = true\n"), "S002-health-01 in [settled] is empty or not a string"),
        (("issue 2: ", ""), 'starts with "issue N: "'),
        (("[settled]", "[later]"), "unknown table 'later'"),
        (("[settled]\n", ""), None),
        (("[requirements]\n", "settled = 1\n[requirements]\n"), "cannot be read"),
        (("[open]\n", '[requirements]\nS002-health-01 = "x"\n[open]\n'), "cannot be read"),
        (("[settled]\n", 'S002-health-01 = "It answers again."\n'), "cannot be read"),
    ],
)
def test_a_malformed_file_is_reported(tmp_path: Path, change: tuple[str, str], message: str | None) -> None:
    toml = entries(opened=(1,))
    assert change[0] in toml
    _, problems = read_requirements(tree(tmp_path, toml.replace(*change, 1)))
    assert len([p for p in problems if message is None or message in p]) == (message is not None)


def test_a_file_that_is_not_toml_is_reported(tmp_path: Path) -> None:
    (problem,) = check(tree(tmp_path, "[requirements"), tmp_path).problems
    assert "cannot be read" in problem


@pytest.mark.parametrize("mark", ["@pytest.mark.req()", "@pytest.mark.req(NAME)", '@pytest.mark.req("L1", why="x")'])
def test_a_mark_that_cannot_be_read_is_reported(tmp_path: Path, mark: str) -> None:
    file = tree(tmp_path, entries(opened=(1,)), f"{mark}\ndef test_it(): ...\n")
    assert any("test_one.py:2 test_it: " in p and "req" in p for p in check(file, tmp_path).problems)


def test_a_test_file_that_does_not_parse_is_reported(tmp_path: Path) -> None:
    (problem,) = check(tree(tmp_path, entries(opened=(1,)), "def broken(:\n"), tmp_path).problems
    assert problem.startswith("test_one.py: cannot be parsed")


def test_marks_are_found_in_folders_in_module_marks_and_in_parameters(tmp_path: Path) -> None:
    file = tree(tmp_path, entries(3))
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


def test_sync_removes_what_is_shown_from_open_and_keeps_all_else(tmp_path: Path) -> None:
    before = "# why\n" + entries(3, settled=(3,), opened=(1, 2)) + "# end\n"
    file = tree(tmp_path, before, marked(ident(1), ident(3)))
    assert sync(file, check(file, tmp_path)) == [ident(1)]
    assert file.read_text() == "# why\n" + entries(3, settled=(3,), opened=(2,)) + "# end\n"
    assert check(file, tmp_path).problems == ()


def test_the_command_prints_problems_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree(tmp_path, entries())
    assert main(["--tests", str(tmp_path)]) == 1
    printed = capsys.readouterr()
    assert "no test shows it" in printed.err
    assert printed.out.startswith("requirements (shown/open/settled): 002 0/0/0")


def test_the_command_syncs_and_lists_open_and_shown_requirements(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tree(tmp_path, entries(2, opened=(1, 2)), marked("S002-health-01"))
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
