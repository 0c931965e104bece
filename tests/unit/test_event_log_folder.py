"""The folder of event logs on this host: what is made, and what is refused with a remedy."""

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from loguru import logger

from orchestrator.config.event_logs import EventLogSettings
from orchestrator.handlers.event_log_folder import FolderTrouble, make_folder
from orchestrator.handlers.event_logs import EventLogs
from orchestrator.model.spark import Spark


@pytest.fixture
def logged() -> Iterator[list[str]]:
    """The logged lines."""
    lines: list[str] = []
    sink = logger.add(lines.append, level="WARNING", format="{message}")
    yield lines
    logger.remove(sink)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_missing_folder_is_made_for_the_worker_alone(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    make_folder(str(folder), None, shared=False)
    assert (mode(folder), mode(folder.parent)) == (0o700, 0o711)
    make_folder(str(folder), None, shared=False)


def test_a_folder_for_several_users_lets_each_write_and_none_list_or_remove(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    make_folder(str(folder), None, shared=True)
    assert mode(folder) == 0o1733


def test_a_folder_that_exists_keeps_its_mode(tmp_path: Path) -> None:
    tmp_path.chmod(0o750)
    make_folder(str(tmp_path), None, shared=True)
    assert mode(tmp_path) == 0o750


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "logs").touch()
    with pytest.raises(FolderTrouble, match="logs"):
        make_folder(str(tmp_path / "logs"), None, shared=False)
    with pytest.raises(FolderTrouble, match="logs"):
        make_folder(str(tmp_path / "logs" / "more"), None, shared=False)


@pytest.mark.parametrize("full", [{"f_bavail": 10}, {"f_favail": 0}], ids=["bytes", "files"])
def test_a_full_disk_is_refused_because_spark_could_not_begin_a_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full: dict[str, int]
) -> None:
    found = os.statvfs(tmp_path)
    disk = {name: getattr(found, name) for name in ("f_bavail", "f_frsize", "f_favail", "f_files")}
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(**{**disk, "f_files": 9, **full}))
    with pytest.raises(FolderTrouble, match="full: remove old logs"):
        make_folder(str(tmp_path), None, shared=False)


def test_a_file_system_that_does_not_count_files_is_not_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = SimpleNamespace(f_bavail=10**6, f_frsize=4096, f_favail=0, f_files=0)
    monkeypatch.setattr(os, "statvfs", lambda _: disk)
    make_folder(str(tmp_path), None, shared=False)


def test_drivers_that_start_in_one_millisecond_have_logs_of_different_names(tmp_path: Path) -> None:
    logs = EventLogs({"*": EventLogSettings(url=tmp_path.as_uri())})
    local, cluster = Spark(master="local[1]"), Spark(master="spark://host:7077")
    ids = {logs.prepared("a", local)["spark.test.appId"] for _ in range(50)}
    assert len(ids) == 50
    assert all(re.fullmatch(r"local-\d{19}", each) for each in ids)
    assert "spark.test.appId" not in logs.prepared("a", cluster)
    assert "spark.test.appId" not in EventLogs({}).prepared("a", local)


def test_a_link_to_nothing_is_refused(tmp_path: Path) -> None:
    (tmp_path / "logs").symlink_to(tmp_path / "missing")
    with pytest.raises(FolderTrouble, match="symbolic link"):
        make_folder(str(tmp_path / "logs"), None, shared=False)


def test_the_user_of_a_driver_who_cannot_write_is_named_with_the_remedy(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    with pytest.raises(FolderTrouble, match=r"nobody may not write to .*: `chmod 1733 "):
        make_folder(str(tmp_path), "nobody", shared=True)
    tmp_path.chmod(0o1733)
    make_folder(str(tmp_path), "nobody", shared=True)


def test_a_folder_of_somebody_else_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() == 0:
        os.chown(tmp_path, 4321, 4321)
    else:
        monkeypatch.setattr("orchestrator.handlers.event_log_folder.os.geteuid", lambda: 4321)
    with pytest.raises(FolderTrouble, match="who could replace them"):
        make_folder(str(tmp_path), None, shared=False)


def test_a_job_whose_folder_cannot_be_made_runs_without_a_log_and_the_worker_says_why(
    tmp_path: Path, logged: list[str]
) -> None:
    (tmp_path / "file").touch()
    found = EventLogs({"*": EventLogSettings(url=f"file://{tmp_path}/file/logs")})
    assert found.prepared("etl", Spark()) == {}
    assert any("jobs of pool etl have no event logs" in line for line in logged)


def test_the_folder_of_a_pool_whose_drivers_have_a_user_is_for_several(tmp_path: Path) -> None:
    tables = {"etl": EventLogSettings(url=f"file://{tmp_path}/logs")}
    assert EventLogs(tables, {"*": "nobody"}).prepared("etl", Spark())["spark.eventLog.enabled"] == "true"
    assert mode(tmp_path / "logs") == 0o1733
