"""Documents of driver output: fields, levels, limits, secrets."""

import json
from typing import Any

import pytest

from orchestrator.driver_logs.documents import Documents
from orchestrator.driver_logs.records import records
from orchestrator.logs.record.document import Days
from orchestrator.logs.record.redaction import Redactor
from orchestrator.logs.record.text import MAX_MESSAGE
from orchestrator.logs.spool.segments import MAX_RECORD_BYTES
from tests.unit.test_driver_log_records import JAVA, PY4J, PYTHON
from tests.unit.test_spark_log import line

EPOCH = 1_772_359_872.5  # 2026-03-01T10:11:12.5Z


def built(data: bytes, stream: str = "stderr", *secrets: str) -> dict[str, Any]:
    fields: dict[str, str | int] = {"job.id": "n", "job.attempt": 2, "x": ""}
    documents = Documents(Days("logs"), Redactor(secrets), stream, f"run-{stream}", fields)
    ((data, level),) = documents.build(records(data, 7, whole=True), EPOCH)
    action, document = map(json.loads, data.splitlines())
    assert action["create"]["_id"] == f"run-{stream}-7"
    return {"day": action["create"]["_index"], "number": level, **document}


def test_names_that_a_job_gives_to_threads_and_loggers_hold_no_secret() -> None:
    event = line(
        **{"process.thread.name": "pool of jdbc:x?password=hunter22", "log.logger": "org.known-secret.x"}
    )
    document = built(event, "stderr", "known-secret")
    assert document["process.thread.name"] == "pool of jdbc:x?password=***"
    assert document["log.logger"] == "org.***.x"


def test_a_line_says_when_where_and_whose_it_is() -> None:
    assert built(b"rows: 7\r\n", "stdout") == {
        "day": "logs-2026-03-01",
        "number": 20,
        "@timestamp": "2026-03-01T10:11:12.500000Z",
        "log.level": "info",
        "message": "rows: 7",
        "event.sequence": 7,
        "log.stream": "stdout",
        "job.id": "n",
        "job.attempt": 2,
    }


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("26/03/01 10:11:12 WARN Executor: slow", "warning"),
        ("WARNING: Using incubator modules", "warning"),
        ("ERROR:root:oh", "error"),
        ("FATAL no disk", "critical"),
        ("an error, in prose", "info"),
        ("x" * 100 + " ERROR", "info"),
    ],
)
def test_stderr_is_as_loud_as_its_line_says(text: str, level: str) -> None:
    assert built(text.encode())["log.level"] == level
    assert built(text.encode(), "stdout")["log.level"] == "info"


@pytest.mark.parametrize(
    ("trace", "message", "kind", "why"),
    [
        (PYTHON, "IndexError: list index out of range", "IndexError", "list index out of range"),
        (JAVA, JAVA.decode().splitlines()[0], "java.lang.IllegalStateException", "no rows"),
        (
            PY4J,
            "py4j.protocol.Py4JJavaError: An error occurred while calling o42.sql.",
            "py4j.protocol.Py4JJavaError",
            "An error occurred while calling o42.sql.",
        ),
    ],
)
def test_a_trace_says_what_was_raised(trace: bytes, message: str, kind: str, why: str) -> None:
    found = built(trace)
    assert (found["log.level"], found["message"]) == ("error", message)
    assert (found["error.type"], found["error.message"]) == (kind, why)
    assert found["error.stack_trace"] == trace.decode()


def test_an_event_of_spark_keeps_its_time_level_and_task() -> None:
    data = line(
        **{"@timestamp": "2026-03-02T00:00:00.000001Z", "error.stack_trace": "a.B: c\n\tat d\n"},
        task="task 3.1 in stage 7.0 (TID 42)",
    )
    found = built(data, "spark")
    assert (found["day"], found["@timestamp"]) == ("logs-2026-03-02", "2026-03-02T00:00:00.000001Z")
    assert (found["log.level"], found["log.logger"]) == ("warning", "org.apache.spark.executor.Executor")
    assert (found["message"], found["error.stack_trace"]) == ("two\nlines", "a.B: c\n\tat d\n")
    assert (found["error.type"], found["error.message"]) == ("a.B", "c")
    assert (found["spark.stage_id"], found["spark.task_id"]) == (7, 42)


@pytest.mark.parametrize("time", ["9999-12-31T00:00:00Z", "0001-01-01T00:00:00Z", "2031-01-01T00:00:00Z"])
@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Tokyo"])
def test_a_time_that_a_driver_has_made_up_opens_no_index_of_its_own(time: str, zone: str) -> None:
    documents = Documents(Days("logs", zone), Redactor(), "stderr", "run", {})
    data = line(**{"@timestamp": time})
    ((data, _),) = documents.build(records(data, 0, whole=True), EPOCH)
    action, document = map(json.loads, data.splitlines())
    assert action["create"]["_index"] == "logs-2026-03-01"
    assert document["@timestamp"] == "2026-03-01T10:11:12.500000Z"


def test_a_text_that_is_too_long_is_cut_with_a_mark_and_no_secret_is_cut_in_half() -> None:
    text = "a " * (MAX_MESSAGE // 2 - 4) + "hunter2-hunter2 and on"
    found = built(text.encode(), "stdout", "hunter2-hunter2")
    assert found["message"].endswith("*** and … [14 more characters]")
    assert "hunter" not in found["message"]


def test_bytes_that_are_no_text_are_replaced_and_secrets_masked() -> None:
    assert built(b"\xff ok \x00\n")["message"] == "\ufffd ok \x00"
    assert built(b"password=abcdef\n")["message"] == "password=***"
    masked = built(line(message="token=abcdef", **{"error.stack_trace": "a.B: password=x1\n"}), "spark")
    assert (masked["message"], masked["error.message"]) == ("token=***", "password=***")
    assert "x1" not in masked["error.stack_trace"]


def test_an_event_of_spark_on_stderr_is_one_as_in_its_own_log() -> None:
    event = built(line(task="task 3.1 in stage 7.0 (TID 42)", **{"log.level": "WARN"}))
    assert (event["log.level"], event["spark.stage_id"], event["spark.task_id"]) == ("warning", 7, 42)
    assert event["log.stream"] == "stderr"
    assert built(line(), "stdout")["message"].startswith('{"@timestamp"'), "what is printed stays as it is"


def test_a_line_of_an_executor_that_logs_in_text_names_its_task() -> None:
    text = built(b"26/11/22 10:00:00 INFO Executor: Running task 1.0 in stage 3.0 (TID 12)\n")
    assert (text["spark.stage_id"], text["spark.task_id"]) == (3, 12)


def test_the_longest_record_is_short_enough_for_a_spool() -> None:
    documents = Documents(Days("logs"), Redactor(), "stderr", "run-stderr", {})
    trace = b"Traceback (most recent call last):\n  File\nE: " + b"\x00" * (1 << 20)
    ((data, _),) = documents.build(records(trace, 0, whole=True), EPOCH)
    assert 600_000 < len(data) < MAX_RECORD_BYTES / 4
