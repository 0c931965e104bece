"""The memory that a run keeps, in real JVMs with each collector, also of short runs."""

import pytest

from tests.integration.test_memory_shortages import SPARK, ended, kit
from tests.runner_kits import Kit

__all__ = ["kit"]

pytestmark = [pytest.mark.drawn("runners of clusters"), pytest.mark.spark, pytest.mark.timeout(600)]

MB = 1 << 20
# 100 MB that stay, beside the garbage of a query; and 80 MB in a Python worker.
PROGRAM = SPARK + (
    "jvm = spark.sparkContext._jvm\n"
    "kept = jvm.java.util.ArrayList()\n"
    "for _ in range(100): kept.add(jvm.java.nio.ByteBuffer.allocate(1 << 20))\n"
    "spark.range(2_000_000).selectExpr('id % 1000 AS k').groupBy('k').count().collect()\n"
    "jvm.java.lang.System.gc()\n"
    "spark.sparkContext.parallelize([1], 1).map(lambda number: len(bytearray(b'x' * (80 << 20)))).sum()\n"
)
POLL = "spark.executor.metrics.pollingInterval"
# A task longer than two polls, and shorter than a heartbeat.
SECONDS = SPARK + "spark.sparkContext.parallelize([1], 1).foreach(lambda _: __import__('time').sleep(3))"
# Two tasks of a second each, which fill a cache.
CACHED = SPARK + "spark.range(400_000).selectExpr('sha2(string(id), 512) AS text').cache().count()"


@pytest.mark.parametrize("collector", ["G1", "Serial", "Parallel"])
def test_a_short_run_has_the_heap_that_it_keeps_and_the_memory_of_its_python_workers(
    kit: Kit, collector: str
) -> None:
    flags = f"-XX:-UseSerialGC -XX:+Use{collector}GC"  # the first: short jobs start with that one
    conf = {"spark.driver.memory": "700m", "spark.driver.extraJavaOptions": flags}
    attempt, verdict = ended(kit, PROGRAM, conf)
    assert verdict.error is None
    driver, executors = (attempt.document["metrics"][name] for name in ("driver", "executors"))
    assert 100 * MB < driver["heap_live_peak_bytes"] < driver["heap_limit_bytes"]
    assert executors["heap_live_peak_bytes"] == driver["heap_live_peak_bytes"]
    assert 100 * MB < executors["python_rss_peak_bytes"] < 400 * MB
    assert executors["jvm_rss_peak_bytes"] == driver["rss_peak_bytes"] > 100 * MB


@pytest.mark.standalone
@pytest.mark.parametrize("kit", ["standalone-client"], indirect=True)
@pytest.mark.parametrize(("conf", "is_measured"), [({}, True), ({POLL: "0"}, False)])
def test_a_run_of_seconds_on_a_cluster_has_the_memory_of_its_executors_unless_its_user_forbids_it(
    kit: Kit, conf: dict[str, str], is_measured: bool
) -> None:
    attempt, verdict = ended(kit, SECONDS, conf)
    assert verdict.error is None
    executors = attempt.document["metrics"]["executors"]
    assert executors.get("python_rss_peak_bytes", 0) > (30 * MB if is_measured else -1)
    assert executors.get("jvm_rss_peak_bytes", 0) > (100 * MB if is_measured else -1)
    assert ("python_rss_peak_bytes" in executors) is is_measured


@pytest.mark.parametrize(("conf", "is_measured"), [({}, True), ({POLL: "0"}, False)])
def test_a_local_run_of_seconds_has_what_sparks_memory_manager_gave_out(
    kit: Kit, conf: dict[str, str], is_measured: bool
) -> None:
    attempt, verdict = ended(kit, CACHED, conf)
    assert verdict.error is None
    executors = attempt.document["metrics"]["executors"]
    assert executors.get("storage_peak_bytes", 0) > (10 * MB if is_measured else -1)
    assert ("heap_peak_bytes" in executors) is is_measured
