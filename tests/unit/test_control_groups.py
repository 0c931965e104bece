"""The control groups that limit a process, and the memory that they leave: trees of both kernel versions."""

import os
from pathlib import Path

import psutil
import pytest

from orchestrator.admission.host import Host
from spark_runner.protocol.control_groups import own_groups, usable_processors
from tests.host_files import GIB, MIB, HostFiles, limited, memory_v1, memory_v2

NO_LIMIT_V1 = 9223372036854771712


@pytest.fixture
def files(tmp_path: Path) -> HostFiles:
    return HostFiles(tmp_path)


def left(files: HostFiles) -> list[int]:
    """The free memory of each group, innermost first."""
    return [memory.available for memory in files.host.memory() if memory.group is not None]


def test_a_container_has_what_its_own_limit_leaves(files: HostFiles) -> None:
    memory_v2(files.tree("/"), 2 * GIB, 1536 * MIB)
    assert left(files) == [512 * MIB]


def test_files_that_the_kernel_keeps_in_memory_are_no_use_of_it(files: HostFiles) -> None:
    stat = {"anon": 512 * MIB, "active_file": 700 * MIB, "inactive_file": 300 * MIB, "shmem": 9}
    memory_v2(files.tree("/"), 2 * GIB, 2 * GIB, **stat)
    assert left(files) == [1000 * MIB]


def test_each_group_above_binds_too(files: HostFiles) -> None:
    mount = files.tree("/system.slice/worker.service")
    memory_v2(mount / "system.slice", 4 * GIB, 3 * GIB)
    memory_v2(mount / "system.slice" / "worker.service", 8 * GIB, GIB)
    assert left(files) == [7 * GIB, GIB]


@pytest.mark.parametrize("path", ["/", "/no/such/group", "/../beyond"])
def test_a_group_without_a_limit_or_without_files_binds_nothing(files: HostFiles, path: str) -> None:
    memory_v2(files.tree(path), "max", 3 * GIB)
    assert left(files) == []


def test_a_name_that_only_the_host_has_leaves_the_limit_that_is_mounted(files: HostFiles) -> None:
    memory_v2(
        files.tree("/kubepods/pod1/abc"), GIB, 2 * GIB
    )  # over its limit for a moment, as the kernel allows
    assert left(files) == [0]


def test_the_mounted_group_may_be_below_the_top_of_the_tree(files: HostFiles) -> None:
    mount = files.tree("/docker/abc/inner", root="/docker/abc")
    memory_v2(mount, 4 * GIB, GIB)
    memory_v2(mount / "inner", 2 * GIB, GIB)
    assert left(files) == [GIB, 3 * GIB]
    names = [group.name for group in own_groups("memory", files.proc / "self")]
    assert names == ["/docker/abc/inner", "/docker/abc"]


def test_the_first_version_binds_as_well_and_goes_first_in_a_mixed_system(files: HostFiles) -> None:
    memory_v2(files.tree("/"), "max", GIB)
    mount = files.tree("/a/b", controller="memory")
    memory_v1(mount, NO_LIMIT_V1, 9 * GIB)
    memory_v1(mount / "a" / "b", 2 * GIB, GIB, total_active_file=MIB, total_inactive_file=MIB, cache=9)
    assert left(files) == [GIB + 2 * MIB]


def test_a_host_without_control_groups_is_not_bound_by_any(files: HostFiles) -> None:
    assert left(files) == []
    (files.proc / "self" / "cgroup").write_text("nonsense\n", "ascii")
    assert left(files) == []
    (files.proc / "self" / "cgroup").write_text("4:memory:/a\n", "ascii")
    assert left(files) == [], "nothing is mounted"


@pytest.mark.parametrize(
    ("version", "quota", "usable"),
    [(2, "max 100000", None), (2, "50000 100000", 1), (2, "0 0", None), (1, "-1", None), (1, "50000", 1)],
)
def test_processors_are_those_that_a_quota_leaves(
    files: HostFiles, version: int, quota: str, usable: int | None
) -> None:
    if version == 1:
        limited(files.tree("/", controller="cpu"), cpu__cfs_quota_us=quota, cpu__cfs_period_us=100000)
    else:
        limited(files.tree("/"), cpu__max=quota)
    assert usable_processors(files.proc / "self") == usable or len(os.sched_getaffinity(0))


def test_the_real_files_are_those_of_this_host() -> None:
    total = psutil.virtual_memory().total
    readings = Host().memory()
    assert all(0 <= memory.available <= total for memory in readings[:1])
    assert readings[0].available == pytest.approx(psutil.virtual_memory().available, rel=0.2)
    assert 1 <= Host().processors() <= (os.cpu_count() or 1)
    for group in own_groups("memory"):
        assert group.folder.is_dir()
