"""The checkpoint file of a spool: torn, missing, wrong, or on a full disk."""

from pathlib import Path

import pytest

from orchestrator.logs.shipping.delivery import SpoolStream
from orchestrator.logs.spool.folder import SpoolFolder
from orchestrator.logs.spool.position import CHECKPOINT, Position, read_checkpoint, write_checkpoint
from orchestrator.logs.spool.reader import SpoolReader
from orchestrator.logs.spool.segments import segments_in
from tests.log_support import SMALL, append, number_of, opened, read_numbers, read_records


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "{",
        "[]",
        "null",
        '{"segment": 1}',
        '{"segment": "x", "offset": 0}',
        '{"segment": 1, "offset": -5}',
        '{"segment": -1, "offset": 0}',
        '{"segment": Infinity, "offset": 0}',
        '{"segment": 1, "offset": 99999999999999999999999}',
        "\0\0\0\0",
    ],
)
def test_without_a_sound_checkpoint_all_is_delivered_again(tmp_path: Path, text: str | None) -> None:
    with opened(tmp_path) as spool:
        append(spool, range(40))
        folder = spool.folder.path
        if text is not None:
            (folder / CHECKPOINT).write_text(text)
        reader = SpoolReader(folder, read_checkpoint(folder))
        assert [number_of(record) for record in read_records(reader)] == list(range(40))


def test_a_checkpoint_behind_what_a_power_failure_has_left_skips_nothing_that_comes_later(
    tmp_path: Path,
) -> None:
    with opened(tmp_path) as spool:
        append(spool, range(100))
        folder = spool.folder.path
        segments = segments_in(folder)
        write_checkpoint(folder, Position(segments[2].number, 1_000_000))
        reader = SpoolReader(folder, read_checkpoint(folder), whole=True)
        found = [number_of(record) for record in read_records(reader)]
        assert found == list(range(found[0], 100))
        assert found[0] == len(read_records(SpoolReader(folder))) - len(found)


def test_delivered_segments_are_removed_even_if_a_full_disk_refuses_the_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with opened(tmp_path) as spool:
        append(spool, range(100))
        folder = spool.folder.path
    adopted = SpoolFolder.adopt(folder)
    assert adopted is not None
    stream = SpoolStream(adopted)
    while (delivery := stream.take(10, 100_000, partial=True)) is not None:
        stream.done(delivery)
    with monkeypatch.context() as patch:
        patch.setattr("orchestrator.logs.shipping.delivery.write_checkpoint", full)
        with pytest.raises(OSError, match="No space"):
            stream.save()
    assert len(segments_in(folder)) == 1
    stream.save()
    assert read_checkpoint(folder) > Position(2, 0)
    stream.close()


def test_a_record_after_the_last_check_is_not_removed_with_the_folder(tmp_path: Path) -> None:
    with opened(tmp_path, SMALL) as spool:
        append(spool, range(3))
        spool.delivered = spool.end
        append(spool, range(3, 4))
        spool.close(remove=True)
        assert read_numbers(spool.folder.path) == [0, 1, 2, 3]
