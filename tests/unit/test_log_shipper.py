"""A shipper survives every failure around it, and reports each trouble until it ends."""

import os
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from orchestrator.logs.errors import TargetRefuses, TargetUnreachable
from orchestrator.logs.shipping import delivery, pace
from orchestrator.logs.shipping.shipper import Shipper
from orchestrator.logs.shipping.target import BatchResult
from orchestrator.logs.spool import position
from orchestrator.logs.spool.folder import folders_in
from orchestrator.logs.spool.segments import segments_in
from tests.log_support import QUICK, Shelf, append, drain, opened, read_numbers, shipping
from tests.waiting import wait_until

WAIT_S = 20


@pytest.fixture(autouse=True)
def _quick_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "_PAUSE_SECONDS", 0.05)
    monkeypatch.setattr(pace, "_LONGEST_DELAY_SECONDS", 0.05)


def test_a_disk_that_cannot_be_read_for_a_while_is_reported_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> bytes:
        raise OSError(5, "Input/output error")

    shelf, root, said = Shelf(), tmp_path / "spool", list[str]()
    with opened(root) as spool:
        shipper = Shipper(root, shelf, spool=spool, options=QUICK, report=said.append)
        with monkeypatch.context() as patch:
            patch.setattr(os, "pread", failing)
            shipper.start()
            append(spool, range(100))
            wait_until(lambda: said, WAIT_S, "the trouble is reported")
        wait_until(lambda: shelf.numbers == list(range(100)), WAIT_S, "all arrives")
        wait_until(lambda: len(said) == 2, WAIT_S, "its end is reported")
        assert shipper.close()
    assert "Input/output error" in said[0]
    assert said[1] == "logs are shipped again"


def test_one_spool_that_cannot_be_read_is_in_the_way_of_no_other(tmp_path: Path) -> None:
    shelf, root = Shelf(), tmp_path / "spool"
    with opened(root) as bad:
        append(bad, range(100, 110))
    segment = segments_in(bad.folder.path)[0].path
    moved = segment.rename(tmp_path / "moved")
    segment.symlink_to(tmp_path)  # a folder cannot be read, even as root
    with opened(root) as spool, shipping(root, shelf, spool) as shipper:
        append(spool, range(50))
        wait_until(lambda: shelf.numbers == list(range(50)), WAIT_S, "ours arrives")
        wait_until(
            lambda: str(bad.folder.path) in shipper.status()["trouble"], WAIT_S, "the trouble is reported"
        )
        moved.replace(segment)  # in one step: a segment that is not there, or empty, has nothing to deliver
        wait_until(lambda: len(shelf.numbers) == 60, WAIT_S, "the other arrives")
        wait_until(lambda: not shipper.status()["trouble"], WAIT_S, "nothing is wrong any more")


def test_a_spool_whose_checkpoint_cannot_be_written_is_in_the_way_of_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf, root, write = Shelf(), tmp_path / "spool", position.write_checkpoint
    with opened(root) as spool:
        own = spool.folder.path

        def full(folder: Path, reached: position.Position) -> None:
            if folder == own:
                raise OSError(28, "No space left on device")
            write(folder, reached)

        monkeypatch.setattr(delivery, "write_checkpoint", full)
        with opened(root) as other:
            append(other, range(50))
        with shipping(root, shelf, spool):
            append(spool, range(50, 100))
            wait_until(lambda: len(shelf.numbers) == 100, WAIT_S, "all arrives")
            wait_until(lambda: folders_in(root) == [own], WAIT_S, "the other folder is removed")
            wait_until(lambda: len(segments_in(own)) == 1, WAIT_S, "what is delivered is removed")


def test_a_report_callback_may_fail(tmp_path: Path) -> None:
    def failing(_words: str) -> None:
        raise RuntimeError("the callback fails")

    def away(_records: Sequence[bytes]) -> BatchResult:
        raise TargetUnreachable("away")

    shelf, root = Shelf(away), tmp_path / "spool"
    with opened(root) as spool:
        shipper = Shipper(root, shelf, spool=spool, options=QUICK, report=failing)
        shipper.start()
        append(spool, range(10))
        wait_until(lambda: shipper.status()["trouble"], WAIT_S, "it is in trouble")
        shelf.script = lambda _records: None
        wait_until(lambda: spool.delivered == spool.end, WAIT_S, "checkpoints go on")
        assert shipper.close()


def test_a_failed_preparation_is_retried(tmp_path: Path) -> None:
    faults: list[Exception] = [TargetRefuses("no"), TargetUnreachable("away"), KeyError("a fault")] * 3

    def prepare() -> None:
        if faults:
            raise faults.pop()

    shelf, root = Shelf(), tmp_path / "spool"
    shelf.prepare_script = prepare
    with opened(root) as spool, shipping(root, shelf, spool):
        append(spool, range(10))
        wait_until(lambda: shelf.numbers == list(range(10)), WAIT_S, "all arrives")


def test_the_checkpoint_waits_for_the_batch_that_is_not_through(tmp_path: Path) -> None:
    gate, root = threading.Event(), tmp_path / "spool"

    def first_hangs(records: Sequence[bytes]) -> BatchResult:
        if b"n0 " in records[0]:
            gate.wait(WAIT_S)
            raise TargetUnreachable("lost")
        return shelf.take(records)

    shelf = Shelf(first_hangs)
    with opened(root) as spool:
        shipper = Shipper(root, shelf, spool=spool, options=QUICK)
        shipper.start()
        append(spool, range(300))
        wait_until(lambda: len(shelf.numbers) >= 250, WAIT_S, "what comes behind is through")
        assert not shipper.close(0)
        gate.set()
        assert read_numbers(spool.folder.path, whole=False) == list(range(300))
    later = Shelf()
    assert drain(root, later)
    assert later.numbers == list(range(300))


def test_no_more_requests_than_allowed_are_under_way(tmp_path: Path) -> None:
    shelf, root = Shelf(), tmp_path / "spool"
    for start in range(0, 2_000, 200):
        with opened(root) as spool:
            append(spool, range(start, start + 200))
    assert drain(root, shelf)
    assert shelf.numbers == list(range(2_000))
    assert shelf.most_at_once <= QUICK.in_flight


def test_a_few_records_are_not_waited_for_longer_than_said(tmp_path: Path) -> None:
    shelf, root = Shelf(), tmp_path / "spool"
    with opened(root) as spool, shipping(root, shelf, spool):
        for number in range(5):
            append(spool, range(number, number + 1))
            wait_until(lambda n=number: n in shelf.numbers, WAIT_S, "it arrives")  # type: ignore[misc]
