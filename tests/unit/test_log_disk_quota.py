"""A full spool: its policy decides what is dropped, and every drop is counted once."""

import os
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from orchestrator.logs.shipping.target import BatchResult
from orchestrator.logs.spool.folder import bytes_in, folders_in
from orchestrator.logs.spool.limits import SpoolLimits, WhenFull
from orchestrator.logs.spool.position import write_checkpoint
from orchestrator.logs.spool.reader import SpoolReader
from orchestrator.logs.spool.segments import segments_in
from orchestrator.logs.spool.writer import Spool
from tests.log_support import INDEX, KIB, Shelf, append, document, opened, read_numbers, shipping
from tests.waiting import wait_until

NEVER_S = 3_600.0


def limits(when_full: WhenFull, block_seconds: float = 0.1) -> SpoolLimits:
    # The fsync thread never runs: compression would free disk space at a moment that no test controls.
    return SpoolLimits(40 * KIB, 4 * KIB, NEVER_S, when_full, block_seconds)


def test_the_oldest_give_way_and_are_counted(tmp_path: Path) -> None:
    with opened(tmp_path, limits(WhenFull.DROP_OLDEST)) as spool:
        assert append(spool, range(1_000)) == list(range(1_000))
        left = read_numbers(spool.folder.path)
        assert left == list(range(1_000 - len(left), 1_000))
        assert spool.dropped == 1_000 - len(left)
        assert spool.spooled == 1_000
        assert bytes_in(tmp_path) <= 40 * KIB + 400


def test_debug_gives_way_before_warnings(tmp_path: Path) -> None:
    with opened(tmp_path, limits(WhenFull.DROP_BY_LEVEL)) as spool:
        full = len(append(spool, range(1_000)))
        assert full < 200
        assert spool.dropped == 1_000 - full
        warned = [n for n in range(2_000, 2_100) if spool.append(INDEX, document(n, "x" * 200), level=30)]
        assert warned == list(range(2_000, 2_100))
        left = read_numbers(spool.folder.path)
        assert spool.spooled + spool.dropped == 1_100 + (full - sum(number < 1_000 for number in left))
        assert left == sorted(left)
        assert left[-100:] == warned


def test_a_log_call_that_may_wait_waits_for_its_time_and_then_drops_its_own_record(tmp_path: Path) -> None:
    with opened(tmp_path, limits(WhenFull.BLOCK, 0.01)) as spool:
        taken = append(spool, range(140))
        assert taken == list(range(len(taken)))
        assert spool.dropped == 140 - len(taken) > 0
        assert read_numbers(spool.folder.path) == taken


def test_a_blocked_log_call_continues_when_the_server_has_accepted_records(tmp_path: Path) -> None:
    shelf, gate = Shelf(), threading.Event()

    def gated(records: Sequence[bytes]) -> BatchResult:
        gate.wait(30)
        return shelf.take(records)

    shelf.script = gated
    root = tmp_path / "spool"
    with opened(root, limits(WhenFull.BLOCK, 30)) as spool, shipping(root, shelf, spool):
        writer = threading.Thread(target=append, args=(spool, range(1_000)))
        writer.start()
        wait_until(lambda: bytes_in(root) > 35 * KIB, 10, "the spool is full")
        gate.set()
        wait_until(lambda: not writer.is_alive(), 20, "all was appended")
        wait_until(lambda: shelf.numbers == list(range(1_000)), 20, "all arrives")
        assert spool.dropped == 0


def test_abandoned_records_are_dropped_before_our_own(tmp_path: Path) -> None:
    with opened(tmp_path, limits(WhenFull.DROP_OLDEST)) as old:
        append(old, range(60))
    with opened(tmp_path, limits(WhenFull.DROP_OLDEST)) as spool:
        append(spool, range(1_000, 1_090))
        assert read_numbers(spool.folder.path) == list(range(1_000, 1_090))
        left = read_numbers(old.folder.path)
        assert left == list(range(60 - len(left), 60))
        assert spool.dropped == 60 - len(left) > 0


