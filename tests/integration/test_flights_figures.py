"""The figures of examples/flights.sql, against other queries on the same data in DuckDB."""

import csv
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from spark_runner.sql.compiler.compile import compile_script
from spark_runner.sql.execution.execution import execute
from tests.spark_support import LocalSpark

pytestmark = pytest.mark.spark

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the examples, so that results are written outside of the project."""
    target = tmp_path_factory.mktemp("copy") / "examples"
    shutil.copytree(EXAMPLES, target, ignore=shutil.ignore_patterns("output"))
    return target


@pytest.fixture(scope="module")
def both(local_spark: LocalSpark, examples: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The results with another limit of visibility, and those of the unchanged script, run after it."""

    def run(**variables: str) -> list[dict[str, Any]]:
        script = examples / "flights.sql"
        plan = compile_script(
            script.read_text(), file=script.name, base_dir=str(script.parent), variables=variables
        )
        return execute(local_spark.session(), json.loads(json.dumps(plan)), lambda _: None)

    return run(bad_visibility="11"), run()


@pytest.fixture(scope="module")
def results(both: tuple[list[dict[str, Any]], list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Those of the unchanged script: nothing of the run before is left."""
    return both[1]


@pytest.fixture(scope="module")
def database(examples: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        for name in ("flights", "airlines", "airports", "planes", "weather"):
            path = examples / "data" / f"{name}.parquet"
            connection.read_parquet(str(path)).create_view(name)
        yield connection


def test_the_data_are_all_flights_of_2013(database: duckdb.DuckDBPyConnection) -> None:
    # As the documentation of the data set has them.
    query = """
        SELECT count(*), count(dep_delay), count(arr_delay), round(avg(dep_delay), 4),
               round(avg(arr_delay), 4), count(DISTINCT carrier), count(DISTINCT dest), sum(distance)::BIGINT
        FROM flights
    """
    figures = (336_776, 328_521, 327_346, 12.6391, 6.8954, 16, 105, 350_217_607)
    assert database.execute(query).fetchall() == [figures]
    for table, rows in {"airlines": 16, "airports": 1_458, "planes": 3_322, "weather": 26_115}.items():
        assert database.table(table).shape[0] == rows


def test_instants_fit_the_local_hours(database: duckdb.DuckDBPyConnection) -> None:
    query = """
        SELECT count(*) FROM flights
        WHERE timezone('America/New_York', time_hour) <> make_timestamp(year, month, day, hour, 0, 0)
    """
    assert database.execute(query).fetchall() == [(0,)]


def test_both_targets_are_reported(results: list[dict[str, Any]], examples: Path) -> None:
    assert [(result["target"], result["connector"], result["location"]) for result in results] == [
        ("delays_by_carrier_hour", "parquet", f"{examples}/output/delays_by_carrier_hour"),
        ("carriers_in_bad_weather", "csv", f"{examples}/output/carriers_in_bad_weather"),
    ]
    assert [result["rows"] for result in results] == [207, 16]
    assert all(len(result["preview"]) == 5 for result in results)


def test_delays_by_carrier_and_hour(
    results: list[dict[str, Any]], database: duckdb.DuckDBPyConnection
) -> None:
    written = database.read_parquet(f"{results[0]['location']}/*.parquet")
    assert written.columns == results[0]["columns"]
    # No joins and no aggregates by group: one correlated subquery per carrier and hour.
    expected = database.execute(
        """
        SELECT k.carrier, (SELECT name FROM airlines WHERE airlines.carrier = k.carrier), k.hour,
               len(delays), len(delays) - len(flown), list_avg(flown),
               list_aggregate(flown, 'quantile_cont', 0.9),
               len(list_filter(flown, lambda d: d > 15)) / nullif(len(flown), 0)
        FROM (SELECT carrier, hour, list(dep_delay) AS delays,
                     list_filter(delays, lambda d: d IS NOT NULL) AS flown
              FROM flights GROUP BY ALL) AS k
        ORDER BY k.carrier, k.hour
        """
    ).fetchall()
    found = written.order("carrier, hour").fetchall()
    assert len(found) == len(expected) == results[0]["rows"]
    for found_row, expected_row in zip(found, expected, strict=True):
        assert found_row[:5] == expected_row[:5]
        for one, other in zip(found_row[5:], expected_row[5:], strict=True):
            # Null where all flights were cancelled.
            assert one is None if other is None else one == pytest.approx(other, rel=1e-9)
    assert sum(row[3] for row in found) == 336_776
    assert sum(row[4] for row in found) == 336_776 - 328_521


def test_carriers_in_bad_weather(results: list[dict[str, Any]], database: duckdb.DuckDBPyConnection) -> None:
    (file,) = Path(results[1]["location"]).glob("part-*.csv")
    with file.open(newline="") as opened:
        header, *rows = list(csv.reader(opened))
    assert header == results[1]["columns"]
    # A semi-join on the bad hours, on local time; an hour is known by its airport, day and hour.
    expected = {
        airline: figures
        for airline, *figures in database.execute(
            """
            WITH known AS (
              SELECT *, timezone('America/New_York', time_hour) AS local FROM weather
            ), flown AS (
              SELECT (SELECT name FROM airlines a WHERE a.carrier = f.carrier) AS airline, dep_delay, origin,
                     make_timestamp(year, month, day, hour, 0, 0) AS local
              FROM flights f WHERE dep_delay IS NOT NULL
            ), good AS (
              SELECT airline, count(*) AS n, sum(dep_delay) AS minutes FROM flown WHERE (origin, local) IN (
                SELECT (origin, local) FROM known
                WHERE precip = 0 AND visib >= 3 AND (wind_gust IS NULL OR wind_gust < 30)) GROUP BY airline
            ), bad AS (
              SELECT airline, count(*) AS n, sum(dep_delay) AS minutes FROM flown WHERE (origin, local) IN (
                SELECT (origin, local) FROM known WHERE precip > 0 OR visib < 3 OR wind_gust >= 30
              ) GROUP BY airline
            )
            SELECT airline, good.n + coalesce(bad.n, 0), good.minutes / good.n, bad.minutes / bad.n,
                   bad.minutes / bad.n - good.minutes / good.n
            FROM good LEFT JOIN bad USING (airline)
            """
        ).fetchall()
    }
    assert [int(row[0]) for row in rows] == list(range(1, 17))
    assert {row[1] for row in rows} == set(expected)
    for _, airline, flights, *means in rows:
        assert int(flights) == expected[airline][0]
        for written, exact in zip(means, expected[airline][1:], strict=True):
            # Two decimals were written, and nothing where there was no flight.
            assert written == "" if exact is None else float(written) == pytest.approx(exact, abs=0.00501)
    by_extra = sorted(expected, key=lambda airline: -(expected[airline][3] or float("-inf")))
    assert [row[1] for row in rows] == by_extra


def test_a_variable_changes_the_outcome(both: tuple[list[dict[str, Any]], list[dict[str, Any]]]) -> None:
    ranked = both[0][1]
    assert ranked["preview"][0][3] is None  # no weather is good where 10 miles, the most there is, are bad
