"""What a worker must not take: from readings that a test gives, and from files as the kernel has them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from loguru import logger

from orchestrator.admission.guard import Guard, driver_bytes
from orchestrator.admission.host_memory import available_memory, group_memory
from orchestrator.models.limits import Limits
from orchestrator.models.spark import Spark

MIB, GIB = 1 << 20, 1 << 30


class Host:
    """A host whose readings are what a test says, and the guard on it."""

    def __init__(self, **limits: Any) -> None:
        self.limits = Limits(**limits)
        self.load, self.cores, self.memory, self.now = 0.0, 4, 64 * GIB, 100.0
        self.reads = 0
        self.guard = Guard(
            lambda: self.limits,
            load=self._load,
            cores=lambda: self.cores,
            memory=lambda: self.memory,
            clock=lambda: self.now,
        )

    def _load(self) -> float:
        self.reads += 1
        return self.load

    def after(self, seconds: float, *, load: float) -> str | None:
        self.load = load
        self.now += seconds
        return self.guard.refusal()


def job(memory: str = "", conf: dict[str, str] | None = None, master: str = "") -> Spark:
    return Spark.model_validate({"master": master, "driver": {"memory": memory}, "conf": conf or {}})


@pytest.fixture
def told() -> Iterator[list[str]]:
    """What is logged."""
    lines: list[str] = []
    sink = logger.add(lines.append, level="INFO", format="{level} {message}")
    yield lines
    logger.remove(sink)


# ---------------------------------------------------------------------- load
def test_nothing_is_taken_while_the_load_is_above_the_limit_for_each_core() -> None:
    host = Host()
    assert host.after(2, load=6.0) is None, "1.5 for each of 4 cores is allowed"
    words = host.after(2, load=6.01)
    assert words is not None
    assert "6.01" in words
    assert "1.5 for each of 4 cores" in words
    assert host.after(2, load=5.9) is None


def test_a_limit_of_zero_is_no_limit() -> None:
    assert Host(load_limit=0).after(2, load=1000.0) is None


def test_the_load_is_read_once_a_second_however_often_it_is_asked_for() -> None:
    host = Host()
    for _ in range(50):
        host.after(0.01, load=1.0)
    assert host.reads == 1
    assert host.after(0.7, load=50.0) is not None
    assert host.reads == 2


def test_a_limit_that_is_changed_counts_at_once() -> None:
    host = Host()
    assert host.after(2, load=8.0) is not None
    host.limits = Limits(load_limit=2.0)
    assert host.after(0, load=8.0) is None


def test_a_high_load_is_told_when_it_begins_and_when_it_ends(told: list[str]) -> None:
    host = Host()
    for load in (1.0, 9.0, 9.5, 9.0, 1.0, 1.0, 9.0):
        host.after(2, load=load)
    assert [line.partition(":")[0] for line in told] == [
        "WARNING nothing is taken",
        "INFO jobs are taken again",
        "WARNING nothing is taken",
    ]


# ---------------------------------------------------------------------- memory
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
    assert driver_bytes(job(memory, conf)) == pytest.approx(needed, abs=1)


def test_a_driver_that_declares_more_than_is_free_has_no_room() -> None:
    host = Host()
    host.memory = driver_bytes(job("2g"))
    assert host.guard.fits(job("2g")) is None
    host.memory -= 1
    words = host.guard.fits(job("2g"))
    assert words is not None
    assert "2.4 GiB" in words
    assert host.guard.fits(job("1g")) is None, "a smaller one has"


def test_the_memory_guard_can_be_turned_off_while_it_refuses(told: list[str]) -> None:
    host = Host()
    host.memory = MIB
    assert host.guard.fits(job()) is not None
    host.limits = Limits(memory_guard=False)
    assert host.guard.fits(job()) is None
    assert [line.partition(":")[0] for line in told] == [
        "WARNING a job is not taken",
        "INFO there is room for drivers again",
    ]


def test_a_lack_of_memory_is_told_when_it_begins_and_when_it_ends_and_not_for_each_job(
    told: list[str],
) -> None:
    host = Host()
    host.memory = 2 * GIB
    for _ in range(3):
        assert host.guard.fits(job("2g")) is not None
        assert host.guard.fits(job("512m")) is None  # a small one that fits does not end the lack
        assert host.guard.fits(job("4g")) is not None
    assert len(told) == 1
    host.memory = 3 * GIB
    assert host.guard.fits(job("512m")) is None
    assert [line.partition(":")[0] for line in told] == [
        "WARNING a job is not taken",
        "INFO there is room for drivers again",
    ]


# ---------------------------------------------------------------------- what a container may use
@pytest.fixture
def groups(tmp_path: Path) -> Path:
    """A tree of control groups as it is mounted."""
    root = tmp_path / "cgroup"
    root.mkdir()
    return root


def group(folder: Path, limit: str, used: int, **stat: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memory.max").write_text(f"{limit}\n")
    (folder / "memory.current").write_text(f"{used}\n")
    (folder / "memory.stat").write_text("".join(f"{name} {value}\n" for name, value in stat.items()))


def ours(tmp_path: Path, path: str) -> Path:
    file = tmp_path / "self-cgroup"
    file.write_text(f"4:memory:/elsewhere\n0::{path}\n")
    return file


def test_a_container_has_what_its_own_limit_leaves(groups: Path, tmp_path: Path) -> None:
    group(groups, str(2 * GIB), 1536 * MIB)
    assert list(group_memory(groups, ours(tmp_path, "/"))) == [512 * MIB]


def test_files_that_the_kernel_keeps_in_memory_are_no_use_of_it(groups: Path, tmp_path: Path) -> None:
    group(
        groups, str(2 * GIB), 2 * GIB, anon=512 * MIB, active_file=700 * MIB, inactive_file=300 * MIB, shmem=9
    )
    assert list(group_memory(groups, ours(tmp_path, "/"))) == [1000 * MIB]


def test_each_group_above_binds_too(groups: Path, tmp_path: Path) -> None:
    group(groups / "system.slice", str(4 * GIB), 3 * GIB)
    group(groups / "system.slice" / "worker.service", str(8 * GIB), GIB)
    assert sorted(group_memory(groups, ours(tmp_path, "/system.slice/worker.service"))) == [GIB, 7 * GIB]


@pytest.mark.parametrize("path", ["/", "/no/such/group", "/../beyond"])
def test_a_group_without_a_limit_or_without_files_binds_nothing(
    groups: Path, tmp_path: Path, path: str
) -> None:
    group(groups, "max", 3 * GIB)
    assert list(group_memory(groups, ours(tmp_path, path))) == []


def test_a_group_path_that_only_the_host_has_leaves_the_limit_that_is_mounted(
    groups: Path, tmp_path: Path
) -> None:
    group(groups, str(GIB), 2 * GIB)  # over its limit for a moment, as can be
    assert list(group_memory(groups, ours(tmp_path, "/kubepods/pod1/abc"))) == [0]


def test_a_host_without_control_groups_is_not_bound_by_any(tmp_path: Path) -> None:
    assert list(group_memory(tmp_path, tmp_path / "none")) == []
    (tmp_path / "v1").write_text("4:memory:/a\n")
    assert list(group_memory(tmp_path, tmp_path / "v1")) == []


def test_the_real_readings_are_those_of_this_host() -> None:
    assert 0 < available_memory() <= psutil.virtual_memory().total
    generous = Limits(load_limit=10_000)
    guard = Guard(lambda: generous)
    assert guard.refusal() is None
    assert guard.fits(job("1000t")) is not None
