"""The cost of running a script through the orchestrator instead of spark-submit alone.

The peer is `spark-submit` with the same Spark settings and a main file that runs the same SQL; ours is
`orchestrator run` with all its parts: ZooKeeper, queues, worker, shim, attempt, outcome. Both alternate in
one run; the ratio of the medians of wall time is the result. Last line: JSON.

    python benchmarks/run_overhead.py [ROUNDS]
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

SCRIPT = """
CREATE TABLE numbers (n INT) WITH ('connector' = 'inline', 'rows' = '[[1], [2], [3]]');
CREATE TABLE squares USING json OPTIONS (path 'squares');
INSERT OVERWRITE squares SELECT n, n * n AS square FROM numbers;
"""
PEER = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
spark.createDataFrame([(1,), (2,), (3,)], "n INT").createOrReplaceTempView("numbers")
rows = spark.sql("SELECT n, n * n AS square FROM numbers")
rows.write.mode("overwrite").json("squares")
"""


def spark_submit() -> str:
    """The program of the installed pyspark."""
    spec = find_spec("pyspark")
    assert spec is not None  # noqa: S101 - a dependency of the project
    assert spec.origin is not None  # noqa: S101 - likewise
    return str(Path(spec.origin).parent / "bin" / "spark-submit")


def seconds(command: list[str], directory: Path) -> float:
    """Wall time of a command that must succeed."""
    environment = {
        **os.environ,
        "ORCHESTRATOR_STATE_DIR": str(directory / "state"),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    started = time.monotonic()
    subprocess.run(command, cwd=directory, env=environment, check=True, capture_output=True)
    return time.monotonic() - started


def main() -> None:
    """Alternate both and print the ratio."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    times: dict[str, list[float]] = {"spark_submit": [], "orchestrator": []}
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        (directory / "job.sql").write_text(SCRIPT, encoding="utf-8")
        (directory / "peer.py").write_text(PEER, encoding="utf-8")
        commands = {
            "spark_submit": [spark_submit(), "--conf", "spark.ui.enabled=false", "peer.py"],
            "orchestrator": [sys.executable, "-m", "orchestrator", "run", "job.sql"],
        }
        for number in range(rounds + 1):
            for who, command in commands.items():
                spent = seconds(command, directory)
                print(f"round {number} {who:<13} {spent:6.2f} s" + ("  (warm-up)" if number == 0 else ""))
                if number:
                    times[who].append(spent)
    medians = {who: round(statistics.median(values), 2) for who, values in times.items()}
    ratio = round(medians["orchestrator"] / medians["spark_submit"], 2)
    print(json.dumps({"seconds": medians, "ratio": ratio, "rounds": rounds}))


if __name__ == "__main__":
    main()