def test_a_spool_of_another_process_is_not_dropped(tmp_path: Path) -> None:
    with opened(tmp_path, limits(WhenFull.DROP_OLDEST)) as other:
        append(other, range(100))
        with opened(tmp_path, limits(WhenFull.DROP_OLDEST)) as spool:
            append(spool, range(1_000, 1_200))
            assert read_numbers(other.folder.path) == list(range(100))
            assert spool.dropped > 0


def test_records_delivered_before_do_not_count_as_dropped(tmp_path: Path) -> None:
    with opened(tmp_path, limits(WhenFull.DROP_OLDEST)) as spool:
        append(spool, range(100))
        reader = SpoolReader(spool.folder.path)
        delivered = 0
        while (batch := reader.read(10, 100_000)) is not None and delivered < 50:
            delivered += len(batch.records)
        assert batch is not None
        write_checkpoint(spool.folder.path, batch.start)
        append(spool, range(100, 1_000))
        left = read_numbers(spool.folder.path)
        assert spool.dropped == 1_000 - delivered - len(left)


def test_records_that_are_dropped_behind_damage_are_counted(tmp_path: Path) -> None:
    with opened(tmp_path, limits(WhenFull.DROP_OLDEST)) as spool:
        append(spool, range(50))
        first = segments_in(spool.folder.path)[0].path
        data = bytearray(first.read_bytes())
        data[20] ^= 1
        first.write_bytes(bytes(data))
        append(spool, range(50, 500))
        left = read_numbers(spool.folder.path)
        assert spool.dropped == 500 - 1 - len(left)


def test_drops_are_reported_once_for_all_that_came_together(tmp_path: Path) -> None:
    with opened(tmp_path, SpoolLimits(40 * KIB, 4 * KIB, 0.02)) as spool:
        reported = list[int]()
        spool.on_drops = lambda: reported.append(spool.dropped)
        append(spool, range(2_000), "\x80" * 500)
        wait_until(lambda: reported, 10, "drops are reported")
        assert len(reported) == 1


# ---------------------------------------------------------------------- a full disk
def test_a_write_that_was_cut_short_costs_its_record_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    with opened(tmp_path, limits(WhenFull.DROP_OLDEST)) as spool:
        append(spool, range(5))
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", lambda file, data: write(file, data[: len(data) // 2]))
            assert append(spool, range(5, 8)) == []
        append(spool, range(8, 10))
        assert read_numbers(spool.folder.path) == [0, 1, 2, 3, 4, 8, 9]
        assert (spool.spooled, spool.dropped) == (7, 3)


def test_a_torn_record_that_cannot_be_truncated_is_skipped_by_the_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write

    def failing(*_: object) -> None:
        raise OSError(5, "Input/output error")

    shelf, root = Shelf(), tmp_path / "spool"
    with opened(root, limits(WhenFull.DROP_OLDEST)) as spool, shipping(root, shelf, spool) as shipper:
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", lambda file, data: write(file, data[: len(data) // 2]))
            patch.setattr(os, "ftruncate", failing)
            assert append(spool, range(3)) == []
        append(spool, range(3, 10))
        wait_until(lambda: shelf.numbers == list(range(3, 10)), 10, "the whole records arrive")
        assert shipper.status()["damaged_bytes"] > 300
        assert spool.dropped == 3


def test_a_full_disk_raises_nothing_and_records_are_spooled_again_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> int:
        raise OSError(28, "No space left on device")

    with opened(tmp_path, limits(WhenFull.DROP_OLDEST)) as spool:
        append(spool, range(20))
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", full)
            patch.setattr(Spool, "_create", full)
            assert append(spool, range(20, 30)) == []
        assert append(spool, range(30, 40)) == list(range(30, 40))
        assert read_numbers(spool.folder.path) == [*range(20), *range(30, 40)]
        assert spool.dropped == 10
    assert len(folders_in(tmp_path)) == 1
