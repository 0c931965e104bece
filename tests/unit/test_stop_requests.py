"""Which request a stop node holds after several requests, and what its driver and its worker make of it."""

from typing import Any

import pytest

from orchestrator.model.stop_requests import TIME_LIMIT, act_in, is_time_limit, request_to_stop
from queues import Create, Delete, Operation, Set, decode, encode
from queues.session.wire import Stat
from spark_runner.protocol.stop_order import is_graceful

KILL = {"run_key": "key", "by": "ada", "since": "now"}
GRACEFUL = {**KILL, "by": "bob", "graceful": True}
LIMIT = {"run_key": "key", "since": "later", "reason": TIME_LIMIT}
BOTH = {**GRACEFUL, "reason": TIME_LIMIT}
EARLIER = {**KILL, "run_key": "of an earlier job"}


def asked(said: dict[str, Any] | None, document: dict[str, Any], login: str = "") -> list[Operation]:
    found = None if said is None else (encode(said), Stat(3, 0, 0, 0, 0, 0))
    return request_to_stop("/stop", found, document, login=login)


def result(said: dict[str, Any] | None, document: dict[str, Any]) -> object:
    """The document of the node afterwards."""
    operations = asked(said, document)
    if not operations:
        return said
    written = operations[-1]
    assert isinstance(written, Create | Set)
    return decode(written.data or b"{}")


@pytest.mark.parametrize(
    ("said", "document", "expected"),
    [
        *[(None, each, each) for each in (KILL, GRACEFUL, LIMIT)],
        *[(EARLIER, each, each) for each in (KILL, GRACEFUL, LIMIT)],
        *[(KILL, each, KILL) for each in (KILL, GRACEFUL, LIMIT)],
        (GRACEFUL, GRACEFUL, GRACEFUL),
        (GRACEFUL, KILL, KILL),
        (GRACEFUL, LIMIT, BOTH),
        (LIMIT, LIMIT, LIMIT),
        (LIMIT, KILL, KILL),
        (LIMIT, GRACEFUL, BOTH),
        (BOTH, KILL, KILL),
        (BOTH, LIMIT, BOTH),
        (BOTH, GRACEFUL, BOTH),
    ],
)
def test_no_request_weakens_another(said: Any, document: Any, expected: Any) -> None:
    assert result(said, document) == expected
    assert bool(asked(said, document)) is (said != expected)


@pytest.mark.parametrize(
    ("document", "ends_after_batch", "is_limit"),
    [(KILL, False, False), (GRACEFUL, True, False), (LIMIT, False, True), (BOTH, False, False)],
)
def test_what_driver_and_worker_read(
    document: dict[str, Any], ends_after_batch: bool, is_limit: bool
) -> None:
    data = encode(document)
    assert (is_graceful(data), is_time_limit(data)) == (ends_after_batch, is_limit)


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[1]", b'"graceful"', b"\xff", b'{"graceful": 1}', b"[" * 100_000]
)
def test_a_request_that_cannot_be_read_ends_the_driver_at_once(data: bytes) -> None:
    assert not is_graceful(data)


def test_the_act_of_a_graceful_request_names_its_kind() -> None:
    for document, detail in ((KILL, ""), (GRACEFUL, "graceful"), (BOTH, "graceful")):
        act = act_in(encode(document))
        assert act is not None
        assert (act.action, act.by, act.detail) == ("kill", document["by"], detail)
    assert act_in(encode(LIMIT)) is None


def test_a_worker_that_holds_the_job_gets_to_know_of_a_stronger_request() -> None:
    # Its watch is on the folder: it reports new nodes, not new data.
    assert [type(each) for each in asked(GRACEFUL, KILL)] == [Delete, Create]


def test_the_node_is_for_the_login_of_the_driver() -> None:
    (created,) = asked(None, GRACEFUL, "run-key:abc")
    assert isinstance(created, Create)
    assert decode(created.data) == {**GRACEFUL, "login": "run-key:abc"}
    assert asked({**GRACEFUL, "login": "run-key:abc"}, GRACEFUL, "run-key:abc") == []
    renewed = asked({**KILL, "login": "run-key:old"}, GRACEFUL, "run-key:abc")
    assert [type(each) for each in renewed] == [Delete, Create]
    assert isinstance(renewed[1], Create)
    assert decode(renewed[1].data) == {**KILL, "login": "run-key:abc"}
