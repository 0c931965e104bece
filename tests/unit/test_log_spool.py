"""Reading a spool: across segments, compressed ones, torn ends and lost checkpoints."""

import contextlib
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.logs.spool.limits import SpoolLimits, WhenFull
from orchestrator.logs.spool.reader import SpoolReader
from orchestrator.logs.spool.segments import MAX_RECORD_BYTES, Segment, create_line, segments_in
from orchestrator.logs.spool.writer import Spool
from tests.log_support import (
    INDEX,
    KIB,
    append,
    document,
    identity_of,
    number_of,
    opened,
    read_numbers,
    read_records,
)
from tests.waiting import wait_until

NO_KEEPER = SpoolLimits(1024 * KIB, 4 * KIB, fsync_seconds=3_600)


def records(numbers: range, level: int) -> Iterator[tuple[bytes, int]]:
    return (
        (create_line(INDEX, f"id-{number}").encode() + document(number, "x" * 200) + b"\n", level)
        for number in numbers
    )


def test_records_come_in_their_order_over_the_borders_of_segments(tmp_path: Path) -> None:
    with opened(tmp_path) as spool:
        append(spool, range(200))
        reader = SpoolReader(spool.folder.path, end=lambda: spool.end)
        found = read_records(reader)
        assert [number_of(record) for record in found] == list(range(200))
        assert reader.position == spool.end
        assert len(segments_in(spool.folder.path)) > 5
        sequences = [json.loads(record.split(b"\n")[1])["event.sequence"] for record in found]
        assert sequences == list(range(200))
        assert len({identity_of(record) for record in found}) == 200


@pytest.mark.parametrize("compressed", [set(range(1, 99)), {1, 3, 4}, {2}], ids=["all", "some", "one"])
def test_compressed_segments_read_as_plain_ones(tmp_path: Path, compressed: set[int]) -> None:
    with opened(tmp_path, NO_KEEPER) as spool:
        append(spool, range(100))
        folder = spool.folder.path
        for segment in segments_in(folder)[:-1]:
            if segment.number in compressed and not segment.is_compressed:
                segment.compress()
        assert any(segment.is_compressed for segment in segments_in(folder))
        assert read_numbers(folder, whole=False) == list(range(100))


def test_segments_may_be_compressed_and_written_while_they_are_read(tmp_path: Path) -> None:
    with opened(tmp_path) as spool:
        writer = threading.Thread(target=append, args=(spool, range(1_500)))
        reader, found = SpoolReader(spool.folder.path, end=lambda: spool.end), list[int]()
        writer.start()
        while len(found) < 1_500:  # the fsync thread compresses meanwhile: nothing counts as delivered
            if (batch := reader.read(3, 10_000)) is None:
                assert writer.is_alive() or reader.position < spool.end, "records are missing"
                continue
            found += map(number_of, batch.records)
            for segment in segments_in(spool.folder.path)[:-1]:
                if segment.number == reader.position.segment and not segment.is_compressed:
                    with contextlib.suppress(
                        FileNotFoundError, FileExistsError
                    ):  # the fsync thread was first
                        segment.compress()
        writer.join()
        assert found == list(range(1_500))
        assert reader.damaged_bytes == 0


def test_a_segment_that_was_dropped_while_it_was_compressed_does_not_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path) as spool:
        append(spool, range(100))
        segment = segments_in(spool.folder.path)[0]
        plain = Segment(segment.number, spool.folder.path / f"{segment.number:08d}.seg")
        fsync = os.fsync

        def drop_meanwhile(file: int) -> None:
            plain.path.unlink()
            fsync(file)

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", drop_meanwhile)
            with pytest.raises(FileNotFoundError):
                plain.compress()
        assert all(each.number != segment.number for each in segments_in(spool.folder.path))


def test_of_two_who_compress_a_segment_one_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fsync = os.fsync
    with opened(tmp_path, NO_KEEPER) as spool:
        append(spool, range(100))
        segment = segments_in(spool.folder.path)[0]

        def and_another(file: int) -> None:
            with pytest.raises(FileExistsError):
                segment.compress()
            fsync(file)

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", and_another)
            assert segment.compress().is_compressed
        segment.path.write_bytes(b"as before its end")
        with pytest.raises(FileExistsError):
            segment.compress()
        assert read_numbers(spool.folder.path, whole=False) == list(range(100))


def test_a_compression_that_fails_leaves_the_segment_and_no_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path) as spool:
        append(spool, range(100))
        last = segments_in(spool.folder.path)[-1]

        def full(_file: int) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            with pytest.raises(OSError, match="No space"):
                last.compress()
        assert last.path.exists()
        assert not last.path.with_suffix(".tmp").exists()


def test_a_segment_that_a_crash_left_twice_is_read_once_and_removed_as_one(tmp_path: Path) -> None:
    with opened(tmp_path) as spool:
        append(spool, range(100))
        folder = spool.folder.path
        wait_until(
            lambda: segments_in(folder)[2].is_compressed,
            10,
            "the fsync thread compresses the waiting segments",
        )
        segment = segments_in(folder)[2]
        (folder / f"{segment.number:08d}.seg").write_bytes(segment.read())
        assert read_numbers(folder, whole=False) == list(range(100))
        segment.remove()
        assert all(each.number != segment.number for each in segments_in(folder))


@pytest.mark.parametrize("torn", [1, 7, 8, 9, 100])
def test_a_torn_end_costs_what_was_torn(tmp_path: Path, torn: int) -> None:
    with opened(tmp_path) as spool:
        append(spool, range(30))
        folder = spool.folder.path
    last = segments_in(folder)[-1]
    os.truncate(last.path, last.size() - torn)
    assert read_numbers(folder) == list(range(29))


