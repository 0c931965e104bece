"""The start of Spark in a driver, and its error from the messages of Spark 4 and YARN 3.5."""

from types import SimpleNamespace
from typing import Any

import pytest

from spark_runner.driver.jvm import OwnJvm
from spark_runner.protocol.errors import RefusedAtStart, StoppedAtStart

TOO_LARGE = (
    "Required executor memory (102400 MB), offHeap memory (0) MB, overhead memory (10240 MB), and PySpark "
    "memory (0 MB) is above the max threshold (6144 MB) of this cluster! Please check the values of "
    "'yarn.scheduler.maximum-allocation-mb' and/or 'yarn.nodemanager.resource.memory-mb'."
)
UNKNOWN_QUEUE = "Application application_1_0002 submitted by user root to unknown queue: nowhere"


def start(monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    def fail() -> None:
        raise RuntimeError(
            f"An error occurred while calling None.JavaSparkContext.\n: {words}\n\tat org.apache.x"
        )

    builder = SimpleNamespace(getOrCreate=fail)
    builder.config = lambda **_: builder
    monkeypatch.setattr("spark_runner.driver.jvm.SparkSession", SimpleNamespace(builder=builder))
    OwnJvm().session()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (f"java.lang.IllegalArgumentException: {TOO_LARGE}", TOO_LARGE),
        (f"x.YarnException: Failed to submit application_1_0002 to YARN : {UNKNOWN_QUEUE}", UNKNOWN_QUEUE),
    ],
)
def test_a_refusal_of_yarn_is_shown_without_the_stack(
    monkeypatch: pytest.MonkeyPatch, words: str, why: str
) -> None:
    with pytest.raises(RefusedAtStart) as raised:
        start(monkeypatch, words)
    assert str(raised.value) == f"YARN refused the application: {why}"


def test_a_refusal_by_the_master_is_distinguished_from_all_other_errors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(StoppedAtStart, match="did not answer, or refused the application"):
        start(monkeypatch, "IllegalStateException: Cannot call methods on a stopped SparkContext.")
    with pytest.raises(RuntimeError, match="anything else"):
        start(monkeypatch, "anything else")


def test_the_session_starts_with_the_settings_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {}
    builder = SimpleNamespace(getOrCreate=lambda: None)
    builder.config = lambda **more: given.update(more) or builder
    monkeypatch.setattr("spark_runner.driver.jvm.SparkSession", SimpleNamespace(builder=builder))
    OwnJvm({"spark.a": "1"}).session()
    assert given == {"map": {"spark.a": "1"}}
