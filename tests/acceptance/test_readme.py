"""The first command of the README, in a copy of the tree: `make run`."""

import csv
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest

from tests.acceptance.support import assert_no_traceback, assert_nothing_is_left
from tests.jobs_support import ENVIRONMENT_MARK
from tests.servers.zookeeper import unavailable

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

PROJECT = Path(__file__).parents[2]
KEPT = {ENVIRONMENT_MARK, "ORCHESTRATOR_CACHE_DIR", "ORCHESTRATOR_CLASS_ARCHIVES", "SPARK_SUBMIT_OPTS"}
"""Settings of the tests that are kept: the process mark and the class archive (`tests.class_archive`)."""

MAKE_RUN_TIMEOUT_S = 800
"""A minute or two, plus the download of Spark, 450 MB."""


@dataclass(frozen=True, slots=True)
class Made:
    """The copy of the tree, and the output of `make run` in it."""

    tree: Path
    code: int
    stdout: str
    stderr: str


def make(target: str, tree: Path, *options: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run make in a copy of the tree, without settings of this environment."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in KEPT
        or not name.startswith(
            ("ORCHESTRATOR_", "ZOOKEEPER_HOSTS", "VIRTUAL_ENV", "PYTHON", "MAKE", "SPARK_")
        )
    }
    return subprocess.run(
        ["make", *options, target],
        cwd=tree,
        env=kept | environment | {"PYTHON": sys.executable},  # as for a user whose python3 is too old
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=MAKE_RUN_TIMEOUT_S,
        check=False,
    )


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tree as in git, after `make install`, the first step of `make run`: all downloads."""
    for tool in ("git", "make", "java"):
        if shutil.which(tool) is None:
            unavailable(f"`make run` is not tried: there is no {tool}")
    tree = tmp_path_factory.mktemp("readme") / "a copy"
    copy_tree(tree)
    steps = make("run", tree, "--dry-run").stdout
    assert re.search(r"-m venv .*pip install .*orchestrator run", steps, re.DOTALL), steps
    done = make("install", tree)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^installing \d+ packages into \.venv: ", done.stderr, re.MULTILINE)
    assert "source .venv/bin/activate" in done.stderr
    assert "orchestrator run" not in done.stdout, "it installs alone"
    return tree


@pytest.fixture
def made(installed: Path, tmp_path: Path, process_mark: str) -> Made:
    """The result of `make run`."""
    assert process_mark
    folders = {"XDG_STATE_HOME": str(tmp_path / "state"), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    done = make("run", installed, **folders)
    return Made(installed, done.returncode, done.stdout, done.stderr)


def copy_tree(target: Path) -> None:
    """Copy the files of git and the untracked ones that are not ignored, as a clone will have them."""
    listed = subprocess.run(
        ["git", "ls-files", "-coz", "--exclude-standard"],
        cwd=PROJECT,
        capture_output=True,
        check=False,
    )
    if listed.returncode:
        unavailable(f"`make run` is not tried: {PROJECT} is no checkout of git")
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (PROJECT / name).is_file():  # else the removal is not yet committed
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(PROJECT / name, target / name)


def test_make_run_takes_a_fresh_clone_to_true_figures(made: Made, process_mark: str) -> None:
    assert_nothing_is_left(process_mark)
    assert made.code == 0, made.stdout + made.stderr
    assert_no_traceback(made.stderr)
    for state in ("accept", "running", "success", "finish"):
        assert f"  {state}" in made.stderr, made.stderr
    for target in ("delays_by_carrier_hour", "carriers_in_bad_weather"):
        assert target in made.stdout
    assert_figures(made.tree / "examples")


def assert_figures(examples: Path) -> None:
    """Some figures of both results, against DuckDB; tests/integration checks all of them."""
    flights, output = examples / "data/flights.parquet", examples / "output"
    with duckdb.connect() as database:
        expected = database.execute(
            "SELECT carrier, count(*), count(*) - count(dep_delay), avg(dep_delay) "
            "FROM read_parquet(?) WHERE carrier IN ('UA', 'HA') AND hour = 10 GROUP BY ALL ORDER BY carrier",
            [str(flights)],
        ).fetchall()
        found = database.execute(
            "SELECT carrier, flights, cancelled, mean_delay "
            "FROM read_parquet(?) WHERE carrier IN ('UA', 'HA') AND hour = 10 ORDER BY carrier",
            [f"{output}/delays_by_carrier_hour/*.parquet"],
        ).fetchall()
        totals = database.execute(
            "SELECT sum(flights), sum(cancelled) FROM read_parquet(?)",
            [f"{output}/delays_by_carrier_hour/*.parquet"],
        ).fetchone()
        all_flights = database.execute(
            "SELECT count(*), count(*) - count(dep_delay), count(DISTINCT carrier) FROM read_parquet(?)",
            [str(flights)],
        ).fetchone()
    assert len(expected) == len(found) == 2
    for found_row, expected_row in zip(found, expected, strict=True):
        assert found_row[:3] == expected_row[:3]
        assert found_row[3] == pytest.approx(expected_row[3], rel=1e-9)
    assert all_flights is not None
    assert totals == all_flights[:2]
    (file,) = output.glob("carriers_in_bad_weather/part-*.csv")
    with file.open(newline="") as opened:
        assert len(list(csv.DictReader(opened))) == all_flights[2]