def test_a_record_that_is_being_written_is_waited_for(tmp_path: Path) -> None:
    with opened(tmp_path) as spool:
        append(spool, range(3))
        last = segments_in(spool.folder.path)[-1]
        whole = last.read()
        os.truncate(last.path, len(whole) - 5)
        reader = SpoolReader(spool.folder.path)
        assert [number_of(each) for each in read_records(reader)] == [0, 1]
        last.path.write_bytes(whole)
        assert [number_of(each) for each in read_records(reader)] == [2]
        assert reader.damaged_bytes == 0


def test_a_segment_that_is_gone_is_passed(tmp_path: Path) -> None:
    with opened(tmp_path) as spool:
        append(spool, range(100))
        folder = spool.folder.path
        gone = read_records(SpoolReader(folder))
        segments_in(folder)[3].remove()
        left = read_numbers(folder)
        assert left == [number for number in range(len(gone)) if number in set(left)]
        assert 70 < len(left) < 100


def test_a_disk_that_cannot_be_read_is_reported_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> bytes:
        raise OSError(5, "Input/output error")

    with opened(tmp_path) as spool:
        append(spool, range(50))
        reader = SpoolReader(spool.folder.path, end=lambda: spool.end)
        with monkeypatch.context() as patch:
            patch.setattr(os, "pread", failing)
            for _ in range(3):
                with pytest.raises(OSError, match="Input/output"):
                    reader.read(10, 10_000)
        found = read_records(reader)
        assert [number_of(record) for record in found] == list(range(50))


def test_a_record_longer_than_a_piece_that_is_read_at_once_arrives(tmp_path: Path) -> None:
    with opened(tmp_path, SpoolLimits(16 * KIB * KIB, 4 * KIB)) as spool:
        assert spool.append(INDEX, document(0, "x" * (MAX_RECORD_BYTES - 300)))
        append(spool, range(1, 3))
        assert read_numbers(spool.folder.path, whole=False) == [0, 1, 2]


def test_a_record_that_no_reader_would_believe_is_refused_and_counted(tmp_path: Path) -> None:
    with opened(tmp_path) as spool:
        append(spool, range(1))
        assert not spool.append(INDEX, document(1, "x" * MAX_RECORD_BYTES))
        append(spool, range(2, 3))
        assert (spool.spooled, spool.dropped) == (2, 1)
        assert read_numbers(spool.folder.path, whole=False) == [0, 2]


def test_many_at_once_come_in_their_order_over_the_borders_of_segments(tmp_path: Path) -> None:
    with opened(tmp_path, SpoolLimits(16 * KIB * KIB, 4 * KIB)) as spool:
        append(spool, range(3))
        assert spool.append_many(records(range(3, 4_000), 20)) == 3_997
        append(spool, range(4_000, 4_010))
        assert (spool.spooled, spool.dropped) == (4_010, 0)
        assert read_numbers(spool.folder.path, whole=False) == list(range(4_010))
        assert len(segments_in(spool.folder.path)) > 2


def test_of_many_at_once_the_number_that_a_full_disk_accepted_is_returned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, complete = os.write, [2]

    def full_soon(file: int, data: bytes) -> int:
        complete[0] -= 1
        return write(file, data if complete[0] >= 0 else data[:1_000])

    with opened(tmp_path, SpoolLimits(16 * KIB * KIB, 4 * KIB * KIB, fsync_seconds=3_600)) as spool:
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", full_soon)
            appended = spool.append_many(records(range(5_000), 20))
        assert 0 < appended < 5_000
        assert spool.append_many(records(range(appended, 5_000), 20)) == 5_000 - appended
        assert (spool.spooled, spool.dropped) == (5_000, 0)
        assert read_numbers(spool.folder.path, whole=False) == list(range(5_000))


@pytest.mark.parametrize(("level", "fits"), [(40, 1), (20, 0)])
def test_many_at_once_are_as_loud_as_the_loudest_of_them(tmp_path: Path, level: int, fits: int) -> None:
    limits = SpoolLimits(16 * KIB, 4 * KIB, when_full=WhenFull.DROP_BY_LEVEL, fsync_seconds=3_600)
    with opened(tmp_path, limits) as spool:
        append(spool, range(200))
        assert (
            spool.append_many([*records(range(200, 201), 20), *records(range(201, 202), level)]) == 2 * fits
        )


def test_line_breaks_between_fields_do_not_take_a_request_apart(tmp_path: Path) -> None:
    with opened(tmp_path) as spool:
        assert spool.append(INDEX, json.dumps({"message": "n7 a\nb"}, indent=2).encode())
        (record,) = read_records(SpoolReader(spool.folder.path))
    assert record.count(b"\n") == 2
    assert json.loads(record.split(b"\n")[1])["message"] == "n7 a\nb"


def test_a_record_after_the_end_is_refused_and_creates_no_folder(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.delivered = spool.end
    spool.close(remove=True)
    assert not spool.append("x", b'{"a":1}')
    assert list(tmp_path.iterdir()) == []
    assert spool.dropped == 1


def test_an_incomplete_folder_of_a_killed_process_is_removed_after_a_while(tmp_path: Path) -> None:
    old, young, others = (tmp_path / name for name in (f".{'0a' * 8}", f".{'0b' * 8}", ".of-another-program"))
    for path in (old, young, others):
        path.mkdir()
    for path in (old, others):
        os.utime(path, (1, 1))
    with opened(tmp_path):
        assert sorted(path for path in tmp_path.iterdir() if path.name.startswith(".")) == [young, others]
