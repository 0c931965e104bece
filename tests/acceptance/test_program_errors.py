"""Errors of Python programs as their users see them, by real Spark."""

import json

import pytest

from tests.acceptance.support import SPARK_TIMEOUT_S, Shell

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

OF_A_TASK = """\
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

import own_helpers

spark = SparkSession.builder.getOrCreate()
try:
    spark.sql("SELECT nope FROM nowhere")
except Exception as error:
    print(type(error).__name__)
numbers = spark.createDataFrame([("x",)], ["a"]).select(udf(own_helpers.number, "int")("a"))
numbers.show()
"""
HELPERS = "def number(text):\n    return int(text)\n"


def test_an_error_of_a_task_begins_with_the_line_of_the_user_in_all_that_shows_it(shell: Shell) -> None:
    shell.write("own_helpers.py", HELPERS)
    shell.write("job.py", OF_A_TASK)
    ended = shell.type("run", "job.py", "--id", "fails", timeout=SPARK_TIMEOUT_S)
    head = "own_helpers.py:2: ValueError: invalid literal for int() with base 10: 'x'"
    assert ended.code == 1, ended
    assert f"error: {head}\n    return int(text)\n" in ended.stderr
    assert f'File "{shell.directory}/job.py", line 12, in <module>\n    numbers.show()' in ended.stderr
    assert f'File "{shell.directory}/own_helpers.py", line 2, in number' in ended.stderr
    for plumbing in ("py4j", "pyspark/", "spark_runner", "org.apache.spark", "runpy"):
        assert plumbing not in ended.stderr
    shown = shell.type("job", "show", "fails", "-o", "json")
    error = json.loads(shown.stdout)["error"]
    assert (error["type"], error["message"].splitlines()) == ("ValueError", [head, "    return int(text)"])
    assert "pyspark/" in shell.type("job", "logs", "fails").stdout, "the log has the frames of Spark"
