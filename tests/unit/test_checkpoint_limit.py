"""The limit of micro-batches in the record of a checkpoint."""

import json
from dataclasses import replace

import pytest

from spark_runner.sql.checkpoints.record import Record

RECORD = Record("f", "s")


def test_the_record_keeps_the_limit_also_for_a_query_that_takes_it_over() -> None:
    kept = replace(RECORD, limit=1200)
    assert Record.of(kept.text(), "url").limit == 1200
    assert kept.taken_over("g", ()).limit == 1200
    assert "limit" not in json.loads(RECORD.text())


@pytest.mark.parametrize("limit", [0, -1, 2.5, True, "7", None, 10**400, [1]])
def test_a_wrong_limit_is_none_and_stops_no_job(limit: object) -> None:
    text = json.dumps({"fingerprint": "f", "stream": "s", "limit": limit})
    assert Record.of(text, "url") == RECORD
