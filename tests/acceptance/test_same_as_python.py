"""Scripts run by `orchestrator run` as by `python`: output, exit code and written files are the same."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.acceptance.support import SPARK_TIMEOUT_S, Shell
from tests.class_archive import session_environment

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

HELPER = """
WORD = "helper"

def shout(text):
    return text.upper() + "!"
"""

JOB = """
import argparse, atexit, dataclasses, logging, multiprocessing, os, sys, threading, warnings
from pathlib import Path

from pyspark.sql import SparkSession, functions as F
from pyspark.sql.types import StringType

import helper
from folder import inner

logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(levelname)s %(name)s %(message)s")
log = logging.getLogger(__name__)


@dataclasses.dataclass
class Order:
    name: str

    def label(self):
        return helper.shout(self.name)


def mark(text):
    return Order(text).label() + helper.WORD + inner.NUMBER


def square(n):
    return n * n


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--date", required=True)
    parser.add_argument("rest", nargs="*")
    return parser.parse_args()


def main():
    arguments = parse()
    log.info("date %s rest %s", arguments.date, arguments.rest)
    print(Path(sys.argv[0]).name, Path(__file__).name, __name__, __spec__, __package__, __doc__)
    print(sys.modules["__main__"].Order is Order, Path.cwd().name)
    print("gr\\u00fc\\u00dfe \\u65e5\\u672c", flush=True)
    spark = SparkSession.builder.appName("mine").config("spark.sql.shuffle.partitions", "3").getOrCreate()
    print(spark.conf.get("spark.sql.shuffle.partitions"), spark.conf.get("spark.app.name"))
    orders = spark.read.csv("orders.csv", header=True)
    marked = orders.select(F.udf(mark, StringType())("name").alias("name")).orderBy("name")
    marked.show()
    print(spark.sparkContext.parallelize([Order("x")], 1).map(Order.label).collect())
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(square, [1, 2, 3]))
    marked.coalesce(1).write.mode("overwrite").csv("out")
    Path("notes.txt").write_text("done")
    atexit.register(print, "at exit")
    threading.Thread(target=lambda: print("thread")).start()
    spark.stop()
    print("stopped")


if __name__ == "__main__":
    main()
"""


@dataclass(frozen=True)
class Result:
    code: int
    stdout: str
    stderr: str
    files: dict[str, str]


def with_python(shell: Shell, *arguments: str) -> Result:
    """The script by the Python of the tests, with the small Spark of tests."""
    environment = {
        **os.environ,
        **session_environment(),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    done = subprocess.run(
        [sys.executable, *arguments],
        check=False,
        cwd=shell.directory,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SPARK_TIMEOUT_S,
    )
    return Result(done.returncode, done.stdout, done.stderr, written(shell.directory))


def of_script(output: str) -> list[str]:
    """The lines without those of Py4J, which logs at INFO how many connections there were."""
    return [line for line in output.splitlines() if not line.startswith("INFO py4j.")]


def written(folder: Path) -> dict[str, str]:
    found = [*folder.glob("out/part-*"), *folder.glob("*.txt")]
    return {path.name.partition("-")[0]: path.read_text("utf-8") for path in found}


def by_orchestrator(shell: Shell, file: str, *arguments: str) -> Result:
    ended = shell.type("run", file, "--id", "same", "--", *arguments, timeout=SPARK_TIMEOUT_S)
    logs = [shell.type("job", "logs", "same", "--stream", name).stdout for name in ("stdout", "stderr")]
    code = shell.type("job", "show", "same", "-o", "json").json()["attempts"][-1].get("exit_code", 0)
    assert ended.code == (1 if code else 0), "the exit code of the command says whether the job succeeded"
    return Result(code, logs[0], logs[1], written(shell.directory))


def test_a_script_prints_writes_and_sees_the_same(shell: Shell) -> None:
    shell.write("helper.py", HELPER)
    (shell.directory / "folder").mkdir()
    shell.write("folder/inner.py", "NUMBER = '1'\n")
    shell.write("orders.csv", "name\nann\nbob\n")
    shell.write("job.py", JOB)
    arguments = ("--date", "2026-01-01", "a b", "")
    plain = with_python(shell, "job.py", *arguments)
    assert plain.code == 0, plain.stderr
    assert "ANN!helper1" in plain.stdout
    for path in shell.directory.glob("out/*"):
        path.unlink()
    ours = by_orchestrator(shell, "job.py", *arguments)
    assert of_script(ours.stdout) == of_script(plain.stdout)
    assert ours.code == plain.code
    assert ours.files == plain.files


def test_usage_of_a_script_names_it(shell: Shell) -> None:
    shell.write("job.py", JOB)
    shell.write("helper.py", HELPER)
    (shell.directory / "folder").mkdir()
    shell.write("folder/inner.py", "NUMBER = '1'\n")
    plain, ours = with_python(shell, "job.py"), by_orchestrator(shell, "job.py")
    assert (ours.code, plain.code) == (2, 2)
    for line in plain.stderr.splitlines():
        assert line in ours.stderr
