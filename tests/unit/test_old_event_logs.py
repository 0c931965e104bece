"""The leader's duty for old event logs: what it removes, and what it leaves alone."""

import os
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from orchestrator.config.event_logs import EventLogSettings
from orchestrator.leader import old_event_logs
from orchestrator.leader.old_event_logs import OldEventLogs

DAY_S = 86_400
ID = "local-1764412345678"
ROLLED = f"eventlog_v2_{ID}"
PARTS = (f"events_1_{ID}.zstd", f".events_1_{ID}.zstd.crc", f"appstatus_{ID}")
LOGS = (
    *(ID, f"{ID}.zstd", "app-20261129102332-0001.lz4", "application_1764412345678_0001_1"),
    *("spark-" + "a1" * 16, f"{ID}.inprogress"),
)


def folder_of(tmp_path: Path, *names: str, parts: Sequence[str] = PARTS, days: float = 40) -> Path:
    """A folder with these logs, last written so many days ago."""
    folder = tmp_path / "logs"
    folder.mkdir(exist_ok=True)
    for name in names:
        path = folder / name
        if name.startswith("eventlog_v2_"):
            path.mkdir()
            for part in parts:
                (path / part).write_text("{}", "utf-8")
        else:
            path.write_text("{}", "utf-8")
        for each in (*(path.iterdir() if path.is_dir() else ()), path):
            then = time.time() - days * DAY_S
            os.utime(each, (then, then), follow_symlinks=False)
    return folder


def clear(folder: Path, days: float = 7, *more: EventLogSettings) -> float:
    table = EventLogSettings(url=f"file://{folder}", retention=days * DAY_S)
    return OldEventLogs([table, *more], lambda: round(time.time() * 1000)).step()


def left(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_logs_of_each_form_and_backend_are_removed_after_their_retention(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, *LOGS, ROLLED, f"{ROLLED}_1")
    assert clear(folder, days=41) > 0
    assert left(folder) == {*LOGS, ROLLED, f"{ROLLED}_1"}
    clear(folder)
    assert left(folder) == set()


def test_a_log_that_may_still_be_written_stays_for_a_month(tmp_path: Path) -> None:
    unfinished = [part.replace("appstatus_" + ID, f"appstatus_{ID}.inprogress") for part in PARTS]
    names = {f"{ID}.inprogress", ROLLED, f"{ROLLED}_2"}
    folder = folder_of(tmp_path, f"{ID}.inprogress", ROLLED, parts=unfinished, days=20)
    folder_of(tmp_path, f"{ROLLED}_2", parts=PARTS[:2], days=20)
    clear(folder)
    assert left(folder) == names


def test_the_last_write_to_one_of_its_files_is_that_of_a_log(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, ROLLED)
    (folder / ROLLED / PARTS[0]).touch()
    clear(folder)
    assert left(folder) == {ROLLED}


def test_other_files_folders_and_links_stay(tmp_path: Path) -> None:
    others = ["notes.txt", "local-x", f"{ID}.zstd.bak", "eventlog_v2_mine", "application_1", "inventory"]
    folder = folder_of(tmp_path, *others)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / PARTS[0]).write_text("{}", "utf-8")
    (folder / ROLLED).symlink_to(outside)
    (folder / ID).symlink_to(outside / PARTS[0])
    (folder / f"{ID}.zstd").mkdir()
    for path in (outside / PARTS[0], outside):
        os.utime(path, (1, 1))
    before = left(folder)
    clear(folder)
    assert left(folder) == before
    assert (outside / PARTS[0]).exists()


def test_a_file_of_somebody_else_in_a_log_stays_with_its_folder(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, ROLLED, ID, parts=(*PARTS, "mine.txt"))
    clear(folder)
    assert left(folder) == {ROLLED}
    assert left(folder / ROLLED) == {"mine.txt"}


def test_a_step_is_bounded_and_the_next_follows_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(old_event_logs, "_AT_ONCE", 2)
    folder = folder_of(tmp_path, *(f"local-{1764412345678 + number}" for number in range(3)))
    assert clear(folder) == 0
    assert len(left(folder)) == 1
    assert clear(folder) > 0
    assert left(folder) == set()


def test_of_several_pools_with_a_folder_the_longest_retention_holds(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, ID)
    for longer in (60 * DAY_S, 0):
        clear(folder, 7, EventLogSettings(url=f"file:{folder}", retention=longer))
        assert left(folder) == {ID}


def test_a_folder_that_this_host_does_not_have_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(folder_of(tmp_path, ID))
    assert clear(tmp_path / "missing") > 0
    assert clear(tmp_path / "link") > 0
    assert left(tmp_path / "logs") == {ID}
    OldEventLogs([EventLogSettings(url="s3a://bucket/logs")], lambda: 0).step()
