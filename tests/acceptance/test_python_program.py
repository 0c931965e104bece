"""A Python program runs as `python job.py` would run it, with a Spark session that is there already."""

import pytest

from tests.acceptance.support import SPARK_TIMEOUT_S, Desk

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

PROGRAM = """
import sys, threading, time
import neighbour
from pyspark.sql import SparkSession

print("stdin:", repr(sys.stdin.read()))
print("neighbour:", neighbour.WORD, open("words.txt").read())
print("arguments:", sys.argv[1:])
session = SparkSession.builder.getOrCreate()
print("rows:", session.range(5).count())
print("to stderr", file=sys.stderr)

def last_words():
    time.sleep(1)
    print("the thread has ended with", session.range(3).count())  # Spark is there as long as it works

threading.Thread(target=last_words).start()
sys.exit("no rows for today")
"""


def test_a_program_finds_what_it_would_find_by_itself_and_is_waited_for(desk: Desk) -> None:
    desk.write("neighbour.py", "WORD = 'hello'\n")
    desk.write("words.txt", "from a file")
    desk.write("job.py", PROGRAM)
    desk.write("job.yaml", "name: job\npython: job.py\narguments: [a, 1]\nretry: {attempts: 1, on: [lost]}\n")
    ended = desk.type("run", "job.yaml", "--id", "program", timeout=SPARK_TIMEOUT_S)
    assert ended.code == 1
    assert "error: no rows for today" in ended.stderr
    stdout = desk.type("job", "logs", "program", "--stream", "stdout").stdout
    assert stdout.splitlines() == [
        "stdin: ''",
        "neighbour: hello from a file",
        "arguments: ['a', '1']",
        "rows: 5",
        "the thread has ended with 3",
    ]
    stderr = desk.type("job", "logs", "program", "--stream", "stderr").stdout
    assert "to stderr" in stderr
    assert "no rows for today" in stderr
