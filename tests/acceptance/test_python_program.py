"""A Python program runs as with `python job.py`, and has a Spark session."""

import json
from pathlib import Path

import pytest

from tests.acceptance.support import SPARK_TIMEOUT_S, Shell

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

PROGRAM = """
import sys, threading, time
from pathlib import Path
import neighbour
from pyspark.sql import SparkSession

print("stdin:", repr(sys.stdin.read()))
print("neighbour:", neighbour.WORD, open("words.txt").read())
print("arguments:", sys.argv[1:])
session = SparkSession.builder.getOrCreate()
print("rows:", session.range(5).count())
orders = session.read.csv("orders.csv", header=True)
orders.write.parquet("out/x")
print("written:", session.read.parquet("out/x").count(), session.sql("TABLE csv.`orders.csv`").count())
in_task = session.sparkContext.parallelize([1], 1).map(lambda _: open("words.txt").read())
print("in a task:", in_task.collect())
Path(__file__).with_name("beside").write_text("its own file is the user's")
print("to stderr", file=sys.stderr)

def last_words():
    time.sleep(1)
    print("the thread has ended with", session.range(3).count())  # Spark is there as long as it works

threading.Thread(target=last_words).start()
sys.exit("no rows for today")
"""


def test_a_program_has_the_environment_of_plain_python_and_is_waited_for(shell: Shell) -> None:
    shell.write("neighbour.py", "WORD = 'hello'\n")
    shell.write("words.txt", "from a file")
    shell.write("orders.csv", "id\n1\n2\n")
    shell.write("job.py", PROGRAM)
    shell.write(
        "job.yaml", "name: job\npython: job.py\narguments: [a, 1]\nretry: {attempts: 1, on: [lost]}\n"
    )
    ended = shell.type("run", "job.yaml", "--id", "program", timeout=SPARK_TIMEOUT_S)
    assert ended.code == 1
    assert "error: no rows for today" in ended.stderr
    stdout = shell.type("job", "logs", "program", "--stream", "stdout").stdout
    assert stdout.splitlines() == [
        "stdin: ''",
        "neighbour: hello from a file",
        "arguments: ['a', '1']",
        "rows: 5",
        "written: 2 3",
        "in a task: ['from a file']",
        "the thread has ended with 3",
    ]
    stderr = shell.type("job", "logs", "program", "--stream", "stderr").stdout
    assert "to stderr" in stderr
    assert "no rows for today" in stderr
    # Files that Spark and Java create for themselves are not left in the user's folder.
    left = {path.name for path in shell.directory.iterdir()} - {"__pycache__", shell.state_dir.name}
    assert left == {"neighbour.py", "words.txt", "orders.csv", "job.py", "job.yaml", "out", "beside"}
    assert list((shell.directory / "out" / "x").glob("part-*"))


REFUSED = """
import os
from pyspark.sql import SparkSession

session = SparkSession.builder.getOrCreate()
orders = session.range(3)
words = "relative paths mean {meant}"

def attempt(act):
    try:
        act()
    except Exception as error:
        print(type(error).__name__, words in str(error))
    else:
        print("done")

"""
ELSEWHERE = (
    REFUSED.replace("{meant}", "the folder of the definition")
    + """
attempt(lambda: open("orders.csv"))
attempt(lambda: open("out.csv", "w"))
attempt(lambda: os.makedirs("out"))
attempt(lambda: session.read.csv("orders.csv"))
attempt(lambda: session.sql("TABLE csv.`orders.csv`"))
attempt(lambda: orders.write.parquet("out/x"))
attempt(lambda: orders.rdd.saveAsTextFile("out/y"))
attempt(lambda: session.read.csv("orders.csv", schema="a INT").collect())
attempt(lambda: orders.write.parquet("{absolute}/x"))
attempt(lambda: open("{absolute}/x/mine", "w").close())
"""
)


def test_without_the_folder_of_the_definition_a_relative_path_is_an_error_that_names_it(
    shell: Shell, tmp_path: Path
) -> None:
    program = ELSEWHERE.replace("{absolute}", str(tmp_path / "absolute"))
    document = {"name": "job", "python": {"text": program}, "directory": "/no/such/folder"}
    shell.write("job.json", json.dumps(document))
    ended = shell.type("run", "job.json", timeout=SPARK_TIMEOUT_S)
    assert ended.code == 0, ended
    assert ended.stdout.splitlines() == [
        *["FileNotFoundError True"] * 3,
        *["AnalysisException True"] * 2,
        *["Py4JJavaError True"] * 2,
        "AnalysisException True",
        *["done"] * 2,
    ]
    assert list((tmp_path / "absolute" / "x").glob("part-*"))


OTHER_FILE_SYSTEM = (
    REFUSED.replace("{meant}", "a folder of this host, and the default")
    + """
attempt(lambda: session.read.csv("orders.csv"))
attempt(lambda: orders.write.parquet("out/x"))
attempt(lambda: orders.rdd.saveAsTextFile("out/y"))
print(open("orders.csv").read(), session.read.csv("file:{folder}/orders.csv").count())
"""
)


def test_relative_paths_of_spark_are_errors_where_its_file_system_is_another_one(shell: Shell) -> None:
    shell.write("orders.csv", "1")
    shell.write("job.py", OTHER_FILE_SYSTEM.replace("{folder}", str(shell.directory)))
    conf = {"spark.hadoop.fs.defaultFS": "hdfs://localhost:9"}  # never contacted
    shell.write("job.json", json.dumps({"name": "job", "python": "job.py", "spark": {"conf": conf}}))
    ended = shell.type("run", "job.json", timeout=SPARK_TIMEOUT_S)
    assert ended.code == 0, ended
    *refused, read = ended.stdout.splitlines()
    assert [line.partition(" ")[2] for line in refused] == ["True"] * 3, refused
    assert read == "1 1"
    assert not (shell.directory / "out").exists()
