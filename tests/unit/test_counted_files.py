"""What a stream keeps of its counts: numbers by run, and the files that several queries read."""

import json
from pathlib import Path
from typing import Any, cast

import pytest

from spark_runner.connectors.errors import ConnectorError
from spark_runner.sql.execution.counted_files import CountedFiles
from spark_runner.sql.execution.stream_counts import NOTHING, StreamCounts

NO_SESSION = cast("Any", None)  # the folders of this host need none


def numbers(rows: int) -> dict[str, int]:
    return {"rows": rows, "quarantined": 1, "dropped": 0}


def counts_of(folder: Path, run: str) -> StreamCounts:
    return StreamCounts(NO_SESSION, f"file:{folder}", run)


def test_a_repeated_batch_replaces_its_numbers(tmp_path: Path) -> None:
    first = counts_of(tmp_path, "run")
    assert first.total("src") == NOTHING
    assert first.keep("src", "a", 0, numbers(5))["rows"] == 5
    assert first.keep("src", "b", 0, numbers(2))["rows"] == 7
    again = counts_of(tmp_path, "run")
    assert again.keep("src", "a", 0, numbers(4))["rows"] == 6
    assert again.keep("src", "a", 1, numbers(10)) == {"rows": 16, "quarantined": 3, "dropped": 0}


def test_a_batch_that_another_run_repeats_is_its_own(tmp_path: Path) -> None:
    one = counts_of(tmp_path, "one")
    one.keep("src", "a", 0, numbers(5))
    one.keep("src", "a", 1, numbers(3))
    two = counts_of(tmp_path, "two")
    two.keep("src", "a", 1, numbers(3))
    two.keep("src", "a", 2, numbers(8))
    assert two.total("src")["rows"] == 11
    assert counts_of(tmp_path, "one").total("src")["rows"] == 5


def test_the_numbers_of_the_last_hundred_runs_are_kept(tmp_path: Path) -> None:
    for run in range(102):
        counts_of(tmp_path, f"run{run}").keep("src", "a", run, numbers(1))
    assert counts_of(tmp_path, "run1").total("src") == NOTHING
    assert counts_of(tmp_path, "run2").total("src") == numbers(1)


@pytest.mark.parametrize("text", ["{", "[]", '{"run": 1}', '{"run": {"ended": {}, "last": {}}}'])
def test_damaged_numbers_are_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "numbers.json").write_text(text)
    with pytest.raises(ConnectorError, match=r"numbers\.json' is damaged"):
        counts_of(tmp_path, "run").total("src")


def test_a_file_is_new_for_the_batch_that_has_counted_it_alone(tmp_path: Path) -> None:
    files = CountedFiles(counts_of(tmp_path, "run"), "src")
    assert files.new(["x", "y"], "a-0") == {"x", "y"}
    files.keep("A", "a-0", ["x", "y"], ["x", "y"])
    again = CountedFiles(counts_of(tmp_path, "run"), "src")
    assert again.new(["x", "y", "z"], "b-0") == {"z"}
    assert again.new(["x", "y"], "a-0") == {"x", "y"}, "it repeats the batch"
    assert CountedFiles(counts_of(tmp_path, "other"), "src").new(["x"], "b-0") == {"x"}


def test_files_that_all_queries_have_read_are_forgotten_one_batch_later(tmp_path: Path) -> None:
    files = CountedFiles(counts_of(tmp_path, "run"), "src")
    readers = {"A", "B"}
    files.keep("A", "a-0", ["x"], ["x"])
    files.keep("B", "b-0", ["x"], [])
    files.keep("A", "a-1", ["y"], ["y"])
    files.forget_read(readers)
    assert files.new(["x"], "b-0") == set(), "a repeated batch of B must not count it"
    files.keep("B", "b-1", ["y"], [])
    files.forget_read(readers)
    assert sorted(each.name for each in (tmp_path / "src").iterdir()) == ["a-1"]
    files.forget()
    assert list((tmp_path / "src").iterdir()) == []


def test_files_of_runs_that_are_no_longer_known_are_removed(tmp_path: Path) -> None:
    old, known = counts_of(tmp_path, "old"), counts_of(tmp_path, "known")
    known.keep("src", "a", 1, numbers(1))
    CountedFiles(old, "src").keep("A", "a-0", ["x"], ["x"])
    CountedFiles(known, "src").keep("A", "a-1", ["y"], ["y"])
    CountedFiles(counts_of(tmp_path, "run"), "src")
    assert sorted(each.name for each in (tmp_path / "src").iterdir()) == ["a-1", "numbers.json"]


def test_a_damaged_list_of_files_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "src" / "a-0").mkdir(parents=True)
    (tmp_path / "src" / "a-0" / "0").write_text(json.dumps({"run": "run"}))
    with pytest.raises(ConnectorError, match="a-0/0' is damaged"):
        CountedFiles(counts_of(tmp_path, "run"), "src")
