"""The fate of each record of a request: delivered once, dead once, or sent again until it is one of them."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.logs.errors import RequestMalformed, TargetBusy, TargetRefuses, TargetUnreachable
from orchestrator.logs.shipping import pace as pace_module
from orchestrator.logs.shipping.delivery import DeadLetters, Sender
from orchestrator.logs.shipping.http import Answer
from orchestrator.logs.shipping.pace import Pace
from orchestrator.logs.shipping.target import Counts, LogTarget, RefusedRecord
from tests.bulk_stub import CREATED, BulkStub, error_answer
from tests.log_support import dead_letters, document

TAKEN = [(CREATED, ""), (CREATED, "used")]
DEAD = [(400, "document_parsing_exception"), (404, "other"), (400, "illegal_argument_exception"), (410, "x")]
LATER = [
    (429, "es_rejected_execution_exception"),
    (403, "cluster_block_exception"),
    (429, "circuit_breaking_exception"),
    (500, "x"),
    (502, "x"),
    (503, "unavailable_shards_exception"),
    (504, "x"),
    (401, "security_exception"),
    (403, "security_exception"),
]
GARBAGE = [
    Answer(200, {}, {}),
    Answer(200, {}, None),
    Answer(200, {}, "<html>"),
    Answer(200, {}, {"errors": True, "items": "x"}),
    Answer(200, {}, {"errors": False, "items": []}),
]
REFUSED = [error_answer(400), error_answer(413)]
AWAY = [error_answer(status) for status in (401, 403, 404, 405, 408, 429, 500, 502, 503, 504)]
REQUESTS = [*GARBAGE, *AWAY, *REFUSED, "lost", None, None, None]


def record(number: int) -> bytes:
    return b'{"create":{"_index":"logs-x","_id":"r-%d"}}\n%b\n' % (number, document(number))


def sender_of(folder: Path, target: LogTarget) -> tuple[Sender, Counts, Pace]:
    counts, pace = Counts(), Pace(2)
    return Sender(target, pace, counts, DeadLetters(folder / "dead-letters", "test")), counts, pace


@pytest.fixture(autouse=True)
def _no_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_FIRST_DELAY_SECONDS", "_LONGEST_DELAY_SECONDS", "_PAUSE_SECONDS"):
        monkeypatch.setattr(pace_module, name, 0.0)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    fates=st.lists(
        st.tuples(st.lists(st.sampled_from(LATER), max_size=3), st.sampled_from([*TAKEN, *DEAD])),
        min_size=1,
        max_size=12,
    ),
    requests=st.lists(st.sampled_from(REQUESTS), max_size=12),
)
def test_every_record_is_settled_exactly_once_and_as_the_server_has_it(
    tmp_path: Path, fates: list[tuple[list[tuple[int, str]], tuple[int, str]]], requests: list[Any]
) -> None:
    for path in (tmp_path / "dead-letters").glob("*"):
        path.unlink()
    records = [record(number) for number in range(len(fates))]
    waiting = {f"r-{number}": list(later) for number, (later, _) in enumerate(fates)}
    ends = {f"r-{number}": end for number, (_, end) in enumerate(fates)}
    script, refused = list(requests), set[str]()

    def item(identity: str) -> tuple[int, str]:
        return waiting[identity].pop(0) if waiting[identity] else ends[identity]

    def request(ids: list[str]) -> Answer | str | None:
        said: Answer | str | None = script.pop(0) if script else None
        if said in REFUSED and any(identity in stub.documents for identity in ids):
            return None  # it has accepted some of them before
        if said in REFUSED and len(ids) == 1:
            refused.update(ids)
        return said

    stub = BulkStub(item, request)
    sender, counts, pace = sender_of(tmp_path, stub.target())
    assert sender.deliver(records)
    dead = Counter(letter["action"]["create"]["_id"] for letter in dead_letters(tmp_path / "spool"))  # type: ignore[index]
    good = {identity for identity, end in ends.items() if end in TAKEN} - refused
    assert set(stub.documents) == good
    assert set(dead) == set(ends) - good
    assert set(dead.values()) <= {1}
    done = counts.created + counts.duplicates + counts.diverted
    assert (done, counts.dead) == (len(good), len(ends) - len(good))
    assert pace.trouble == ""
    assert pace.enter(), "a permit was not given back"
    assert pace.enter(), "a permit was not given back"


@pytest.mark.parametrize("end", [*TAKEN, (409, "version_conflict_engine_exception")])
def test_an_accepted_record_is_not_sent_again(tmp_path: Path, end: tuple[int, str]) -> None:
    stub = BulkStub(lambda _id: end)
    sender, _, _ = sender_of(tmp_path, stub.target())
    assert sender.deliver([record(number) for number in range(10)])
    assert set(stub.came.values()) == {1}


@pytest.mark.parametrize("answer", [*GARBAGE, *AWAY])
def test_an_answer_that_settles_nothing_raises_what_it_means(answer: Answer) -> None:
    with pytest.raises((TargetUnreachable, TargetRefuses)):
        BulkStub(requests=lambda _ids: answer).target().send([record(1)])


@pytest.mark.parametrize(
    "item",
    [{}, {"index": {"status": 201}}, {"create": None}, {"create": {}}, {"create": {"status": "x"}}, None, 7],
)
@pytest.mark.parametrize("errors", [True, False])
def test_an_item_of_another_shape_settles_nothing(item: Any, errors: bool) -> None:
    if not errors and isinstance(item, dict) and isinstance(item.get("create"), dict):
        return  # without errors the body is not read
    answer = Answer(200, {}, {"errors": errors, "items": [item]})
    with pytest.raises(TargetUnreachable):
        BulkStub(requests=lambda _ids: answer).target().send([record(1)])


def test_a_busy_server_says_for_how_long() -> None:
    for status, words, seconds in (
        (429, "7", 7.0),
        (503, "900", 60.0),
        (429, "Wed, 21 Oct", 0.0),
        (429, "-1", 0.0),
    ):
        stub = BulkStub(requests=lambda _ids, s=status, w=words: error_answer(s, **{"retry-after": w}))  # type: ignore[misc]
        with pytest.raises(TargetUnreachable) as found:
            stub.target().send([record(1)])
        assert found.value.delay == seconds
        assert isinstance(found.value, TargetBusy) == (status == 429)


def test_a_fault_of_a_target_ends_no_thread_and_loses_nothing(tmp_path: Path) -> None:
    faults = [KeyError("x"), RuntimeError("y"), RecursionError()]

    def request(_ids: list[str]) -> None:
        if faults:
            raise faults.pop()

    stub = BulkStub(requests=request)
    sender, counts, pace = sender_of(tmp_path, stub.target())
    assert sender.deliver([record(number) for number in range(4)])
    assert (counts.created, pace.trouble) == (4, "")


def test_a_delivery_that_is_stopped_is_not_settled(tmp_path: Path) -> None:
    def stop(_ids: list[str]) -> Answer:
        pace.stop()
        return error_answer(503)

    stub = BulkStub(requests=stop)
    sender, counts, pace = sender_of(tmp_path, stub.target())
    assert not sender.deliver([record(1)])
    assert counts.created == 0


# ---------------------------------------------------------------------- dead letters
def test_while_no_dead_letter_can_be_written_no_record_is_settled(tmp_path: Path) -> None:
    (tmp_path / "dead-letters").write_text("in the way")
    stub = BulkStub(lambda _id: (400, "x"))
    sender, counts, pace = sender_of(tmp_path, stub.target())
    seen = list[str]()

    def repair(_ids: list[str]) -> None:
        seen.append(pace.trouble)
        if len(seen) == 3:
            (tmp_path / "dead-letters").unlink()

    stub.requests = repair
    assert sender.deliver([record(1), record(2)])
    assert "cannot be stored" in seen[1]
    assert counts.dead == len(dead_letters(tmp_path / "spool")) == 2


def test_a_dead_letter_holds_the_document_as_it_was_even_if_it_is_no_json(tmp_path: Path) -> None:
    texts = [b'{"a": "\xc3\xa4"}', b'{"a": ', b"\xff\xfe", b"", b'{"a": "]\\u2028"}']
    letters = DeadLetters(tmp_path / "dead-letters", "x")
    letters.write([RefusedRecord(b'{"create":{}}\n' + text + b"\n", 400, 'r"\n') for text in texts])
    found = [letter["document"] for letter in dead_letters(tmp_path / "spool")]
    assert found == [{"a": "ä"}, '{"a": ', "\ufffd\ufffd", "", {"a": "]\u2028"}]
    assert letters.count == 5


def test_a_request_refused_as_a_whole_says_why() -> None:
    with pytest.raises(RequestMalformed, match="parse_exception: so it is"):
        BulkStub(requests=lambda _ids: error_answer(400, "parse_exception")).target().send([record(1)])
