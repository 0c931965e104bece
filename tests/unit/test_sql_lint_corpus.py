"""Lint of columns: a corpus of wrong scripts with their findings, and one of right scripts without any."""

from pathlib import Path

import pytest

from orchestrator.cli.sql.lint import findings
from tests.corpus.reading import right_scripts, wrong_scripts

WRONG = wrong_scripts()
RIGHT = right_scripts()


def found(folder: Path, text: str) -> list[tuple[int, int, str]]:
    """Line, column and message of each error."""
    file = folder / "script.sql"
    file.write_text(text)
    each = findings(str(file), {"secret": "hunter2"})
    return [(one.line, one.column, one.message) for one in each if one.severity == "error"]


def test_the_corpora_are_large() -> None:
    assert len(WRONG) >= 60
    assert len(RIGHT) >= 60


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_all_errors_of_a_wrong_script_are_found_at_their_places(number: int, tmp_path: Path) -> None:
    wrong = WRONG[number]
    lines = wrong.tables.count("\n")
    places = [
        (line - lines, column, message)
        for line, column, message in found(tmp_path, wrong.tables + wrong.text)
    ]
    assert places
    assert [place for place in places if not place[2].startswith("nothing to do")] == list(wrong.findings)


@pytest.mark.parametrize("number", range(len(RIGHT)))
def test_nothing_is_found_in_a_right_script(number: int, tmp_path: Path) -> None:
    assert found(tmp_path, RIGHT[number]) == []


def test_a_table_with_a_wrong_option_has_no_further_errors(tmp_path: Path) -> None:
    table = "CREATE TABLE t WITH ('connector'='csv', 'path'='t', 'update-mode'='upsert')"
    text = f"{table}; INSERT INTO t SELECT 1 a, 2 a"
    assert [each[:2] for each in found(tmp_path, text)] == [(1, 67)]
