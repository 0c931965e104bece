"""Logs of drivers do not grow for ever, and their end stays."""

import os
from pathlib import Path

import pytest

from spark_runner.log_limit import CUT, OLDER, Cut, limit_log, read_cut


def older(path: Path) -> Path:
    return Path(f"{path}{OLDER}")


@pytest.mark.parametrize("size", [0, 1, 1000])
def test_a_log_within_its_limit_stays_as_it_is(tmp_path: Path, size: int) -> None:
    path = tmp_path / "stdout.log"
    path.write_bytes(b"x" * size)
    assert not limit_log(path, 1000)
    assert path.stat().st_size == size
    assert not older(path).exists()


def test_one_that_is_too_long_begins_anew_and_its_end_is_the_older_part(tmp_path: Path) -> None:
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
        os.write(descriptor, b"and on\n")  # by who has it open all the time
    finally:
        os.close(descriptor)
    assert path.read_bytes() == b"and on\n"
    assert older(path).stat().st_mode & 0o777 == 0o600
    assert sorted(p.name for p in tmp_path.iterdir()) == ["stdout.log", "stdout.log.1", f"stdout.log{CUT}"]


def test_a_log_that_is_not_there_is_nothing(tmp_path: Path) -> None:
    assert not limit_log(tmp_path / "stdout.log", 10)


def test_where_the_older_part_cannot_be_kept_the_log_is_cut_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "stdout.log"
    path.write_bytes(b"x" * 100)
    older(path).mkdir()
    assert limit_log(path, 10)
    assert path.stat().st_size == 0
    assert read_cut(path) == Cut(100, 0), "there is no older part"
