"""The workers as rows of a table."""

from collections.abc import Mapping, Sequence

from rich.console import RenderableType

from orchestrator.cli.output import table
from orchestrator.doctor.status import WorkerStatus

_COLUMNS = ("worker", "state", "slots", "pools", "adopted", "version")  # the most important first


def workers_table(workers: Sequence[WorkerStatus]) -> RenderableType:
    """One row per worker: its pools with weights, slots used of all, adopted drivers, state and version."""
    rows = [
        [w.name, _state(w), f"{w.used:,}/{w.slots:,}", _pools(w.pools), w.adopted or "", w.version]
        for w in workers
    ]
    return table(_COLUMNS, rows)


def _pools(pools: Mapping[str, int] | None) -> str:
    if pools is None:
        return "all"
    named = [f"{pool}={weight}" if weight > 1 else pool for pool, weight in pools.items()]
    return ", ".join(named) or "its own job"


def _state(worker: WorkerStatus) -> str:
    states = ["leader"] if worker.leads else []
    if worker.draining:
        states.append(f"draining, {worker.held:,} left")
    elif worker.refuses and worker.used < worker.slots:
        states.append("takes no job")
    return ", ".join(states)
