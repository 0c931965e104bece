"""Files that are replaced as a whole, and locks between processes."""

import math
import os
import signal
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from orchestrator.logs.files import FileLock, folder_lock, is_locked, replace_file, write_json

# Holds the lock of a file, starts a child that outlives it, reports that, and waits to be killed.
_HOLDER = """
import os, subprocess, sys, time
from pathlib import Path
from orchestrator.logs.files import FileLock
lock = FileLock(Path(sys.argv[1]))
assert lock.acquire()
if sys.argv[2] == "fork":
    child = os.fork()
    if not child:
        time.sleep(60)
        os._exit(0)
else:
    child = subprocess.Popen(["sleep", "60"], stdout=subprocess.DEVNULL).pid
print(child, flush=True)
time.sleep(60)
"""


def test_threads_that_replace_a_file_at_once_leave_one_whole_file_and_no_draft(tmp_path: Path) -> None:
    path, content = tmp_path / "file", b"x" * 200_000
    with ThreadPoolExecutor(8) as at_once:
        list(at_once.map(lambda _: replace_file(path, content), range(400)))
    assert path.read_bytes() == content
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize(("mode", "expected"), [(0o600, 0o600), (0o644, 0o644), (None, 0o640)])
def test_a_replaced_file_has_its_mode_whatever_the_umask_and_without_one_that_of_the_umask(
    tmp_path: Path, mode: int | None, expected: int
) -> None:
    before = os.umask(0o027)
    try:
        replace_file(tmp_path / "file", b"x", mode=mode)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == expected


def test_a_failed_replacement_leaves_no_draft_and_creates_no_folder(
    tmp_path: Path,
) -> None:
    (tmp_path / "file").mkdir()
    with pytest.raises(IsADirectoryError):
        write_json(tmp_path / "file", {}, durable=True)
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]
    with pytest.raises(FileNotFoundError):
        write_json(tmp_path / "none" / "file", {})


def test_a_lock_excludes_another_of_the_same_process_until_it_is_released(tmp_path: Path) -> None:
    first, second = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    assert first.acquire()
    assert stat.S_IMODE((tmp_path / "lock").stat().st_mode) == 0o600
    assert not second.acquire()
    assert not second.acquire(seconds=0.02)
    threading.Timer(0.05, first.release).start()
    assert second.acquire(seconds=math.inf)
    with (tmp_path / "lock").open("rb") as file:
        assert is_locked(file.fileno())
        second.release()
        second.release()
        assert not is_locked(file.fileno())


def test_a_folder_is_locked_by_a_file_in_it_or_itself_without_one(tmp_path: Path) -> None:
    with folder_lock(tmp_path / "made") as is_held, folder_lock(tmp_path / "made") as is_held_twice:
        assert (is_held, is_held_twice) == (True, False)
    bare = FileLock(tmp_path, is_folder=True)
    assert bare.acquire()
    assert not FileLock(tmp_path, is_folder=True).acquire()
    assert [path.name for path in tmp_path.iterdir()] == ["made"]
    bare.release()


def test_a_lock_is_not_taken_through_a_symbolic_link(tmp_path: Path) -> None:
    (tmp_path / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"):
        FileLock(tmp_path / "lock").acquire()
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("way", ["fork", "exec"])
def test_a_lock_ends_with_its_process_though_a_child_of_that_lives_on(tmp_path: Path, way: str) -> None:
    holder = subprocess.Popen([sys.executable, "-c", _HOLDER, tmp_path / "lock", way], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    child = int(holder.stdout.readline())
    try:
        assert not FileLock(tmp_path / "lock").acquire()
        holder.kill()
        holder.wait()
        os.kill(child, 0)
        lock = FileLock(tmp_path / "lock")
        assert lock.acquire(seconds=10)
        lock.release()
    finally:
        os.kill(child, signal.SIGKILL)
        holder.stdout.close()
