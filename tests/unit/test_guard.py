"""The guard's refusals, on a host whose files a test writes."""

import os
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from loguru import logger

from orchestrator.admission import starts as starts_module
from orchestrator.admission.guard import Guard
from orchestrator.admission.host import DriverProcesses, Host
from orchestrator.admission.starts import Starts
from orchestrator.logs.files import folder_lock
from orchestrator.model.limits import Limits
from orchestrator.model.spark import Spark
from spark_runner.protocol.control_groups import usable_processors
from spark_runner.protocol.sizing import driver_bytes
from tests.host_files import GIB, MIB, HostFiles, memory_v2


def job(memory: str = "", conf: dict[str, str] | None = None, master: str = "") -> Spark:
    return Spark.model_validate({"master": master, "driver": {"memory": memory}, "conf": conf or {}})


ONE = driver_bytes(job().properties)
"""Bytes of a driver without memory settings: 1 GiB and 384 MiB."""


class Worker:
    """The guard of a worker, with its own clock; several may share the host."""

    def __init__(self, files: HostFiles, name: str = "worker", **limits: Any) -> None:
        self.files, self.now = files, 100.0
        self.limits = Limits(**limits)
        starts = Starts(files.proc.parent / "starts", name)
        self.guard = Guard(lambda: self.limits, starts, files.host, clock=lambda: self.now)

    def later(self, **percent: float) -> str | None:
        """The refusal of the guard after a while with these shares of waiting work."""
        for resource, value in percent.items():
            self.files.waits(resource, value)
        self.now += 2
        return self.guard.refusal()


@pytest.fixture
def files(tmp_path: Path) -> HostFiles:
    return HostFiles(tmp_path)


@pytest.fixture
def logged() -> Iterator[list[str]]:
    """The logged lines."""
    lines: list[str] = []
    sink = logger.add(lines.append, level="INFO", format="{level} {message}")
    yield lines
    logger.remove(sink)


def beginnings(logged: list[str]) -> list[str]:
    return [line.partition(":")[0].strip() for line in logged]


# ---------------------------------------------------------------------- pressure
def test_busy_processors_stop_nothing_unless_a_limit_is_set(files: HostFiles) -> None:
    worker = Worker(files)
    assert worker.later(cpu=100) is None
    worker.limits = Limits(cpu_pressure_limit=80)
    words = worker.later(cpu=80.4)
    assert words is not None
    assert "waited for a processor in 80 % of the last 10 s, cpu_pressure_limit is 80" in words
    assert worker.later(cpu=80) is None


def test_nothing_is_taken_while_work_waits_for_memory_for_too_long(files: HostFiles) -> None:
    worker = Worker(files)
    assert worker.later(memory=20) is None
    words = worker.later(memory=20.5)
    assert words is not None
    assert "memory_pressure_limit is 20" in words
    assert worker.later(memory=3) is None
    worker.limits = Limits(memory_pressure_limit=0)
    assert worker.later(memory=100) is None


def test_a_refusal_ends_ten_seconds_after_the_load_and_not_a_minute(files: HostFiles) -> None:
    """The average of a minute kept workers from idle processors for more than two."""
    worker = Worker(files, cpu_pressure_limit=60)
    assert worker.later(cpu=95) is not None
    (files.proc / "loadavg").write_text("30.00 20.00 10.00 1/100 1\n", "ascii")
    assert worker.later(cpu=10) is None


def test_pressure_is_read_once_a_second_and_a_changed_limit_counts_at_once(files: HostFiles) -> None:
    worker = Worker(files, cpu_pressure_limit=50)
    assert worker.later(cpu=60) is not None
    files.waits("cpu", 0)
    assert worker.guard.refusal() is not None
    worker.limits = Limits(cpu_pressure_limit=70)
    assert worker.guard.refusal() is None


def test_pressure_is_reported_when_it_begins_and_when_it_ends(files: HostFiles, logged: list[str]) -> None:
    worker = Worker(files)
    for percent in (1, 90, 95, 90, 1, 1, 90):
        worker.later(memory=percent, cpu=0)
    assert beginnings(logged) == [
        "WARNING no job is taken",
        "INFO jobs are taken again",
        "WARNING no job is taken",
    ]


