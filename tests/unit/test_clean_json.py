"""JSON text that is written as it is: only text in which the redactor would change nothing."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.logs.record.redaction import Redactor

PHRASE = 'pa"ss\nwörd'
NAMES = st.sampled_from(
    ["id", "conf", "variables", "options", "labels", "settings", "environment", "headers", "callback", "url"]
) | st.text(max_size=8)
WORDS = st.sampled_from(
    [
        *("--sas", "--password", "hunter22", PHRASE, "https://host/path?x=1", "password=abc", "${env:A}"),
        *(
            "connection string",
            "sas",
            "azure.sas",
            "job-1",
            "2026-11-30T06:26:25.441Z",
            "AKIAABCDEFGHIJKLMNOP",
        ),
    ]
) | st.text(max_size=12)
VALUES = st.recursive(
    WORDS | st.none() | st.booleans() | st.integers(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES | WORDS, inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_what_is_clean_holds_nothing_to_mask(document: Any) -> None:
    redactor = Redactor([PHRASE])
    if redactor.is_clean_json(json.dumps(document, ensure_ascii=False)):
        assert redactor.document(document) == document


@pytest.mark.parametrize(
    "document",
    [
        {"error": "password=hunter22"},
        {"text": PHRASE},
        {"labels": {"azure.sas": "x"}},
        {"arguments": ["--sas", "x"]},
        {"callback": {"url": "https://host/path"}},
    ],
)
def test_what_may_hold_a_secret_is_not_clean(document: dict[str, Any]) -> None:
    assert not Redactor([PHRASE]).is_clean_json(json.dumps(document, ensure_ascii=False))


def test_a_usual_job_is_clean() -> None:
    job = {"id": "job-1", "labels": {}, "tuned": {"spark.executor.cores": "2"}, "times": {"accept": "2026"}}
    assert Redactor([PHRASE]).is_clean_json(json.dumps(job))
