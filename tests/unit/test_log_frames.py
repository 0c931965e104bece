"""A cut or a flipped byte in a segment never yields a wrong record, and reading continues behind it."""

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.logs.spool.position import Position
from orchestrator.logs.spool.reader import SpoolReader, undelivered_in
from orchestrator.logs.spool.segments import (
    HEADER,
    MAX_RECORD_BYTES,
    Segment,
    frame_at,
    framed,
    frames,
    next_frame,
    segment_path,
)
from tests.log_support import read_records

PLAIN = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def record(number: int, body: bytes) -> bytes:
    return b'{"create":{"_id":"%d"}}\n%b\n' % (number, body)


RECORDS = st.lists(st.binary(max_size=60), min_size=1, max_size=12).map(
    lambda bodies: [record(number, body) for number, body in enumerate(bodies)]
)


def written(folder: Path, data: bytes, *, compressed: bool = False) -> Segment:
    for path in folder.glob("*"):
        path.unlink()
    segment = Segment(1, segment_path(folder, 1))
    segment.path.write_bytes(data)
    return segment.compress() if compressed else segment


@given(RECORDS)
def test_framed_records_are_read_back(records: list[bytes]) -> None:
    data = b"".join(map(framed, records))
    assert [found for found, _ in frames(data)] == records


@given(RECORDS, st.data())
def test_a_cut_leaves_the_records_before_it(records: list[bytes], draw: st.DataObject) -> None:
    data = b"".join(map(framed, records))
    cut = draw.draw(st.integers(0, len(data) - 1))
    found = [each for each, _ in frames(data[:cut])]
    assert found == records[: len(found)]
    assert len(found) < len(records)
    assert sum(len(framed(each)) for each in records[: len(found) + 1]) > cut


@PLAIN
@given(RECORDS, st.data(), st.booleans())
def test_a_flipped_byte_costs_one_record_and_no_other(
    tmp_path: Path, records: list[bytes], draw: st.DataObject, compressed: bool
) -> None:
    data = bytearray(b"".join(map(framed, records)))
    at = draw.draw(st.integers(0, len(data) - 1))
    data[at] ^= draw.draw(st.integers(1, 255))
    segment = written(tmp_path, bytes(data), compressed=compressed)
    reader = SpoolReader(tmp_path, whole=True)
    found = read_records(reader)
    ends = [sum(len(framed(each)) for each in records[: number + 1]) for number in range(len(records))]
    hit = next(number for number, end in enumerate(ends) if at < end)
    assert found == records[:hit] + records[hit + 1 :]
    assert reader.damaged_bytes == len(framed(records[hit]))
    assert undelivered_in(segment, Position()) == len(found)


@PLAIN
@given(RECORDS, st.data())
def test_cuts_and_flips_anywhere_yield_only_records_that_were_written_in_their_order(
    tmp_path: Path, records: list[bytes], draw: st.DataObject
) -> None:
    data = bytearray(b"".join(map(framed, records)))
    for _ in range(draw.draw(st.integers(1, 5))):
        start = draw.draw(st.integers(0, len(data)))
        if draw.draw(st.booleans()):
            data[start:start] = draw.draw(st.binary(max_size=30))
        else:
            del data[start : start + draw.draw(st.integers(0, 20))]
    written(tmp_path, bytes(data))
    found = read_records(SpoolReader(tmp_path, whole=True), draw.draw(st.integers(1, 20)))
    places = [records.index(each) for each in found]
    assert places == sorted(set(places))


@PLAIN
@given(RECORDS, st.data())
def test_a_compressed_segment_that_was_cut_yields_the_records_before(
    tmp_path: Path, records: list[bytes], draw: st.DataObject
) -> None:
    segment = written(tmp_path, b"".join(map(framed, records)), compressed=True)
    data = segment.path.read_bytes()
    segment.path.write_bytes(data[: draw.draw(st.integers(0, len(data) - 1))])
    found = read_records(SpoolReader(tmp_path, whole=True))
    assert found == records[: len(found)]


@PLAIN
@given(RECORDS, st.data())
def test_a_flip_in_a_compressed_segment_yields_only_records_that_were_written(
    tmp_path: Path, records: list[bytes], draw: st.DataObject
) -> None:
    """One record may come twice, since compressed data refers back; a target detects it by its id."""
    segment = written(tmp_path, b"".join(map(framed, records)), compressed=True)
    data = bytearray(segment.path.read_bytes())
    data[draw.draw(st.integers(0, len(data) - 1))] ^= draw.draw(st.integers(1, 255))
    segment.path.write_bytes(bytes(data))
    assert set(read_records(SpoolReader(tmp_path, whole=True))) <= set(records)


def test_behind_a_damaged_length_the_next_record_is_found() -> None:
    first, second = framed(record(1, b"a")), framed(record(2, b"b"))
    for length in (0, 1, len(first), MAX_RECORD_BYTES, MAX_RECORD_BYTES + 1, 2**32 - 1):
        data = HEADER.pack(length, 0) + first[HEADER.size :] + second
        assert frame_at(data, 0) is None
        assert next_frame(data, 0) == len(first)


def test_the_beginning_of_a_record_in_the_text_of_another_is_none() -> None:
    record_with = record(1, b'{"message": {"create":{ "a": 1}}}')
    data = framed(record_with)
    assert next_frame(data, 0) is None
    assert next_frame(b"12345678" + data, 0) == 8
