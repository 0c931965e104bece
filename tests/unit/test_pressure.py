"""Pressure (PSI) of the control group that shares the resource, else of the host."""

from pathlib import Path

import pytest

from spark_runner.protocol.control_groups import Resource, waited_percent
from tests.host_files import GIB, HostFiles, limited, memory_v1, memory_v2


@pytest.fixture
def files(tmp_path: Path) -> HostFiles:
    return HostFiles(tmp_path)


def test_without_a_limit_it_is_that_of_the_host(files: HostFiles) -> None:
    files.waits("memory", 12.5)
    assert waited_percent("memory", files.proc) == 12.5
    group = memory_v2(files.tree("/a"), "max", GIB)
    files.waits("memory", 99, file=group / "memory.pressure")
    assert waited_percent("memory", files.proc) == 12.5


def test_in_a_container_with_a_limit_it_is_that_of_the_container(files: HostFiles) -> None:
    files.waits("memory", 99)
    files.waits("cpu", 50)
    mount = files.tree("/kubepods/pod/worker")
    pod = memory_v2(mount / "kubepods" / "pod", 4 * GIB, GIB)
    memory_v2(pod / "worker", "max", GIB)
    files.waits("memory", 3, file=pod / "memory.pressure")
    files.waits("memory", 77, file=pod / "worker" / "memory.pressure")
    assert waited_percent("memory", files.proc) == 3, "who shares the limit shares the pressure"
    assert waited_percent("cpu", files.proc) == 50, "processors are not limited there"
    limited(pod, cpu__max="150000 100000")
    files.waits("cpu", 80, file=pod / "cpu.pressure")
    assert waited_percent("cpu", files.proc) == 80


def test_where_groups_have_no_pressure_it_is_that_of_the_host(files: HostFiles) -> None:
    files.waits("memory", 7)
    files.tree("/")
    memory_v1(files.tree("/a", controller="memory") / "a", GIB, GIB)
    assert waited_percent("memory", files.proc) == 7
    memory_v2(files.proc.parent / "cgroup" / "unified", GIB, GIB)
    assert waited_percent("memory", files.proc) == 7, "a limit, and pressure is turned off for the group"


@pytest.mark.parametrize("text", ["", "some", "some avg10=x", None])
def test_a_kernel_that_says_nothing_of_it_is_no_error(files: HostFiles, text: str | None) -> None:
    if text is not None:
        files.waits("cpu", 1)
        (files.proc / "pressure" / "cpu").write_text(text, "ascii")
    assert waited_percent("cpu", files.proc) is None


@pytest.mark.parametrize("resource", ["cpu", "memory"])
def test_the_real_files_say_a_share_or_nothing(resource: Resource) -> None:
    found = waited_percent(resource)
    assert found is None or 0 <= found <= 100