def test_a_kernel_without_pressure_refuses_nothing_and_that_is_reported_once(
    files: HostFiles, logged: list[str]
) -> None:
    worker = Worker(files, cpu_pressure_limit=1)
    assert [worker.later() for _ in range(3)] == [None] * 3
    assert beginnings(logged) == ["INFO this kernel reports no pressure (PSI)"]


# ---------------------------------------------------------------------- memory of a driver
@pytest.mark.parametrize(
    ("memory", "conf", "needed"),
    [
        ("", {}, GIB + 384 * MIB),
        ("512m", {}, (512 + 384) * MIB),
        ("1G", {}, GIB + 384 * MIB),
        ("8gb", {}, 8 * GIB + 8 * GIB // 10),
        ("", {"spark.driver.memory": "2g"}, 2 * GIB + 384 * MIB),
        ("", {"spark.driver.memory": "2048"}, 2 * GIB + 384 * MIB),  # MiB, as Spark reads it
        ("3g", {"spark.driver.memory": "2g"}, 3 * GIB + 384 * MIB),  # as the option goes before the property
        ("1g", {"spark.driver.memoryOverhead": "1g"}, 2 * GIB),
        ("1g", {"spark.driver.memoryOverhead": "100"}, GIB + 100 * MIB),
        ("", {"spark.driver.memory": "much"}, GIB + 384 * MIB),
    ],
)
def test_a_driver_needs_its_heap_and_what_spark_counts_on_beside_it(
    memory: str, conf: dict[str, str], needed: int
) -> None:
    assert driver_bytes(job(memory, conf).properties) == pytest.approx(needed, abs=1)


def test_the_field_for_overhead_counts_as_the_property_does() -> None:
    spark = Spark.model_validate({"driver": {"memory": "1g", "overhead": "600m"}})
    assert driver_bytes(spark.properties) == GIB + 600 * MIB


# ---------------------------------------------------------------------- memory
def test_a_driver_that_declares_more_than_is_available_is_refused(files: HostFiles) -> None:
    worker = Worker(files)
    files.has(driver_bytes(job("2g").properties))
    assert worker.guard.admit("a", job("2g")) is None
    worker.guard.started("a")
    files.has(driver_bytes(job("2g").properties) - 1024)
    words = worker.guard.admit("b", job("2g"))
    assert words is not None
    assert words.startswith("its driver may use 2.4 GiB of memory, and 2.4 GiB are free")
    assert worker.guard.admit("c", job("1g")) is None, "a smaller one fits"


def test_the_refusal_of_a_driver_that_declares_more_than_the_host_has_says_so(files: HostFiles) -> None:
    worker = Worker(files)
    words = worker.guard.admit("a", job("200g"))
    assert words is not None
    assert "and the worker's host has 95.4 GiB in all: it never starts there" in words
    memory_v2(files.tree("/one.service") / "one.service", 2 * GIB, GIB)
    words = worker.guard.admit("b", job("2g"))
    assert words is not None
    assert "has 2.0 GiB in all: it never starts there" in words


def test_drivers_that_start_at_the_same_moment_count_before_they_use_anything(files: HostFiles) -> None:
    """The second worker of a host admits before any process of the first one's driver exists."""
    files.has(3 * ONE - MIB)
    first, second = Worker(files, "first"), Worker(files, "second")
    assert first.guard.admit("a", job()) is None
    assert second.guard.admit("b", job()) is None
    words = first.guard.admit("c", job())
    assert words is not None
    assert "2.8 GiB of 4.1 GiB are declared by other drivers" in words
    assert second.guard.admit("c", job()) is not None
    first.guard.started("a")  # it did not start: it has no process
    assert second.guard.admit("c", job()) is None


def test_a_driver_whose_processes_appear_while_processes_are_looked_at_counts(
    files: HostFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.has(2 * ONE - MIB)
    first, second = Worker(files, "first"), Worker(files, "second")
    assert first.guard.admit("a", job()) is None
    drivers = Host.drivers

    def slow(host: Host) -> Mapping[str, DriverProcesses]:
        seen = drivers(host)
        files.process(10, "a", declared=ONE)
        first.guard.started("a")
        return seen

    monkeypatch.setattr(Host, "drivers", slow)
    assert second.guard.admit("b", job()) is not None


def test_a_driver_counts_with_what_it_has_declared_until_it_uses_it(files: HostFiles) -> None:
    files.has(3 * GIB)
    files.process(10, "r1", declared=2 * GIB, used=200 * MIB)  # the shim
    files.process(11, "r1", declared=2 * GIB, used=300 * MIB)  # its JVM
    files.process(12, "other", used=300 * MIB)  # of a run that declares nothing, as in a warm server
    worker = Worker(files)
    assert worker.guard.admit("a", job()) is None, "1.5 GiB are declared and not used"
    worker.guard.started("a")
    assert worker.guard.admit("a", job("2g")) is not None
    files.process(
        13, "r1", declared=2 * GIB, used=3 * GIB
    )  # more than declared: the available memory shows it
    assert worker.guard.admit("a", job("2g")) is None


def test_a_driver_in_the_middle_of_an_exec_is_waited_for(files: HostFiles) -> None:
    files.process(7, "first-1", declared=ONE)
    environ, cmdline = (files.proc / "7" / name for name in ("environ", "cmdline"))
    environment = environ.read_bytes()
    environ.write_bytes(b"")  # the kernel shows neither of them in such a moment
    cmdline.unlink()
    os.mkfifo(cmdline)

    def end_of_exec() -> None:
        with cmdline.open("wb"):  # blocks until it is read
            environ.write_bytes(environment)

    execing = threading.Thread(target=end_of_exec)
    execing.start()
    try:
        assert [each.declared for each in files.host.drivers().values()] == [ONE]
    finally:
        os.close(os.open(cmdline, os.O_RDONLY | os.O_NONBLOCK))
        execing.join()


def test_memory_of_files_is_not_what_a_driver_has_declared(files: HostFiles) -> None:
    files.process(10, "r1", declared=GIB, used=100 * MIB)
    (found,) = files.host.drivers().values()
    assert found.used == pytest.approx(100 * MIB, abs=8192)
    assert found.unused == pytest.approx(GIB - 100 * MIB, abs=8192)


def test_the_limit_of_a_control_group_is_shared_by_the_drivers_in_it_alone(files: HostFiles) -> None:
    memory_v2(files.tree("/one.service") / "one.service", 4 * GIB, GIB)
    files.process(10, "r1", declared=2 * GIB, group="/two.service")
    worker = Worker(files)
    assert worker.guard.admit("a", job("2g")) is None
    worker.guard.started("a")
    files.process(11, "r2", declared=2 * GIB, group="/one.service/inner")
    assert worker.guard.admit("a", job("2g")) is not None


def test_one_who_asks_again_for_the_same_job_is_not_in_its_own_way(files: HostFiles) -> None:
    files.has(ONE + MIB)
    worker = Worker(files)
    assert worker.guard.admit("a", job()) is None
    assert worker.guard.admit("a", job()) is None, "its intent was refused, and it was looked at again"


def test_the_capacity_is_reported_without_a_promise(files: HostFiles) -> None:
    files.has(3 * ONE + MIB)
    worker = Worker(files)
    assert [worker.guard.capacity(job()) for _ in range(2)] == [3, 3]
    assert worker.guard.capacity(job("100g")) == 0


def test_a_driver_on_the_cluster_takes_nothing_of_this_host(files: HostFiles) -> None:
    files.has(MIB)
    spark = Spark.model_validate({"master": "yarn", "deploy_mode": "cluster"})
    worker = Worker(files)
    assert worker.guard.admit("a", spark) is None
    assert worker.guard.capacity(spark) > 1000


def test_the_memory_guard_can_be_turned_off_while_it_refuses(files: HostFiles, logged: list[str]) -> None:
    files.has(MIB)
    worker = Worker(files)
    assert worker.guard.admit("a", job()) is not None
    worker.limits = Limits(memory_guard=False)
    assert worker.guard.admit("a", job()) is None
    assert beginnings(logged) == [
        "WARNING a job is not taken",
        "INFO this host has capacity for drivers again",
    ]


def test_a_lack_of_memory_is_reported_at_its_begin_and_end_and_not_for_each_job(
    files: HostFiles, logged: list[str]
) -> None:
    files.has(2 * GIB)
    worker = Worker(files)
    for _ in range(3):
        assert worker.guard.capacity(job("2g")) == 0
        assert worker.guard.capacity(job("512m")) > 0  # a small one that fits does not end the lack
        assert worker.guard.capacity(job("4g")) == 0
    assert len(logged) == 1
    files.has(3 * GIB)
    assert worker.guard.capacity(job("2g")) > 0
    assert beginnings(logged) == [
        "WARNING a job is not taken",
        "INFO this host has capacity for drivers again",
    ]


# ---------------------------------------------------------------------- starts
def test_with_a_limit_of_processors_no_more_drivers_start_than_can_show_in_the_pressure(
    files: HostFiles,
) -> None:
    processors = usable_processors()
    first, second = (Worker(files, name, cpu_pressure_limit=80, memory_guard=False) for name in "ab")
    files.process(10, "young", declared=1, age=3)
    files.process(11, "old", declared=1, age=12)
    taken = 0
    while taken < 100 and (first, second)[taken % 2].guard.admit(str(taken), job()) is None:
        taken += 1
    assert taken == max(0, processors - 1)
    words = first.guard.admit("more", job())
    assert words is not None
    assert f"{processors} drivers are starting on this host" in words
    assert Worker(files, "c", memory_guard=False).guard.admit("more", job()) is None, (
        "slots are the user's word"
    )


def test_a_worker_that_is_stopped_in_its_turn_keeps_no_other_waiting_for_ever(
    files: HostFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starts_module, "_WAIT_SECONDS", 0.05)
    worker = Worker(files)
    with folder_lock(files.proc.parent / "starts"):
        words = worker.guard.admit("a", job())
    assert words is not None
    assert "another worker has been deciding about a start" in words
    assert worker.guard.admit("a", job()) is None


def test_a_folder_that_cannot_be_written_is_a_reason_and_no_error(files: HostFiles) -> None:
    (files.proc.parent / "starts").write_text("a file is in the way", "ascii")
    words = Worker(files).guard.admit("a", job())
    assert words is not None
    assert words.startswith("the free memory of this host cannot be determined")


def test_a_job_whose_memory_cannot_be_determined_any_more_keeps_no_promise(files: HostFiles) -> None:
    files.has(ONE + MIB)
    first, second = Worker(files, "first"), Worker(files, "second")
    assert first.guard.admit("a", job()) is None
    (files.proc / "meminfo").write_text("MemFree: 5 kB\n", "ascii")
    assert first.guard.admit("a", job()) is not None, "its intent was refused, and it was looked at again"
    files.has(ONE + MIB)
    assert second.guard.admit("b", job()) is None


def test_promises_of_a_worker_that_has_ended_do_not_count(files: HostFiles) -> None:
    files.has(ONE + MIB)
    left = files.proc.parent / "starts" / "a.first.start"
    left.parent.mkdir()
    left.write_text(str(ONE), "ascii")  # without a lock on it
    assert Worker(files).guard.admit("b", job()) is None
    assert not left.exists()


def test_on_the_real_host_the_guard_distinguishes_large_and_small_drivers(tmp_path: Path) -> None:
    limits = Limits(memory_pressure_limit=100)
    guard = Guard(lambda: limits, Starts(tmp_path / "starts", "worker"), Host())
    assert guard.refusal() is None
    assert guard.admit("a", job("1000t")) is not None
    tiny = job(conf={"spark.driver.memory": "1m", "spark.driver.memoryOverhead": "1m"})
    words = guard.admit("a", tiny)
    assert words is None or "declared by other drivers" in words  # those of other tests
    guard.started("a")
    assert list((tmp_path / "starts").glob("*.start")) == []
