"""The body of a callback."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from orchestrator.callbacks.body import callback_body
from orchestrator.callbacks.callback import idempotency_key
from orchestrator.model.definition import build_definition
from orchestrator.model.definition_parts import CallbackEvent
from orchestrator.model.job import JobError, JobState
from orchestrator.model.states import Status
from queues.model.names import Token
from queues.model.record import Record
from spark_runner.runners.base import SubmissionPlace, application_page

DOCUMENT = Path(__file__).parents[2] / "docs" / "callbacks.md"
PLACE = {"backend": "yarn", "cluster": {"resource_manager": "http://a:8088,http://b:8088"}}


def body(
    attempt: dict[str, Any] | None = None,
    status: Status = Status.SUCCESS,
    event: CallbackEvent = "end",
    **state: Any,
) -> dict[str, Any]:
    definition = build_definition(
        {
            "name": "n",
            "python": "pass",
            "labels": {"fire_time": "2026-01-31T06:00:00Z", "x": "password=1234", "api_token": "t1234"},
        },
        "test",
    )
    job = JobState.enqueued("n").evolve(status=Status.RUNNING).evolve(status=status, attempt=1, **state)
    record = Record("job", "key", "success", "default", Token(due=1, seq=1, id="job"), "nonce")
    return callback_body(record, job, definition, attempt, event=event, number=7, status=status)


def test_unknown_values_are_null_and_each_field_is_there() -> None:
    bare = body()
    assert bare == json.loads(json.dumps(bare))
    assert [name for name, value in bare.items() if value is None] == [
        *("seconds", "backend", "cluster", "host", "application_id", "ui", "history"),
        *("warning", "error", "written"),
    ]
    assert set(bare) == set(body({"place": PLACE}))


def test_the_document_shows_each_field() -> None:
    shown = json.loads(DOCUMENT.read_text("utf-8").partition("```json\n")[2].partition("```")[0])
    made = body()
    assert list(shown) == list(made)
    for part in ("times", "counters", "monitor"):
        assert list(shown[part]) == list(made[part])
    assert list(shown["written"]) == list(body({"tables": [{}]})["written"])


def test_the_body_has_times_the_previous_status_and_the_cluster() -> None:
    times: dict[str, Any] = {"started": "2026-01-31T06:00:00.000Z", "ended": "2026-01-31T06:01:01.500Z"}
    document = body({"place": PLACE}, application_id="application_1", **times)
    assert document["previous_status"] == "RUNNING"
    assert document["seconds"] == 61.5
    assert document["times"]["first_started"] == times["started"]
    assert (document["backend"], document["cluster"]) == ("yarn", PLACE["cluster"])
    assert document["ui"] == "http://a:8088/cluster/app/application_1"
    assert document["fire_time"] == "2026-01-31T06:00:00Z"


def test_only_the_end_has_the_address_of_the_history() -> None:
    page = "http://history:18080/history/local-1"
    assert body(history=page)["history"] == page
    assert body(history=page, event="warn")["history"] is None


def test_a_status_that_the_job_gets_by_its_end_has_the_one_in_its_record_before_it() -> None:
    state = JobState.enqueued("n").evolve(status=Status.RUNNING).evolve(status=Status.KILL)
    assert state.previous is Status.RUNNING
    assert body(status=Status.CANCEL)["previous_status"] == "RUNNING"


def test_the_list_of_written_tables_is_bounded() -> None:
    table = {
        "target": "t" * 2_000,
        "connector": "csv",
        "rows": 2,
        "location": "s3://u:secret@there/x",
        "seconds": 1,
    }
    metrics = {"output_rows": 4, "output_bytes": 100}
    written = body({"tables": [table] * 150, "tables_left_out": 3, "metrics": metrics})["written"]
    assert (len(written["tables"]), written["tables_left_out"]) == (100, 53)
    assert (written["rows"], written["bytes"]) == (4, 100)
    assert len(json.dumps(written)) < 100_000
    assert written["tables"][0]["location"] == "s3://***@there/x"


@pytest.mark.parametrize("tables", [None, 7, "x", [None], [{"rows": "many", "location": {}}]])
def test_a_node_with_any_content_is_shown_as_far_as_it_is_valid(tables: object) -> None:
    json.dumps(body({"tables": tables, "place": {"backend": "x", "what": 1}, "metrics": tables}))
    json.dumps(body({"tables": tables, "place": {"backend": "x", "host": 7, "cluster": tables or 7}}))


def test_secrets_are_masked() -> None:
    error = JobError(error_class="user", type="E", message="jdbc://u:hunter22@db failed, token=abcdef")
    text = json.dumps(body(error=error))
    text += json.dumps(body(event="warn", warning="password: hunter22"))
    assert body(event="running", error=error, warning="x")["error"] is None
    assert body(error=error, warning="x")["warning"] is None
    text += json.dumps(body({"place": {**PLACE, "cluster": {"resource_manager": "http://u:x@hunter22@a"}}}))
    assert re.findall("hunter22|abcdef|1234", text) == []


def test_the_key_is_made_of_what_names_the_event() -> None:
    assert idempotency_key(body()) == "key-1-end-SUCCESS-7"


@pytest.mark.parametrize(
    ("place", "page"),
    [
        (
            SubmissionPlace("yarn", cluster={"resource_manager": "http://a:8088/"}),
            "http://a:8088/cluster/app/id",
        ),
        (
            SubmissionPlace("standalone", "h", cluster={"ui": "http://a:8080,http://b:8080"}),
            "http://a:8080/app/?appId=id",
        ),
        (SubmissionPlace("kubernetes", cluster={"master": "k8s://x"}), None),
        (SubmissionPlace("local", "h"), None),
        (SubmissionPlace("yarn"), None),
    ],
)
def test_the_page_of_an_application_is_that_of_its_manager(place: SubmissionPlace, page: str | None) -> None:
    assert application_page(place, "id") == page
    assert application_page(place, None) is None
