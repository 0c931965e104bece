"""Five hundred jobs under faults: none is lost, none runs twice, no limit is overshot, nothing is left."""

from pathlib import Path

import pytest

from tests.chaos.job_soak import Soak, Trouble, run

pytestmark = [pytest.mark.campaign, pytest.mark.timeout(600)]

SEED = 5


def test_five_hundred_jobs_survive_workers_that_die_and_a_server_that_restarts(
    tmp_path: Path, process_mark: str
) -> None:
    assert process_mark
    outcome = run(Soak(SEED), tmp_path / "soak")
    print(f"seed {SEED}: {outcome}")  # noqa: T201 - so that a run can be had again
    assert outcome.ok, f"seed {SEED}: {outcome}"
    assert set(outcome.faults) >= {Trouble.KILL, Trouble.STOP, Trouble.SERVER}
    assert outcome.starts > 500
    assert all(outcome.highest.values()), "the limits were felt"
