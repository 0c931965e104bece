"""What a driver writes into ZooKeeper is masked before it is written, and before it is cut."""

import pytest

from spark_runner import outcome
from spark_runner.attempt import recordable
from spark_runner.redacted import know
from tests.secret_kinds import KINDS, Kind


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


def test_what_a_plan_names_is_masked_in_all_that_is_recorded() -> None:
    know(["word-of-the-plan"])
    table = {"target": "t", "location": "https://ada:hunter22@host/word-of-the-plan", "rows": 3}
    facts = recordable({"state": "succeeded", "tables": [table], "exit_code": 0})
    assert facts == {
        "tables": [{"target": "t", "location": "https://***@host/***", "rows": 3}],
        "exit_code": 0,
    }
