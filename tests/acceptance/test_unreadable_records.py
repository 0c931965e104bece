"""Unreadable records and log lines: the commands that list them continue."""

import json

import pytest

from queues.model.operations import Create, Set
from tests.acceptance.support import Shell
from tests.operators_support import Stage

BAD = {
    "deep": b"[" * 50_000,
    "half": b'{"name": "\\ud800"}',
    "bytes": b"\xff",
    "huge": b'{"claims": ' + b"9" * 5_000 + b"}",
}


@pytest.fixture
def operator(stage: Stage, shared_shell: Shell) -> Shell:
    """A shell at the root of a stage with unreadable jobs, and a job with invalid times."""
    assert stage.queues.layout.root == shared_shell.environment["ORCHESTRATOR_ROOT"]
    for job_id, data in BAD.items():
        stage.put(job_id=job_id)
        stage.commit(Set(stage.queues.layout.record(job_id), data, -1))
    stage.put(job_id="times", created="not a time", started="0001-01-01T00:00:00Z", ended="2026-01-31")
    stage.put(job_id="well")
    stage.session.ensure_path(stage.nodes.schedules)
    stage.commit(Create(stage.nodes.schedule("broken"), b"\xff"))
    return shared_shell


def test_every_listing_continues_and_names_the_unreadable_records(operator: Shell) -> None:
    listed = {job["id"]: job for job in operator.type("job", "list", "-o", "json").json()}
    assert set(listed) == {*BAD, "times", "well"}
    assert {job_id for job_id, job in listed.items() if (job["error"] or {}).get("error_class")} == set(BAD)
    table = operator.type("job", "list")
    assert (table.code, table.stdout.count("cannot be read"), "not a time" in table.stdout) == (0, 4, True)
    for command in (
        ["queue", "show", "accept"],
        ["cluster", "status"],
        ["queue", "list"],
        ["job", "show", "times"],
    ):
        for output in ("table", "json"):
            ended = operator.type(*command, "-o", output)
            assert (ended.code, "Traceback" in ended.stderr) == (0, False), ended.stderr
    schedules = operator.type("schedule", "list")
    assert (schedules.code, "cannot be read" in schedules.stdout) == (0, True)
    for job_id in BAD:
        ended = operator.type("job", "show", job_id)
        assert (ended.code, "cannot be read" in ended.stderr, "unexpected" in ended.stderr) == (
            1,
            True,
            False,
        )
    json.loads(operator.type("cluster", "doctor", "-o", "json").stdout)
