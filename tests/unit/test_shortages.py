"""Which memory was short, from the words of Spark 4, YARN, Kubernetes and Python about a failure."""

from typing import Any

import pytest
from hypothesis import given

from orchestrator.handlers.verdict import error_of, reported_error, verdict_of_exit
from orchestrator.model.job import JobError
from spark_runner.driver.outcome import of_error
from spark_runner.protocol import exit_codes
from spark_runner.protocol.attempt import AttemptState
from spark_runner.protocol.failures import classify
from spark_runner.protocol.shortages import SHORTAGES, shortage
from spark_runner.runners.base import Failure
from spark_runner.runners.kubernetes.pod import Pod
from spark_runner.runners.submission_state import memory_failure
from spark_runner.runners.yarn.verdict import verdict_of
from tests.unit.test_history_ring import anything, entry
from tests.unit.test_kubernetes_pod import ended as ended_container
from tests.unit.test_kubernetes_pod import pod
from tests.unit.test_verdict import attempt, ended
from tests.unit.test_yarn_verdict import AM_EXIT, application

ABORTED = "Job aborted due to stage failure: Task 0 in stage 0.0 failed 4 times, most recent failure: "
TASK = f"{ABORTED}Lost task 0.3 in stage 0.0 (TID 3) (10.0.0.7 executor 1): "
GONE = f"{ABORTED}ExecutorLostFailure (executor 3 exited caused by one of the running tasks) Reason: "
WORKER = "PythonException: \n  An exception was thrown from the Python worker.\nTraceback (most recent):\n"
HEAP = "java.lang.OutOfMemoryError: Java heap space"
DIRECT = "java.lang.OutOfMemoryError: Cannot reserve 4194304 bytes of direct buffer memory (allocated: 1)"


@pytest.mark.parametrize(
    ("message", "of_cluster", "of_local"),
    [
        (HEAP, "driver.heap", "driver.heap"),
        ("java.lang.OutOfMemoryError: GC overhead limit exceeded", "driver.heap", "driver.heap"),
        (f"{TASK}{HEAP}\n\tat java.base/x\n", "executor.heap", "driver.heap"),
        (f"{GONE}Command exited with code 52", "executor.heap", "driver.heap"),
        (f"{GONE}Container exited with a non-zero exit code 52.", "executor.heap", "driver.heap"),
        ("[UNABLE_TO_ACQUIRE_MEMORY] Unable to acquire 65536 bytes", "executor.heap", "driver.heap"),
        (
            "o.a.spark.SparkException: Can't acquire 33554432 bytes memory to build hash relation, got 9.",
            "executor.heap",
            "driver.heap",
        ),
        ("There is not enough memory to build hash map.", "executor.heap", "driver.heap"),
        ("Could not allocate memory to grow BytesToBytesMap.", "executor.heap", "driver.heap"),
        ("[AGGREGATE_OUT_OF_MEMORY] No enough memory for aggregation", "executor.heap", "driver.heap"),
        (DIRECT, "driver.overhead", "driver.overhead"),
        (f"{TASK}{DIRECT}", "executor.overhead", "driver.overhead"),
        (f"{TASK}java.lang.OutOfMemoryError: Direct buffer memory", "executor.overhead", "driver.overhead"),
        (f"{TASK}io.netty.util.internal.OutOfDirectMemoryError: x", "executor.overhead", "driver.overhead"),
        ("java.lang.OutOfMemoryError: Metaspace", "driver.overhead", "driver.overhead"),
        (
            f"{TASK}java.lang.OutOfMemoryError: unable to create native thread: possibly out of memory",
            "executor.overhead",
            "driver.overhead",
        ),
        (f"{WORKER}  File x\nMemoryError\n", "executor.overhead", "driver.overhead"),
        (
            f"{WORKER}numpy._core._exceptions._ArrayMemoryError: Unable to allocate 7 GiB",
            "executor.overhead",
            "driver.overhead",
        ),
        (f"{GONE}Command exited with code 137", "executor.container", "driver.container"),
        (
            f"{GONE}The executor with id 1 exited with exit code 137(SIGKILL, possible container OOM).",
            "executor.container",
            "driver.container",
        ),
        (f"{GONE}OOMKilled", "executor.container", "driver.container"),
        (
            f"{GONE}Container killed by YARN for exceeding physical memory limits. 1.5 GB of 1.5 GB used.",
            "executor.container",
            "driver.container",
        ),
        (
            f"{GONE}Container killed by YARN for exceeding virtual memory limits. 5 GB of 4 GB used.",
            "executor.container",
            "driver.container",
        ),
        # Several causes: that of the heap is preferred.
        (f"{GONE}Command exited with code 137. Before: {TASK}{HEAP}", "executor.heap", "driver.heap"),
        (
            f"Job aborted due to stage failure: Task serialization failed: {HEAP}",
            "driver.heap",
            "driver.heap",
        ),
        ("java.lang.OutOfMemoryError: Requested array size exceeds VM limit", None, None),
    ],
)
def test_an_error_of_class_memory_says_what_was_short(
    message: str, of_cluster: str | None, of_local: str | None
) -> None:
    assert classify(message).error_class == "memory"
    assert shortage(message) == of_cluster
    assert shortage(message, is_local=True) == of_local
    error = of_error(RuntimeError(message))["error"]
    assert (error["class"], error.get("short_of")) == ("memory", of_cluster)


