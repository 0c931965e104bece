"""Logs of drivers have a limit, and their end is kept."""

import errno
import fcntl
import os
import signal
import time
from pathlib import Path

import pytest

from orchestrator.driver_logs.stream import CutLog, LogSlice
from spark_runner.protocol import log_limit
from spark_runner.protocol.log_limit import CUT, OLDER, Cut, limit_log, read_cut


def older(path: Path) -> Path:
    return Path(f"{path}{OLDER}")


@pytest.mark.parametrize("size", [0, 1, 1000])
def test_a_log_within_its_limit_stays_as_it_is(tmp_path: Path, size: int) -> None:
    path = tmp_path / "stdout.log"
    path.write_bytes(b"x" * size)
    assert not limit_log(path, 1000)
    assert path.stat().st_size == size
    assert not older(path).exists()


def test_a_log_that_is_too_long_begins_anew_and_its_end_is_the_older_part(tmp_path: Path) -> None:
    path = tmp_path / "stdout.log"
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        for number in range(3):
            total = os.write(descriptor, b"".join(b"%d-%08d\n" % (number, line) for line in range(1000)))
            assert limit_log(path, 5000)
            assert read_cut(path) == Cut(total * (number + 1), total * (number + 1))
            assert path.stat().st_size == 0
            kept = older(path).read_bytes()
            assert len(kept) == 5000
            assert kept.endswith(b"%d-%08d\n" % (number, 999))
        os.write(descriptor, b"and on\n")  # by the process that keeps it open
    finally:
        os.close(descriptor)
    assert path.read_bytes() == b"and on\n"
    assert older(path).stat().st_mode & 0o777 == 0o600
    assert sorted(p.name for p in tmp_path.iterdir()) == ["stdout.log", "stdout.log.1", f"stdout.log{CUT}"]


def test_the_owner_of_a_log_cannot_delay_its_limit(tmp_path: Path) -> None:
    """The kernel blocks an open of a file with a lease for 45 s, unless the open is non-blocking."""
    path = tmp_path / "stdout.log"
    path.write_bytes(b"x" * 1000)
    previous = signal.signal(signal.SIGIO, signal.SIG_IGN)
    with path.open("rb") as log:
        fcntl.fcntl(log, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        began = time.monotonic()
        assert not limit_log(path, 100)
        assert time.monotonic() - began < 10
    signal.signal(signal.SIGIO, previous)
    assert limit_log(path, 100)


@pytest.mark.parametrize("writes", [7, 20, 1_000_000])
def test_the_older_part_of_a_log_that_is_written_without_pause_is_not_longer_than_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writes: int
) -> None:
    path, limit = tmp_path / "stdout.log", 10_000
    written = bytearray(b"".join(b"%08d\n" % line for line in range(2000)))
    path.write_bytes(written)
    copy, left = log_limit.copy_part, [writes]

    def copy_while_it_is_written(source: int, target: int, start: int, end: int) -> int:
        end = copy(source, target, start, end)
        if left[0]:
            left[0] -= 1
            more = b"%08d\n" % left[0] * 200
            written.extend(more)
            with path.open("ab") as log:
                log.write(more)
        return end

    monkeypatch.setattr(log_limit, "copy_part", copy_while_it_is_written)
    assert limit_log(path, limit)
    kept, cut = older(path).read_bytes(), read_cut(path)
    assert limit // 2 <= len(kept) <= limit
    assert kept == written[cut.older_end - len(kept) : cut.older_end]
    assert cut.total == len(written) < 10 * limit, "a disk is not filled by who cannot be followed"
    assert (cut.older_end == cut.total) == (writes < 1000), "of who stops, nothing is lost"
    assert path.stat().st_size == 0


def test_a_log_that_is_not_there_is_nothing(tmp_path: Path) -> None:
    assert not limit_log(tmp_path / "stdout.log", 10)


def test_where_the_older_part_cannot_be_kept_the_log_is_cut_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "stdout.log"
    path.write_bytes(b"x" * 100)
    older(path).mkdir()
    assert limit_log(path, 10)
    assert path.stat().st_size == 0
    assert read_cut(path) == Cut(100, 0), "there is no older part"


def test_an_older_part_that_a_full_disk_left_torn_is_not_taken_for_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "stdout.log"
    for _ in range(2):  # the second time an older part exists that could be mistaken for the new one
        path.write_bytes(b"x" * 100)
        assert limit_log(path, 50)
    path.write_bytes(b"y" * 100)
    copy = log_limit.copy_part

    def copy_while_it_is_written(source: int, target: int, start: int, end: int) -> int:
        if start > 100:
            os.write(target, b"torn")
            raise OSError(errno.ENOSPC, "No space left on device")
        with path.open("ab") as log:
            log.write(b"more")
        return copy(source, target, start, end)

    monkeypatch.setattr(log_limit, "copy_part", copy_while_it_is_written)
    assert limit_log(path, 60)
    assert read_cut(path) == Cut(308, 0)
    assert not older(path).exists()
    assert CutLog(path).read(200, 1000, ended=False) == LogSlice(308, b"")
