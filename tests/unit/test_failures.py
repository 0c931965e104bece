"""The kind of a failure, from the error messages of Spark 4."""

import pytest

from spark_runner.protocol.failures import classify

LOST = "Job aborted due to stage failure: Task 0 in stage 0.0 failed 4 times, most recent failure: "


@pytest.mark.parametrize(
    ("message", "error_class"),
    [
        ("java.lang.OutOfMemoryError: Java heap space", "memory"),
        (f"{LOST}ExecutorLostFailure (executor 3 exited) Reason: Command exited with code 52", "memory"),
        (f"{LOST}ExecutorLostFailure (executor 3 exited) Reason: Command exited with code 137", "memory"),
        (f"{LOST}Container marked as failed. Exit status: 137. Diagnostics: Killed", "memory"),
        ("Container [pid=1] is running 12B beyond the 'PHYSICAL' memory limit. Current usage", "memory"),
        (
            f"{LOST}The executor with id 1 exited with exit code 137(SIGKILL, possible container OOM)",
            "memory",
        ),
        ("[UNABLE_TO_ACQUIRE_MEMORY] Unable to acquire 65536 bytes of memory, got 0", "memory"),
        (
            f"{LOST}ExecutorLostFailure (executor 3 exited) Reason: Worker lost",
            "infrastructure",
        ),
        (
            (
                f"{LOST}java.util.concurrent.RejectedExecutionException: Task org.apache.spark.executor."
                "Executor$TaskRunner@ac5cf8f rejected from java.util.concurrent.ThreadPoolExecutor@19e02e7a"
                "[Shutting down, pool size = 1, active threads = 1, queued tasks = 0, completed tasks = 0]"
            ),
            "infrastructure",
        ),
        (
            "o.a.s.shuffle.MetadataFetchFailedException: Missing an output location",
            "infrastructure",
        ),
        ("java.io.IOException: No space left on device", "infrastructure"),
        ("s3a://b/k: SdkClientException: java.net.ConnectException: Connection refused", "infrastructure"),
        ("x: software.amazon.awssdk.AWSServiceThrottledException: Slow Down (503)", "infrastructure"),
        ("org.apache.iceberg.exceptions.CommitStateUnknownException: timeout", "infrastructure"),
        ("Job 3 cancelled because SparkContext was shut down", "infrastructure"),
        (f"{LOST}Master removed our application: FAILED", "infrastructure"),
        (f"{LOST}Master removed our application: KILLED", "killed"),
        ("RefusedAtStart: YARN refused the application: to unknown queue: q", "submission"),
        ("ValueError: RefusedAtStart: said by a user", "user"),
        (f"{LOST}java.lang.ArithmeticException: divide by zero", "user"),
        ("[TABLE_OR_VIEW_NOT_FOUND] The table or view `t` cannot be found.", "user"),
        ("the program exited with code 152", "user"),
        ("", "user"),
    ],
)
def test_the_message_of_spark_decides_the_kind_of_a_failure(message: str, error_class: str) -> None:
    assert classify(message).error_class == error_class


def test_a_missing_folder_of_event_logs_is_said_in_words_whatever_it_is_on() -> None:
    trace = "\tat org.apache.hadoop.fs.X.getFileStatus(X.java:1)\n"
    trace += "\tat org.apache.spark.scheduler.EventLoggingListener.start(EventLoggingListener.scala:83)\n"
    for why in (
        "java.io.FileNotFoundException: File does not exist: hdfs://one/logs",
        "java.io.FileNotFoundException: No such file or directory: s3a://bucket/logs",
    ):
        kind = classify(f"Py4JJavaError: An error occurred while calling None.X.\n: {why}\n{trace}")
        assert kind.words.startswith(f"Spark cannot write its event log: {why}. ")
    refused = f"x\n: java.net.ConnectException: refused\n{trace}"
    assert classify(refused).error_class == "infrastructure"
    assert classify("java.io.FileNotFoundException: x\n\tat my.EventLoggingListener.start(X)").words == ""


def test_different_versions_of_python_are_said_in_words() -> None:
    message = (
        "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9 than that in driver: 3.11, "
        "PySpark cannot run with different minor versions."
    )
    kind = classify(message)
    assert kind.error_class == "user"
    assert kind.words.startswith("the executors run Python 3.9, the driver runs Python 3.11: ")
