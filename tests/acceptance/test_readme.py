"""What the README tells a new user to type, in a copy of the tree: `make run`."""

import csv
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest

from tests.acceptance.support import assert_no_traceback, assert_nothing_is_left
from tests.jobs_support import ENVIRONMENT_MARK, marked_processes
from tests.servers.zookeeper import unavailable

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

PROJECT = Path(__file__).parents[2]
MARK = "readme"
MAKE_RUN_TIMEOUT_S = 800
"""A minute or two; the download of Spark, 450 MB, is as quick as the network."""


@dataclass(frozen=True, slots=True)
class Made:
    """The copy of the tree, and what `make run` said in it."""

    tree: Path
    code: int
    stdout: str
    stderr: str


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    """The tree as git has it, and `make run` there, once for all tests of this module."""
    for tool in ("git", "make", "java"):
        if shutil.which(tool) is None:
            unavailable(f"`make run` is not tried: there is no {tool}")
    tree = tmp_path_factory.mktemp("readme") / "a copy"
    copy_tree(tree)
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("ORCHESTRATOR_", "ZOOKEEPER_HOSTS", "VIRTUAL_ENV", "PYTHON", "MAKE"))
    } | {
        "PYTHON": sys.executable,  # as a user does whose python3 is too old
        "XDG_STATE_HOME": str(tree.parent / "state"),
        "XDG_CONFIG_HOME": str(tree.parent / "config"),
        ENVIRONMENT_MARK: f"{MARK}-{tree}",
    }
    try:
        done = subprocess.run(
            ["make", "run"],
            cwd=tree,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=MAKE_RUN_TIMEOUT_S,
            check=False,
        )
        yield Made(tree, done.returncode, done.stdout, done.stderr)
    finally:
        for process in marked_processes(f"{MARK}-{tree}"):
            process.kill()


def copy_tree(target: Path) -> None:
    """The files of git and those it would take, without what is ignored: as a clone will have them."""
    listed = subprocess.run(
        ["git", "ls-files", "-coz", "--exclude-standard"],
        cwd=PROJECT,
        capture_output=True,
        check=False,
    )
    if listed.returncode:
        unavailable(f"`make run` is not tried: {PROJECT} is no checkout of git")
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (PROJECT / name).is_file():  # else removed, and not yet committed
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(PROJECT / name, target / name)


def test_make_run_shows_a_job_from_its_data_to_its_result(made: Made) -> None:
    assert made.code == 0, made.stdout + made.stderr
    assert_no_traceback(made.stderr)
    for state in ("accept", "running", "success", "finish"):
        assert f"  {state}" in made.stderr, made.stderr
    assert "delays_by_carrier_hour" in made.stdout
    assert "carriers_in_bad_weather" in made.stdout
    assert_nothing_is_left(f"{MARK}-{made.tree}")


def test_the_figures_are_those_of_the_data(made: Made) -> None:
    flights = made.tree / "examples/data/flights.parquet"
    output = made.tree / "examples/output"
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
