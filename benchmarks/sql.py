"""SQL scripts against the same job in PySpark, a statement set against single INSERTs; the time of lint.

The job reads a CSV file, keeps the last row of each order, and writes three Parquet targets. The peer is
plain PySpark. `hand_written` compares whole runs: a job through a worker, and spark-submit. One session of
Spark then runs all three jobs in turn, for `statement_set` and `hand_written_in_session`. `lint_seconds` is
the check of 2,000 lines, without the start of Python. Last line: JSON, ratios of medians.

    python benchmarks/sql.py [--rows 1000000] [--rounds 5] [--whole-runs 4]
"""

import argparse
import inspect
import json
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

from orchestrator.sql.columns.check import column_errors
from spark_runner.sql.compiler.compile import check_script, compile_script
from spark_runner.sql.execution.execution import execute

COLUMNS = "id BIGINT, customer STRING, price DOUBLE, day DATE"
QUERIES = {
    "large": "SELECT id, customer, price FROM priced WHERE price > 900",
    "days": "SELECT day, count(*) AS orders, sum(price) AS total FROM priced GROUP BY day",
    "customers": "SELECT customer, max(price) AS highest FROM priced GROUP BY customer",
}
VIEW = (
    "SELECT id, customer, price, day FROM"
    " (SELECT *, row_number() OVER (PARTITION BY id ORDER BY day DESC, price) AS place FROM orders)"
    " WHERE place = 1"
)
LINES = 2_000


def declarations(folder: Path) -> str:
    """The tables and the view of the script."""
    targets = "".join(
        f"CREATE TABLE {name} USING parquet OPTIONS (path '{folder}/{name}');\n" for name in QUERIES
    )
    source = f"CREATE TABLE orders ({COLUMNS}) USING csv OPTIONS (path '{folder}/orders');\n"
    return f"{source}{targets}CREATE VIEW priced AS {VIEW};\n"


def script_text(folder: Path, *, as_set: bool) -> str:
    """The script, with single INSERTs or with a set."""
    inserts = "".join(f"INSERT OVERWRITE {name} {query};\n" for name, query in QUERIES.items())
    return declarations(folder) + (f"EXECUTE STATEMENT SET BEGIN\n{inserts}END;" if as_set else inserts)


def run_script(spark: SparkSession, folder: Path, *, as_set: bool) -> None:
    """The job as a script, with single INSERTs or as a set."""
    text = script_text(folder, as_set=as_set)
    plan = compile_script(text, file="benchmark.sql", base_dir=str(folder), variables={})
    execute(spark, plan, lambda _phase: None)


def run_by_hand(spark: SparkSession, folder: Path) -> None:
    """The same job in PySpark."""
    write_by_hand(spark.newSession(), folder)


def write_by_hand(session: SparkSession, folder: Path) -> None:
    """The statements of the job in PySpark."""
    orders = session.read.csv(f"{folder}/orders", schema=COLUMNS, header=True, mode="FAILFAST")
    orders.createOrReplaceTempView("orders")
    session.sql(VIEW).createOrReplaceTempView("priced")
    for name, query in QUERIES.items():
        session.sql(query).write.mode("overwrite").option("compression", "zstd").parquet(f"{folder}/{name}")


def program_by_hand(folder: Path) -> str:
    """The same job as a program of its own."""
    body = inspect.getsource(write_by_hand)
    names = f"COLUMNS, VIEW, QUERIES = {COLUMNS!r}, {VIEW!r}, {QUERIES!r}\n"
    imports = "from pathlib import Path\nfrom pyspark.sql import SparkSession\n"
    session = "spark = SparkSession.builder.getOrCreate()\n"
    return f"{imports}{names}{body}{session}write_by_hand(spark, Path({str(folder)!r}))\nspark.stop()\n"


def long_script(most: int = LINES) -> str:
    """A script of at most that many lines: tables, and views of several lines."""
    lines = ["CREATE TABLE shown USING print;"]
    number = 0
    while len(lines) < most - 6:
        number += 1
        lines += [
            f"CREATE TABLE t{number} ({COLUMNS})",
            f"  USING csv OPTIONS (path 'in/{number}', header true);",
            f"CREATE VIEW v{number} AS",
            "SELECT a.id, a.customer, sum(a.price) AS total  -- per customer",
            f"FROM t{number} a JOIN t{max(1, number - 1)} b ON a.id = b.id",
            "GROUP BY a.id, a.customer;",
        ]
    return "\n".join([*lines, f"INSERT INTO shown TABLE v{number}"])


def lint(script: str) -> None:
    """The check of a script and of its columns, as `orchestrator sql lint` makes it; it finds nothing."""
    found = check_script(script, file="lint.sql", base_dir="/data", variables={})
    if errors := [*found.errors, *column_errors(found)]:
        raise errors[0]


def seconds(work: Callable[[], object]) -> float:
    """Seconds of one call."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def main() -> None:
    """Alternate the jobs, and compare."""
    # The tests import the rest as a part of a package.
    from sql_whole_run import whole_runs  # noqa: PLC0415 - it loads the worker

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--whole-runs", type=int, default=4)
    arguments = parser.parse_args()
    script = long_script()

    taken_by_lint = statistics.median(seconds(lambda: lint(script)) for _ in range(arguments.rounds))
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    taken: defaultdict[str, list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        spark.range(arguments.rows).selectExpr(
            "id % 500000 AS id",
            "concat('customer-', id % 1000) AS customer",
            "round(rand(7) * 1000, 2) AS price",
            "date_add(DATE'2026-01-01', CAST(id % 365 AS INT)) AS day",
        ).write.csv(f"{folder}/orders", header=True)
        jobs: dict[str, Callable[[], None]] = {
            "hand_written": lambda: run_by_hand(spark, folder),
            "script": lambda: run_script(spark, folder, as_set=False),
            "statement_set": lambda: run_script(spark, folder, as_set=True),
        }
        for number in range(arguments.rounds + 1):
            for name, job in jobs.items():
                spent = seconds(job)
                if number:  # the first round compiles
                    taken[name].append(spent)
                    print(f"{name}: {spent:.2f} s")
        spark.stop()
        whole = whole_runs(
            folder, script_text(folder, as_set=False), program_by_hand(folder), arguments.whole_runs
        )
    medians = {name: statistics.median(spent) for name, spent in taken.items()}
    ratio = {
        "hand_written": whole["script"] / whole["hand_written"],
        "statement_set": medians["statement_set"] / medians["script"],
    }
    print(
        json.dumps(
            {
                "ratio": {name: round(value, 3) for name, value in ratio.items()},
                "lint_seconds": round(taken_by_lint, 3),
                "hand_written_in_session": round(medians["script"] / medians["hand_written"], 3),
                "whole_runs": {name: round(value, 2) for name, value in whole.items()},
                "medians": {name: round(value, 3) for name, value in medians.items()},
                "rows": arguments.rows,
            }
        )
    )


if __name__ == "__main__":
    main()
