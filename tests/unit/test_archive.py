import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loguru import logger
from pydantic import ValidationError

from orchestrator.archive.archive import PausingArchive, open_archive
from orchestrator.archive.base import STALE_AFTER, ArchiveError, Document, DocumentRefused, Mark, document_of
from orchestrator.config.settings import load_settings
from orchestrator.config.tables import ArchiveSettings
from orchestrator.model.job import JobState
from queues.model.names import Token
from queues.model.record import Record

RECORD = Record("job", "key", "finish", "team", Token(id="job", due=0, seq=1), "nonce")


# ---------------------------------------------------------------------- document
def test_a_document_says_all_of_the_job_and_where_and_when_it_was_archived() -> None:
    state = JobState.enqueued("report").evolve(archive="host now 0", attempt=2)
    attempts: list[dict[str, Any]] = [{"attempt": 1, "place": {"host": "one"}}, {"attempt": 2}]
    document = document_of(RECORD, state, {"name": "report", "python": "pass"}, attempts)
    assert (document["id"], document["run_key"], document["pool"]) == ("job", "key", "team")
    assert {**state.to_payload(with_defaults=True), **document}.keys() - document.keys() == {"archive"}
    assert document["definition"] == {"name": "report", "python": "pass"}
    assert document["attempts"] == attempts
    assert document["host"] == socket.gethostname()
    assert datetime.fromisoformat(document["archived"]).tzinfo is UTC
    assert "taken_over_from" not in document


# ---------------------------------------------------------------------- mark
words = st.text(st.characters(codec="ascii", categories=("L", "N", "P")), min_size=1)


@given(owner=words, position=words, before=st.just("") | words)
def test_a_mark_is_read_as_it_was_written(owner: str, position: str, before: str) -> None:
    mark = Mark.now(owner, position, before)
    assert Mark.parse(str(mark)) == mark


@pytest.mark.parametrize("text", [None, "", "host", "a b c", "a 2026-11-21T00:00:00 c", "a b c d e f"])
def test_an_invalid_mark_is_none(text: str | None) -> None:
    assert Mark.parse(text) is None


@pytest.mark.parametrize(("seconds", "stale"), [(-60, False), (60, True)])
def test_a_mark_is_stale_after_a_day(seconds: float, stale: bool) -> None:
    made = datetime.now(UTC) - STALE_AFTER - timedelta(seconds=seconds)
    assert Mark("host", made.isoformat(), "0").is_stale() is stale


# ---------------------------------------------------------------------- pauses
class Scripted:
    """An archive with scripted failures that counts its calls."""

    def __init__(self) -> None:
        self.error: ArchiveError | None = None
        self.asked = 0

    def owner(self) -> str:
        return "owner"

    def position(self) -> str:
        return "0"

    def write(self, document: Document, *, since: str = "") -> None:
        self.asked += 1
        assert document is not None
        assert since is not None
        if self.error is not None:
            raise self.error


class Paused:
    def __init__(self) -> None:
        self.now = 0.0
        self.inner = Scripted()
        self.archive = PausingArchive(self.inner, clock=lambda: self.now)

    def delay(self) -> float:
        with pytest.raises(ArchiveError) as raised:
            self.archive.write({})
        return raised.value.delay


def test_after_a_failure_the_archive_is_left_alone_for_a_growing_while() -> None:
    paused = Paused()
    paused.inner.error = ArchiveError("disk full")
    delays = []
    for count in range(1, 7):
        delays.append(paused.delay())
        paused.now += delays[-1] / 2
        assert paused.delay() == pytest.approx(delays[-1] / 2)
        assert paused.inner.asked == count
        with pytest.raises(ArchiveError, match="disk full"):
            paused.archive.owner()  # before a job is marked
        paused.now += delays[-1] / 2
        assert paused.archive.owner() == "owner"
    assert delays == [60, 120, 240, 480, 600, 600]
    paused.inner.error = None
    paused.archive.write({})
    paused.inner.error = ArchiveError("again")
    assert paused.delay() == 60


def test_a_failure_is_logged_once_and_so_is_its_end() -> None:
    paused, logged = Paused(), list[str]()
    handler = logger.add(lambda message: logged.append(str(message)), format="{message}")
    try:
        paused.archive.write({})
        paused.inner.error = ArchiveError("disk full")
        for _ in range(5):
            paused.now += paused.delay()
        paused.inner.error = None
        paused.archive.write({})
        paused.archive.write({})
    finally:
        logger.remove(handler)
    assert [line.split(":")[0] for line in logged] == [
        "jobs cannot be archived, so none is removed",
        "jobs are archived again\n",
    ]


def test_one_document_that_is_refused_does_not_hold_up_the_others() -> None:
    paused = Paused()
    paused.inner.error = DocumentRefused("too large")
    assert paused.delay() == 600
    paused.inner.error = None
    paused.archive.write({})


# ---------------------------------------------------------------------- settings
def test_without_settings_jobs_are_archived_in_files_of_the_state_directory(tmp_path: Path) -> None:
    open_archive(ArchiveSettings(), tmp_path).owner()
    assert (tmp_path / "archive" / "name").exists()
    open_archive(ArchiveSettings(dir=tmp_path / "elsewhere"), tmp_path).owner()
    assert (tmp_path / "elsewhere" / "name").exists()


def test_elasticsearch_is_not_asked_before_there_is_something_to_archive(tmp_path: Path) -> None:
    settings = ArchiveSettings(url="http://127.0.0.1:1", key_file=tmp_path / "not-there-yet")
    assert open_archive(settings, tmp_path).owner() is None


def test_an_archive_is_set_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORCHESTRATOR_ARCHIVE__URL", "https://search:9200/prefix")
    assert load_settings().archive == ArchiveSettings(url="https://search:9200/prefix")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"url": "search:9200"}, "is not a URL"),
        ({"url": "https://ada:the-secret@search"}, "a URL must not contain a login"),
        ({"url": "http://search", "index": "Jobs"}, "cannot name an index"),
        ({"key_file": "/key"}, "are for the server that url names"),
        ({"url": "http://search", "dir": "/archive"}, "url or dir, not both"),
    ],
)
def test_a_mistake_in_the_settings_is_named(fields: dict[str, str], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        ArchiveSettings.model_validate(fields)