@pytest.mark.parametrize(
    "message",
    [
        "",
        "the program exited with code 152",
        "a MemoryError of old",
        "[TABLE_OR_VIEW_NOT_FOUND] x",
        f"{GONE}Worker lost",
    ],
)
def test_other_errors_say_nothing_of_memory(message: str) -> None:
    assert shortage(message) is None
    assert classify(message).error_class != "memory"
    assert "short_of" not in of_error(RuntimeError(message))["error"]


def test_a_python_driver_without_memory_lacks_what_is_beside_the_heap() -> None:
    error = of_error(MemoryError())["error"]
    assert (error["class"], error["short_of"]) == ("memory", "driver.overhead")


def test_a_long_message_is_read_in_little_time() -> None:
    message = ABORTED + "java.lang.OutOfMemoryError: other\n Lost task 1 " * 5_000
    assert shortage(message) is None


# ---------------------------------------------------------------------- backends
def test_a_pod_that_its_kernel_ended_lacked_the_memory_of_its_container() -> None:
    found = Pod.of(pod("Failed", containerStatuses=[ended_container(137, "OOMKilled")])).submission()
    assert short_of(found.failure) == "driver.container"


@pytest.mark.parametrize(
    ("code", "words", "expected"),
    [
        (-104, "Container is running beyond physical memory limits.", "driver.container"),
        (143, "Container is running beyond virtual memory limits.", "driver.container"),
        (137, "Container killed on request. Exit code is 137", "driver.container"),
        (exit_codes.HEAP_FULL, "Exception from container-launch.", "driver.heap"),
        (13, "Exception from container-launch.", None),
    ],
)
def test_the_end_of_yarns_container_says_what_was_short(code: int, words: str, expected: str | None) -> None:
    verdict = verdict_of(application("FAILED", "FAILED", AM_EXIT.format(code=code, words=words, log="x")))
    assert short_of(verdict.failure) == expected


def test_a_driver_on_this_host_that_its_kernel_ended_lacked_the_memory_of_its_group() -> None:
    assert short_of(memory_failure(137, {"oom_kill": True})) == "driver.container"
    assert memory_failure(137, {"oom_kill": False}) is None  # infrastructure, as before


def test_a_driver_whose_jvm_ended_as_its_heap_was_full_says_so() -> None:
    verdict, _ = verdict_of_exit(attempt(), ended(code=exit_codes.HEAP_FULL))
    assert verdict.error is not None
    assert (verdict.error.error_class, verdict.error.short_of) == ("memory", "driver.heap")


def short_of(failure: Failure | None) -> str | None:
    assert failure is not None
    return error_of(failure).short_of


# ---------------------------------------------------------------------- records
@pytest.mark.parametrize("value", sorted(SHORTAGES))
def test_a_record_and_the_history_keep_what_was_short(value: str) -> None:
    error = JobError(error_class="memory", message="m", short_of=value)
    assert JobError.model_validate_json(error.model_dump_json()) == error
    assert entry(error, state="failed")["short_of"] == value


def test_a_record_without_the_field_is_valid_and_the_history_has_none() -> None:
    error = JobError.model_validate({"error_class": "memory", "message": "m"})
    assert error.short_of is None
    assert "short_of" not in entry(error, state="failed")


@given(anything)
def test_a_driver_that_writes_anything_else_wrote_nothing(value: Any) -> None:
    error = reported_error({"class": "memory", "message": "m", "short_of": value}, AttemptState.FAILED)
    assert error.short_of is None
    assert error.error_class == "memory"
