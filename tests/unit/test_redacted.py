"""Data that a driver writes into ZooKeeper is masked before it is cut and written."""

from collections.abc import Callable

import pytest

from orchestrator.callbacks import callback
from orchestrator.logs.record.redaction import REDACTOR
from orchestrator.worker import transitions
from spark_runner.driver import outcome
from spark_runner.protocol.attempt import outcome_facts
from spark_runner.protocol.redacted import add_secrets
from spark_runner.runners import submission_state
from spark_runner.runners.yarn.verdict import verdict_of
from tests.secret_kinds import KINDS, Kind
from tests.unit.test_yarn_verdict import application


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_the_error_of_a_program_holds_no_kind_of_secret(kind: Kind) -> None:
    try:
        raise RuntimeError(kind.text)  # noqa: TRY301 - with a traceback, as of a program
    except RuntimeError as error:
        described = outcome.of_error(error)["error"]
    said, _ = outcome.of_exit(SystemExit(f"it ends: {kind.text}"))
    for text in (described["message"], described["traceback"], said["error"]["message"]):
        assert "***" in text
        assert [trace for trace in kind.traces if trace in text] == []


def test_secrets_of_a_plan_are_masked_in_all_records() -> None:
    add_secrets(["word-of-the-plan"])
    table = {"target": "t", "location": "https://ada:hunter22@host/word-of-the-plan", "rows": 3}
    facts = outcome_facts({"state": "succeeded", "tables": [table], "exit_code": 0})
    assert facts == {
        "tables": [{"target": "t", "location": "https://***@host/***", "rows": 3}],
        "exit_code": 0,
    }


def _in_words_of_a_jvm(text: str) -> str:
    return submission_state.trouble(f"Error: {text}")


def _in_a_verdict_of_yarn(text: str) -> str:
    return str(verdict_of(application("FAILED", "FAILED", text)))


def _in_the_reason_of_a_dead_job(text: str) -> str:
    error = transitions._reason(ValueError(text))  # noqa: SLF001 - the error in the record
    return f"{error.message} {error.traceback}"


@pytest.mark.parametrize(
    "shown", [_in_words_of_a_jvm, _in_a_verdict_of_yarn, _in_the_reason_of_a_dead_job, callback.shown]
)
def test_words_are_masked_before_they_are_cut(shown: Callable[[str], str]) -> None:
    secret = "5e1f-" * 50
    REDACTOR.add([secret])
    for start in (*range(90), *range(380, 500, 10), *range(780, 1000, 10), *range(3_780, 4_000, 10)):
        assert "5e1f" not in shown(f"{'x' * start} {secret} {'y' * 8_000}")
