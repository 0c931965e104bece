"""From lines to records: a trace is one record, whatever parts a log is read in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.driver_logs.records import RecordKind, records

JAVA = b"""\
Exception in thread "main" java.lang.IllegalStateException: no rows
\tat org.example.Main.run(Main.java:7)
\tat java.base/java.lang.Thread.run(Thread.java:1583)
\tSuppressed: java.io.IOException: closed
\t\tat org.example.Main.close(Main.java:9)
Caused by: java.lang.RuntimeException: inner
\tat org.example.Main.read(Main.java:3)
\t... 12 more
"""
PYTHON = b"""\
Traceback (most recent call last):
  File "job.py", line 3, in <module>
    rows[0]
    ~~~~^^^
IndexError: list index out of range
"""
CHAINED = (
    PYTHON
    + b"""
During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "job.py", line 5, in <module>
    raise ValueError("no rows")
ValueError: no rows
"""
)
PY4J = b"""\
Traceback (most recent call last):
  File "job.py", line 9, in <module>
    spark.sql("x")
py4j.protocol.Py4JJavaError: An error occurred while calling o42.sql.
: org.apache.spark.SparkException: Job aborted
\tat org.apache.spark.X.y(X.scala:1)
Caused by: java.lang.RuntimeException: inner
\t... 3 more
"""
GROUP = b"""\
  + Exception Group Traceback (most recent call last):
  |   File "job.py", line 1, in <module>
  |     raise ExceptionGroup("two", errors)
  | ExceptionGroup: two (2 sub-exceptions)
  +-+---------------- 1 ----------------
    | ValueError: one
    +------------------------------------
"""
TRACES = [(JAVA, RecordKind.JAVA), *((trace, RecordKind.PYTHON) for trace in (PYTHON, CHAINED, PY4J, GROUP))]


@pytest.mark.parametrize(("trace", "kind"), TRACES)
def test_a_trace_is_one_record_between_lines(trace: bytes, kind: RecordKind) -> None:
    found = records(b"before\n" + trace + b"after\n", 100, whole=True)
    assert [(each.data, each.kind) for each in found] == [
        (b"before\n", RecordKind.LINE),
        (trace, kind),
        (b"after\n", RecordKind.LINE),
    ]
    assert [each.offset for each in found] == [100, 107, 107 + len(trace)]


@pytest.mark.parametrize("trace", [trace for trace, _ in TRACES])
def test_a_trace_that_is_still_being_written_is_not_taken_apart(trace: bytes) -> None:
    log = b"before\n" + trace
    for end in range(7, len(log)):
        found = records(log[:end], 0, whole=False)
        assert b"".join(each.data for each in found) in {b"before\n", b""}, log[:end]


def test_lines_that_only_look_like_a_trace_stay_separate() -> None:
    log = b"at work\n  at home\nTraceback (most recent call last): is what Python says\nthere is more\n\n"
    assert {each.kind for each in records(log, 0, whole=True)} == {RecordKind.LINE}


def test_a_line_without_its_end_comes_with_the_end_of_all() -> None:
    assert [each.data for each in records(b"a\nb\nc", 0, whole=False)] == [b"a\n"]
    assert [each.data for each in records(b"a\nb\nc", 0, whole=True)] == [b"a\n", b"b\n", b"c"]
    assert records(b"", 0, whole=True) == []


PIECES = [
    *(line + b"\n" for trace in (JAVA, CHAINED, PY4J, GROUP) for line in trace.splitlines()),
    *(b"\n", b"plain\n", b"  indented\n", b"\xff\xfe\r\n"),
    *(trace for trace, _ in TRACES),
]


@given(st.lists(st.sampled_from(PIECES), max_size=30), st.data())
def test_reading_again_finds_the_same_records(pieces: list[bytes], data: st.DataObject) -> None:
    log = b"".join(pieces)
    whole = records(log, 0, whole=True)
    assert b"".join(each.data for each in whole) == log
    seen = data.draw(st.integers(0, len(log)))
    taken = records(log[:seen], 0, whole=False)
    assert taken == whole[: len(taken)], "what was taken early is what all of it would have given"
    upto = sum(len(each.data) for each in taken)
    assert records(log[:upto], 0, whole=True) == taken, "and what is taken again after a crash"
    lines = log[: log[:seen].rfind(b"\n") + 1]
    quiet = records(lines, 0, whole=True)
    assert records(lines, 0, whole=True) == quiet
    begin = upto + sum(len(each.data) for each in records(log[upto:], upto, whole=True))
    assert begin == len(log)


@pytest.mark.parametrize("rest", [b"", b"Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\n"])
def test_a_private_key_is_one_record_and_one_that_is_cut_off_ends_with_it(rest: bytes) -> None:
    begin, body = b"key: -----BEGIN RSA PRIVATE KEY-----\n", b"QUJDREVGR0hJSktMTU5PUFFSU1RVVldY\nWVo=\n"
    key = begin + rest + body + b"-----END RSA PRIVATE KEY-----\n"
    assert [each.data for each in records(b"a b\n" + key + b"c d\n", 0, whole=True)] == [
        b"a b\n",
        key,
        b"c d\n",
    ]
    quoting = PYTHON.replace(b"list index out of range\n", begin) + rest + body
    assert [each.data for each in records(quoting + b"c d\n", 0, whole=True)] == [quoting, b"c d\n"]
    cut_off = begin + rest + body
    assert [each.data for each in records(cut_off + b"c d\n", 0, whole=True)] == [cut_off, b"c d\n"]
    assert [each.data for each in records(b"a b\n" + cut_off, 0, whole=False)] == [b"a b\n"]
