"""The recorded terminal of the documentation: a valid asciicast that shows what docs/push.md says."""

import json
import re
import socket
from pathlib import Path

import pytest

from tests.recording.__main__ import PAGE, STEPS, render
from tests.recording.cast import LINE, Recording, frames, plain, push_part, read

CAST = PAGE.with_name("push-watch.cast")
MOST_BYTES = 200_000


def test_the_recording_is_an_asciicast_of_bounded_size() -> None:
    first, *lines = CAST.read_text("utf-8").splitlines()
    header = json.loads(first)
    assert header["version"] == 2
    assert (type(header["width"]), type(header["height"])) == (int, int)
    events = [json.loads(line) for line in lines]
    times = [at for at, _, _ in events]
    assert times == sorted(times)
    assert header["idle_time_limit"] > 0
    assert {kind for _, kind, _ in events} == {"o", "m"}
    assert CAST.stat().st_size < MOST_BYTES


def test_the_recording_has_nothing_of_the_machine_on_which_it_was_made() -> None:
    shown = "".join(plain(data) for _, _, data in read(CAST).events)
    # Paths of this project in ZooKeeper and words of the pages are all that it may have.
    assert set(re.findall(r"(?<![\w/.])/\w+", shown)) <= {"/orchestrator"}
    assert "://" not in shown
    assert not re.search(rf"\b{re.escape(socket.gethostname())}\b", shown)
    assert not re.search(r"\d+\.\d+\.\d+\.\d+", shown), "an address"


def test_each_command_is_seen_with_its_effect() -> None:
    recording = read(CAST)
    pages = dict(frames(recording))
    assert [*pages] == [label for label, _, _ in STEPS]
    shown = "".join(plain(data) for _, _, data in recording.events)
    for label, options, is_seen in STEPS:
        assert is_seen(pages[label])
        assert not options or f"$ orchestrator job adjust invoices-7 {' '.join(options)}" in shown


def test_the_excerpt_in_the_page_is_that_of_the_recording() -> None:
    page = PAGE.read_text("utf-8")
    assert render(page, read(CAST)) == page, "run python -m tests.recording docs/push-watch.cast"


@pytest.mark.parametrize(
    "text",
    [
        '{"version": 1, "width": 1, "height": 1}',
        '{"version": 2, "width": 1, "height": 1}\n[0, "x", ""]',
        '{"version": 2, "width": 1, "height": 1}\n[2, "o", ""]\n[1, "o", ""]',
    ],
)
def test_what_is_none_is_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "a.cast"
    file.write_text(text, "utf-8")
    with pytest.raises(ValueError, match=r"asciicast|event"):
        read(file)


def test_a_recording_comes_back_from_its_file(tmp_path: Path) -> None:
    recording = Recording(80, 24, "title")
    recording.draw(["job: a", "", "\x1b[1mpush into ü\x1b[0m   ", "10 rows", "", "more"], 1)
    recording.draw([LINE, "$ lower"], 7)
    recording.draw(["job: a", "", "\x1b[1mpush into ü\x1b[0m   ", "9 rows", "", "more"], 1)
    recording.mark("first")
    assert recording.events[-2][2] == "\x1b[4;1H9 rows\x1b[0m\x1b[K", "the line that has changed"
    (tmp_path / "a.cast").write_text(recording.text(), "utf-8")
    found = read(tmp_path / "a.cast")
    assert found.events == recording.events
    ((label, page),) = frames(found)
    assert (label, push_part(page)) == ("first", "push into ü\n9 rows")
