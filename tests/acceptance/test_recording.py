"""The recording of docs/push.md can be made anew: a short form of it, with all its servers."""

from pathlib import Path

import pytest

from tests.jobs_support import marked_processes
from tests.recording.__main__ import STEPS, record
from tests.recording.cast import frames, push_part, read

pytestmark = [
    pytest.mark.spark,
    pytest.mark.drawn("tutorials"),
    pytest.mark.campaign,
    pytest.mark.timeout(900),
]  # it waits for the pages of a watch


def test_a_short_recording_shows_a_lane_that_is_paused(process_mark: str, tmp_path: Path) -> None:
    record(tmp_path / "a.cast", pages=1, steps=STEPS[:2])
    (_, before), (_, after) = frames(read(tmp_path / "a.cast"))
    assert "paused" not in before
    (lane,) = [line for line in push_part(after).splitlines() if line.startswith("us ")]
    assert lane.endswith("paused")
    assert marked_processes(process_mark) == []
