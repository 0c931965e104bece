"""Hundreds of jobs under faults: none is lost, none runs twice, no limit is exceeded, no node is left."""

from pathlib import Path

import pytest

from tests.chaos.job_soak import KINDS, Soak, Trouble, run
from tests.sampling import chance, is_whole, seed

pytestmark = [pytest.mark.campaign, pytest.mark.timeout(600)]


def soak() -> Soak:
    """500 jobs and 16 faults; in CI 100 jobs and each kind of fault in random order."""
    if is_whole():
        return Soak(seed())
    kinds = chance("soak").sample(KINDS, len(KINDS))
    return Soak(seed(), jobs=100, workers=2, seconds=14.0, faults=len(kinds), kinds=kinds)


def test_hundreds_of_jobs_survive_workers_that_die_and_a_server_that_restarts(
    tmp_path: Path, process_mark: str
) -> None:
    assert process_mark
    played = soak()
    outcome = run(played, tmp_path / "soak")
    print(f"seed {played.seed}: {outcome}")  # noqa: T201 - so that a run can be repeated
    assert outcome.ok, f"seed {played.seed}: {outcome}"
    assert set(outcome.faults) >= {Trouble.KILL, Trouble.STOP, Trouble.SERVER}
    assert outcome.starts > played.jobs
    assert all(outcome.highest.values()), "the limits took effect"
