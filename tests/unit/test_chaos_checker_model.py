"""The checker against random runs: it accepts correct ones and detects each removed protection."""

import pytest

from tests.chaos.checker import check
from tests.chaos.model import RULES, Model
from tests.chaos.model_server import Broken
from tests.chaos.report import Invariant, Report

TICKS = 400
SEEDS = 100
BROKEN_SEEDS = 12


def run(seed: int, broken: Broken = Broken.NOTHING) -> Report:
    model = Model(seed, broken).run(TICKS)
    return check(model.events, model.snapshot(), RULES)


def test_runs_with_killed_actors_and_lost_sessions_violate_nothing() -> None:
    reports = [run(seed) for seed in range(SEEDS)]
    assert [str(report) for report in reports if not report.ok] == []
    assert sum(report.seen["unanswered"] for report in reports) > 2 * SEEDS
    assert sum(report.seen["step_refused"] for report in reports) > SEEDS
    assert sum(report.seen["removed_acked"] for report in reports) > SEEDS


@pytest.mark.parametrize(
    ("broken", "invariant"),
    [
        (Broken.HOLDING, Invariant.STALE_FENCE),
        (Broken.REMOVAL, Invariant.STALE_FENCE),
        (Broken.LOCK, Invariant.OVERLAP),
        (Broken.MOVED_ON, Invariant.STALE_CLAIM),
        (Broken.DELETE, Invariant.NOT_IN_ONE_QUEUE),
        (Broken.CREATE, Invariant.NOT_IN_ONE_QUEUE),
        (Broken.DUE, Invariant.EARLY),
        (Broken.GRAPH, Invariant.TRANSITION),
        (Broken.LIMIT, Invariant.ATTEMPTS),
        (Broken.COUNT, Invariant.ATTEMPTS),
        (Broken.TAKEN, Invariant.PUT_TWICE),
        (Broken.STORED, Invariant.LOST),
        (Broken.UNLOCK, Invariant.LEFT_LOCK),
        (Broken.ROLLBACK, Invariant.STALE_FENCE),
    ],
)
def test_a_protection_that_is_taken_out_is_missed(broken: Broken, invariant: Invariant) -> None:
    reports = [run(seed, broken) for seed in range(BROKEN_SEEDS)]
    assert sum(invariant in report.violated for report in reports) >= BROKEN_SEEDS / 4
